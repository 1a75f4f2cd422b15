//! A data block: entries in internal order, with random access to each.
//!
//! ```text
//! block   = count u32 | bucket count u16 | group shift u8 | offset width u8
//!           | bucket u8 * bucket count | offset (u16 or u32) * count | entry * count
//! entry   = shared varint | suffix length varint | tag u64 | suffix | value
//! ```
//!
//! - Entries 0, 16, 32, … are *anchors* and hold their whole key. Every other entry shares `shared`
//!   bytes with the anchor before it. Since an entry depends on its anchor and not on its
//!   predecessor, a point read touches two entries, a binary search works on any entry, and walking
//!   backward costs as much as walking forward.
//! - An offset counts from the first entry. A value ends where the next entry begins.
//! - A bucket holds the number (shifted right by `group shift`) of the first entry of the user
//!   key that hashes to it, or [`EMPTY`], or [`COLLISION`]. Every user key of the block is in a
//!   bucket, so an empty bucket proves absence.
//! - Buckets and offsets come first, next to the reference count that every reader writes. So one
//!   or two cache lines lead to an entry.
//!
//! [`Block::parse`] checks the frame once. An entry is checked when it is decoded.
//! Blocks are immutable, shared by all threads, and cheap to clone.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::format::Malformed;
use crate::engine::entry::{Tag, common_prefix};
use crate::io::codec::Reader;

/// Number of entries from one anchor to the next.
pub(super) const INTERVAL: u32 = 16;
/// Number of bytes before the buckets.
pub(super) const HEADER_BYTES: usize = 8;
/// A bucket to which no key of the block hashes.
pub(super) const EMPTY: u8 = 255;
/// A bucket to which keys of two groups hash.
pub(super) const COLLISION: u8 = 254;
/// Number of groups that a bucket can name.
pub(super) const MAX_GROUPS: u32 = 253;

/// Values of at least this length may pin their block, shorter ones are copied: that is cheaper than
/// the allocation and the contended reference count of a pin.
pub(super) const PIN_BYTES: usize = 1024;

const BAD_ENTRY: Malformed = Malformed("entry of the block is not valid");

/// Memory of a block beside its bytes: reference counts, cache slot and key.
const OVERHEAD_BYTES: usize = 112;

/// A checked data block. A clone shares the bytes.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Arc<[u8]>,
    count: u32,
    entries_at: u32,
    entries_end: u32,
    buckets: u16,
    group_shift: u8,
    wide: bool,
}

/// An entry as stored: its key is `anchor key[..shared]` followed by `suffix`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawEntry<'a> {
    pub(super) shared: usize,
    pub(super) suffix: &'a [u8],
    pub(super) tag: Tag,
    pub(super) value: &'a [u8],
    /// Offset in the block at which the value ends.
    pub(super) end: u32,
}

impl RawEntry<'_> {
    /// The range of the value in the block.
    #[inline]
    pub(super) fn value_range(&self) -> Range<u32> {
        #[expect(clippy::cast_possible_truncation, reason = "a part of a block of < 4 GiB")]
        let length = self.value.len() as u32;
        self.end - length..self.end
    }
}

/// A key to search for within one interval, already compared with the anchor.
struct Probe<'k> {
    key: &'k [u8],
    /// Number of leading bytes that the key shares with the anchor.
    common: usize,
}

impl Probe<'_> {
    /// Compares the key of an entry with the key of the probe. The anchor must not be greater than
    /// the key of the probe: then an entry that shares more with the anchor than that key is
    /// smaller.
    #[inline]
    fn compare(&self, entry: &RawEntry<'_>) -> Ordering {
        if entry.shared > self.common {
            return Ordering::Less;
        }
        entry.suffix.cmp(self.key.get(entry.shared..).unwrap_or_default())
    }
}

impl Block {
    /// Makes a block of the first `length` bytes of `bytes`, after checking its frame.
    pub(super) fn parse(bytes: Arc<[u8]>, length: usize) -> Result<Self, Malformed> {
        let payload = bytes.get(..length).ok_or(Malformed("block is too short"))?;
        let mut reader = Reader::new(payload);
        let short = Malformed("block is too short for its counts");
        let count = reader.u32().ok_or(short)?;
        let [low, high, group_shift, width] =
            *reader.take(4).and_then(|b| b.first_chunk()).ok_or(short)?;
        let buckets = u16::from_le_bytes([low, high]);
        if count == 0 || group_shift > 4 || !matches!(width, 2 | 4) {
            return Err(Malformed("block header is not valid"));
        }
        reader.take(usize::from(buckets)).ok_or(short)?;
        let offset_bytes = (count as usize).checked_mul(usize::from(width)).ok_or(short)?;
        let offsets = reader.take(offset_bytes).ok_or(short)?;
        let entries = reader.rest().len();
        let ascending = if width == 2 {
            offsets_ascend(offsets.as_chunks().0, |b| u32::from(u16::from_le_bytes(*b)), entries)
        } else {
            offsets_ascend(offsets.as_chunks().0, |b| u32::from_le_bytes(*b), entries)
        };
        if !ascending {
            return Err(Malformed("entry offsets of the block do not ascend"));
        }
        let at = |n: usize| u32::try_from(n).map_err(|_| Malformed("block is too long"));
        let (entries_at, entries_end) = (at(length - entries)?, at(length)?);
        let wide = width == 4;
        Ok(Self { bytes, count, entries_at, entries_end, buckets, group_shift, wide })
    }

    /// Number of entries in the block, at least one.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Memory that the block takes, for the accounting of the cache.
    pub fn memory(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }

    /// The bytes of a range that an entry of this block returned.
    #[inline]
    pub(super) fn slice(&self, range: Range<u32>) -> &[u8] {
        self.bytes.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// The bytes of a range, which outlive the block. A long range that is at least half of the
    /// block pins the block, any other is copied: what they keep in memory is at most twice their
    /// length.
    pub(super) fn pinned(&self, range: Range<u32>) -> Bytes {
        let slice = self.slice(range.clone());
        if slice.len() < PIN_BYTES || slice.len() < self.bytes.len() / 2 {
            return Bytes::copy_from_slice(slice);
        }
        Bytes::from_owner(Arc::clone(&self.bytes)).slice(range.start as usize..range.end as usize)
    }

    /// Decodes entry `number`.
    #[inline]
    pub(super) fn entry(&self, number: u32) -> Result<RawEntry<'_>, Malformed> {
        let start = self.entry_start(number).ok_or(BAD_ENTRY)?;
        self.entry_at(start, number)
    }

    /// Decodes entry `number`, which begins at offset `start` of the block.
    #[inline]
    pub(super) fn entry_at(&self, start: u32, number: u32) -> Result<RawEntry<'_>, Malformed> {
        let end = match number + 1 < self.count {
            true => self.entry_start(number + 1).ok_or(BAD_ENTRY)?,
            false => self.entries_end,
        };
        let bytes = self.bytes.get(start as usize..end as usize).ok_or(BAD_ENTRY)?;
        decode(bytes, end).ok_or(BAD_ENTRY)
    }

    /// Decodes the anchor of entry `number`. Its suffix is its key.
    #[inline]
    pub(super) fn anchor(&self, number: u32) -> Result<RawEntry<'_>, Malformed> {
        let anchor = self.entry(number - number % INTERVAL)?;
        if anchor.shared != 0 {
            return Err(Malformed("anchor of the block shares bytes"));
        }
        Ok(anchor)
    }

    /// The newest version of `key` with a tag of at most `target`: its tag and the range of its
    /// value.
    #[inline]
    pub(super) fn get(
        &self,
        key: &[u8],
        hash: u64,
        target: Tag,
    ) -> Result<Option<(Tag, Range<u32>)>, Malformed> {
        match self.bucket(hash) {
            Some(EMPTY) => Ok(None),
            None | Some(COLLISION) => {
                let first = self.lower_bound(key, target)?;
                self.find_from(first, 1, key, target)
            }
            Some(group) => {
                let first = u32::from(group) << self.group_shift;
                self.find_from(first, 1 << self.group_shift, key, target)
            }
        }
    }

    /// Whether the last key of the block, and so every key, is less than `key`.
    pub(super) fn ends_before(&self, key: &[u8]) -> Result<bool, Malformed> {
        let (anchor, last) = (self.anchor(self.count - 1)?, self.entry(self.count - 1)?);
        let shared = anchor.suffix.get(..last.shared).ok_or(BAD_ENTRY)?;
        let (head, tail) = key.split_at(last.shared.min(key.len()));
        Ok(shared.cmp(head).then_with(|| last.suffix.cmp(tail)) == Ordering::Less)
    }

    /// Number of the first entry at or after `(key, tag)`; `count()` if there is none.
    pub(super) fn lower_bound(&self, key: &[u8], tag: Tag) -> Result<u32, Malformed> {
        // 1. Count the intervals whose anchor is before the target.
        let (mut low, mut high) = (0, self.count.div_ceil(INTERVAL));
        while low < high {
            let middle = low.midpoint(high);
            let anchor = self.anchor(middle * INTERVAL)?;
            let order = anchor.suffix.cmp(key).then_with(|| tag.cmp(&anchor.tag));
            if order == Ordering::Less { low = middle + 1 } else { high = middle }
        }
        let Some(interval) = low.checked_sub(1) else { return Ok(0) };
        // 2. Search the last of them, where all entries share one anchor.
        let first = interval * INTERVAL;
        let anchor = self.anchor(first)?;
        let probe = Probe { key, common: common_prefix(anchor.suffix, key) };
        let (mut low, mut high) = (first + 1, self.count.min(first + INTERVAL));
        while low < high {
            let middle = low.midpoint(high);
            let entry = self.entry(middle)?;
            let order = probe.compare(&entry).then_with(|| tag.cmp(&entry.tag));
            if order == Ordering::Less { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Scans from entry `first` for `key`, whose first version is among the next `group` entries,
    /// and then through its versions down to `target`.
    #[inline]
    fn find_from(
        &self,
        first: u32,
        group: u32,
        key: &[u8],
        target: Tag,
    ) -> Result<Option<(Tag, Range<u32>)>, Malformed> {
        let mut number = first;
        let mut limit = self.count.min(first + group);
        while number < limit {
            let anchor = self.anchor(number)?;
            if anchor.suffix.cmp(key) == Ordering::Greater {
                return Ok(None);
            }
            let probe = Probe { key, common: common_prefix(anchor.suffix, key) };
            let interval_end = number - number % INTERVAL + INTERVAL;
            while number < limit.min(interval_end) {
                let entry = self.entry(number)?;
                match probe.compare(&entry) {
                    Ordering::Less => {}
                    Ordering::Greater => return Ok(None),
                    Ordering::Equal if entry.tag <= target => {
                        return Ok(Some((entry.tag, entry.value_range())));
                    }
                    // This version is newer than the snapshot. Older ones may follow until the end.
                    Ordering::Equal => limit = self.count,
                }
                number += 1;
            }
        }
        Ok(None)
    }

    #[inline]
    fn bucket(&self, hash: u64) -> Option<u8> {
        let bucket = bucket_of(hash, self.buckets)?;
        self.bytes.get(HEADER_BYTES + bucket).copied()
    }

    #[inline]
    fn entry_start(&self, number: u32) -> Option<u32> {
        let offsets = self.bytes.get(HEADER_BYTES + usize::from(self.buckets)..)?;
        let offset = if self.wide {
            u32::from_le_bytes(*offsets.get(number as usize * 4..)?.first_chunk()?)
        } else {
            let bytes = offsets.get(number as usize * 2..)?.first_chunk()?;
            u32::from(u16::from_le_bytes(*bytes))
        };
        self.entries_at.checked_add(offset)
    }
}

/// The bucket of a key hash; `None` if there are no buckets. It uses the low half of the hash,
/// since the Bloom filter chooses its line by the high half.
#[inline]
pub(super) fn bucket_of(hash: u64, buckets: u16) -> Option<usize> {
    if buckets == 0 {
        return None;
    }
    Some((((hash & 0xffff_ffff) * u64::from(buckets)) >> 32) as usize)
}

#[inline]
fn decode(bytes: &[u8], end: u32) -> Option<RawEntry<'_>> {
    let (shared, suffix_length, mut reader) = match bytes {
        // Both lengths below 128.
        [shared @ ..0x80, suffix_length @ ..0x80, rest @ ..] => {
            (usize::from(*shared), usize::from(*suffix_length), Reader::new(rest))
        }
        _ => {
            let mut reader = Reader::new(bytes);
            let shared = usize::try_from(reader.varint()?).ok()?;
            (shared, usize::try_from(reader.varint()?).ok()?, reader)
        }
    };
    let tag = Tag::from_raw(reader.u64()?)?;
    let suffix = reader.take(suffix_length)?;
    Some(RawEntry { shared, suffix, tag, value: reader.rest(), end })
}

fn offsets_ascend<const N: usize>(
    offsets: &[[u8; N]],
    read: impl Fn(&[u8; N]) -> u32,
    entries: usize,
) -> bool {
    let first = offsets.first().map(&read);
    let last = offsets.last().map(&read);
    first == Some(0)
        && last.is_some_and(|last| (last as usize) < entries)
        && offsets.iter().zip(offsets.iter().skip(1)).all(|(a, b)| read(a) < read(b))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::engine::entry::EntryKind;
    use crate::engine::hash::stable_hash;
    use crate::engine::sstable::block_builder::BlockBuilder;

    /// A block of entries that ascend; each a key, a sequence number and a value.
    pub(crate) fn block_of(entries: &[(&[u8], u64, &[u8])]) -> Block {
        let bytes: Arc<[u8]> = bytes_of(entries).into();
        let length = bytes.len();
        Block::parse(bytes, length).unwrap()
    }

    fn bytes_of(entries: &[(&[u8], u64, &[u8])]) -> Vec<u8> {
        let mut builder = BlockBuilder::default();
        let mut last: Option<&[u8]> = None;
        for &(key, sequence, value) in entries {
            let tag = Tag::new(sequence, EntryKind::Put);
            builder.add(key, stable_hash(key), last != Some(key), tag, value);
            last = Some(key);
        }
        builder.finish().concat()
    }

    fn value_at<'a>(block: &'a Block, key: &[u8], sequence: u64) -> Option<&'a [u8]> {
        let found = block.get(key, stable_hash(key), Tag::newest_at(sequence)).unwrap();
        found.map(|(_, range)| block.slice(range))
    }

    /// Keys of `count` numbers, every one twice, at sequences 20 and 10.
    fn twice(count: u32) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
        let both = |i: u32| {
            [20, 10].map(|s| (format!("key{i:06}").into_bytes(), s, vec![u8::try_from(s).unwrap()]))
        };
        (0..count).flat_map(both).collect()
    }

    fn borrowed(entries: &[(Vec<u8>, u64, Vec<u8>)]) -> Vec<(&[u8], u64, &[u8])> {
        entries.iter().map(|(k, s, v)| (&k[..], *s, &v[..])).collect()
    }

    #[test]
    fn every_version_is_found_in_blocks_of_all_bucket_shapes() {
        // One entry a group, several entries a group, and too many for buckets.
        for (count, shift, hashed) in
            [(1, 0, true), (100, 0, true), (1000, 3, true), (3000, 0, false)]
        {
            let entries = twice(count);
            let block = block_of(&borrowed(&entries));
            assert_eq!((block.group_shift, block.buckets > 0), (shift, hashed), "{count}");
            for (key, _, _) in &entries {
                assert_eq!(value_at(&block, key, 9), None);
                assert_eq!(value_at(&block, key, 19), Some(&[10][..]));
                assert_eq!(value_at(&block, key, 20), Some(&[20][..]));
            }
            for absent in 0..2000 {
                assert_eq!(value_at(&block, format!("key{absent:06}x").as_bytes(), 30), None);
            }
        }
    }

    #[test]
    fn offsets_grow_wide_when_a_block_does() {
        let large = vec![7; 70_000];
        let block = block_of(&[(b"a", 1, &large), (b"b", 1, b"x")]);
        assert!(block.wide);
        assert_eq!(value_at(&block, b"b", 1), Some(&b"x"[..]));
        assert_eq!(value_at(&block, b"a", 1), Some(&large[..]));
    }

    #[test]
    fn a_value_of_half_a_block_is_pinned_and_a_smaller_one_copied() {
        for (length, beside, pins) in [(1023, 0, false), (1024, 900, true), (1024, 1100, false)] {
            let (value, other) = (vec![1; length], vec![2; beside]);
            let block = block_of(&[(b"a", 1, &value), (b"b", 1, &other)]);
            let found = block.get(b"a", stable_hash(b"a"), Tag::newest_at(1)).unwrap();
            let bytes = block.pinned(found.unwrap().1);
            assert_eq!(bytes, value);
            let pinned = block.bytes.as_ptr_range().contains(&bytes.as_ptr());
            assert_eq!(pinned, pins, "{length} bytes beside {beside}");
        }
    }

    #[test]
    fn a_block_with_any_byte_changed_never_panics() {
        let entries = twice(40);
        let good = bytes_of(&borrowed(&entries));
        for at in 0..good.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = good.clone();
                bytes[at] ^= flip;
                let Ok(block) = Block::parse(bytes.into(), good.len()) else { continue };
                for (key, sequence, _) in &entries {
                    let _ = block.get(key, stable_hash(key), Tag::newest_at(*sequence));
                    let _ = block.lower_bound(key, Tag::newest_at(*sequence));
                }
                for number in 0..block.count() {
                    let _ = crate::engine::sstable::block_cursor::BlockCursor::at(
                        block.clone(),
                        number,
                        vec![],
                    );
                }
            }
        }
    }

    #[test]
    fn a_block_cut_anywhere_in_its_frame_is_refused() {
        let good: Arc<[u8]> = bytes_of(&borrowed(&twice(40))).into();
        let frame = Block::parse(Arc::clone(&good), good.len()).unwrap().entries_at;
        for length in 0..=frame as usize {
            assert!(Block::parse(Arc::clone(&good), length).is_err(), "{length}");
        }
        assert!(Block::parse(Arc::clone(&good), good.len() + 1).is_err());
    }

    #[test]
    fn a_claimed_count_of_four_billion_is_refused() {
        let mut bytes = vec![0xff; 4];
        bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0]);
        let length = bytes.len();
        assert!(Block::parse(bytes.into(), length).is_err());
    }
}
