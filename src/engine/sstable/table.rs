//! An open table: point reads, and the parts kept in memory for them.
//!
//! Index and filter are *resident*: they are read on first use, or at open if the tail of the file
//! has them, and then reached by one pointer load without a reference count or a lock. [`Table::evict_resident`] drops them at any time.
//! Readers that use them keep them until they are done, and later readers read them again.
//!
//! Threads: all methods take `&self` and may be called by any number of threads at once.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;
use super::block_cursor::BlockCursor;
use super::cache::{BlockCache, CacheFill};
use super::counters::TableCounters;
use super::format::{Footer, Handle, Malformed};
use super::frame::Tail;
use super::hit::Hit;
use super::index::Index;
use super::loader::Loader;
use super::properties::Properties;
use super::resident::Resident;
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag};
use crate::engine::files::FileNumber;
use crate::engine::hash::HashedKey;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::File;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{ArcSwapOption, Mutex};

/// An open table: an immutable file of sorted entries.
pub struct Table {
    pub(super) loader: Loader,
    pub(super) footer: Footer,
    file_size: u64,
    properties: Properties,
    /// Entries before this key do not count, and their blocks may be gone.
    pub(super) lower: Option<Bytes>,
    pub(super) cache: Arc<BlockCache>,
    pub(super) counters: Arc<TableCounters>,
    resident: ArcSwapOption<Resident>,
    /// Held while the resident parts are read, so that only one thread reads them.
    loading: Mutex<()>,
    used: AtomicBool,
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("path", &self.loader.path).finish_non_exhaustive()
    }
}

impl Table {
    /// Opens table `number`, which has `expected_size` bytes according to the manifest. Reads the
    /// tail of the file, and keeps index and filter if they are in it.
    pub fn open(
        file: Arc<dyn File>,
        path: PathBuf,
        number: FileNumber,
        expected_size: u64,
        cache: Arc<BlockCache>,
        counters: Arc<TableCounters>,
    ) -> Result<Self> {
        let loader = Loader { file, path, number };
        let tail = Tail::read(&loader, expected_size)?;
        let footer = tail.footer(&loader)?;
        let properties = tail.properties(&loader, &footer)?;
        if properties.unknown_features != 0 {
            let text = format!(
                "{} has features {:#x}, which this library does not know: use a newer one",
                loader.path.display(),
                properties.unknown_features
            );
            return Err(Error::new(ErrorKind::Incompatible, text));
        }
        let table = Self {
            loader,
            footer,
            file_size: expected_size,
            properties,
            lower: None,
            cache,
            counters,
            resident: ArcSwapOption::empty(),
            loading: Mutex::new(()),
            used: AtomicBool::new(false),
        };
        table.keep_parts(&tail);
        Ok(table)
    }

    /// Keeps the parts that are in the tail. Those that do not verify are left to whoever needs
    /// them, who gets the error.
    fn keep_parts(&self, tail: &Tail) {
        if !tail.holds_from(self.footer.data_end()) {
            return;
        }
        let Ok(resident) = Resident::read(&self.loader, &self.footer, &self.properties, tail)
        else {
            return;
        };
        self.resident.store(Some(Arc::new(resident)));
    }

    /// Reads all blocks into the cache.
    pub(crate) fn fill_cache(&self) -> Result<()> {
        let resident = self.resident()?;
        let read = |number| self.block(&resident.index, number, CacheFill::Fill).map(drop);
        self.live_blocks()?.try_for_each(read)
    }

    /// Leaves out the entries before `lower`. Point reads do not check that: only keys from `lower`
    /// on may be looked up.
    #[must_use]
    pub fn starting_at(self, lower: Option<Bytes>) -> Self {
        Self { lower, ..self }
    }

    /// The first data block that counts.
    pub(super) fn first_block(&self, index: &Index) -> usize {
        let place = |lower: &Bytes| index.search(lower, Tag::newest_at(MAX_SEQUENCE));
        self.lower.as_ref().map_or(0, place)
    }

    /// The data blocks that count.
    pub(crate) fn live_blocks(&self) -> Result<Range<usize>> {
        if self.lower.is_none() {
            return Ok(0..usize::try_from(self.properties.blocks).unwrap_or(usize::MAX));
        }
        let index = &self.resident()?.index;
        Ok(self.first_block(index)..index.count())
    }

    /// The file number.
    pub fn number(&self) -> FileNumber {
        self.loader.number
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.loader.path
    }

    /// The size of the file in bytes.
    pub fn file_size(&self) -> u64 {
        self.file_size
    }

    /// The properties stored in the table.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// The newest version of `key` at or before `sequence`, if the table has one.
    pub fn get(
        &self,
        key: &HashedKey<'_>,
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<Option<Hit>> {
        let guard = self.resident.load();
        match &*guard {
            Some(resident) => self.get_with(resident, key, sequence, cache_fill),
            None => self.get_with(&*self.load_resident()?, key, sequence, cache_fill),
        }
    }

    /// Approximate offset at which the entries of `key` would begin. The difference of two such
    /// offsets is the approximate number of bytes between two keys.
    pub fn approximate_offset(&self, key: &[u8]) -> Result<u64> {
        let index = &self.resident()?.index;
        let block = index.search(key, Tag::newest_at(MAX_SEQUENCE));
        Ok(index.offset(block.max(self.first_block(index))))
    }

    /// The data blocks that may hold keys of `[lower, upper)`.
    pub(crate) fn blocks_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<Range<usize>> {
        let index = &self.resident()?.index;
        let place = |key: &[u8]| index.search(key, Tag::newest_at(MAX_SEQUENCE));
        let first = place(lower).max(self.first_block(index));
        let end = upper.map_or(index.count(), |upper| (place(upper) + 1).min(index.count()));
        Ok(first..end.max(first))
    }

    /// An entry of data block `number`. `choose` gets the number of entries and returns that of the
    /// entry.
    pub(crate) fn entry_at(
        &self,
        number: usize,
        cache_fill: CacheFill,
        choose: impl FnOnce(u32) -> Option<u32>,
    ) -> Result<Option<(Vec<u8>, Tag, Bytes)>> {
        let resident = self.resident()?;
        let block = self.block(&resident.index, number, cache_fill)?;
        let Some(entry) = choose(block.count()) else { return Ok(None) };
        let cursor = BlockCursor::at(block, entry, Vec::new())
            .map_err(|why| self.malformed(&resident.index, number, why))?;
        Ok(Some((cursor.key().to_vec(), cursor.tag(), cursor.value_bytes())))
    }

    /// Memory of the resident parts in bytes; 0 if they are not loaded.
    pub fn resident_bytes(&self) -> usize {
        self.resident.load().as_ref().map_or(0, |resident| resident.memory())
    }

    /// Drops the resident parts and returns the bytes freed. The next use reads them again.
    pub fn evict_resident(&self) -> usize {
        self.resident.swap(None).map_or(0, |resident| resident.memory())
    }

    /// Whether the table was used since the last call. Clock eviction uses this to choose tables
    /// whose resident parts to drop.
    pub fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// The resident parts, which are read if necessary.
    pub(super) fn resident(&self) -> Result<Arc<Resident>> {
        self.mark_used();
        match self.resident.load_full() {
            Some(resident) => Ok(resident),
            None => self.load_resident(),
        }
    }

    /// Data block `number`, from the cache or the file. Reads that do not fill the cache are not
    /// counted as hits or misses: compactions would hide how well it serves other reads.
    #[inline]
    pub(super) fn block(
        &self,
        index: &Index,
        number: usize,
        cache_fill: CacheFill,
    ) -> Result<Block> {
        self.block_and_source(index, number, cache_fill).map(|(block, _)| block)
    }

    /// Data block `number`, and whether it was read from the file.
    #[inline]
    fn block_and_source(
        &self,
        index: &Index,
        number: usize,
        cache_fill: CacheFill,
    ) -> Result<(Block, bool)> {
        let handle = self.handle(index, number)?;
        if let Some(block) = self.cache.get(self.loader.number, handle.offset) {
            self.counters.cache_hits.add(u64::from(cache_fill.fills()));
            return Ok((block, false));
        }
        self.counters.cache_misses.add(u64::from(cache_fill.fills()));
        let block = self.loader.block(handle)?;
        self.counters.block_reads.add(1);
        self.counters.block_read_bytes.add(u64::from(handle.length));
        if cache_fill.fills() {
            self.cache.insert(self.loader.number, handle.offset, block.clone());
        }
        Ok((block, true))
    }

    #[inline]
    pub(super) fn handle(&self, index: &Index, number: usize) -> Result<Handle> {
        index.handle(number).ok_or_else(|| {
            self.loader.malformed(self.footer.index.offset, Malformed("no such block"))
        })
    }

    /// The error for damage within data block `number`.
    pub(super) fn malformed(&self, index: &Index, number: usize, why: Malformed) -> Error {
        self.loader.malformed(index.offset(number), why)
    }

    #[inline]
    fn get_with(
        &self,
        resident: &Resident,
        key: &HashedKey<'_>,
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<Option<Hit>> {
        self.mark_used();
        let hash = key.hash_with(self.properties.hash_seed);
        if let Some(filter) = &resident.filter {
            self.counters.filter_checks.add(1);
            if !filter.may_contain(hash) {
                self.counters.filter_negatives.add(1);
                return Ok(None);
            }
        }
        let hit = self.find(&resident.index, key.key(), hash, sequence, cache_fill)?;
        if hit.is_none() && resident.filter.is_some() {
            self.counters.filter_false_positives.add(1);
        }
        Ok(hit)
    }

    /// Searches the one block that can hold the entry; see [`Index::search`].
    #[inline]
    fn find(
        &self,
        index: &Index,
        key: &[u8],
        hash: u64,
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<Option<Hit>> {
        let target = Tag::newest_at(sequence);
        let number = index.search(key, target);
        if number == index.count() {
            return Ok(None);
        }
        let (block, from_file) = self.block_and_source(index, number, cache_fill)?;
        if from_file && cache_fill.fills() {
            self.counters.get_block_reads.add(1);
        }
        let found =
            block.get(key, hash, target).map_err(|why| self.malformed(index, number, why))?;
        Ok(found.map(|(tag, range)| Hit { tag, block, range }))
    }

    /// Sets the mark only if it is not set, so that the cache line stays shared.
    #[inline]
    fn mark_used(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    #[cold]
    fn load_resident(&self) -> Result<Arc<Resident>> {
        let _once = self.loading.lock();
        if let Some(resident) = self.resident.load_full() {
            return Ok(resident);
        }
        let resident = Arc::new(self.read_resident()?);
        self.resident.store(Some(Arc::clone(&resident)));
        Ok(resident)
    }

    pub(super) fn read_resident(&self) -> Result<Resident> {
        Resident::read(&self.loader, &self.footer, &self.properties, &Tail::default())
    }
}
