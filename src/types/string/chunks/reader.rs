//! Reads a string in chunks part by part, all of it as of one moment.

use super::{ChunkedString, StringValue, damaged};
use crate::error::Result;
use crate::txn::Db;

/// A place in a string in chunks. Keeps what the string was when the reader was made.
#[derive(Debug)]
pub(crate) struct StringReader {
    snapshot: Db,
    string: ChunkedString,
    at: u64,
    /// The rows seen so far.
    rows: u64,
}

impl StringReader {
    /// A reader of the string at `key`, as it is now; `None` if none in chunks is there.
    pub(crate) fn open(db: &Db, key: &[u8]) -> Result<Option<Self>> {
        let snapshot = db.snapshot()?;
        Ok(match snapshot.read(|tx| tx.string(key))? {
            Some(StringValue::Chunked(string)) => Some(Self { snapshot, string, at: 0, rows: 0 }),
            _ => None,
        })
    }

    /// The number of bytes of the whole string.
    pub(crate) fn len(&self) -> usize {
        self.string.len()
    }

    /// Whether everything was read.
    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.string.chunks.len
    }

    /// Hands out the next bytes: whole chunks, at least one, and about `most` bytes. Fails at the
    /// end if a chunk was lost.
    pub(crate) fn read(&mut self, most: u64, part: impl FnMut(&[u8])) -> Result<()> {
        let chunks = &self.string.chunks;
        let count = (most / chunks.chunk_bytes()).max(1);
        let end = (self.at + count * chunks.chunk_bytes()).min(chunks.len);
        let (string, range) = (&self.string, self.at..end);
        self.rows += self.snapshot.read(|tx| string.remaining_parts(tx, range, part))?;
        self.at = end;
        if self.is_done() && self.rows != chunks.rows {
            return Err(damaged(&format!("it has {} of its {} chunks", self.rows, chunks.rows)));
        }
        Ok(())
    }
}
