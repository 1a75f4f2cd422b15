//! A table of the store: its metadata from the manifest, and its reader.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use super::bounds::KeyBounds;
use super::opener::TableOpener;
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::garbage::{Garbage, GarbageEstimate};
use crate::engine::sstable::Table;
use crate::error::Result;
use crate::io::codec::{Reader, put_bytes, put_u64, put_varint};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

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
        })
    }
}

/// A table that one or more versions use.
///
/// Once an installed edit has removed the table from the store, the file is deleted with the last
/// version that refers to it.
pub struct TableFile {
    meta: FileMeta,
    opener: Arc<TableOpener>,
    table: OnceLock<Arc<Table>>,
    obsolete: AtomicBool,
    garbage_estimate: Mutex<GarbageEstimate>,
}

impl TableFile {
    /// A table whose file is opened at its first use.
    pub fn new(meta: FileMeta, opener: Arc<TableOpener>) -> Self {
        Self {
            meta,
            opener,
            table: OnceLock::new(),
            obsolete: AtomicBool::new(false),
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
        let table = self.opener.open(self.meta.number, self.meta.size)?;
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

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.opener.path(self.meta.number)
    }

    /// Marks the file for deletion. Call this only once the edit that removes it is durable.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            // If this fails, the next open removes the file.
            self.opener.remove(self.meta.number);
        }
    }
}

impl fmt::Debug for TableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.meta.fmt(f)
    }
}
