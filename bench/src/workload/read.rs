//! Random point reads of keys that are there, and of keys that are not.

use std::hint::black_box;
use std::time::Instant;

use super::{Timed, expect_count, on_threads};
use crate::Result;
use crate::keys::{Random, absent, stored};
use crate::peers::Peer;
use crate::plan::Plan;

/// Share of a row's reads that run untimed before it, so that no row pays for a cold cache.
const WARM_UP_DIVISOR: u64 = 10;

/// Reads that all hit, by `threads` threads together.
pub(crate) fn hits<P: Peer>(peer: &P, plan: &Plan, threads: u64) -> Result<Timed> {
    read_hits(peer, plan, !plan.seed, plan.reads / WARM_UP_DIVISOR)?;
    let each = plan.reads / threads.max(1);
    let start = Instant::now();
    on_threads(threads, |thread| read_hits(peer, plan, plan.seed ^ (thread << 32), each))?;
    Ok(Timed::since(start, each * threads))
}

/// Reads that all miss, though their keys lie between stored ones.
pub(crate) fn misses<P: Peer>(peer: &P, plan: &Plan) -> Result<Timed> {
    let mut random = Random::new(plan.seed);
    let mut found = 0;
    let start = Instant::now();
    for _ in 0..plan.reads {
        found += u64::from(peer.get(&absent(random.below(plan.num)), |_| ())?);
    }
    let timed = Timed::since(start, plan.reads);
    expect_count("absent keys found", found, 0)?;
    Ok(timed)
}

fn read_hits<P: Peer>(peer: &P, plan: &Plan, seed: u64, count: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut found = 0;
    for _ in 0..count {
        let key = stored(random.below(plan.num));
        found += u64::from(peer.get(&key, touch)?);
    }
    expect_count("stored keys found", found, count)
}

/// Reads a byte of the value, as any user would: a value that is pinned but not accessed
/// would not count as a read.
pub(super) fn touch(value: &[u8]) {
    black_box(value.last().copied());
}
