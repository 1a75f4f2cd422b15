//! A cursor over one data block. One thread owns it. The key buffer is reused, and values are
//! slices of the block.

use std::ops::Range;

use bytes::Bytes;

use super::block::{Block, INTERVAL};
use super::format::Malformed;
use crate::engine::entry::Tag;

/// A position in a data block.
#[derive(Debug)]
pub(super) struct BlockCursor {
    block: Block,
    number: u32,
    key: Vec<u8>,
    /// Number of leading bytes of `key` that come from the anchor.
    anchored: usize,
    /// Entry number of the current anchor; `u32::MAX` if none is loaded.
    anchor: u32,
    anchor_key: Range<u32>,
    tag: Tag,
    value: Range<u32>,
}

impl BlockCursor {
    /// A cursor at entry `number` of `block`. It uses `key` as its key buffer.
    pub(super) fn at(block: Block, number: u32, mut key: Vec<u8>) -> Result<Self, Malformed> {
        key.clear();
        let mut cursor = Self {
            block,
            number,
            key,
            anchored: 0,
            anchor: u32::MAX,
            anchor_key: 0..0,
            tag: Tag::newest_at(0),
            value: 0..0,
        };
        cursor.go_to(number)?;
        Ok(cursor)
    }

    /// The key buffer, for reuse.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.key
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub(super) fn tag(&self) -> Tag {
        self.tag
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        self.block.slice(self.value.clone())
    }

    pub(super) fn value_bytes(&self) -> Bytes {
        self.block.pinned(self.value.clone())
    }

    /// Moves to the next entry; `false` at the end of the block.
    #[inline]
    pub(super) fn next(&mut self) -> Result<bool, Malformed> {
        if self.number + 1 >= self.block.count() {
            return Ok(false);
        }
        self.go_to(self.number + 1)?;
        Ok(true)
    }

    /// Moves to the previous entry; `false` at the start of the block.
    #[inline]
    pub(super) fn prev(&mut self) -> Result<bool, Malformed> {
        let Some(before) = self.number.checked_sub(1) else { return Ok(false) };
        self.go_to(before)?;
        Ok(true)
    }

    #[inline]
    fn go_to(&mut self, number: u32) -> Result<(), Malformed> {
        let anchor = number - number % INTERVAL;
        if anchor != self.anchor {
            self.load_anchor(anchor)?;
        }
        let entry = self.block.entry(number)?;
        let shared = entry.shared;
        if shared > self.anchored {
            let anchor_key = self.block.slice(self.anchor_key.clone());
            let missing = anchor_key.get(self.anchored..shared);
            self.key.truncate(self.anchored);
            self.key.extend_from_slice(
                missing.ok_or(Malformed("entry shares more than its anchor has"))?,
            );
        } else {
            self.key.truncate(shared);
        }
        self.key.extend_from_slice(entry.suffix);
        self.anchored = shared;
        self.tag = entry.tag;
        self.value = entry.value_range();
        self.number = number;
        Ok(())
    }

    fn load_anchor(&mut self, anchor: u32) -> Result<(), Malformed> {
        let entry = self.block.anchor(anchor)?;
        let value = entry.value_range();
        #[expect(clippy::cast_possible_truncation, reason = "a part of a block of < 4 GiB")]
        let length = entry.suffix.len() as u32;
        self.anchor_key = value.start - length..value.start;
        self.anchor = anchor;
        self.anchored = 0;
        Ok(())
    }
}
