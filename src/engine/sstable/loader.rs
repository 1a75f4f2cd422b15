//! Reads the blocks of a table file and checks them before they are decoded.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::block::Block;
use super::format::{Handle, LZ4, Malformed, STORED, TRAILER_BYTES, checksum};
use crate::engine::files::FileNumber;
use crate::error::{Error, Result};
use crate::io::fs::File;

/// LZ4 expands a byte to at most 255 bytes. A block that claims more is refused without allocating.
const MAX_EXPANSION: usize = 255;

/// The file of a table. All threads share it.
#[derive(Debug)]
pub(super) struct Loader {
    pub(super) file: Arc<dyn File>,
    pub(super) path: PathBuf,
    pub(super) number: FileNumber,
}

impl Loader {
    /// Reads and checks a data block.
    pub(super) fn block(&self, handle: Handle) -> Result<Block> {
        let mut bytes = zeroed(framed_length(handle));
        self.read(Arc::make_mut(&mut bytes), handle.offset)?;
        match self.check(&bytes, handle.offset)? {
            (STORED, _) => Block::parse(bytes, handle.length as usize),
            (_, packed) => unpack(packed),
        }
        .map_err(|why| self.malformed(handle.offset, why))
    }

    /// Checks and decodes a data block that was read together with its neighbours.
    pub(super) fn block_from(&self, framed: &[u8], offset: u64) -> Result<Block> {
        match self.check(framed, offset)? {
            (STORED, payload) => Block::parse(payload.into(), payload.len()),
            (_, packed) => unpack(packed),
        }
        .map_err(|why| self.malformed(offset, why))
    }

    /// Reads and checks a block other than a data block. Such a block is never compressed.
    pub(super) fn payload(&self, handle: Handle) -> Result<Vec<u8>> {
        let mut bytes = vec![0; framed_length(handle)];
        self.read(&mut bytes, handle.offset)?;
        let length = self.payload_from(&bytes, handle.offset)?.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Checks a block other than a data block that was read together with its neighbours.
    pub(super) fn payload_from<'a>(&self, framed: &'a [u8], offset: u64) -> Result<&'a [u8]> {
        match self.check(framed, offset)? {
            (STORED, payload) => Ok(payload),
            _ => Err(self.malformed(offset, Malformed("block must not be compressed"))),
        }
    }

    /// Fills `buffer` from `offset`. A file that is too short was truncated after it was opened.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|cause| match cause.kind() {
            io::ErrorKind::UnexpectedEof => {
                Error::corrupt(&self.path, offset, "the file ends inside a block")
            }
            _ => Error::io("read", &self.path, &cause),
        })
    }

    /// The error for bytes that match their checksum but are not valid.
    pub(super) fn malformed(&self, offset: u64, why: Malformed) -> Error {
        Error::corrupt(&self.path, offset, why.0)
    }

    /// Checks payload and trailer, and returns the compression type and the payload.
    fn check<'a>(&self, framed: &'a [u8], offset: u64) -> Result<(u8, &'a [u8])> {
        let Some((payload, &[kind, ref crc @ ..])) = framed.split_last_chunk::<5>() else {
            return Err(self.malformed(offset, Malformed("block is too short")));
        };
        let found = u32::from_le_bytes(*crc);
        let expected = checksum(&[payload], kind, self.number, offset);
        if found != expected {
            let detail = format!("block checksum {found:08x}, expected {expected:08x}");
            return Err(Error::corrupt(&self.path, offset, detail));
        }
        if !matches!(kind, STORED | LZ4) {
            let detail = format!("compression type {kind} is not known");
            return Err(Error::corrupt(&self.path, offset, detail));
        }
        Ok((kind, payload))
    }
}

/// Decompresses a data block.
pub(super) fn unpack(packed: &[u8]) -> std::result::Result<Block, Malformed> {
    let bad = Malformed("compressed block does not unpack");
    let (length, body) = packed.split_first_chunk().ok_or(bad)?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > body.len().saturating_mul(MAX_EXPANSION) {
        return Err(Malformed("compressed block claims an impossible length"));
    }
    let mut bytes = zeroed(length);
    match lz4_flex::block::decompress_into(body, Arc::make_mut(&mut bytes)) {
        Ok(written) if written == length => Block::parse(bytes, length),
        _ => Err(bad),
    }
}

/// Length of a block with its trailer. It cannot overflow, since the block is within the file.
pub(super) fn framed_length(handle: Handle) -> usize {
    handle.length as usize + TRAILER_BYTES as usize
}

/// Zeroed bytes in one allocation with their reference counts.
fn zeroed(length: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, length).collect()
}
