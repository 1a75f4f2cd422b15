//! A string that is written by several calls, without a transaction in between.

use super::StringWriter;
use crate::encoding::chunked::Chunks;
use crate::encoding::keys::Prefix;
use crate::error::Result;
use crate::txn::store::Store;
use crate::types::collection_builder::RestingBuild;
use crate::types::string::chunks::place;

/// A writer between two calls that feed it.
pub(in crate::types::string) struct RestingWriter {
    build: RestingBuild,
    chunks: Chunks,
    next: u64,
}

impl RestingWriter {
    /// A writer of rows with this prefix, under a version that is reserved.
    pub(in crate::types::string) fn new(store: &Store, version: u64, prefix: Prefix) -> Self {
        let chunks = Chunks { version, len: 0, rows: 0, shift: store.strings().shift };
        Self { build: RestingBuild::new(version, prefix), chunks, next: 0 }
    }

    /// The bytes of a chunk.
    pub(in crate::types::string) fn chunk_bytes(&self) -> usize {
        place(self.chunks.chunk_bytes())
    }

    /// What is written so far.
    pub(in crate::types::string) fn chunks(&self) -> Chunks {
        self.chunks
    }

    /// What the keys of the rows begin with.
    pub(in crate::types::string) fn prefix(&self) -> &Prefix {
        self.build.prefix()
    }

    /// The memory of the rows that are not spilled.
    pub(in crate::types::string) fn bytes(&self) -> usize {
        self.build.bytes()
    }

    /// Goes on writing.
    pub(in crate::types::string) fn resume(self, store: &Store) -> StringWriter<'_> {
        let Self { build, chunks, next } = self;
        StringWriter { build: build.resume(store), chunks, next }
    }
}

impl StringWriter<'_> {
    /// Commits the rows so far if they have at least this many bytes, and lets the writer rest.
    pub(in crate::types::string) fn rest(mut self, spill_from: usize) -> Result<RestingWriter> {
        self.build.spill_from(spill_from)?;
        Ok(RestingWriter { build: self.build.rest(), chunks: self.chunks, next: self.next })
    }
}
