//! Reads at one read point: the newest commit, a snapshot, or a [`Reader`] of either.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::batch::TreeId;
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::handle::Engine;
use crate::engine::iter::{Iter, IterOptions};
use crate::engine::sampler::Sampler;
use crate::engine::snapshot::SnapshotPin;
use crate::engine::sstable::{CacheFill, Properties};
use crate::engine::view::View;
use crate::error::Result;

impl Engine {
    /// The current value of `key`.
    #[inline]
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        self.core.check_open()?;
        // The view first: in a later view, a compaction may have removed versions that an earlier
        // sequence number needs.
        let view = self.core.view.load();
        let sequence = self.core.sequences.visible();
        view.get(tree, key, sequence, CacheFill::Fill)
    }

    /// The values of several keys of one tree at one read point.
    pub fn multi_get(&self, tree: TreeId, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let reader = self.reader()?;
        multi_get(&reader.view, tree, keys, reader.sequence)
    }

    /// An iterator over the current keys of `tree`.
    pub fn iter(&self, tree: TreeId, options: IterOptions) -> Result<Iter> {
        self.reader()?.iter(tree, options)
    }

    /// A reader at the newest commit, for several reads that must agree.
    ///
    /// It holds memory and files until it is dropped. Use it for the length of a command, and
    /// [`Engine::snapshot`] for longer.
    pub fn reader(&self) -> Result<Reader> {
        self.core.check_open()?;
        let (view, sequence) = self.core.view.read_point(&self.core.sequences);
        Ok(Reader { view, sequence })
    }

    /// A snapshot of the store as it is now.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.core.check_open()?;
        let core = Arc::clone(&self.core);
        if !self.is_beside_writer() {
            let pin = self.core.sequences.pin();
            return Ok(Snapshot { core, pin, view: None });
        }
        let (view, sequence) = self.core.view.read_point(&self.core.sequences);
        let pin = self.core.sequences.pin_at(sequence);
        Ok(Snapshot { core, pin, view: Some(view) })
    }
}

/// The store as it was when the snapshot was taken. Its data stays readable until it is dropped.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) core: Arc<Core>,
    pin: SnapshotPin,
    /// Kept beside a writer, whose compactions do not know of the pin.
    view: Option<Arc<View>>,
}

impl Snapshot {
    /// The sequence number of the newest commit that the snapshot sees.
    pub fn sequence(&self) -> Sequence {
        self.pin.sequence()
    }

    /// The value of `key` in the snapshot.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        self.reader()?.get(tree, key)
    }

    /// The values of several keys of one tree in the snapshot.
    pub fn multi_get(&self, tree: TreeId, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        multi_get(&self.reader()?.view, tree, keys, self.sequence())
    }

    /// An iterator over the keys of `tree` in the snapshot.
    pub fn iter(&self, tree: TreeId, options: IterOptions) -> Result<Iter> {
        self.reader()?.iter(tree, options)
    }

    /// A reader of the snapshot, for several reads.
    pub fn reader(&self) -> Result<Reader> {
        self.core.check_open()?;
        let view = self.view.clone().unwrap_or_else(|| self.core.view.load_full());
        Ok(Reader { view, sequence: self.sequence() })
    }
}

/// Reads at one read point. [`Engine::reader`] and [`Snapshot::reader`] create one.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) view: Arc<View>,
    sequence: Sequence,
}

impl Reader {
    /// A reader of `view` at `sequence`.
    pub(super) fn at(view: Arc<View>, sequence: Sequence) -> Self {
        Self { view, sequence }
    }

    /// The sequence number of the newest commit that the reader sees.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        self.get_with(tree, key, CacheFill::Fill)
    }

    /// The value of `key`; `cache_fill` tells whether blocks read for it are cached.
    #[inline]
    pub fn get_with(
        &self,
        tree: TreeId,
        key: &[u8],
        cache_fill: CacheFill,
    ) -> Result<Option<Bytes>> {
        self.view.get(tree, key, self.sequence, cache_fill)
    }

    /// An iterator over the keys of `tree`.
    pub fn iter(&self, tree: TreeId, options: IterOptions) -> Result<Iter> {
        Arc::clone(&self.view).iter(tree, self.sequence, options)
    }

    /// Prefetches what lookups of these keys will read, so that they wait for memory together rather
    /// than one after another.
    pub fn prefetch(&self, tree: TreeId, keys: impl Iterator<Item = impl AsRef<[u8]>>) {
        self.view.prefetch(tree, keys);
    }

    /// Whether somebody has walked along the newest entries of `tree` lately.
    pub fn was_walked(&self, tree: TreeId) -> bool {
        self.view.was_walked(tree)
    }

    /// A sampler that draws random keys within the bounds of `options`.
    pub fn sampler(&self, tree: TreeId, options: IterOptions) -> Result<Sampler> {
        Sampler::new(&self.view, tree, self.sequence, options)
    }

    /// Calls `visit` with the file number and properties of every table of `tree`.
    pub fn table_properties(
        &self,
        tree: TreeId,
        mut visit: impl FnMut(FileNumber, &Properties),
    ) -> Result<()> {
        let levels = self.view.version.trees.get(tree.index());
        for file in levels.into_iter().flat_map(|levels| levels.files()) {
            visit(file.meta().number, file.table()?.properties());
        }
        Ok(())
    }

    /// An iterator over part of `tree`: the memtables, if `memtables` is set, and the tables that
    /// `chosen` selects. An entry it shows may have a newer version, or have been deleted, in a
    /// part that was left out.
    pub fn iter_over(
        &self,
        tree: TreeId,
        options: IterOptions,
        memtables: bool,
        mut chosen: impl FnMut(FileNumber, &Properties) -> bool,
    ) -> Result<Iter> {
        let view = Arc::clone(&self.view);
        view.iter_over(tree, self.sequence, options, memtables, &mut |file| {
            Ok(chosen(file.meta().number, file.table()?.properties()))
        })
    }
}

/// Looks keys up in key order, so that neighbours share blocks.
fn multi_get(
    view: &View,
    tree: TreeId,
    keys: &[&[u8]],
    sequence: Sequence,
) -> Result<Vec<Option<Bytes>>> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|at| keys.get(*at));
    let mut values = vec![None; keys.len()];
    for at in order {
        if let (Some(key), Some(value)) = (keys.get(at), values.get_mut(at)) {
            *value = view.get(tree, key, sequence, CacheFill::Fill)?;
        }
    }
    Ok(values)
}
