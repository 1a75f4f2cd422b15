//! Compaction filters: the layer above the engine sees each entry that would survive a merge, and
//! may drop it.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::batch::TreeId;
use crate::engine::entry::{Sequence, Tag};
use crate::engine::garbage::{Garbage, TableStats};
use crate::engine::iter::{Iter, IterOptions};
use crate::engine::snapshot::{PinnedSequences, SnapshotPin};
use crate::engine::sstable::CacheFill;
use crate::engine::view::View;
use crate::error::Result;

/// What a filter decides about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Keep the entry.
    Keep,
    /// Drop the entry and every older version of its key among the merged files. This is allowed
    /// only if no reader can reach the key: an older version in a deeper level would become
    /// visible.
    Drop,
    /// Replace the entry with a tombstone of the same sequence number. The usual rules decide when
    /// the tombstone is dropped.
    Tombstone,
}

/// Decides about the entries of one compaction, in internal order.
pub trait Filter: Send {
    /// Called for the newest version of each key between two snapshots, tombstones included.
    fn decide(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<Decision>;
}

/// Creates the filters for the compactions of a tree.
pub trait FilterFactory: Send + Sync + std::fmt::Debug {
    /// A filter for one compaction; `None` if it needs none.
    fn filter(&self, job: &FilterJob) -> Result<Option<Box<dyn Filter>>>;

    /// Estimates how much of a table a filter for the same job would drop. Must not read the data
    /// blocks of the table.
    fn estimate_garbage(&self, _: &FilterJob, _: &TableStats<'_>) -> Result<Garbage> {
        Ok(Garbage::default())
    }
}

/// The read points of one compaction or garbage estimate.
///
/// Everything visible at them stays readable until the result of the compaction is installed. That
/// happens only after the log is synced through `pinned.current`.
#[derive(Clone, Debug)]
pub struct FilterJob {
    /// The tree being compacted.
    pub tree: TreeId,
    /// Whether no level below the output holds keys of its range. Always `false` for an estimate.
    pub bottommost: bool,
    /// The snapshots to respect, the newest visible sequence number, and the reserved numbers.
    pub pinned: Arc<PinnedSequences>,
    /// The memtables and tables when `pinned` was captured, or later.
    pub view: Arc<View>,
}

impl FilterJob {
    /// The newest visible sequence number when the job began. Later entries must be kept.
    pub fn current(&self) -> Sequence {
        self.pinned.current.sequence()
    }

    /// The sequence numbers at which readers may read, ascending, `current` last.
    pub fn sequences(&self) -> Vec<Sequence> {
        let mut all: Vec<_> = self.pinned.snapshots.iter().map(SnapshotPin::sequence).collect();
        all.push(self.current());
        all.dedup();
        all
    }

    /// An iterator over any tree at `sequence`. It does not fill the block cache.
    pub fn iter(&self, tree: TreeId, sequence: Sequence, options: IterOptions) -> Result<Iter> {
        let options = IterOptions { cache_fill: CacheFill::Skip, ..options };
        Arc::clone(&self.view).iter(tree, sequence, options)
    }

    /// An iterator over the tables of `tree` at `sequence`, without the memtables. With a call of
    /// [`FilterJob::recent`] before it, a lookup of a few keys need not sort the memtables.
    pub fn iter_tables(&self, tree: TreeId, sequence: Sequence) -> Result<Iter> {
        let options = IterOptions { cache_fill: CacheFill::Skip, ..IterOptions::default() };
        Arc::clone(&self.view).iter_over(tree, sequence, options, false, &mut |_| Ok(true))
    }

    /// The value of a key in the memtables: `Some(None)` if they hold a tombstone, `None` if they
    /// hold no entry of the key.
    pub fn recent(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
    ) -> Result<Option<Option<Bytes>>> {
        self.view.get_from_memtables(tree, &self.view.hashed(key), sequence)
    }

    /// The value of a key of any tree at `sequence`. It does not fill the block cache.
    pub fn get(&self, tree: TreeId, key: &[u8], sequence: Sequence) -> Result<Option<Bytes>> {
        self.view.get(tree, key, sequence, CacheFill::Skip)
    }
}
