//! The work itself, the same for every peer. Each function returns what it timed, and fails if
//! the store's answers are wrong: a figure for wrong answers is worth nothing.

pub(crate) mod big;
pub(crate) mod commits;
pub(crate) mod fill;
pub(crate) mod mixed;
pub(crate) mod read;
pub(crate) mod scan;
pub(crate) mod synced;
pub(crate) mod types;

use std::time::Instant;

use crate::Result;

/// Operations done, and how long they took on the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) ops: u64,
    pub(crate) seconds: f64,
}

impl Timed {
    pub(crate) fn since(start: Instant, ops: u64) -> Self {
        Self { ops, seconds: start.elapsed().as_secs_f64() }
    }
}

/// Runs `work` on as many threads and waits for all.
fn on_threads(threads: u64, work: impl Fn(u64) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = (0..threads).map(|i| scope.spawn(move || work(i))).collect();
        started.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err("a worker thread panicked".into()))
        })
    })
}

fn expect_count(what: &str, found: u64, expected: u64) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(format!("wrong answers: {what}: {found} instead of {expected}").into())
}
