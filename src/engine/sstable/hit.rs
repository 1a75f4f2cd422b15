//! What a point read of a table finds. It keeps its block in memory.

use std::ops::Range;

use bytes::Bytes;

use super::block::Block;
use crate::engine::entry::Tag;

/// The entry that a point read found: a value or a tombstone.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Sequence number and kind. A deleted key is a hit with the tag of a tombstone.
    pub tag: Tag,
    pub(super) block: Block,
    pub(super) range: Range<u32>,
}

impl Hit {
    /// The value, within its block.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.block.slice(self.range.clone())
    }

    /// The value as bytes of its own. It is copied below 1 KiB, so that ten bytes do not keep a
    /// block in memory. A longer value refers to its block.
    pub fn to_bytes(&self) -> Bytes {
        self.block.pinned(self.range.clone())
    }
}
