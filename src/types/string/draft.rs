//! A string under change: its record, or its rows.
//!
//! A string that becomes too long for its record moves into rows with the change that makes it so.
//! One in rows stays there until it is replaced as a whole.

use std::borrow::Cow;

use super::chunks::{ChunkedString, place};
use crate::encoding::chunked::{StringBody, is_chunked};
use crate::encoding::meta::{HEADER_BYTES, Header, Type, encode_string};
use crate::error::Result;
use crate::txn::Tx;

/// A string under change.
pub(crate) struct Draft<'k> {
    key: &'k [u8],
    header: Header,
    exists: bool,
    form: Form,
}

enum Form {
    /// The record, so that a change costs one copy.
    Whole(Vec<u8>),
    /// Rows, which changes write at once.
    Chunked(ChunkedString),
}

impl<'s> Tx<'s> {
    /// The string for changes; empty if the key does not exist.
    pub(crate) fn draft<'k>(&self, key: &'k [u8]) -> Result<Draft<'k>> {
        let Some(record) = self.typed(key, Type::String)? else {
            let header = Header { kind: Type::String, expire_ms: 0 };
            let form = Form::Whole(encode_string(b"", 0));
            return Ok(Draft { key, header, exists: false, form });
        };
        let header = record.header;
        let form = if is_chunked(&record.bytes) {
            match record.into_string(key)? {
                StringBody::Whole(value) => Form::Whole(encode_string(&value, header.expire_ms)),
                StringBody::Chunked(chunks) => {
                    Form::Chunked(ChunkedString::new(self.space(), key, chunks))
                }
            }
        } else {
            Form::Whole(record.bytes.to_vec())
        };
        Ok(Draft { key, header, exists: true, form })
    }

    /// Stores a changed draft; the expiry stays.
    pub(crate) fn put_draft(&mut self, draft: Draft<'_>) -> Result<()> {
        self.store().limits().check_value_len(draft.len())?;
        let record = match draft.form {
            Form::Whole(record) => record,
            Form::Chunked(string) => string.chunks.encode(draft.header),
        };
        self.put_record_over(draft.key, record, draft.exists)
    }

    /// Writes the rows of a string of this value under a new version. A record that the transaction
    /// writes has to name them.
    fn write_chunks(&mut self, key: &[u8], value: &[u8]) -> Result<ChunkedString> {
        let mut writer = self.write_string(key)?;
        value.chunks(writer.chunk_bytes()).try_for_each(|chunk| writer.push(chunk))?;
        let chunks = writer.finish_rows(self)?;
        Ok(ChunkedString::new(self.space(), key, chunks))
    }
}

impl Draft<'_> {
    pub(crate) fn exists(&self) -> bool {
        self.exists
    }

    pub(crate) fn len(&self) -> usize {
        match &self.form {
            Form::Whole(record) => record.len().saturating_sub(HEADER_BYTES),
            Form::Chunked(string) => place(string.chunks.len),
        }
    }

    /// The value if it has at most `most` bytes, or is at hand.
    pub(crate) fn if_short(&self, tx: &Tx<'_>, most: usize) -> Result<Option<Cow<'_, [u8]>>> {
        match &self.form {
            Form::Whole(_) => Ok(Some(Cow::Borrowed(self.value()))),
            Form::Chunked(_) if self.len() > most => Ok(None),
            Form::Chunked(string) => {
                let value = string.read(tx, 0..string.chunks.len)?;
                Ok(Some(Cow::Owned(value.to_vec())))
            }
        }
    }

    /// The value, if it is in the record.
    fn value(&self) -> &[u8] {
        match &self.form {
            Form::Whole(record) => record.get(HEADER_BYTES..).unwrap_or_default(),
            Form::Chunked(_) => &[],
        }
    }

    /// Copies the bytes from `at` on to `window`, as many as there are; how many.
    pub(crate) fn read(&self, tx: &Tx<'_>, at: usize, window: &mut [u8]) -> Result<usize> {
        let end = at.saturating_add(window.len()).min(self.len());
        let len = end.saturating_sub(at);
        match &self.form {
            Form::Whole(_) => {
                let bytes = self.value().get(at..end).unwrap_or_default();
                window.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            }
            Form::Chunked(string) => {
                let bytes = string.read(tx, at as u64..end as u64)?;
                window.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
            }
        }
        Ok(len)
    }

    /// Writes bytes at an offset. The string grows if they go beyond its end.
    pub(crate) fn write(&mut self, tx: &mut Tx<'_>, at: usize, bytes: &[u8]) -> Result<()> {
        let end = at.saturating_add(bytes.len());
        self.make_room(tx, end)?;
        match &mut self.form {
            Form::Whole(record) => {
                let at = at.saturating_add(HEADER_BYTES);
                if record.len() < at {
                    record.resize(at, 0);
                }
                let there = record.len() - at;
                let (over, beyond) = bytes.split_at(there.min(bytes.len()));
                if let Some(place) = record.get_mut(at..at + over.len()) {
                    place.copy_from_slice(over);
                }
                record.extend_from_slice(beyond);
                Ok(())
            }
            Form::Chunked(string) => string.write(tx, at as u64, bytes),
        }
    }

    /// Pads the value with zeros to at least `len` bytes.
    pub(crate) fn grow(&mut self, tx: &mut Tx<'_>, len: usize) -> Result<()> {
        if len <= self.len() {
            return Ok(());
        }
        self.make_room(tx, len)?;
        match &mut self.form {
            Form::Whole(record) => {
                let len = len.saturating_add(HEADER_BYTES);
                if record.len() < len {
                    record.resize(len, 0);
                }
            }
            Form::Chunked(string) => string.grow(len as u64),
        }
        Ok(())
    }

    /// Moves the string into rows if it is about to become too long for its record.
    fn make_room(&mut self, tx: &mut Tx<'_>, end: usize) -> Result<()> {
        let large = tx.store().strings().is_large(end.max(self.len()));
        if large && matches!(self.form, Form::Whole(_)) {
            // Before anything is allocated or written for it.
            tx.store().limits().check_value_len(end)?;
            self.form = Form::Chunked(tx.write_chunks(self.key, self.value())?);
        }
        Ok(())
    }

    /// Replaces the value by a short one.
    pub(crate) fn replace(&mut self, value: &[u8]) {
        match &mut self.form {
            Form::Whole(record) => {
                record.truncate(HEADER_BYTES);
                record.extend_from_slice(value);
            }
            form => *form = Form::Whole(encode_string(value, self.header.expire_ms)),
        }
    }
}
