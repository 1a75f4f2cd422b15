//! Values of memtable entries that outlive the memtable.
//!
//! A value that fills at least half of its chunk of memory pins the chunk. Any other is copied: a
//! caller that keeps a few short values must not keep megabytes with them. Large entries have
//! chunks of their own, so values from about 128 KiB on are pinned.

#![expect(unsafe_code, reason = "hands out values in place; see `PinnedValue`")]

use std::sync::Arc;

use bytes::Bytes;

use super::arena::Chunk;
use super::entries::MemtableEntry;

impl MemtableEntry<'_> {
    /// The value as bytes of its own. What they keep in memory is at most twice their length.
    pub fn value_bytes(&self) -> Bytes {
        let value = self.value();
        match self.chunk() {
            Some(chunk) if value.len() >= chunk.size() / 2 => Bytes::from_owner(PinnedValue {
                start: value.as_ptr(),
                len: value.len(),
                _chunk: Arc::clone(chunk),
            }),
            _ => Bytes::copy_from_slice(value),
        }
    }
}

/// A value in a chunk of memory, which it keeps alive.
struct PinnedValue {
    start: *const u8,
    len: usize,
    _chunk: Arc<Chunk>,
}

// SAFETY: the bytes are immutable and live as long as the chunk, which this owns a share of.
unsafe impl Send for PinnedValue {}
// SAFETY: as above.
unsafe impl Sync for PinnedValue {}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: pointer and length are those of a value in the chunk: an entry lies in one chunk.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}
