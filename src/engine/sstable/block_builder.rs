//! Builds data blocks, one after another, in the layout of `block.rs`. Buffers are reused.

use std::ops::Range;

use super::block::{COLLISION, EMPTY, HEADER_BYTES, INTERVAL, MAX_GROUPS, bucket_of};
use crate::engine::entry::{Tag, common_prefix};
use crate::io::codec::{put_u32, put_u64, put_varint};

/// A block with more entries than this gets no buckets.
const MAX_HASHED: u32 = MAX_GROUPS << MAX_GROUP_SHIFT;
const MAX_GROUP_SHIFT: u32 = 4;
/// Largest size of what is before the key of an entry: two lengths and a tag.
const MAX_ENTRY_HEAD: usize = 10 + 10 + 8;

/// Collects the entries of a block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    entries: Vec<u8>,
    offsets: Vec<u32>,
    /// Where the tag of the last entry begins in `entries`.
    last_tag_at: usize,
    /// The hash and the entry number of the first version of each user key.
    hashes: Vec<(u64, u32)>,
    /// Where in `entries` the key of the last anchor is.
    anchor: Range<usize>,
    head: Vec<u8>,
}

impl BlockBuilder {
    /// Whether nothing was added since the last `clear`.
    pub(super) fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Approximate size of the finished block, in bytes.
    pub(super) fn size(&self) -> usize {
        HEADER_BYTES + self.entries.len() + self.offsets.len() * 2 + self.hashes.len() * 4 / 3
    }

    /// Adds an entry, which must be greater than all before it. `first_version` tells whether its
    /// user key differs from that of the entry before it in this block.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        hash: u64,
        first_version: bool,
        tag: Tag,
        value: &[u8],
    ) {
        let (number, start) = (truncated(self.offsets.len()), truncated(self.entries.len()));
        if first_version {
            self.hashes.push((hash, number));
        }
        self.offsets.push(start);
        let is_anchor = number.is_multiple_of(INTERVAL);
        let anchor = self.entries.get(self.anchor.clone()).unwrap_or_default();
        let shared = if is_anchor { 0 } else { common_prefix(anchor, key) };
        let suffix = key.get(shared..).unwrap_or_default();
        // At once: a value after a huge key would double the buffer.
        self.entries.reserve(suffix.len() + value.len() + MAX_ENTRY_HEAD);
        put_varint(&mut self.entries, shared as u64);
        put_varint(&mut self.entries, suffix.len() as u64);
        self.last_tag_at = self.entries.len();
        put_u64(&mut self.entries, tag.raw());
        if is_anchor {
            self.anchor = self.entries.len()..self.entries.len() + suffix.len();
        }
        self.entries.extend_from_slice(suffix);
        self.entries.extend_from_slice(value);
    }

    /// Replaces the tag of the last entry.
    pub(super) fn set_last_tag(&mut self, tag: Tag) {
        let place = self.entries.get_mut(self.last_tag_at..).and_then(<[u8]>::first_chunk_mut);
        if let Some(bytes) = place {
            *bytes = tag.raw().to_le_bytes();
        }
    }

    /// The bytes of the block in two parts: everything before the entries, and the entries.
    pub(super) fn finish(&mut self) -> [&[u8]; 2] {
        let shift = self.group_shift();
        let buckets = shift.map_or(0, |_| self.hashes.len() * 4 / 3 + 1);
        let wide = self.offsets.last().is_some_and(|&last| last > u32::from(u16::MAX));
        self.head.clear();
        put_u32(&mut self.head, truncated(self.offsets.len()));
        self.head.extend(truncated(buckets).to_le_bytes().iter().take(2));
        self.head.push(shift.unwrap_or(0));
        self.head.push(if wide { 4 } else { 2 });
        if let Some(shift) = shift {
            self.put_buckets(truncated(buckets), shift);
        }
        let width = if wide { 4 } else { 2 };
        for offset in &self.offsets {
            self.head.extend(offset.to_le_bytes().iter().take(width));
        }
        [&self.head, &self.entries]
    }

    /// Removes the entries. Buffers are kept, unless a huge value has made them large.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.entries.shrink_to(1 << 20);
        self.offsets.clear();
        self.hashes.clear();
    }

    /// Number of bits by which entry numbers are shifted to fit a bucket; `None` if there are too
    /// many entries.
    fn group_shift(&self) -> Option<u8> {
        let count = truncated(self.offsets.len());
        if count > MAX_HASHED {
            return None;
        }
        (0..=4u8).find(|shift| count.saturating_sub(1) >> shift < MAX_GROUPS)
    }

    fn put_buckets(&mut self, buckets: u32, shift: u8) {
        let start = self.head.len();
        self.head.resize(start + buckets as usize, EMPTY);
        let Ok(buckets) = u16::try_from(buckets) else { return };
        let table = self.head.get_mut(start..).unwrap_or_default();
        for &(hash, number) in &self.hashes {
            let group = u8::try_from(number >> shift).unwrap_or(COLLISION);
            if let Some(slot) = bucket_of(hash, buckets).and_then(|b| table.get_mut(b)) {
                *slot = if *slot == EMPTY || *slot == group { group } else { COLLISION };
            }
        }
    }
}

/// Converts a size or count. The writer limits blocks to 32 bits before it adds an entry.
#[expect(clippy::cast_possible_truncation, reason = "the writer keeps blocks below 4 GiB")]
fn truncated(n: usize) -> u32 {
    n as u32
}
