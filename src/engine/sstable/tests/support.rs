//! A file in memory, and tables made of lists of entries.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::engine::entry::{EntryKind, Tag};
use crate::engine::hash::HashSeed;
use crate::engine::sstable::BlockCache;
use crate::engine::sstable::{
    Collector, Table, TableCounters, TableSummary, TableWriter, WriterOptions,
};
use crate::error::Result;
use crate::io::fs::File;
use crate::options::Compression;

/// Bytes behind a lock; can be told to fail reads or writes.
#[derive(Debug, Default)]
pub(super) struct TestFile {
    pub(super) bytes: Mutex<Vec<u8>>,
    pub(super) broken: Mutex<bool>,
    /// Where reads fail.
    pub(super) unreadable: Mutex<Range<u64>>,
    reads: AtomicUsize,
}

impl TestFile {
    pub(super) fn holding(bytes: &[u8]) -> Arc<Self> {
        Arc::new(Self { bytes: Mutex::new(bytes.to_vec()), ..Self::default() })
    }

    /// Number of reads since the last call.
    pub(super) fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }

    fn check(&self) -> io::Result<()> {
        if *self.broken.lock() { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    }
}

impl File for TestFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check()?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        let unreadable = self.unreadable.lock();
        if offset < unreadable.end && unreadable.start < offset + buf.len() as u64 {
            return Err(io::Error::from_raw_os_error(5));
        }
        let bytes = self.bytes.lock();
        let rest = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        // Short on purpose: readers must go on.
        let n = rest.len().min(buf.len()).min(100_000);
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.check()?;
        let mut bytes = self.bytes.lock();
        assert_eq!(offset, bytes.len() as u64, "tables are written from front to back");
        bytes.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.check()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Key, tag, value.
pub(super) type Entry = (Vec<u8>, Tag, Vec<u8>);

pub(super) fn put(key: &[u8], sequence: u64, value: &[u8]) -> Entry {
    (key.to_vec(), Tag::new(sequence, EntryKind::Put), value.to_vec())
}

pub(super) fn delete(key: &[u8], sequence: u64) -> Entry {
    (key.to_vec(), Tag::new(sequence, EntryKind::Delete), Vec::new())
}

pub(super) const PLAIN: WriterOptions = WriterOptions {
    block_bytes: 4096,
    bloom_bits: 10,
    compression: Compression::None,
    hash_seed: HashSeed::NONE,
};

pub(super) fn path() -> PathBuf {
    PathBuf::from("000007.table")
}

/// Writes table 7 and returns its file.
pub(super) fn write(
    entries: &[Entry],
    options: WriterOptions,
    collectors: Vec<Box<dyn Collector>>,
) -> (Arc<TestFile>, TableSummary) {
    write_as(7, entries, options, collectors)
}

pub(super) fn write_as(
    number: u64,
    entries: &[Entry],
    options: WriterOptions,
    collectors: Vec<Box<dyn Collector>>,
) -> (Arc<TestFile>, TableSummary) {
    let file = Arc::new(TestFile::default());
    let mut writer = TableWriter::new(Arc::clone(&file) as _, path(), number, options, collectors);
    for (key, tag, value) in entries {
        writer.add(key, *tag, value).unwrap();
    }
    let summary = writer.finish().unwrap();
    (file, summary)
}

/// Opens a file as table 7 with its actual size.
pub(super) fn open(file: &Arc<TestFile>) -> Result<Arc<Table>> {
    let size = file.bytes.lock().len() as u64;
    open_cached(file, size, 1 << 20)
}

pub(super) fn open_cached(file: &Arc<TestFile>, size: u64, cache: u64) -> Result<Arc<Table>> {
    let cache = Arc::new(BlockCache::new(cache));
    let counters = Arc::new(TableCounters::default());
    Table::open(Arc::clone(file) as _, path(), 7, size, cache, counters).map(Arc::new)
}

/// Writes and opens.
pub(super) fn table_of(entries: &[Entry], options: WriterOptions) -> Arc<Table> {
    open(&write(entries, options, Vec::new()).0).unwrap()
}
