//! Writes that return only once they are on the device, by one thread or by many at once.

use std::time::Instant;

use super::{Timed, expect_count, on_threads};
use crate::Result;
use crate::keys::{Permutation, stored};
use crate::peers::Peer;
use crate::plan::Plan;
use crate::values::Values;

/// `plan.sync_num` writes in all, in random order, shared by `threads` threads.
pub(crate) fn fill<P: Peer>(peer: &P, plan: &Plan, values: &Values, threads: u64) -> Result<Timed> {
    let each = (plan.sync_num / threads.max(1)).max(1);
    let order = Permutation::new(each * threads, plan.seed);
    let start = Instant::now();
    on_threads(threads, |thread| {
        (thread * each..(thread + 1) * each).try_for_each(|step| {
            let index = order.at(step);
            peer.put(&stored(index), values.of(index))
        })
    })?;
    let timed = Timed::since(start, each * threads);
    let seen = peer.scan(None, u64::MAX, |_, _| ())?;
    expect_count("entries after synced writes", seen, timed.ops)?;
    Ok(timed)
}
