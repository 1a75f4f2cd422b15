//! What a reader sees: the memtables and the tables at one moment. Immutable; a change of either
//! publishes a new view, and readers go on with the one they have.
//!
//! All trees switch memtables together. A view therefore holds either all of a batch that touched
//! several trees or, if the batch went to memtables made after the view, none of it.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::batch::TreeId;
use crate::engine::entry::{Sequence, Tag, hash_key};
use crate::engine::iter::{Iter, IterOptions};
use crate::engine::memtable::{Memtable, MemtableCursor};
use crate::engine::source::{LevelCursor, Source};
use crate::engine::version::{LEVELS, Levels, TableFile};
use crate::engine::wal::LogPosition;
use crate::error::{Error, ErrorKind, Result};

/// One memtable for each tree; filled, frozen and flushed together.
#[derive(Debug)]
pub struct MemtableSet {
    /// By tree index.
    pub trees: Vec<Arc<Memtable>>,
    /// Where in the log the first batch of this set begins.
    pub log_start: LogPosition,
}

impl MemtableSet {
    /// Empty memtables for as many trees as `expect_scans` has entries.
    pub fn new(capacity: usize, expect_scans: &[bool], log_start: LogPosition) -> Self {
        let trees =
            expect_scans.iter().map(|scans| Arc::new(Memtable::new(capacity, *scans))).collect();
        Self { trees, log_start }
    }

    /// Bytes of all trees.
    pub fn bytes(&self) -> usize {
        self.trees.iter().map(|memtable| memtable.bytes()).sum()
    }

    /// Whether no tree has an entry.
    pub fn is_empty(&self) -> bool {
        self.trees.iter().all(|memtable| memtable.is_empty())
    }

    /// Which trees have been scanned: their next memtables should expect it.
    pub fn scanned(&self) -> Vec<bool> {
        self.trees.iter().map(|memtable| memtable.was_scanned()).collect()
    }
}

/// The tables of all trees.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// By tree index.
    pub trees: Vec<Arc<Levels>>,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct View {
    /// Where writes go.
    pub active: Arc<MemtableSet>,
    /// Full and waiting to be flushed, newest first.
    pub frozen: Vec<Arc<MemtableSet>>,
    /// What has been flushed.
    pub version: Version,
}

/// How a point read went on, for the statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetOptions {
    /// Leave the block cache as it is.
    pub no_fill: bool,
}

impl View {
    /// The value of `key` at `sequence`: pinned when large, copied when small.
    pub fn get(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
        options: GetOptions,
    ) -> Result<Option<Bytes>> {
        let hash = hash_key(key);
        match self.get_from_memtables(tree, key, hash, sequence)? {
            Some(value) => Ok(value),
            None => self.get_from_tables(tree, key, hash, sequence, options),
        }
    }

    /// What the memtables say of `key` at `sequence`, a deletion being `Some(None)`; `None` if
    /// they do not know it.
    #[inline]
    pub(crate) fn get_from_memtables(
        &self,
        tree: TreeId,
        key: &[u8],
        hash: u64,
        sequence: Sequence,
    ) -> Result<Option<Option<Bytes>>> {
        for set in std::iter::once(&self.active).chain(&self.frozen) {
            let memtable = set.trees.get(tree.index()).ok_or_else(|| unknown(tree))?;
            if let Some(found) = memtable.get(hash, key, sequence) {
                let live = !found.tag().is_delete();
                return Ok(Some(live.then(|| memtable.value_bytes(&found))));
            }
        }
        Ok(None)
    }

    fn get_from_tables(
        &self,
        tree: TreeId,
        key: &[u8],
        hash: u64,
        sequence: Sequence,
        options: GetOptions,
    ) -> Result<Option<Bytes>> {
        let levels = self.version.trees.get(tree.index()).ok_or_else(|| unknown(tree))?;
        let look = |file: &Arc<TableFile>| file.table()?.get(key, hash, sequence, !options.no_fill);
        for file in levels.level(0) {
            if file.meta().overlaps(key, key)
                && let Some(hit) = look(file)?
            {
                return Ok((!hit.tag.is_delete()).then(|| hit.to_bytes()));
            }
        }
        for level in 1..LEVELS {
            if let Some(file) = levels.file_for(level, key)
                && let Some(hit) = look(file)?
            {
                return Ok((!hit.tag.is_delete()).then(|| hit.to_bytes()));
            }
        }
        Ok(None)
    }

    /// An iterator over `tree` at `sequence`.
    pub fn iter(
        self: Arc<Self>,
        tree: TreeId,
        sequence: Sequence,
        options: IterOptions,
    ) -> Result<Iter> {
        let mut sources = self.memtable_sources(tree);
        sources.extend(self.table_sources(tree, &options, &mut |_| Ok(true))?);
        Ok(Iter::new(self, sources, sequence, options))
    }

    /// An iterator over some of the places that hold `tree`: the memtables, if wanted, and the
    /// tables that `chosen` names. What it shows may have a newer version elsewhere.
    pub(crate) fn iter_over(
        self: Arc<Self>,
        tree: TreeId,
        sequence: Sequence,
        options: IterOptions,
        memtables: bool,
        chosen: &mut dyn FnMut(&TableFile) -> Result<bool>,
    ) -> Result<Iter> {
        let mut sources = if memtables { self.memtable_sources(tree) } else { Vec::new() };
        sources.extend(self.table_sources(tree, &options, chosen)?);
        Ok(Iter::new(self, sources, sequence, options))
    }

    /// The tag of the newest entry of `key` at `sequence`, a delete's too.
    pub(crate) fn newest(
        &self,
        tree: TreeId,
        key: &[u8],
        sequence: Sequence,
        fill_cache: bool,
    ) -> Result<Option<Tag>> {
        let hash = hash_key(key);
        for memtable in self.memtables(tree) {
            if let Some(found) = memtable.get(hash, key, sequence) {
                return Ok(Some(found.tag()));
            }
        }
        let levels = self.version.trees.get(tree.index()).ok_or_else(|| unknown(tree))?;
        let level0 = levels.level(0).iter().filter(|file| file.meta().overlaps(key, key));
        let deeper = (1..LEVELS).filter_map(|level| levels.file_for(level, key));
        for file in level0.chain(deeper) {
            if let Some(hit) = file.table()?.get(key, hash, sequence, fill_cache)? {
                return Ok(Some(hit.tag));
            }
        }
        Ok(None)
    }

    /// Look-ups of keys with these hashes follow: what memtables know of them is read ahead.
    pub(crate) fn bring_near(&self, tree: TreeId, hashes: &[u64]) {
        self.memtables(tree).for_each(|memtable| memtable.bring_near(hashes));
    }

    /// Whether the rows of `tree` that were written last are kept in order, so that a walk has
    /// nothing to sort first.
    pub(crate) fn is_ordered(&self, tree: TreeId) -> bool {
        self.active.trees.get(tree.index()).is_some_and(|memtable| memtable.was_scanned())
    }

    /// The memtables of `tree` that hold anything, newest first.
    pub(crate) fn memtables(&self, tree: TreeId) -> impl Iterator<Item = &Arc<Memtable>> {
        let sets = std::iter::once(&self.active).chain(&self.frozen);
        sets.filter_map(move |set| set.trees.get(tree.index()))
            .filter(|memtable| !memtable.is_empty())
    }

    /// The tables of `tree` that may hold keys of `[lower, upper)`.
    pub(crate) fn tables_between<'v>(
        &'v self,
        tree: TreeId,
        lower: Option<&'v [u8]>,
        upper: Option<&'v [u8]>,
    ) -> impl Iterator<Item = &'v Arc<TableFile>> {
        let levels = self.version.trees.get(tree.index());
        levels.into_iter().flat_map(|levels| levels.files()).filter(move |file| {
            lower.is_none_or(|lower| *file.meta().largest >= *lower)
                && upper.is_none_or(|upper| *file.meta().smallest < *upper)
        })
    }

    fn memtable_sources(&self, tree: TreeId) -> Vec<Source> {
        self.memtables(tree)
            .map(|memtable| Source::Memtable(MemtableCursor::new(Arc::clone(memtable))))
            .collect()
    }

    /// Every chosen table of `tree` that may hold a key within the bounds.
    fn table_sources(
        &self,
        tree: TreeId,
        options: &IterOptions,
        chosen: &mut dyn FnMut(&TableFile) -> Result<bool>,
    ) -> Result<Vec<Source>> {
        let mut sources = Vec::new();
        let levels = self.version.trees.get(tree.index()).ok_or_else(|| unknown(tree))?;
        let within = |file: &&Arc<TableFile>| {
            let meta = file.meta();
            options.lower.as_deref().is_none_or(|lower| *meta.largest >= *lower)
                && options.upper.as_deref().is_none_or(|upper| *meta.smallest < *upper)
        };
        for file in levels.level(0).iter().filter(within) {
            if chosen(file)? {
                sources.push(Source::Table(file.table()?.cursor(!options.no_fill)));
            }
        }
        for level in 1..LEVELS {
            let mut files = Vec::new();
            for file in levels.level(level).iter().filter(within) {
                if chosen(file)? {
                    files.push(Arc::clone(file));
                }
            }
            if !files.is_empty() {
                sources.push(Source::Level(LevelCursor::new(files, !options.no_fill)));
            }
        }
        Ok(sources)
    }
}

#[cold]
fn unknown(tree: TreeId) -> Error {
    Error::new(ErrorKind::Misuse, format!("tree {} does not exist", tree.0))
}
