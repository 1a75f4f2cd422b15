//! Writes a large string as a whole, in bounded memory: see `collection_builder`.

#[cfg(feature = "server")]
mod resting;

use super::chunks::place;
use crate::encoding::chunked::Chunks;
use crate::encoding::meta::{Header, Type};
use crate::error::Result;
use crate::txn::Tx;
use crate::types::collection_builder::CollectionBuilder;
#[cfg(feature = "server")]
pub(super) use resting::RestingWriter;

/// A string that gets its rows, chunk after chunk, under a version that no record names yet.
pub(crate) struct StringWriter<'s> {
    build: CollectionBuilder<'s>,
    chunks: Chunks,
    /// The number of chunks so far.
    next: u64,
}

impl<'s> Tx<'s> {
    /// Begins a string in chunks that will replace whatever `key` holds.
    pub(crate) fn write_string(&mut self, key: &[u8]) -> Result<StringWriter<'s>> {
        let build = self.build_collection(key)?;
        let shift = self.store().strings().shift;
        let chunks = Chunks { version: build.version(), len: 0, rows: 0, shift };
        Ok(StringWriter { build, chunks, next: 0 })
    }

    /// Sets a value that is too long for a record. Its rows have a version of their own.
    #[cold]
    pub(super) fn put_large(&mut self, key: &[u8], value: &[u8], expire_ms: u64) -> Result<()> {
        let mut writer = self.write_string(key)?;
        value.chunks(writer.chunk_bytes()).try_for_each(|chunk| writer.push(chunk))?;
        writer.finish(self, key, expire_ms)
    }
}

impl<'s> StringWriter<'s> {
    /// The number of bytes of each chunk but the last.
    pub(crate) fn chunk_bytes(&self) -> usize {
        place(self.chunks.chunk_bytes())
    }

    /// Appends a chunk. One of zeros needs no row.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<()> {
        if chunk.iter().any(|byte| *byte != 0) {
            self.build.put_plain(&self.next.to_be_bytes(), chunk)?;
            self.chunks.rows += 1;
        }
        self.next += 1;
        self.chunks.len += chunk.len() as u64;
        Ok(())
    }

    /// Leaves the rows to the transaction. A record that it writes has to name them.
    pub(super) fn finish_rows(self, tx: &mut Tx<'s>) -> Result<Chunks> {
        self.build.finish_rows(tx)?;
        Ok(self.chunks)
    }

    /// Makes `key` the string that was written, once the transaction is committed.
    pub(crate) fn finish(self, tx: &mut Tx<'s>, key: &[u8], expire_ms: u64) -> Result<()> {
        let chunks = self.finish_rows(tx)?;
        tx.put_record(key, chunks.encode(Header { kind: Type::String, expire_ms }))
    }
}
