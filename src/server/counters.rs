//! Statistics of the server. Each event loop has its own counters, so no two threads write the same
//! one.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one event loop.
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
    /// The calls of each command, by its index in the command table.
    calls: Box<[CallCounters]>,
}

/// Counters of the calls of one command.
#[derive(Debug, Default)]
struct CallCounters {
    ran: Counter,
    /// Calls that ran and whose reply is an error.
    failed: Counter,
    /// Calls that did not run: wrong number of arguments, or no password.
    rejected: Counter,
    nanos: Counter,
}

/// The sums of a command's counters over all event loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCounts {
    pub(crate) ran: u64,
    pub(crate) failed: u64,
    pub(crate) rejected: u64,
    pub(crate) micros: u64,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    Done,
    /// The call ran, and its reply is an error.
    Failed,
    Rejected,
}

impl Counters {
    /// Counters for this number of commands.
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
            calls: (0..commands).map(|_| CallCounters::default()).collect(),
        }
    }

    /// Counts a call of a command.
    pub(crate) fn note_call(&self, command: usize, outcome: CallOutcome, nanos: u64) {
        if outcome != CallOutcome::Done {
            self.errors.add(1);
        }
        let Some(calls) = self.calls.get(command) else { return };
        if outcome == CallOutcome::Rejected {
            return calls.rejected.add(1);
        }
        calls.ran.add(1);
        calls.nanos.add(nanos);
        if outcome == CallOutcome::Failed {
            calls.failed.add(1);
        }
    }

    /// Sums up the calls of a command over all event loops.
    pub(crate) fn calls_of(all: &[Self], command: usize) -> CallCounts {
        let calls = || all.iter().filter_map(|counters| counters.calls.get(command));
        let sum =
            |of: fn(&CallCounters) -> &Counter| calls().map(|calls| of(calls).get()).sum::<u64>();
        CallCounts {
            ran: sum(|calls| &calls.ran),
            failed: sum(|calls| &calls.failed),
            rejected: sum(|calls| &calls.rejected),
            micros: sum(|calls| &calls.nanos) / 1000,
        }
    }

    /// Sets all counters to zero, as CONFIG RESETSTAT does.
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

/// A counter that many threads may read.
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
        loops[0].note_call(1, CallOutcome::Done, 1500);
        loops[1].note_call(1, CallOutcome::Failed, 2500);
        loops[1].note_call(1, CallOutcome::Rejected, 9000);
        loops[1].note_call(7, CallOutcome::Done, 1);
        let counts = CallCounts { ran: 2, failed: 1, rejected: 1, micros: 4 };
        assert_eq!(Counters::calls_of(&loops, 1), counts);
        assert_eq!(Counters::calls_of(&loops, 0), CallCounts::default());
        assert_eq!(loops[1].errors.get(), 2);
        loops.iter().for_each(Counters::reset);
        assert_eq!(Counters::calls_of(&loops, 1), CallCounts::default());
    }
}
