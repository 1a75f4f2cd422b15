//! Appends blocks to a table file through a buffer, so that there are few large writes.
//!
//! After a failed write the sink stays failed, so that a table with a hole is never finished.

use std::path::PathBuf;
use std::sync::Arc;

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use super::format::{Handle, LZ4, STORED, checksum};
use crate::engine::files::FileNumber;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::File;
use crate::options::Compression;

const BUFFER_BYTES: usize = 512 << 10;
/// Larger payloads are not compressed: that would take as much memory again.
const MAX_COMPRESSED: usize = 64 << 20;

/// The file of a table that is being written.
pub(super) struct Sink {
    file: Arc<dyn File>,
    path: PathBuf,
    number: FileNumber,
    buffer: Vec<u8>,
    /// Number of bytes written to the file.
    written: u64,
    failure: Option<Error>,
    plain: Vec<u8>,
    packed: Vec<u8>,
    table: CompressTable,
    /// Whether the file may be longer than what is written.
    pub(super) trim: bool,
}

impl Sink {
    pub(super) fn new(file: Arc<dyn File>, path: PathBuf, number: FileNumber) -> Self {
        Self {
            file,
            path,
            number,
            buffer: Vec::new(),
            written: 0,
            failure: None,
            plain: Vec::new(),
            packed: Vec::new(),
            table: CompressTable::default(),
            trim: false,
        }
    }

    /// The offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Appends a block with the payload `parts`. It is compressed if `compression` asks for it and
    /// at least an eighth is saved.
    pub(super) fn block(&mut self, parts: &[&[u8]], compression: Compression) -> Result<Handle> {
        let raw: usize = parts.iter().map(|part| part.len()).sum();
        if compression == Compression::Lz4 && raw <= MAX_COMPRESSED && self.compress(parts, raw) {
            let packed = std::mem::take(&mut self.packed);
            let handle = self.framed(&[&packed], LZ4);
            self.packed = packed;
            self.packed.clear();
            self.packed.shrink_to(BUFFER_BYTES);
            return handle;
        }
        self.framed(parts, STORED)
    }

    /// Appends bytes without a frame.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() < BUFFER_BYTES {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        let result = self.file.write_all_at(bytes, self.written);
        self.note(result, "write")?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Writes the buffered bytes and makes the whole file durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.flush()?;
        if self.trim {
            let result = self.file.set_len(self.written);
            self.note(result, "trim")?;
        }
        let result = self.file.sync_data();
        self.note(result, "sync")
    }

    fn flush(&mut self) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let result = self.file.write_all_at(&self.buffer, self.written);
        self.note(result, "write")?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn note(&mut self, result: std::io::Result<()>, operation: &str) -> Result<()> {
        result.map_err(|cause| {
            let error = Error::io(operation, &self.path, &cause);
            self.failure = Some(error.clone());
            error
        })
    }

    fn framed(&mut self, parts: &[&[u8]], kind: u8) -> Result<Handle> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        let length = u32::try_from(total).map_err(|_| {
            let message = format!("a block of {} is larger than 4 GiB", self.path.display());
            Error::new(ErrorKind::TooLarge, message)
        })?;
        let handle = Handle { offset: self.position(), length };
        let crc = checksum(parts, kind, self.number, handle.offset);
        for part in parts {
            self.append(part)?;
        }
        self.append(&[kind])?;
        self.append(&crc.to_le_bytes())?;
        Ok(handle)
    }

    /// Puts `original length | LZ4 block` into `packed`; `false` if that saves too little.
    fn compress(&mut self, parts: &[&[u8]], raw: usize) -> bool {
        self.plain.clear();
        parts.iter().for_each(|part| self.plain.extend_from_slice(part));
        let is_small = self.compress_plain(raw);
        // What a huge entry needs is given back at once.
        self.plain.clear();
        self.plain.shrink_to(BUFFER_BYTES);
        if !is_small {
            self.packed.clear();
            self.packed.shrink_to(BUFFER_BYTES);
        }
        is_small
    }

    /// Compresses `plain` of `raw` bytes.
    fn compress_plain(&mut self, raw: usize) -> bool {
        let Ok(original) = u32::try_from(raw) else { return false };
        self.packed.resize(4 + get_maximum_output_size(raw), 0);
        let Some((head, body)) = self.packed.split_at_mut_checked(4) else { return false };
        head.copy_from_slice(&original.to_le_bytes());
        let Ok(size) = compress_into_with_table(&self.plain, body, &mut self.table) else {
            return false;
        };
        self.packed.truncate(4 + size);
        self.packed.len() <= raw - raw / 8
    }
}
