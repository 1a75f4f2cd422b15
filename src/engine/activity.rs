//! Counters of the work that a store has done.

use crate::engine::counter::Counter;

/// Counts since the store was opened. The fields of [`Stats`] with the same names explain them.
///
/// [`Stats`]: crate::engine::Stats
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) commits: Counter,
    pub(crate) flushes: Counter,
    pub(crate) flushed_bytes: Counter,
    pub(crate) merges: Counter,
    pub(crate) merges_for_tombstones: Counter,
    pub(crate) merges_for_garbage: Counter,
    pub(crate) merge_read_bytes: Counter,
    pub(crate) merge_written_bytes: Counter,
    pub(crate) moves: Counter,
    pub(crate) drops: Counter,
    pub(crate) dropped_bytes: Counter,
    pub(crate) dropped_entries: Counter,
    pub(crate) preemptions: Counter,
    pub(crate) shadowed: Counter,
    pub(crate) filtered: Counter,
    pub(crate) elided: Counter,
    pub(crate) stalls: Counter,
    pub(crate) stalled_ns: Counter,
    pub(crate) slowed_ns: Counter,
}
