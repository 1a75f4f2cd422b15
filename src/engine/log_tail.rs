//! How far a reader beside a writer has read the log of the writer.

use std::sync::Arc;

use crate::engine::entry::Sequence;
use crate::engine::hash::HashSeed;
use crate::engine::memtable::MemtableSet;
use crate::engine::wal::LogPosition;

/// The memtables that hold the log of the writer up to a position.
#[derive(Clone, Debug)]
pub(crate) struct LogTail {
    /// They hold every commit from their `log_start` to `end`, readable or not.
    pub(crate) memtables: Arc<MemtableSet>,
    pub(crate) end: LogPosition,
    /// The newest commit that was read.
    pub(crate) last_sequence: Sequence,
    /// The seed that the manifest names; a store of format 1 has none.
    pub(crate) hash_seed: Option<HashSeed>,
}
