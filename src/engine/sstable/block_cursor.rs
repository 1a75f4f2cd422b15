//! A cursor over one data block. One thread owns it. The key buffer is reused, and values are
//! slices of the block.

use std::ops::Range;

use bytes::Bytes;

use super::block::{Block, INTERVAL, RawEntry};
use super::format::Malformed;
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag};

/// A whole key in the block of at least this length is used in place: copies of such keys in every
/// source of a merge would take much memory.
const IN_PLACE_BYTES: usize = 64 << 10;

/// A position in a data block.
#[derive(Debug)]
pub(super) struct BlockCursor {
    block: Block,
    number: u32,
    key: Vec<u8>,
    /// Whether the key is that of the anchor in the block, and not in `key`.
    in_place: bool,
    /// Number of leading bytes of `key` that come from the anchor.
    anchored: usize,
    /// Entry number of the current anchor; `u32::MAX` if none is loaded.
    anchor: u32,
    anchor_key: Range<u32>,
    tag: Tag,
    value: Range<u32>,
    /// Entries before this number may be passed by [`BlockCursor::next_uncontested`]; 0 if that is
    /// not known.
    uncontested: u32,
}

impl BlockCursor {
    /// A cursor at entry `number` of `block`. It uses `key` as its key buffer.
    pub(super) fn at(block: Block, number: u32, mut key: Vec<u8>) -> Result<Self, Malformed> {
        key.clear();
        let mut cursor = Self {
            block,
            number,
            key,
            in_place: false,
            anchored: 0,
            anchor: u32::MAX,
            anchor_key: 0..0,
            tag: Tag::newest_at(0),
            value: 0..0,
            uncontested: 0,
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
        if self.in_place { self.block.slice(self.anchor_key.clone()) } else { &self.key }
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
        self.uncontested = 0;
        self.go_to(before)?;
        Ok(true)
    }

    /// Finds out how many of the next entries have keys before `limit`, for
    /// [`BlockCursor::next_uncontested`], and returns that number. Without a limit it is all of the
    /// rest of the block. The caller promises that, until the cursor moves backward, no other
    /// source gets an entry before `limit`.
    pub(super) fn find_uncontested(&mut self, limit: Option<&[u8]>) -> u32 {
        let count = self.block.count();
        let end = match limit {
            None => Ok(count),
            Some(limit) => match self.block.ends_before(limit) {
                Ok(true) => Ok(count),
                Ok(false) => self.block.lower_bound(limit, Tag::newest_at(MAX_SEQUENCE)),
                Err(why) => Err(why),
            },
        };
        // A malformed entry is reported when the cursor gets to it.
        self.uncontested = end.unwrap_or(0);
        self.uncontested.saturating_sub(self.number + 1)
    }

    /// Moves to the next entry if it is uncontested, visible at `sequence`, sets its key, and has
    /// another key than the current entry. Otherwise returns `false` and stays; if the next entry is
    /// malformed, `next` reports it.
    #[inline]
    pub(super) fn next_uncontested(&mut self, sequence: Sequence) -> bool {
        let number = self.number + 1;
        if number >= self.uncontested || self.in_place {
            return false;
        }
        let Ok(entry) = self.block.entry_at(self.value.end, number) else { return false };
        if entry.tag.sequence() > sequence || entry.tag.is_delete() {
            return false;
        }
        if number.is_multiple_of(INTERVAL) {
            return self.key != entry.suffix && self.go_to(number).is_ok();
        }
        // Equal keys share equally many bytes with their anchor.
        let repeats = entry.shared == self.anchored
            && self.key.get(self.anchored..).is_none_or(|suffix| suffix == entry.suffix);
        let anchor_key = self.block.slice(self.anchor_key.clone());
        if repeats || set_key(&mut self.key, self.anchored, anchor_key, &entry).is_err() {
            return false;
        }
        self.anchored = entry.shared;
        self.tag = entry.tag;
        self.value = entry.value_range();
        self.number = number;
        true
    }

    #[inline]
    fn go_to(&mut self, number: u32) -> Result<(), Malformed> {
        let anchor = number - number % INTERVAL;
        if anchor != self.anchor {
            self.load_anchor(anchor)?;
        }
        let entry = self.block.entry(number)?;
        self.in_place = number == anchor && entry.suffix.len() >= IN_PLACE_BYTES;
        if self.in_place {
            self.key = Vec::new();
            self.anchored = 0;
        } else {
            let anchor_key = self.block.slice(self.anchor_key.clone());
            set_key(&mut self.key, self.anchored, anchor_key, &entry)?;
            // The whole key of the anchor comes from the anchor.
            self.anchored = if number == anchor { self.key.len() } else { entry.shared };
        }
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

/// Makes `key`, of which the first `anchored` bytes are those of the anchor, the key of `entry`.
#[inline]
fn set_key(
    key: &mut Vec<u8>,
    anchored: usize,
    anchor_key: &[u8],
    entry: &RawEntry<'_>,
) -> Result<(), Malformed> {
    if entry.shared > anchored {
        let missing = anchor_key.get(anchored..entry.shared);
        let missing = missing.ok_or(Malformed("entry shares more than its anchor has"))?;
        key.truncate(anchored);
        key.extend_from_slice(missing);
    } else {
        key.truncate(entry.shared);
    }
    key.extend_from_slice(entry.suffix);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::EntryKind;
    use crate::engine::hash::stable_hash;
    use crate::engine::sstable::block_builder::BlockBuilder;
    use proptest::prelude::*;
    use std::cmp::Reverse;

    fn block_of(entries: &[(Vec<u8>, Tag)]) -> Block {
        let mut builder = BlockBuilder::default();
        let mut last = None;
        for (key, tag) in entries {
            builder.add(key, stable_hash(key), last != Some(key), *tag, b"value");
            last = Some(key);
        }
        let bytes = builder.finish().concat();
        let length = bytes.len();
        Block::parse(bytes.into(), length).unwrap()
    }

    proptest! {
        /// A step without comparisons is made exactly where comparisons would allow it.
        #[test]
        fn uncontested_steps_are_those_to_another_live_key_before_the_limit(
            keys in prop::collection::btree_set(
                (prop::collection::vec(0u8..3, 0..5), 1u64..40, any::<bool>()), 1..120),
            sequence in 0u64..45,
            limit in prop::option::of(prop::collection::vec(0u8..3, 0..5)),
            start in any::<prop::sample::Index>(),
        ) {
            let tag = |sequence, put| Tag::new(sequence, [EntryKind::Delete, EntryKind::Put][usize::from(put)]);
            let mut entries: Vec<_> =
                keys.into_iter().map(|(key, sequence, put)| (key, tag(sequence, put))).collect();
            entries.sort_by_key(|(key, tag)| (key.clone(), Reverse(*tag)));
            entries.dedup_by_key(|(key, tag)| (key.clone(), tag.sequence()));
            let mut at = start.index(entries.len());
            let mut cursor =
                BlockCursor::at(block_of(&entries), u32::try_from(at).unwrap(), Vec::new()).unwrap();
            let before = |entry: &&(Vec<u8>, Tag)| limit.as_ref().is_none_or(|limit| entry.0 < *limit);
            let uncontested = entries[at + 1..].iter().take_while(before).count();
            prop_assert_eq!(cursor.find_uncontested(limit.as_deref()) as usize, uncontested);
            let end = at + 1 + uncontested;
            while let Some((key, tag)) = entries.get(at + 1) {
                let expected = at + 1 < end
                    && tag.sequence() <= sequence
                    && !tag.is_delete()
                    && *key != entries[at].0;
                prop_assert_eq!(cursor.next_uncontested(sequence), expected);
                if !expected {
                    prop_assert_eq!((cursor.key(), cursor.tag()), (&*entries[at].0, entries[at].1));
                    prop_assert!(cursor.next().unwrap());
                }
                at += 1;
                prop_assert_eq!((cursor.key(), cursor.tag()), (&**key, *tag));
                prop_assert_eq!(cursor.value(), b"value");
            }
            prop_assert!(!cursor.next_uncontested(sequence) && !cursor.next().unwrap());
            if cursor.prev().unwrap() {
                prop_assert!(!cursor.next_uncontested(sequence), "not known after a step back");
            }
        }
    }
}
