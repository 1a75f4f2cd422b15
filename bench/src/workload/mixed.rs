//! One thread reads while another overwrites, for a fixed time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{Timed, expect_count, read};
use crate::Result;
use crate::keys::{Random, stored};
use crate::peers::Peer;
use crate::plan::Plan;
use crate::values::Values;

/// What the reader and the writer did.
pub(crate) fn read_while_writing<P: Peer>(
    peer: &P,
    plan: &Plan,
    values: &Values,
) -> Result<(Timed, Timed)> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| stopping(&stop, || read(peer, plan, &stop)));
        let writer = scope.spawn(|| stopping(&stop, || write(peer, plan, values, &stop)));
        let end = Instant::now() + Duration::try_from_secs_f64(plan.mixed_seconds)?;
        while !stop.load(Ordering::Relaxed) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        let panicked = |_| Err("a worker thread panicked".into());
        let reads = reader.join().unwrap_or_else(panicked)?;
        let writes = writer.join().unwrap_or_else(panicked)?;
        Ok((reads, writes))
    })
}

/// A thread that ends, by failure too, ends the measurement.
fn stopping(stop: &AtomicBool, work: impl FnOnce() -> Result<Timed>) -> Result<Timed> {
    let outcome = work();
    stop.store(true, Ordering::Relaxed);
    outcome
}

fn read<P: Peer>(peer: &P, plan: &Plan, stop: &AtomicBool) -> Result<Timed> {
    let mut random = Random::new(plan.seed);
    let (mut reads, mut found) = (0, 0);
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        found += u64::from(peer.get(&stored(random.below(plan.num)), read::touch)?);
        reads += 1;
    }
    let timed = Timed::since(start, reads);
    expect_count("stored keys found while writing", found, reads)?;
    Ok(timed)
}

fn write<P: Peer>(peer: &P, plan: &Plan, values: &Values, stop: &AtomicBool) -> Result<Timed> {
    let mut random = Random::new(!plan.seed);
    let mut writes = 0;
    let start = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        peer.put(&stored(random.below(plan.num)), values.of(writes))?;
        writes += 1;
    }
    Ok(Timed::since(start, writes))
}
