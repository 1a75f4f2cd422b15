//! What the server has done, counted by each event loop for itself, so that no two threads write
//! the same number.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counted by one event loop.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) commands: Counter,
    pub(crate) input_bytes: Counter,
    pub(crate) output_bytes: Counter,
    pub(crate) connections: Counter,
    pub(crate) rejected: Counter,
    pub(crate) errors: Counter,
    pub(crate) protocol_errors: Counter,
    /// Clients closed because they held too much memory.
    pub(crate) evicted: Counter,
    /// How often each command of the catalogue ran.
    pub(crate) calls: Box<[Counter]>,
}

impl Counters {
    /// For so many kinds of commands.
    pub(crate) fn new(commands: usize) -> Self {
        Self {
            commands: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            connections: Counter::default(),
            rejected: Counter::default(),
            errors: Counter::default(),
            protocol_errors: Counter::default(),
            evicted: Counter::default(),
            calls: (0..commands).map(|_| Counter::default()).collect(),
        }
    }

    /// CONFIG RESETSTAT.
    pub(crate) fn reset(&self) {
        let all = [
            &self.commands,
            &self.input_bytes,
            &self.output_bytes,
            &self.connections,
            &self.rejected,
            &self.errors,
            &self.protocol_errors,
            &self.evicted,
        ];
        all.into_iter().chain(&self.calls).for_each(|counter| counter.0.store(0, RELAXED));
    }
}

const RELAXED: Ordering = Ordering::Relaxed;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, RELAXED);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(RELAXED)
    }
}
