//! Reads the records of one file through a window of bounded size.
//!
//! No length on disk is trusted. A record must end within the file, and its checksum is computed in
//! pieces of the window's size. Only the payload of a valid record is ever held in memory as a
//! whole. One thread uses a reader at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::FileNumber;
use crate::engine::wal::header::{FILE_HEADER_BYTES, FileHeader};
use crate::engine::wal::position::LogPosition;
use crate::engine::wal::record::{RECORD_HEADER_BYTES, RecordKind, decode_header, framed_len};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{File, FileSystem};

/// Size of the window.
const WINDOW_BYTES: usize = 256 << 10;

/// A record that matches its checksum.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Offset at which it starts.
    pub offset: u64,
    /// Offset at which the next record would start.
    pub end: u64,
    /// The kind of payload.
    pub kind: RecordKind,
    /// How far the log or manifest was durable when the record was written.
    pub synced: LogPosition,
    len: usize,
}

/// A file of records, open for reading.
#[derive(Debug)]
pub struct RecordReader {
    file: Arc<dyn File>,
    path: PathBuf,
    number: FileNumber,
    len: u64,
    window: Vec<u8>,
    window_start: u64,
    large: Vec<u8>,
}

impl RecordReader {
    /// Opens the file at `path`. The checksums of its records cover `number`.
    pub fn open(fs: &dyn FileSystem, path: PathBuf, number: FileNumber) -> Result<Self> {
        let file = fs.open(&path).map_err(|e| Error::io("open", &path, &e))?;
        let len = file.len().map_err(|e| Error::io("read the length of", &path, &e))?;
        let (window, large) = (Vec::new(), Vec::new());
        Ok(Self { file, path, number, len, window, window_start: 0, large })
    }

    /// The length of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number that the checksums of its records cover.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Reads and checks the header of the file.
    pub fn file_header(&mut self, magic: [u8; 8]) -> Result<FileHeader> {
        let (path, number) = (self.path.clone(), self.number);
        let wanted = FILE_HEADER_BYTES.min(self.len);
        let bytes = self.view(0, usize::try_from(wanted).unwrap_or(0))?;
        FileHeader::decode(bytes, &path, magic, number)
    }

    /// The record at `offset`, if there is a valid one that ends at or before `limit`.
    pub fn record_at(&mut self, offset: u64, limit: u64) -> Result<Option<Record>> {
        let limit = limit.min(self.len);
        let header_end = offset.saturating_add(RECORD_HEADER_BYTES as u64);
        if header_end > limit {
            return Ok(None);
        }
        let at = LogPosition::new(self.number, offset);
        let bytes = self.view(offset, RECORD_HEADER_BYTES)?;
        let Some(header) = decode_header(bytes, at) else { return Ok(None) };
        let end = offset.saturating_add(framed_len(u64::from(header.len)));
        if end > limit {
            return Ok(None);
        }
        let mut hasher = header.hasher;
        let len = header.len as usize;
        self.feed(&mut hasher, header_end, len)?;
        let valid = hasher.finalize() == header.crc;
        Ok(valid.then_some(Record { offset, end, kind: header.kind, synced: header.synced, len }))
    }

    fn feed(&mut self, hasher: &mut crc32fast::Hasher, mut at: u64, mut left: usize) -> Result<()> {
        while left > 0 {
            let part = self.view(at, left.min(WINDOW_BYTES))?;
            hasher.update(part);
            left -= part.len();
            at += part.len() as u64;
        }
        Ok(())
    }

    /// The payload of a record that this reader returned.
    pub fn payload(&mut self, record: &Record) -> Result<&[u8]> {
        let start = record.offset + RECORD_HEADER_BYTES as u64;
        if record.len <= WINDOW_BYTES {
            return self.view(start, record.len);
        }
        self.large.clear();
        self.large.try_reserve_exact(record.len).map_err(|_| {
            let text =
                format!("{}: no memory for a record of {} bytes", self.path.display(), record.len);
            Error::new(ErrorKind::NoMemory, text)
        })?;
        self.large.resize(record.len, 0);
        read_exact(&*self.file, &self.path, &mut self.large, start)?;
        Ok(&self.large)
    }

    /// Calls `on_record` for each record from `from` on, and returns the first offset at which
    /// there is no valid record that ends at or before `limit`.
    pub fn replay(
        &mut self,
        from: u64,
        limit: u64,
        mut on_record: impl FnMut(&Record, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut offset = from;
        while let Some(record) = self.record_at(offset, limit)? {
            on_record(&record, self.payload(&record)?)?;
            offset = record.end;
        }
        // Free the memory of a large record.
        self.large = Vec::new();
        Ok(offset)
    }

    /// Some bytes from `offset` on: at least eight, unless the file ends before.
    pub fn some_bytes(&mut self, offset: u64) -> Result<&[u8]> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.view(offset, left.min(8))?;
        let skip = usize::try_from(offset - self.window_start).unwrap_or(usize::MAX);
        Ok(self.window.get(skip..).unwrap_or_default())
    }

    /// `n` bytes at `offset`. They must be within the file and fit into the window.
    fn view(&mut self, offset: u64, n: usize) -> Result<&[u8]> {
        let held = self.window_start..self.window_start + self.window.len() as u64;
        if offset < held.start || offset + n as u64 > held.end {
            self.fill(offset)?;
        }
        let skip = usize::try_from(offset - self.window_start).unwrap_or(usize::MAX);
        let bytes = self.window.get(skip..).and_then(|rest| rest.get(..n));
        bytes.ok_or_else(|| Error::corrupt(&self.path, offset, "the file ends here"))
    }

    fn fill(&mut self, offset: u64) -> Result<()> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.window.resize(left.min(WINDOW_BYTES), 0);
        self.window_start = offset;
        let read = read_exact(&*self.file, &self.path, &mut self.window, offset);
        if read.is_err() {
            self.window.clear();
        }
        read
    }
}

fn read_exact(file: &dyn File, path: &Path, buf: &mut [u8], offset: u64) -> Result<()> {
    file.read_exact_at(buf, offset).map_err(|e| Error::io("read", path, &e))
}
