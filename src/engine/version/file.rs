//! A table of the store: its metadata from the manifest, and its reader.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use bytes::Bytes;

use super::bounds::KeyBounds;
use super::opener::TableOpener;
use crate::engine::entry::{Sequence, bound};
use crate::engine::files::FileNumber;
use crate::engine::garbage::{Garbage, GarbageEstimate};
use crate::engine::sstable::{CacheFill, Table};
use crate::error::Result;
use crate::io::codec::{Reader, put_bytes, put_u64, put_varint};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The metadata of a table in the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// The file number.
    pub number: FileNumber,
    /// The exact file size in bytes.
    pub size: u64,
    /// Smallest and largest user key.
    pub bounds: KeyBounds,
    /// Number of entries.
    pub entries: u64,
    /// Number of entries that are tombstones.
    pub tombstones: u64,
    /// Sequence number of the oldest entry.
    pub min_sequence: Sequence,
    /// Sequence number of the newest entry.
    pub max_sequence: Sequence,
    /// Whether the smallest key was raised: entries before it are elsewhere or gone, and their
    /// blocks may be gone too. The other figures are those of the whole file, except the weight.
    pub raised: bool,
    /// The sum of the weights of the entries that count.
    pub weight: i64,
}

impl FileMeta {
    /// Encodes the metadata and appends it to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number);
        put_varint(out, self.size);
        put_bytes(out, self.bounds.smallest());
        put_bytes(out, self.bounds.largest());
        put_varint(out, self.entries);
        put_varint(out, self.tombstones);
        put_u64(out, self.min_sequence);
        put_u64(out, self.max_sequence);
    }

    /// Decodes the metadata. The edit tells whether the bounds are shortened.
    pub fn decode(reader: &mut Reader<'_>, shortened: bool) -> Option<Self> {
        Some(Self {
            number: reader.varint()?,
            size: reader.varint()?,
            bounds: KeyBounds::from_stored(reader.bytes()?, reader.bytes()?, shortened),
            entries: reader.varint()?,
            tombstones: reader.varint()?,
            min_sequence: reader.u64()?,
            max_sequence: reader.u64()?,
            raised: false,
            weight: 0,
        })
    }

    /// The metadata after everything before `key` was written elsewhere. Keys that have the same
    /// bound as `key` all stay; `weight` is the sum of the weights of what stays.
    #[must_use]
    pub fn raised_to(&self, key: &[u8], weight: i64) -> Self {
        let (largest, shortened) = (self.bounds.largest(), self.bounds.are_shortened());
        let bounds = KeyBounds::from_stored(bound(key), largest, shortened);
        Self { bounds, raised: true, weight, ..self.clone() }
    }
}

/// A table that one or more versions use.
///
/// Once an installed edit has removed the table from the store, the file is deleted with the last
/// version that refers to it. After its smallest key was raised, versions refer to the file by two
/// `TableFile`s, and the front of the file is given back with the last version that needs it.
pub struct TableFile {
    meta: FileMeta,
    file: Arc<SharedFile>,
    table: OnceLock<Arc<Table>>,
    /// Offset of the first byte of the file that this needs, as far as known.
    start: u64,
    /// Offset of the first byte that a successor with a raised smallest key needs, as far as known.
    next_start: AtomicU64,
    garbage_estimate: Mutex<GarbageEstimate>,
}

/// A file, and what is still needed of it.
struct SharedFile {
    opener: Arc<TableOpener>,
    number: FileNumber,
    need: Mutex<FileNeed>,
}

#[derive(Default)]
struct FileNeed {
    /// Where what each `TableFile` needs begins.
    starts: Vec<u64>,
    /// Whether no later version refers to the file.
    obsolete: bool,
}

impl TableFile {
    /// A table whose file is opened at its first use.
    pub fn new(meta: FileMeta, opener: Arc<TableOpener>) -> Self {
        let need = Mutex::default();
        let file = Arc::new(SharedFile { opener, number: meta.number, need });
        Self::sharing(meta, file, 0)
    }

    /// The table of this file with a raised smallest key, as `meta` has it.
    pub fn raised(&self, meta: FileMeta) -> Self {
        Self::sharing(meta, Arc::clone(&self.file), self.next_start.load(Ordering::Acquire))
    }

    fn sharing(meta: FileMeta, file: Arc<SharedFile>, start: u64) -> Self {
        file.need.lock().starts.push(start);
        Self {
            meta,
            file,
            table: OnceLock::new(),
            start,
            next_start: AtomicU64::new(start),
            garbage_estimate: Mutex::new(GarbageEstimate::now(Garbage::default())),
        }
    }

    /// The metadata from the manifest.
    #[inline]
    pub fn meta(&self) -> &FileMeta {
        &self.meta
    }

    /// The reader, opened at the first call. A failure is not remembered, so a later call tries
    /// again.
    #[inline]
    pub fn table(&self) -> Result<&Arc<Table>> {
        match self.table.get() {
            Some(table) => Ok(table),
            None => self.open(),
        }
    }

    fn open(&self) -> Result<&Arc<Table>> {
        let lower = self.meta.raised.then(|| Bytes::copy_from_slice(self.meta.bounds.smallest()));
        let table = self.file.opener.open(self.meta.number, self.meta.size, lower)?;
        Ok(self.table.get_or_init(|| Arc::new(table)))
    }

    /// The reader, if it is open.
    pub fn opened(&self) -> Option<&Arc<Table>> {
        self.table.get()
    }

    /// The latest estimate of the table's garbage.
    pub fn garbage_estimate(&self) -> GarbageEstimate {
        *self.garbage_estimate.lock()
    }

    /// Stores a new estimate of the table's garbage.
    pub fn set_garbage(&self, garbage: Garbage) {
        *self.garbage_estimate.lock() =
            GarbageEstimate { garbage, ..GarbageEstimate::now(Garbage::default()) };
    }

    /// The sum of the weights of the entries of `[lower, upper)` that are visible at `sequence`. The
    /// table is not touched if the metadata suffice.
    pub fn weight_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<i64> {
        let FileMeta { bounds, weight, max_sequence, .. } = &self.meta;
        if !bounds.reach_into(Some(lower), upper) {
            return Ok(0);
        }
        if *max_sequence <= sequence && bounds.lie_within(lower, upper) {
            return Ok(*weight);
        }
        self.table()?.weight_between(lower, upper, sequence, cache_fill)
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.file.opener.path(self.meta.number)
    }

    /// Marks the file for deletion. Call this only once the edit that removes it is durable.
    pub fn mark_obsolete(&self) {
        self.file.need.lock().obsolete = true;
    }

    /// Says that a successor with a raised smallest key will not need the bytes before `start`.
    pub fn set_next_start(&self, start: u64) {
        self.next_start.store(start.max(self.start), Ordering::Release);
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        let SharedFile { opener, number, need } = &*self.file;
        let mut need = need.lock();
        if let Some(at) = need.starts.iter().position(|start| *start == self.start) {
            need.starts.swap_remove(at);
        }
        match need.starts.iter().min() {
            // If this fails, the next open removes the file.
            None if need.obsolete => opener.remove(*number),
            Some(&start) if start > self.start => opener.discard_front(*number, start),
            _ => {}
        }
    }
}

impl fmt::Debug for TableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.meta.fmt(f)
    }
}
