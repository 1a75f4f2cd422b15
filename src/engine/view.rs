//! The state that readers see: the memtables and the tables at one moment.
//!
//! A view is immutable. Every change of the memtables or tables publishes a new view, and readers
//! continue with the one they hold.
//!
//! All trees switch memtables together. So a view holds all of a batch that touched several trees
//! or, if the batch went to memtables created after the view, none of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::batch::TreeId;
use crate::engine::counter::Counter;
use crate::engine::entry::{Sequence, Tag};
use crate::engine::hash::HashedKey;
use crate::engine::memtable::{Memtable, MemtableSet};
use crate::engine::snapshot::Sequences;
use crate::engine::sstable::{CacheFill, Hit};
use crate::engine::version::{Levels, TableFile, Version};
use crate::engine::wal::LogPosition;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{ArcSwap, Guard, Mutex};

/// The memtables and tables of a store at one moment.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// The memtables that take writes.
    pub active: Arc<MemtableSet>,
    /// Immutable memtables that wait to be flushed, newest first.
    pub immutable: Vec<Arc<MemtableSet>>,
    /// The tables.
    pub version: Version,
    /// Number of point reads of the store. Those of background threads, which do not fill the cache,
    /// are not counted.
    pub(crate) gets: Arc<Counter>,
}

/// Tells which commits are in tables: all before the oldest memtables. Two views of one store with equal
/// flush points have the same commits in tables, and the later one has all others in memtables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushPoint(LogPosition);

/// The view that new readers get.
#[derive(Debug)]
pub(crate) struct PublishedView {
    current: ArcSwap<View>,
    /// Held while the view is replaced, so that no change gets lost.
    changing: Mutex<()>,
}

impl PublishedView {
    pub(crate) fn new(view: View) -> Self {
        Self { current: ArcSwap::from_pointee(view), changing: Mutex::new(()) }
    }

    /// The current view, for a short time.
    #[inline]
    pub(crate) fn load(&self) -> Guard<Arc<View>> {
        self.current.load()
    }

    /// The current view.
    #[inline]
    pub(crate) fn load_full(&self) -> Arc<View> {
        self.current.load_full()
    }

    /// The current view, and the newest commit that is visible in it.
    #[inline]
    pub(crate) fn read_point(&self, sequences: &Sequences) -> (Arc<View>, Sequence) {
        // The view first: in a later view, a compaction may have removed versions that an earlier
        // sequence number needs.
        let view = self.current.load_full();
        // The view may have been replaced since, and later commits are not in it.
        let sequence = view.active.newest_up_to(sequences.visible());
        (view, sequence)
    }

    /// Replaces the view with the one that `change` returns.
    pub(crate) fn change(&self, change: impl FnOnce(&View) -> View) {
        let _one_at_a_time = self.changing.lock();
        let changed = change(&self.current.load());
        self.current.store(Arc::new(changed));
    }
}

impl View {
    /// This view with the active memtables frozen, whose newest commit is `last`. The new active
    /// ones are empty, hold about `capacity` bytes, and begin at `log_start` in the log.
    pub(crate) fn freeze(&self, last: Sequence, capacity: usize, log_start: LogPosition) -> Self {
        self.active.end_at(last);
        let active = Arc::new(self.active.successor(capacity, log_start));
        let immutable = self.memtable_sets().cloned().collect();
        let (version, gets) = (self.version.clone(), Arc::clone(&self.gets));
        Self { active, immutable, version, gets }
    }

    /// The active and the immutable memtable sets, newest first.
    pub(crate) fn memtable_sets(&self) -> impl Iterator<Item = &Arc<MemtableSet>> {
        std::iter::once(&self.active).chain(&self.immutable)
    }

    /// Which commits are in the tables of this view.
    pub(crate) fn flush_point(&self) -> FlushPoint {
        FlushPoint(self.immutable.last().unwrap_or(&self.active).log_start)
    }

    /// The tables of this view. An iterator over them keeps no memtables in memory.
    pub(crate) fn tables_only(&self) -> Self {
        let FlushPoint(log_start) = self.flush_point();
        let active = Arc::new(MemtableSet::new(0, 0, log_start, self.active.hash_seed));
        let (version, gets) = (self.version.clone(), Arc::clone(&self.gets));
        Self { active, immutable: Vec::new(), version, gets }
    }

    /// Bytes of all memtables.
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.memtable_sets().map(|set| set.bytes()).sum()
    }

    /// Hashes a key with the seed of the store.
    #[inline]
    pub(crate) fn hashed<'k>(&self, key: &'k [u8]) -> HashedKey<'k> {
        HashedKey::new(key, self.active.hash_seed)
    }

    /// The value of `key` at `sequence`: a long one is pinned, a short one copied.
    pub(crate) fn get(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<Option<Bytes>> {
        if cache_fill.fills() {
            self.gets.add(1);
        }
        let key = &self.hashed(key);
        if let Some(value) = self.get_from_memtables(tree, key, sequence)? {
            return Ok(value);
        }
        let hit = self.get_from_tables(tree, key, sequence, cache_fill)?;
        Ok(hit.filter(|hit| !hit.tag.is_delete()).map(|hit| hit.to_bytes()))
    }

    /// The value of `key` at `sequence` in the memtables: `Some(None)` if they hold a delete,
    /// `None` if they hold no entry of the key.
    #[inline]
    pub(crate) fn get_from_memtables(
        &self,
        tree: TreeId,
        key: &HashedKey<'_>,
        sequence: Sequence,
    ) -> Result<Option<Option<Bytes>>> {
        for set in self.memtable_sets() {
            let memtable = set.trees.get(tree.index()).ok_or_else(|| unknown(tree))?;
            if let Some(found) = memtable.get(key.hash(), key.key(), sequence) {
                let live = !found.tag().is_delete();
                return Ok(Some(live.then(|| found.value_bytes())));
            }
        }
        Ok(None)
    }

    /// The newest entry of `key` at `sequence` in the tables.
    fn get_from_tables(
        &self,
        tree: TreeId,
        key: &HashedKey<'_>,
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<Option<Hit>> {
        for file in self.levels(tree)?.files_for(key.key()) {
            if let Some(hit) = file.table()?.get(key, sequence, cache_fill)? {
                return Ok(Some(hit));
            }
        }
        Ok(None)
    }

    /// The tag of the newest entry of `key` at `sequence`, which may be a delete.
    pub(crate) fn newest(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<Option<Tag>> {
        let key = &self.hashed(key);
        for memtable in self.memtables(tree) {
            if let Some(found) = memtable.get(key.hash(), key.key(), sequence) {
                return Ok(Some(found.tag()));
            }
        }
        let hit = self.get_from_tables(tree, key, sequence, cache_fill)?;
        Ok(hit.map(|hit| hit.tag))
    }

    /// What [`View::newest`] finds, without a trace in caches and counters.
    pub(crate) fn peek_newest(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
    ) -> Result<Option<Tag>> {
        let key = &self.hashed(key);
        for memtable in self.memtables(tree) {
            if let Some(found) = memtable.get(key.hash(), key.key(), sequence) {
                return Ok(Some(found.tag()));
            }
        }
        for file in self.levels(tree)?.files_for(key.key()) {
            if let Some(tag) = file.table()?.peek(key, sequence)? {
                return Ok(Some(tag));
            }
        }
        Ok(None)
    }

    /// Prefetches from the memtables what lookups of these keys will read.
    pub(crate) fn prefetch(&self, tree: TreeId, keys: impl Iterator<Item = impl AsRef<[u8]>>) {
        let seed = self.active.hash_seed;
        let hashes: Vec<u64> = keys.map(|key| seed.hash(key.as_ref())).collect();
        self.memtables(tree).for_each(|memtable| memtable.prefetch(&hashes));
    }

    /// Whether somebody has walked along the active memtable of `tree` lately.
    pub(crate) fn was_walked(&self, tree: TreeId) -> bool {
        self.active.trees.get(tree.index()).is_some_and(|memtable| memtable.was_walked())
    }

    /// The memtables of `tree` that are not empty, newest first.
    pub(crate) fn memtables(&self, tree: TreeId) -> impl Iterator<Item = &Arc<Memtable>> {
        self.memtable_sets()
            .filter_map(move |set| set.trees.get(tree.index()))
            .filter(|memtable| !memtable.is_empty())
    }

    /// The tables of `tree`, by level.
    pub(crate) fn levels(&self, tree: TreeId) -> Result<&Arc<Levels>> {
        self.version.trees.get(tree.index()).ok_or_else(|| unknown(tree))
    }

    /// The tables of `tree` that may hold keys of `[lower, upper)`.
    pub(crate) fn tables_between<'v>(
        &'v self,
        tree: TreeId,
        lower: Option<&'v [u8]>,
        upper: Option<&'v [u8]>,
    ) -> impl Iterator<Item = &'v Arc<TableFile>> {
        let levels = self.version.trees.get(tree.index());
        let files = levels.into_iter().flat_map(|levels| levels.files());
        files.filter(move |file| file.meta().bounds.reach_into(lower, upper))
    }
}

#[cold]
fn unknown(tree: TreeId) -> Error {
    Error::new(ErrorKind::Misuse, format!("tree {} does not exist", tree.0))
}
