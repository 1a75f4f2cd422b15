//! Reads what is left of a damaged table, block by block from the first to the last.
//!
//! Blocks that do not match their checksum are skipped. If the index is readable, a damaged block
//! loses only its own entries. Otherwise blocks are found by their checksums, one after another
//! from the start of the file, and the first damaged block hides all blocks after it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use super::block::Block;
use super::block_cursor::BlockCursor;
use super::format::{Footer, Handle, LZ4, STORED, TRAILER_BYTES};
use super::frame::Tail;
use super::index::Index;
use super::loader::Loader;
use super::properties::Properties;
use crate::engine::entry::{MAX_SEQUENCE, Tag};
use crate::engine::files::FileNumber;
use crate::error::{Error, Result};
use crate::io::fs::File;

/// Longest block to search for if there is no index.
const LONGEST_SEARCHED: u64 = 64 << 20;
/// Number of bytes to read at once while searching.
const WINDOW: usize = 256 << 10;

/// Bytes of a table that cannot be read, and why.
#[derive(Debug)]
pub struct Unreadable {
    /// The range in the file.
    pub range: Range<u64>,
    /// Why they cannot be read.
    pub cause: Error,
}

/// How to find the next block.
#[derive(Debug)]
enum Blocks {
    Indexed { index: Index, next: usize },
    Searched { next: u64 },
    Done,
}

/// A damaged table that is being read. It has no entry until it is advanced.
#[derive(Debug)]
pub struct TableSalvage {
    loader: Loader,
    size: u64,
    blocks: Blocks,
    at: Option<BlockCursor>,
    /// Entries before this key do not count.
    lower: Option<Bytes>,
    properties: Option<Properties>,
    unreadable: Vec<Unreadable>,
    read: u64,
}

impl TableSalvage {
    /// Opens a table file and reads its footer, properties and index as far as possible.
    pub fn open(file: Arc<dyn File>, path: PathBuf, number: FileNumber) -> Result<Self> {
        let size = file.len().map_err(|cause| Error::io("stat", &path, &cause))?;
        let loader = Loader { file, path, number };
        let mut salvage = Self {
            loader,
            size,
            blocks: Blocks::Searched { next: 0 },
            at: None,
            lower: None,
            properties: None,
            unreadable: Vec::new(),
            read: 0,
        };
        salvage.read_frame();
        Ok(salvage)
    }

    /// Leaves out the entries of the table before `lower`, whose blocks may be gone.
    #[must_use]
    pub fn starting_at(mut self, lower: Option<Bytes>) -> Self {
        if let (Some(lower), Blocks::Indexed { index, next }) = (&lower, &mut self.blocks) {
            *next = index.search(lower, Tag::newest_at(MAX_SEQUENCE));
        }
        self.lower = lower;
        self
    }

    fn read_frame(&mut self) {
        let tail = Tail::read(&self.loader, self.size);
        let opened = tail.and_then(|tail| tail.footer(&self.loader).map(|footer| (tail, footer)));
        let (tail, footer) = match opened {
            Ok(opened) => opened,
            Err(cause) => return self.lose(self.size.saturating_sub(60)..self.size, cause),
        };
        match tail.properties(&self.loader, &footer) {
            Ok(properties) => self.properties = Some(properties),
            Err(cause) => self.lose(range_of(footer.properties), cause),
        }
        match self.read_index(&footer) {
            Ok(index) => self.blocks = Blocks::Indexed { index, next: 0 },
            Err(cause) => self.lose(range_of(footer.index), cause),
        }
    }

    fn read_index(&self, footer: &Footer) -> Result<Index> {
        let payload = self.loader.payload(footer.index)?;
        let bad = |why| self.loader.malformed(footer.index.offset, why);
        Index::decode(&payload, footer.data_end()).map_err(bad)
    }

    fn lose(&mut self, range: Range<u64>, cause: Error) {
        self.unreadable.push(Unreadable { range, cause });
    }

    /// The properties of the table, if they are readable.
    pub fn properties(&self) -> Option<&Properties> {
        self.properties.as_ref()
    }

    /// The bytes found to be unreadable since the last call.
    pub fn take_unreadable(&mut self) -> Vec<Unreadable> {
        std::mem::take(&mut self.unreadable)
    }

    /// Number of blocks read so far.
    pub fn blocks_read(&self) -> u64 {
        self.read
    }

    /// Moves to the next readable entry that counts; `false` at the end.
    pub fn advance(&mut self) -> bool {
        while self.advance_any() {
            let lower = self.lower.as_deref().unwrap_or_default();
            if self.at.as_ref().is_some_and(|at| at.key() >= lower) {
                return true;
            }
        }
        false
    }

    fn advance_any(&mut self) -> bool {
        loop {
            if let Some(at) = &mut self.at {
                match at.next() {
                    Ok(true) => return true,
                    Ok(false) => {}
                    // The checksum matches, so the block was written wrong. Skip the rest of it.
                    Err(why) => {
                        let cause = self.loader.malformed(0, why);
                        self.unreadable.push(Unreadable { range: 0..0, cause });
                    }
                }
                self.at = None;
            }
            let Some(block) = self.next_block() else { return false };
            self.read += 1;
            if let Ok(at) = BlockCursor::at(block, 0, Vec::new()) {
                self.at = Some(at);
                return true;
            }
        }
    }

    /// Key, tag and value of the current entry.
    pub fn entry(&self) -> Option<(&[u8], Tag, &[u8])> {
        self.at.as_ref().map(|at| (at.key(), at.tag(), at.value()))
    }

    fn next_block(&mut self) -> Option<Block> {
        loop {
            let handle = match &mut self.blocks {
                Blocks::Done => return None,
                Blocks::Indexed { index, next } => {
                    let handle = index.handle(*next)?;
                    *next += 1;
                    handle
                }
                Blocks::Searched { next } => {
                    let from = *next;
                    return self.search(from);
                }
            };
            match self.loader.block(handle) {
                Ok(block) => return Some(block),
                Err(cause) => self.lose(range_of(handle), cause),
            }
        }
    }

    /// The block that begins at `from`, if a matching checksum tells where it ends.
    fn search(&mut self, from: u64) -> Option<Block> {
        self.blocks = Blocks::Done;
        let found = find_end(&self.loader, from, self.size);
        let handle = match found {
            Ok(Some(handle)) => handle,
            // This is the end of the last part after the data, or damage.
            Ok(None) => {
                let cause = Error::corrupt(&self.loader.path, from, "no block is found here");
                self.lose(from..self.size, cause);
                return None;
            }
            Err(cause) => {
                self.lose(from..self.size, cause);
                return None;
            }
        };
        let block = self.loader.block(handle).ok()?;
        self.blocks = Blocks::Searched { next: handle.end()? };
        Some(block)
    }
}

fn range_of(handle: Handle) -> Range<u64> {
    handle.offset..handle.end().unwrap_or(handle.offset)
}

/// The shortest block at `offset` that matches a checksum.
fn find_end(loader: &Loader, offset: u64, size: u64) -> Result<Option<Handle>> {
    let limit = size.saturating_sub(offset).min(LONGEST_SEARCHED);
    let place = [loader.number.to_le_bytes(), offset.to_le_bytes()].concat();
    let mut hasher = crc32fast::Hasher::new();
    let mut window = Vec::new();
    let mut hashed = 0u64;
    while hashed + u64::from(TRAILER_BYTES) < limit {
        let wanted = usize::try_from(limit - hashed).unwrap_or(WINDOW).min(WINDOW);
        window.resize(wanted, 0);
        loader.read(&mut window, offset + hashed)?;
        let candidates = window.windows(TRAILER_BYTES as usize);
        let count = candidates.len();
        for trailer in candidates {
            let &[kind, ref crc @ ..] = trailer else { continue };
            if matches!(kind, STORED | LZ4) && hashed > 0 {
                let mut here = hasher.clone();
                here.update(&[kind]);
                here.update(&place);
                if here.finalize().to_le_bytes() == *crc {
                    let length = u32::try_from(hashed).unwrap_or(u32::MAX);
                    return Ok(Some(Handle { offset, length }));
                }
            }
            hasher.update(&[kind]);
            hashed += 1;
        }
        if count == 0 {
            break;
        }
    }
    Ok(None)
}
