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
    /// By the number of the command in the catalogue.
    calls: Box<[Calls]>,
}

/// How the calls of a command went.
#[derive(Debug, Default)]
struct Calls {
    ran: Counter,
    /// Of those that ran.
    failed: Counter,
    /// Not run: wrong number of arguments, no password.
    rejected: Counter,
    nanos: Counter,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCounts {
    pub(crate) ran: u64,
    pub(crate) failed: u64,
    pub(crate) rejected: u64,
    pub(crate) micros: u64,
}

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// It ran, and its reply is an error.
    Failed,
    Rejected,
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
            calls: (0..commands).map(|_| Calls::default()).collect(),
        }
    }

    /// A command was called.
    pub(crate) fn note_call(&self, command: usize, outcome: Outcome, nanos: u64) {
        if outcome != Outcome::Done {
            self.errors.add(1);
        }
        let Some(calls) = self.calls.get(command) else { return };
        if outcome == Outcome::Rejected {
            return calls.rejected.add(1);
        }
        calls.ran.add(1);
        calls.nanos.add(nanos);
        if outcome == Outcome::Failed {
            calls.failed.add(1);
        }
    }

    /// How the calls of a command went, in all of these.
    pub(crate) fn calls_of(all: &[Self], command: usize) -> CallCounts {
        let calls = || all.iter().filter_map(|counters| counters.calls.get(command));
        let sum = |of: fn(&Calls) -> &Counter| calls().map(|calls| of(calls).get()).sum::<u64>();
        CallCounts {
            ran: sum(|calls| &calls.ran),
            failed: sum(|calls| &calls.failed),
            rejected: sum(|calls| &calls.rejected),
            micros: sum(|calls| &calls.nanos) / 1000,
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
        let calls = self.calls.iter();
        let calls =
            calls.flat_map(|calls| [&calls.ran, &calls.failed, &calls.rejected, &calls.nanos]);
        all.into_iter().chain(calls).for_each(|counter| counter.0.store(0, RELAXED));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_outcome_over_all_loops_until_they_are_reset() {
        let loops = [Counters::new(2), Counters::new(2)];
        loops[0].note_call(1, Outcome::Done, 1500);
        loops[1].note_call(1, Outcome::Failed, 2500);
        loops[1].note_call(1, Outcome::Rejected, 9000);
        loops[1].note_call(7, Outcome::Done, 1);
        let counts = CallCounts { ran: 2, failed: 1, rejected: 1, micros: 4 };
        assert_eq!(Counters::calls_of(&loops, 1), counts);
        assert_eq!(Counters::calls_of(&loops, 0), CallCounts::default());
        assert_eq!(loops[1].errors.get(), 2);
        loops.iter().for_each(Counters::reset);
        assert_eq!(Counters::calls_of(&loops, 1), CallCounts::default());
    }
}
