//! Ordered reads: the whole store once, and short ranges from random places.

use std::hint::black_box;
use std::time::Instant;

use super::{Timed, expect_count};
use crate::Result;
use crate::keys::{Random, stored};
use crate::peers::Peer;
use crate::plan::Plan;

/// One pass over all entries; an operation is an entry.
pub(crate) fn sequential<P: Peer>(peer: &P, plan: &Plan) -> Result<Timed> {
    let start = Instant::now();
    let seen = peer.scan(None, u64::MAX, touch)?;
    let timed = Timed::since(start, seen);
    expect_count("entries of the whole store", seen, plan.num)?;
    Ok(timed)
}

/// A fresh iterator, a seek and the entries after it; an operation is all of that.
pub(crate) fn ranges<P: Peer>(peer: &P, plan: &Plan) -> Result<Timed> {
    let mut random = Random::new(plan.seed);
    let (mut seen, mut expected) = (0, 0);
    let start = Instant::now();
    for _ in 0..plan.seeks {
        let index = random.below(plan.num);
        expected += plan.scan_length.min(plan.num - index);
        seen += peer.scan(Some(&stored(index)), plan.scan_length, touch)?;
    }
    let timed = Timed::since(start, plan.seeks);
    expect_count("entries of short ranges", seen, expected)?;
    Ok(timed)
}

fn touch(key: &[u8], value: &[u8]) {
    black_box((key.last().copied(), value.last().copied()));
}
