//! How what is above the engine takes part in compaction: a filter sees each entry that would
//! survive and may let it go.

use std::sync::Arc;

use bytes::Bytes;

use super::waste::{Suspect, Waste};
use crate::engine::batch::TreeId;
use crate::engine::entry::{Sequence, Tag, hash_key};
use crate::engine::iter::{Iter, IterOptions};
use crate::engine::snapshot::Pinned;
use crate::engine::view::{GetOptions, View};
use crate::error::Result;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays.
    Keep,
    /// It goes, and so does every older version of the key among the files being merged. Only
    /// for entries that no reader can reach: an older version in a deeper level would show again.
    Drop,
    /// A delete takes its place, with its sequence; the ordinary rule decides when that may go.
    Tombstone,
}

/// Judges the entries of one compaction, in internal order.
pub trait Filter: Send {
    /// Called for the newest version of each key between two snapshots, deletes included.
    fn decide(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<Decision>;
}

/// Makes a filter for each compaction of a tree.
pub trait FilterFactory: Send + Sync + std::fmt::Debug {
    /// `None` if this compaction needs no filter.
    fn filter(&self, job: &FilterJob) -> Result<Option<Box<dyn Filter>>>;

    /// What of a table a filter made for the same job would let go. Must not read its blocks.
    fn judge(&self, _: &FilterJob, _: &Suspect<'_>) -> Result<Waste> {
        Ok(Waste::default())
    }
}

/// What a filter or a judge may know and hold on to. Everything in it stays readable until the result of the
/// compaction is installed, and the result is not installed before the log is synced through
/// `pinned.current`.
#[derive(Clone, Debug)]
pub struct FilterJob {
    /// The tree being compacted.
    pub tree: TreeId,
    /// Whether no level below the output holds keys of its range. Not known to a judge.
    pub bottommost: bool,
    /// The snapshots that count, the newest visible sequence included, and reserved numbers.
    pub pinned: Arc<Pinned>,
    /// Memtables and tables at the moment `pinned` was captured or later.
    pub view: Arc<View>,
}

impl FilterJob {
    /// The newest visible sequence when the job began: nothing later may be judged.
    pub fn current(&self) -> Sequence {
        self.pinned.current.sequence()
    }

    /// Every sequence some reader may look at, ascending, `current` last.
    pub fn sequences(&self) -> Vec<Sequence> {
        let mut all: Vec<_> = self
            .pinned
            .snapshots
            .iter()
            .map(crate::engine::snapshot::SnapshotPin::sequence)
            .collect();
        all.push(self.current());
        all.dedup();
        all
    }

    /// Iterates over any tree as a reader at `sequence` would, leaving the cache as it is.
    pub fn iter(&self, tree: TreeId, sequence: Sequence, options: IterOptions) -> Result<Iter> {
        let options = IterOptions { no_fill: true, ..options };
        Arc::clone(&self.view).iter(tree, sequence, options)
    }

    /// As [`FilterJob::iter`], but over the tables alone. With [`FilterJob::recent`] before it,
    /// this spares the memtables from being sorted for a few keys.
    pub fn iter_tables(&self, tree: TreeId, sequence: Sequence) -> Result<Iter> {
        let options = IterOptions { no_fill: true, ..IterOptions::default() };
        Arc::clone(&self.view).iter_over(tree, sequence, options, false, &mut |_| Ok(true))
    }

    /// What the memtables say of a key, a deletion being `Some(None)`; `None` if nothing.
    pub fn recent(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
    ) -> Result<Option<Option<Bytes>>> {
        self.view.get_from_memtables(tree, key, hash_key(key), sequence)
    }

    /// The value of a key of any tree as a reader at `sequence` would find it, leaving the cache
    /// as it is.
    pub fn get(&self, tree: TreeId, key: &[u8], sequence: Sequence) -> Result<Option<Bytes>> {
        self.view.get(tree, key, sequence, GetOptions { no_fill: true })
    }
}
