//! The internal key, by which memtables and tables are sorted.
//!
//! An entry is `(user key, tag, value)`. Entries sort by user key ascending, then by sequence
//! number descending, so the newest version of a key comes first.

use std::cmp::Ordering;

/// A sequence number: the position of a commit in the order of all commits, at most
/// [`MAX_SEQUENCE`].
pub type Sequence = u64;

/// The largest sequence number. A read at it sees everything.
pub const MAX_SEQUENCE: Sequence = (1 << 56) - 1;

/// Whether an entry sets or deletes its key, and what it changes about the number of keys. The numbers
/// are part of the file format; odd ones set the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// The key is deleted.
    Delete = 0,
    /// The key is set to the value.
    Put = 1,
    /// The key, which was set, is deleted.
    DeletePresent = 2,
    /// The key, which was not set, is set to the value.
    PutAbsent = 3,
}

/// The sequence number and kind of an entry in eight bytes: `sequence << 8 | kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(u64);

impl Tag {
    /// Packs a sequence number and a kind.
    #[inline]
    pub fn new(sequence: Sequence, kind: EntryKind) -> Self {
        debug_assert!(sequence <= MAX_SEQUENCE);
        Self(sequence << 8 | kind as u64)
    }

    /// The greatest tag of `sequence`. It sorts before every entry of the same key with that
    /// sequence number or an older one.
    #[inline]
    pub fn newest_at(sequence: Sequence) -> Self {
        Self(sequence << 8 | 0xff)
    }

    /// Decodes a stored tag; `None` if its kind is unknown.
    #[inline]
    pub fn from_raw(raw: u64) -> Option<Self> {
        (raw & 0xff < 4).then_some(Self(raw))
    }

    /// The stored form.
    #[inline]
    pub fn raw(self) -> u64 {
        self.0
    }

    /// The sequence number.
    #[inline]
    pub fn sequence(self) -> Sequence {
        self.0 >> 8
    }

    /// The kind.
    #[inline]
    pub fn kind(self) -> EntryKind {
        match self.0 & 3 {
            0 => EntryKind::Delete,
            1 => EntryKind::Put,
            2 => EntryKind::DeletePresent,
            _ => EntryKind::PutAbsent,
        }
    }

    /// Whether this entry deletes its key.
    #[inline]
    pub fn is_delete(self) -> bool {
        self.0 & 1 == 0
    }

    /// By how much this entry changes the number of keys: 1, 0 or -1. The weights of all entries of
    /// a counted key, up to a sequence number, add up to 1 if the key is set there, and otherwise
    /// to 0. Entries of keys that are not counted weigh nothing.
    #[inline]
    pub fn weight(self) -> i64 {
        i64::from(self.small_weight())
    }

    /// The weight in one byte.
    #[inline]
    pub(crate) fn small_weight(self) -> i8 {
        match self.kind() {
            EntryKind::Delete | EntryKind::Put => 0,
            EntryKind::DeletePresent => -1,
            EntryKind::PutAbsent => 1,
        }
    }

    /// This tag with another weight. A put weighs 0 or 1 and a delete 0 or -1, whatever is asked for.
    #[inline]
    #[must_use]
    pub fn with_weight(self, weight: i64) -> Self {
        let kind = match (self.is_delete(), weight) {
            (true, ..=-1) => EntryKind::DeletePresent,
            (true, _) => EntryKind::Delete,
            (false, 1..) => EntryKind::PutAbsent,
            (false, _) => EntryKind::Put,
        };
        Self::new(self.sequence(), kind)
    }
}

/// Compares in internal order: user key ascending, then newest first.
#[inline]
pub fn compare(a_key: &[u8], a_tag: Tag, b_key: &[u8], b_tag: Tag) -> Ordering {
    a_key.cmp(b_key).then_with(|| b_tag.cmp(&a_tag))
}

/// The longest key that is kept in memory and in the manifest as the bound of a table. Bounds from
/// stores of format 1 are exact, whatever their length.
pub(crate) const MAX_BOUND_BYTES: usize = 1024;

/// The part of a key that a bound keeps.
#[inline]
pub(crate) fn bound(key: &[u8]) -> &[u8] {
    key.get(..MAX_BOUND_BYTES).unwrap_or(key)
}

/// Length of the longest common prefix.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (a8, b8) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let mut length = 0;
    for (x, y) in a8.iter().zip(b8) {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = a.iter().skip(length).zip(b.iter().skip(length));
    length + rest.take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_keeps_its_kind_and_takes_only_a_weight_that_fits() {
        use EntryKind::{Delete, DeletePresent, Put, PutAbsent};
        for (raw, kind, weight) in
            [(0, Delete, 0), (1, Put, 0), (2, DeletePresent, -1), (3, PutAbsent, 1)]
        {
            let tag = Tag::from_raw(7 << 8 | raw).unwrap();
            assert_eq!((tag, tag.kind(), tag.weight()), (Tag::new(7, kind), kind, weight));
            let weights = if tag.is_delete() { -1..=0 } else { 0..=1 };
            for asked in -2..=2 {
                let weighed = tag.with_weight(asked);
                assert_eq!(weighed.weight(), asked.clamp(*weights.start(), *weights.end()));
                assert_eq!((weighed.sequence(), weighed.is_delete()), (7, tag.is_delete()));
            }
        }
        assert_eq!(Tag::from_raw(7 << 8 | 4), None);
    }

    #[test]
    fn common_prefixes_are_counted_across_words() {
        assert_eq!(common_prefix(b"", b"abc"), 0);
        assert_eq!(common_prefix(b"abcdefghij", b"abcdefghiX"), 9);
        assert_eq!(common_prefix(b"abcdefghij", b"abcXefghij"), 3);
        assert_eq!(common_prefix(b"abcdefgh", b"abcdefgh"), 8);
        assert_eq!(common_prefix(b"abcdefgh", b"abcdefghi"), 8);
    }
}
