//! A long string that is written as its bytes arrive, before the command that sets it can run.
//!
//! Nobody holds a lock meanwhile. The rows go to the store in commits of some 64 KiB, under a version that is
//! reserved and that no record names: nobody sees them, compactions keep them, `check` passes over
//! them. The command names them in its own commit. If it does not, the version is given up with the
//! [`StagedString`], and the next compactions take the rows. A process that dies leaves them to those
//! of the next one.
//!
//! A reserved version pins nothing but its rows: no view, no snapshot, no part of the log.
//!
//! Rows are in the space that the database had at the beginning. If it was emptied or swapped since,
//! the command copies them into the space that it has then. Rows of a reserved version survive in a
//! space that no database maps to.
//!
//! An error is kept until the command puts the value, because an error of its options comes first.

use std::sync::Arc;

use bytes::Bytes;

use super::chunks::ChunkedString;
use super::writer::RestingWriter;
use crate::encoding::keys::{Space, prefix};
use crate::encoding::meta::{Header, Type};
use crate::engine::ReservedNumber;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::store::Store;
use crate::txn::{Db, Tx};

/// Rows of this many bytes are committed. It is what a server reads from a client at a time, so that
/// it does no more for it at a time, and a client that stalls holds no more memory.
const SPILL_BYTES: usize = 64 << 10;
/// A longer key is in every row: its string is not staged.
const MOST_KEY_BYTES: usize = 4 << 10;

/// A string of which a part has arrived.
pub(crate) struct StagedString {
    store: Arc<Store>,
    key: Box<[u8]>,
    space: Space,
    /// The rows; `None` once the value was put or has failed.
    writer: Option<RestingWriter>,
    /// The beginning of the next chunk.
    tail: Vec<u8>,
    failure: Option<Error>,
    /// Keeps the rows from compactions.
    reserved: Option<ReservedNumber>,
}

impl StagedString {
    /// Begins a string of `len` bytes for `key`; `None` if it has to come as a whole.
    pub(crate) fn begin(db: &Db, key: &[u8], len: usize) -> Option<Self> {
        let store = db.shared_store();
        let limits = store.limits();
        let is_fit = db.is_live()
            && store.strings().is_large(len)
            && key.len() <= MOST_KEY_BYTES
            && limits.check_key(key).is_ok()
            && limits.check_value_len(len).is_ok()
            && store.engine().check_writable().is_ok();
        if !is_fit {
            return None;
        }
        let space = store.spaces().of(db.database()).ok()?;
        let reserved = store.engine().reserve_number();
        let version = reserved.number();
        let writer = RestingWriter::new(store, version, prefix(space, key, version));
        Some(Self {
            store: Arc::clone(store),
            key: key.into(),
            space,
            writer: Some(writer),
            tail: Vec::new(),
            failure: None,
            reserved: Some(reserved),
        })
    }

    /// The memory that it holds.
    pub(crate) fn memory(&self) -> usize {
        let rows = self.writer.as_ref().map_or(0, RestingWriter::bytes);
        self.key.len() + self.tail.capacity() + rows
    }

    /// Appends bytes. After an error they are dropped.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Err(error) = self.write(bytes) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: Error) {
        self.failure = Some(error);
        (self.writer, self.tail, self.reserved) = (None, Vec::new(), None);
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let chunk_bytes = writer.chunk_bytes();
        let mut writer = writer.resume(&self.store);
        let mut rest = bytes;
        if !self.tail.is_empty() {
            let room = chunk_bytes.saturating_sub(self.tail.len());
            let (first, after) = bytes.split_at(room.min(bytes.len()));
            self.tail.extend_from_slice(first);
            rest = after;
            if self.tail.len() >= chunk_bytes {
                writer.push(&self.tail)?;
                self.tail.clear();
            }
        }
        let mut chunks = rest.chunks_exact(chunk_bytes);
        chunks.try_for_each(|chunk| writer.push(chunk))?;
        self.tail.extend_from_slice(chunks.remainder());
        self.writer = Some(writer.rest(SPILL_BYTES)?);
        Ok(())
    }

    /// Writes the last chunk.
    fn end(&mut self) -> Result<RestingWriter> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let gone = || Error::new(ErrorKind::Misuse, "the value was put before");
        let mut writer = self.writer.take().ok_or_else(gone)?.resume(&self.store);
        let tail = std::mem::take(&mut self.tail);
        if !tail.is_empty() {
            writer.push(&tail)?;
        }
        writer.rest(usize::MAX)
    }

    /// Makes `key` this string once the transaction is committed. Keep `self` until then.
    pub(crate) fn put(&mut self, tx: &mut Tx<'_>, expire_ms: u64) -> Result<()> {
        let writer = self.end()?;
        if tx.space() == self.space {
            return writer.resume(tx.store()).finish(tx, &self.key, expire_ms);
        }
        let writer = writer.resume(&self.store).rest(0)?;
        tx.note_spilled(writer.prefix().clone());
        let copied = tx.copy_chunks(writer.prefix(), writer.chunks(), &self.key)?;
        let header = Header { kind: Type::String, expire_ms };
        tx.put_record(&self.key, copied.encode(header))
    }

    /// The whole value, for those who need it in one piece; `None` after an error, which
    /// [`StagedString::put`] returns.
    pub(crate) fn take_whole(&mut self, db: &Db) -> Option<Bytes> {
        let read = self.end().and_then(|writer| {
            let writer = writer.resume(&self.store).rest(0)?;
            let string = ChunkedString::new(self.space, &self.key, writer.chunks());
            db.read(|tx| string.read(tx, 0..writer.chunks().len))
        });
        read.map_err(|error| self.fail(error)).ok()
    }
}

impl std::fmt::Debug for StagedString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.writer.as_ref().map(|writer| writer.chunks().len);
        f.debug_struct("StagedString").field("bytes", &bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
