//! Rows: physical keys as a [`Tx`] sees them, with its pending writes on top.

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;

use crate::encoding::keys::Prefix;
use crate::engine::{CacheFill, IterOptions, Reader, Sampler, TreeId};
use crate::error::Result;
use crate::keyspace::trees::META;
use crate::txn::pending_write::PendingWrite;
use crate::txn::tx::Tx;
use crate::txn::walk::Walk;
use crate::txn::writes::Writes;

impl Tx<'_> {
    /// The value of a physical key.
    #[inline]
    pub(crate) fn row(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(write) = self.overlay.get(tree, key) {
            return Ok(write.clone());
        }
        self.reader_for(key)?.get(tree, key)
    }

    /// The pending value of a row, if there is one.
    pub(crate) fn pending_row(&self, tree: TreeId, key: &[u8]) -> Option<Bytes> {
        self.overlay.get(tree, key)?.clone()
    }

    /// Whether a collection under construction may write rows before the commit: see
    /// `collection_builder`.
    pub(crate) fn may_spill(&self) -> bool {
        self.overlay.assignments().is_empty()
    }

    /// Whether walks along `tree` are usual and cost no more than the rows they pass: few writes are
    /// pending.
    pub(crate) fn walk_is_cheap(&self, tree: TreeId) -> bool {
        const LITTLE: usize = 1024;
        let pending = self.overlay.of(tree).map_or(0, Writes::len);
        pending <= LITTLE && self.reader.was_walked(tree)
    }

    /// Notes that rows with this prefix are in the store and newer than the read point.
    pub(crate) fn note_spilled(&mut self, prefix: Prefix) {
        self.overlay.spilled.push(prefix);
    }

    /// The prefixes of rows that are newer than the read point.
    pub(in crate::txn) fn spilled(&self) -> &[Prefix] {
        &self.overlay.spilled
    }

    /// The reader for a physical key and the rows of its collection.
    #[inline]
    pub(in crate::txn) fn reader_for(&self, key: &[u8]) -> Result<Cow<'_, Reader>> {
        if self.overlay.spilled.iter().any(|prefix| key.starts_with(prefix)) {
            return self.store.engine().reader().map(Cow::Owned);
        }
        Ok(Cow::Borrowed(&self.reader))
    }

    /// Sets a physical key that is not counted.
    pub(crate) fn put_row(&mut self, tree: TreeId, key: &[u8], value: impl Into<Bytes>) {
        self.forget_recent(tree);
        self.overlay.write(tree, key, Some(value.into()));
    }

    /// Removes a physical key that is not counted.
    pub(crate) fn remove_row(&mut self, tree: TreeId, key: &[u8]) {
        self.forget_recent(tree);
        self.overlay.write(tree, key, None);
    }

    /// Clears the remembered collection if a record is about to be written.
    #[inline]
    pub(super) fn forget_recent(&mut self, tree: TreeId) {
        if tree == META {
            self.recent = None;
        }
    }

    /// The rows of `[lower, upper)`, in order or backward, with pending writes applied.
    pub(crate) fn rows(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
    ) -> Result<Walk> {
        self.rows_cached(tree, lower, upper, backward, CacheFill::Fill)
    }

    /// The rows of [`Tx::rows`]; `cache_fill` tells whether blocks that are read are cached.
    pub(crate) fn rows_cached(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
        cache_fill: CacheFill,
    ) -> Result<Walk> {
        let empty = upper.is_some_and(|upper| upper <= lower);
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            cache_fill: cache_fill.and(self.cache_fill),
        };
        let base = if empty { None } else { Some(self.reader_for(lower)?.iter(tree, options)?) };
        let bounds = (Bound::Included(lower), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let mut pending = Vec::new();
        if let Some(writes) = self.overlay.of(tree).filter(|_| !empty) {
            pending = copied(writes, bounds);
        }
        if !backward {
            // Taken from the back.
            pending.reverse();
        }
        Walk::new(base, pending, backward)
    }

    /// The pending writes of the rows in `[lower, upper)`, which is no inverted range.
    pub(in crate::txn) fn pending_in(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> impl Iterator<Item = (&[u8], &PendingWrite)> {
        let bounds = (Bound::Included(lower), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let writes = self.overlay.of(tree).filter(|writes| !writes.is_empty());
        let range = writes.map(|writes| writes.range(bounds));
        range.into_iter().flatten().map(|(row, write)| (row.as_slice(), write))
    }

    /// Whether writes of rows in `[lower, upper)` are pending.
    pub(crate) fn has_pending(&self, tree: TreeId, lower: &[u8], upper: Option<&[u8]>) -> bool {
        self.pending_in(tree, lower, upper).next().is_some()
    }

    /// Draws rows of `[lower, upper)` at random from the store, without pending writes. `cache_fill`
    /// tells whether blocks that are read are cached.
    pub(crate) fn row_sampler(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        cache_fill: CacheFill,
    ) -> Result<Sampler> {
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            cache_fill,
        };
        self.reader_for(lower)?.sampler(tree, options)
    }
}

fn copied(writes: &Writes, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Vec<(Vec<u8>, Option<Bytes>)> {
    let range = writes.range(bounds);
    range.map(|(key, write)| (key.clone(), write.value.clone())).collect()
}
