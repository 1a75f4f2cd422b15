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
use crate::engine::view::{FlushPoint, PublishedView, View};
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
///
/// A job holds no view: one merge takes longer than many memtables live, and would keep them all in
/// memory. Every read uses the view of its moment, in which the pinned sequences are readable.
#[derive(Clone, Debug)]
pub struct FilterJob {
    /// The tree being compacted.
    pub tree: TreeId,
    /// Whether no level below the output holds keys of its range. Always `false` for an estimate.
    pub bottommost: bool,
    /// The snapshots to respect, the newest visible sequence number, and the reserved numbers.
    pub pinned: Arc<PinnedSequences>,
    /// The view that readers get.
    pub(crate) views: Arc<PublishedView>,
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
        self.view().iter(tree, sequence, options)
    }

    /// An iterator over the tables of `tree` at `sequence`, without the memtables, and the flush
    /// point of the tables. With a call of [`FilterJob::recent`] before it, a lookup of a few keys
    /// need not sort the memtables.
    pub fn iter_tables(&self, tree: TreeId, sequence: Sequence) -> Result<(FlushPoint, Iter)> {
        let options = IterOptions { cache_fill: CacheFill::Skip, ..IterOptions::default() };
        let tables = Arc::new(self.views.load().tables_only());
        let point = tables.flush_point();
        Ok((point, tables.iter_over(tree, sequence, options, false, &mut |_| Ok(true))?))
    }

    /// The value of a key in the memtables: `Some(None)` if they hold a tombstone, `None` if they
    /// hold no entry of the key. Then the key is where [`FilterJob::iter_tables`] finds it, unless
    /// its flush point differs from the one returned here: memtables became tables in between.
    pub fn recent(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
    ) -> Result<(FlushPoint, Option<Option<Bytes>>)> {
        let view = self.views.load();
        let found = view.get_from_memtables(tree, &view.hashed(key), sequence)?;
        Ok((view.flush_point(), found))
    }

    /// The value of a key of any tree at `sequence`. It does not fill the block cache.
    pub fn get(&self, tree: TreeId, key: &[u8], sequence: Sequence) -> Result<Option<Bytes>> {
        self.views.load().get(tree, key, sequence, CacheFill::Skip)
    }

    /// The memtables and tables of this moment, for a short time.
    pub(crate) fn view(&self) -> Arc<View> {
        self.views.load_full()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::engine::{Batch, Engine, EngineConfig, MemFs, TreeConfig, WriteOptions};
    use crate::options::Options;

    const TREE: TreeId = TreeId(0);

    fn put(engine: &Engine, key: &[u8], value: &[u8]) {
        let mut batch = Batch::new();
        batch.put(TREE, key, value);
        engine.write(&mut batch, WriteOptions::default()).unwrap();
    }

    /// The bug: a job held the view of its beginning, and with it all memtables of that moment, until
    /// its merge ended. Two merges kept twice the memtables that the budget allows.
    #[test]
    fn a_job_keeps_no_memtables_and_finds_at_its_read_point_what_became_tables() {
        let config = EngineConfig {
            options: Options { background_threads: 0, ..Options::default() },
            trees: vec![TreeConfig::named("tree")],
        };
        let fs = Arc::new(MemFs::untracked());
        let engine = Engine::open(fs, Path::new("/db"), config).unwrap();
        put(&engine, b"key", b"old");
        let job = engine.filter_job(TREE);
        let memtables = Arc::downgrade(&job.view().active);
        let (before, found) = job.recent(TREE, b"key", job.current()).unwrap();
        assert_eq!(found, Some(Some(Bytes::from_static(b"old"))));
        let (point, mut tables) = job.iter_tables(TREE, job.current()).unwrap();
        tables.seek(b"key").unwrap();
        assert!(point == before && !tables.valid());

        put(&engine, b"key", b"new");
        engine.flush().unwrap();
        assert_eq!(memtables.strong_count(), 0, "an iterator over tables and a job are alive");
        let (after, found) = job.recent(TREE, b"key", job.current()).unwrap();
        assert!(after != before && found.is_none());
        let (point, mut tables) = job.iter_tables(TREE, job.current()).unwrap();
        tables.seek(b"key").unwrap();
        assert_eq!((point, tables.value()), (after, &b"old"[..]));
        assert_eq!(job.get(TREE, b"key", job.current()).unwrap().unwrap(), &b"old"[..]);
    }
}
