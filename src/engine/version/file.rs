//! A table of the store: what the manifest knows of it, and the open reader.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::engine::compaction::waste::{Verdict, Waste};
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::sstable::Table;
use crate::engine::tables::TableOpener;
use crate::error::Result;
use crate::io::codec::{Reader, put_bytes, put_u64, put_varint};

/// What the manifest records of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Its file number.
    pub number: FileNumber,
    /// Its exact length.
    pub size: u64,
    /// Smallest user key in it.
    pub smallest: Bytes,
    /// Largest user key in it.
    pub largest: Bytes,
    /// Number of entries.
    pub entries: u64,
    /// How many of them are deletes.
    pub tombstones: u64,
    /// Sequence of the oldest entry.
    pub min_sequence: Sequence,
    /// Sequence of the newest entry.
    pub max_sequence: Sequence,
}

impl FileMeta {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number);
        put_varint(out, self.size);
        put_bytes(out, &self.smallest);
        put_bytes(out, &self.largest);
        put_varint(out, self.entries);
        put_varint(out, self.tombstones);
        put_u64(out, self.min_sequence);
        put_u64(out, self.max_sequence);
    }

    /// Reads the stored form.
    pub fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            number: reader.varint()?,
            size: reader.varint()?,
            smallest: Bytes::copy_from_slice(reader.bytes()?),
            largest: Bytes::copy_from_slice(reader.bytes()?),
            entries: reader.varint()?,
            tombstones: reader.varint()?,
            min_sequence: reader.u64()?,
            max_sequence: reader.u64()?,
        })
    }

    /// Whether some key of `[smallest, largest]` could be in it.
    pub fn overlaps(&self, smallest: &[u8], largest: &[u8]) -> bool {
        *self.smallest <= *largest && *self.largest >= *smallest
    }
}

/// A table in use by one or more versions. Its file is removed when the last version that knows
/// it is gone, if an installed edit has removed it from the store by then.
pub struct TableFile {
    meta: FileMeta,
    opener: Arc<TableOpener>,
    table: OnceLock<Arc<Table>>,
    obsolete: AtomicBool,
    verdict: Mutex<Verdict>,
}

impl TableFile {
    /// A file that will be opened at its first use.
    pub fn new(meta: FileMeta, opener: Arc<TableOpener>) -> Self {
        Self {
            meta,
            opener,
            table: OnceLock::new(),
            obsolete: AtomicBool::new(false),
            verdict: Mutex::new(Verdict::unjudged()),
        }
    }

    /// What the manifest knows.
    #[inline]
    pub fn meta(&self) -> &FileMeta {
        &self.meta
    }

    /// The reader, opened at the first call. A failure is not remembered: it may pass.
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

    /// The reader, if something has used it already.
    pub fn opened(&self) -> Option<&Arc<Table>> {
        self.table.get()
    }

    /// The last word on what of it could go.
    pub fn verdict(&self) -> Verdict {
        *self.verdict.lock()
    }

    /// It has been judged now.
    pub fn note_waste(&self, waste: Waste) {
        *self.verdict.lock() = Verdict { waste, ..Verdict::unjudged() };
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.opener.path(self.meta.number)
    }

    /// To be called once the edit that removes this file is durable.
    pub fn mark_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            // A file that stays behind is removed at the next open.
            self.opener.remove(self.meta.number);
        }
    }
}

impl fmt::Debug for TableFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.meta.fmt(f)
    }
}
