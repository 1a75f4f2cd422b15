//! Writes that are not synced, each on its own: in order, at random, over older ones.

use std::time::{Duration, Instant};

use super::{Timed, expect_count};
use crate::Result;
use crate::event::Latency;
use crate::keys::{Permutation, Random, stored};
use crate::measure::histogram::Histogram;
use crate::peers::Peer;
use crate::plan::Plan;
use crate::values::Values;

/// Keys whose values are read back and compared after a fill.
const VERIFIED: u64 = 1000;

/// Which values a fill writes, so that an overwrite changes them.
#[derive(Clone, Copy)]
pub(crate) enum Edition {
    First,
    Second,
}

impl Edition {
    /// The index of the value that key `index` has in this edition.
    fn value_index(self, index: u64) -> u64 {
        match self {
            Self::First => index,
            Self::Second => !index,
        }
    }
}

pub(crate) fn sequential<P: Peer>(peer: &P, plan: &Plan, values: &Values) -> Result<Timed> {
    let start = Instant::now();
    for index in 0..plan.num {
        peer.put(&stored(index), values.of(index))?;
    }
    Ok(Timed::since(start, plan.num))
}

/// Writes every key once, in an order that the edition fixes.
pub(crate) fn random<P: Peer>(
    peer: &P,
    plan: &Plan,
    values: &Values,
    edition: Edition,
) -> Result<(Timed, Latency)> {
    let seed = match edition {
        Edition::First => plan.seed,
        Edition::Second => !plan.seed,
    };
    let order = Permutation::new(plan.num, seed);
    let mut latencies = Histogram::new();
    let start = Instant::now();
    let mut before = start;
    for step in 0..plan.num {
        let index = order.at(step);
        peer.put(&stored(index), values.of(edition.value_index(index)))?;
        let now = Instant::now();
        latencies.record(now - before);
        before = now;
    }
    Ok((Timed::since(start, plan.num), latency(&latencies)))
}

/// Reads some keys back and compares their values.
pub(crate) fn verify<P: Peer>(
    peer: &P,
    plan: &Plan,
    values: &Values,
    edition: Edition,
) -> Result<()> {
    let mut random = Random::new(plan.seed);
    let mut right = 0;
    for _ in 0..VERIFIED {
        let index = random.below(plan.num);
        let expected = values.of(edition.value_index(index));
        peer.get(&stored(index), |value| right += u64::from(value == expected))?;
    }
    expect_count("values read back", right, VERIFIED)
}

fn latency(histogram: &Histogram) -> Latency {
    let micros = |latency: Duration| latency.as_secs_f64() * 1e6;
    Latency {
        p50_us: micros(histogram.percentile(500)),
        p99_us: micros(histogram.percentile(990)),
        p999_us: micros(histogram.percentile(999)),
        longest_pause_ms: histogram.longest().as_secs_f64() * 1e3,
    }
}
