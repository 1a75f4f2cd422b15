//! The memtables of all trees. They are filled, frozen and flushed together.

use std::sync::Arc;

use super::table::Memtable;
use crate::engine::batch;
use crate::engine::entry::{Sequence, Tag};
use crate::engine::hash::HashSeed;
use crate::engine::wal::LogPosition;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::atomic::{AtomicU64, Ordering};

/// One memtable per tree.
#[derive(Debug)]
pub struct MemtableSet {
    /// The memtables, by tree index.
    pub trees: Vec<Arc<Memtable>>,
    /// Where in the log the first batch of this set begins.
    pub log_start: LogPosition,
    /// The seed of the store, with which keys are hashed.
    pub hash_seed: HashSeed,
    /// No commit up to this one is in the set.
    pub(crate) begins_after: Sequence,
    /// No commit after this one is in the set.
    last_sequence: AtomicU64,
}

impl MemtableSet {
    /// Empty memtables of so many trees.
    pub fn new(capacity: usize, trees: usize, log_start: LogPosition, hash_seed: HashSeed) -> Self {
        let trees = (0..trees).map(|_| Arc::new(Memtable::new(capacity))).collect();
        let last_sequence = AtomicU64::new(Sequence::MAX);
        Self { trees, log_start, hash_seed, begins_after: 0, last_sequence }
    }

    /// The empty set that takes over when this one is frozen.
    #[must_use]
    pub fn successor(&self, capacity: usize, log_start: LogPosition) -> Self {
        let begins_after = match self.last_sequence.load(Ordering::Relaxed) {
            Sequence::MAX => 0,
            last => last,
        };
        Self { begins_after, ..Self::new(capacity, self.trees.len(), log_start, self.hash_seed) }
    }

    /// Notes that the set takes no commits after `sequence`.
    pub(crate) fn end_at(&self, sequence: Sequence) {
        self.last_sequence.store(sequence, Ordering::Relaxed);
    }

    /// The newest commit up to `visible` that the set may hold. A reader that sees a commit of the
    /// next set sees here that this one has ended, since that was noted before the commit.
    #[inline]
    pub(crate) fn newest_up_to(&self, visible: Sequence) -> Sequence {
        visible.min(self.last_sequence.load(Ordering::Relaxed))
    }

    /// Bytes used by the memtables of all trees.
    pub fn bytes(&self) -> usize {
        self.trees.iter().map(|memtable| memtable.bytes()).sum()
    }

    /// Whether all memtables are empty.
    pub fn is_empty(&self) -> bool {
        self.trees.iter().all(|memtable| memtable.is_empty())
    }

    /// Applies a batch in the form the log stores and returns its sequence number.
    pub(crate) fn apply(&self, batch: &[u8]) -> Result<Sequence> {
        let broken = || Error::new(ErrorKind::Corrupt, "a batch names a tree that does not exist");
        let (sequence, mut operations) = batch::decode(batch).ok_or_else(broken)?;
        while let Some(operation) = operations.take_next()? {
            let memtable = self.trees.get(operation.tree.index()).ok_or_else(broken)?;
            let tag = Tag::new(sequence, operation.kind);
            let hash = self.hash_seed.hash(operation.key);
            memtable.insert(hash, operation.key, tag, operation.value)?;
            memtable.update_order();
        }
        Ok(sequence)
    }
}
