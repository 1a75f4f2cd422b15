//! Strings in chunks: rows of the data tree hold the bytes, the record their number.
//!
//! - A chunk without a row is zeros, and so is what a row lacks of its chunk.
//! - Rows are added and replaced, never removed: a string only grows until it is replaced as a
//!   whole, by another version. So no row of a version lies beyond the length of its record.
//! - The record counts the rows. Who reads all of them compares: a lost row would read as zeros.

#[cfg(feature = "server")]
mod reader;

use std::ops::Range;

use bytes::Bytes;

use crate::encoding::chunked::{Chunks, StringBody};
use crate::encoding::keys::{Prefix, RowKey, Space, prefix, row_key};
use crate::engine::CacheFill;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::trees::DATA;
use crate::txn::Tx;

#[cfg(feature = "server")]
pub(crate) use reader::StringReader;

/// Up to this many chunks are looked up one by one; more are walked.
const LOOKUPS: u64 = 4;
/// A walk over more bytes leaves the block cache as it is.
const CACHED_BYTES: u64 = 4 << 20;
/// Stands for chunks without a row.
const ZEROS: [u8; 4096] = [0; 4096];

/// A string whose bytes are in rows.
#[derive(Clone, Debug)]
pub(crate) struct ChunkedString {
    pub(crate) chunks: Chunks,
    prefix: Prefix,
}

/// A length or position in memory.
pub(crate) fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a string in chunks is damaged: {what}"))
}

impl ChunkedString {
    pub(crate) fn new(space: Space, key: &[u8], chunks: Chunks) -> Self {
        Self { chunks, prefix: prefix(space, key, chunks.version) }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        place(self.chunks.len)
    }

    /// What the keys of the rows begin with.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    fn row_key(&self, index: u64) -> RowKey {
        row_key(&self.prefix, &index.to_be_bytes())
    }

    /// Visits the stored bytes within `range`, in order, with their offsets, until `visit` returns
    /// false. What is not visited is zeros. Returns the number of rows seen.
    pub(crate) fn each_row(
        &self,
        tx: &Tx<'_>,
        range: Range<u64>,
        mut visit: impl FnMut(u64, &[u8]) -> Result<bool>,
    ) -> Result<u64> {
        let range = range.start..range.end.min(self.chunks.len);
        if range.is_empty() {
            return Ok(0);
        }
        let (first, end) = (range.start >> self.chunks.shift, self.chunks.count_of(range.end));
        let mut seen = 0;
        if end - first <= LOOKUPS {
            for index in first..end {
                if let Some(row) = tx.row(DATA, &self.row_key(index))? {
                    seen += 1;
                    if !self.clipped(index, &row, &range, &mut visit)? {
                        break;
                    }
                }
            }
            return Ok(seen);
        }
        let fill =
            if range.end - range.start > CACHED_BYTES { CacheFill::Skip } else { CacheFill::Fill };
        let (from, to) = (self.row_key(first), self.row_key(end));
        let mut walk = tx.rows_cached(DATA, &from, Some(&to), false, fill)?;
        while walk.advance()? {
            seen += 1;
            let index = walk.key().get(self.prefix.len()..).and_then(|it| it.try_into().ok());
            let index = index.map(u64::from_be_bytes).ok_or_else(|| damaged("a row's key"))?;
            if !self.clipped(index, walk.value(), &range, &mut visit)? {
                break;
            }
        }
        Ok(seen)
    }

    /// Visits the part of a row that lies within the range.
    fn clipped(
        &self,
        index: u64,
        row: &[u8],
        range: &Range<u64>,
        visit: &mut impl FnMut(u64, &[u8]) -> Result<bool>,
    ) -> Result<bool> {
        let begin = index << self.chunks.shift;
        let end = begin + row.len() as u64;
        if row.len() as u64 > self.chunks.chunk_bytes() || end > self.chunks.len {
            return Err(damaged("a row is too long"));
        }
        let (from, to) = (range.start.max(begin), range.end.min(end));
        match row.get(place(from - begin)..place(to.saturating_sub(begin))) {
            Some(part) if !part.is_empty() => visit(from, part),
            _ => Ok(true),
        }
    }

    /// Visits all bytes of a range in order, zeros included. Fails if a row of a whole string was
    /// lost.
    pub(crate) fn each_part(
        &self,
        tx: &Tx<'_>,
        range: Range<u64>,
        visit: impl FnMut(&[u8]),
    ) -> Result<()> {
        let whole = range.start == 0 && range.end >= self.chunks.len;
        let seen = self.remaining_parts(tx, range, visit)?;
        if whole && seen != self.chunks.rows {
            let rows = self.chunks.rows;
            return Err(damaged(&format!("it has {seen} of its {rows} chunks")));
        }
        Ok(())
    }

    /// Visits all bytes of a range in order, zeros for what was lost. Returns the number of rows.
    fn remaining_parts(
        &self,
        tx: &Tx<'_>,
        range: Range<u64>,
        mut visit: impl FnMut(&[u8]),
    ) -> Result<u64> {
        let end = range.end.min(self.chunks.len);
        let mut at = range.start;
        let seen = self.each_row(tx, range, |offset, part| {
            each_zeros(offset - at, &mut visit);
            visit(part);
            at = offset + part.len() as u64;
            Ok(true)
        })?;
        each_zeros(end.saturating_sub(at), &mut visit);
        Ok(seen)
    }

    /// The bytes of a range, in one piece.
    pub(crate) fn read(&self, tx: &Tx<'_>, range: Range<u64>) -> Result<Bytes> {
        let range = range.start..range.end.min(self.chunks.len);
        let mut value = room_for(place(range.end.saturating_sub(range.start)))?;
        self.each_part(tx, range, |part| value.extend_from_slice(part))?;
        Ok(value.into())
    }

    /// All bytes, with zeros for the chunks that were lost, and the number of those.
    pub(crate) fn read_remains(&self, tx: &Tx<'_>) -> Result<(Bytes, u64)> {
        let mut value = room_for(self.len())?;
        let all = 0..self.chunks.len;
        let seen = self.remaining_parts(tx, all, |part| value.extend_from_slice(part))?;
        Ok((value.into(), self.chunks.rows.saturating_sub(seen)))
    }

    /// Writes bytes at an offset. The string grows if they go beyond its end.
    pub(crate) fn write(&mut self, tx: &mut Tx<'_>, offset: u64, bytes: &[u8]) -> Result<()> {
        let old_chunks = self.chunks.count_of(self.chunks.len);
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let index = at >> self.chunks.shift;
            let begin = place(at - (index << self.chunks.shift));
            let room = place(self.chunks.chunk_bytes()) - begin;
            let (part, after) = rest.split_at(room.min(rest.len()));
            let key = self.row_key(index);
            let row = if index < old_chunks { tx.row(DATA, &key)? } else { None };
            match row {
                // A hole stays one.
                None if part.iter().all(|byte| *byte == 0) => {}
                row => {
                    self.chunks.rows += u64::from(row.is_none());
                    tx.put_row(DATA, &key, overwritten(row.as_deref(), begin, part));
                }
            }
            (at, rest) = (at + part.len() as u64, after);
        }
        self.grow(at);
        Ok(())
    }

    /// Makes the string at least this long; what it gains is zeros.
    pub(crate) fn grow(&mut self, len: u64) {
        self.chunks.len = self.chunks.len.max(len);
    }
}

fn room_for(len: usize) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    value.try_reserve_exact(len).map_err(|_| {
        let text = format!("there is no memory for {len} bytes of a string: see GETRANGE");
        Error::new(ErrorKind::TooLarge, text)
    })?;
    Ok(value)
}

/// A row with `part` written at `begin`.
fn overwritten(row: Option<&[u8]>, begin: usize, part: &[u8]) -> Vec<u8> {
    let (row, end) = (row.unwrap_or_default(), begin + part.len());
    let mut changed = Vec::with_capacity(end.max(row.len()));
    changed.extend_from_slice(row.get(..begin).unwrap_or(row));
    changed.resize(begin, 0);
    changed.extend_from_slice(part);
    changed.extend_from_slice(row.get(end..).unwrap_or_default());
    changed
}

fn each_zeros(mut count: u64, visit: &mut impl FnMut(&[u8])) {
    while count > 0 {
        let part = ZEROS.get(..place(count)).unwrap_or(&ZEROS);
        visit(part);
        count -= part.len() as u64;
    }
}

/// The value of a string that exists.
#[derive(Clone, Debug)]
pub(crate) enum StringValue {
    /// The bytes are in the record itself.
    Whole(Bytes),
    /// The bytes are in rows of their own.
    Chunked(ChunkedString),
}

impl StringValue {
    /// The value that the record of `key` in the database of `tx` has or names.
    #[inline]
    pub(crate) fn of(tx: &Tx<'_>, key: &[u8], body: StringBody) -> Self {
        match body {
            StringBody::Whole(value) => Self::Whole(value),
            StringBody::Chunked(chunks) => {
                Self::Chunked(ChunkedString::new(tx.space(), key, chunks))
            }
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(value) => value.len(),
            Self::Chunked(string) => string.len(),
        }
    }

    /// The bytes of a range; fewer where the string ends.
    pub(crate) fn range(&self, tx: &Tx<'_>, range: Range<usize>) -> Result<Bytes> {
        match self {
            Self::Whole(value) => {
                let end = range.end.min(value.len());
                Ok(value.slice(range.start.min(end)..end))
            }
            Self::Chunked(string) => string.read(tx, range.start as u64..range.end as u64),
        }
    }

    /// All bytes if there are at most `most` of them, or if they are at hand.
    pub(crate) fn if_short(&self, tx: &Tx<'_>, most: usize) -> Result<Option<Bytes>> {
        match self {
            Self::Chunked(_) if self.len() > most => Ok(None),
            _ => self.range(tx, 0..self.len()).map(Some),
        }
    }
}

#[cfg(test)]
mod tests;
