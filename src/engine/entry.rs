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

/// Whether an entry sets or deletes its key. The numbers are part of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// The key is deleted.
    Delete = 0,
    /// The key is set to the value.
    Put = 1,
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
        matches!(raw & 0xff, 0 | 1).then_some(Self(raw))
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
        if self.0 & 0xff == 0 { EntryKind::Delete } else { EntryKind::Put }
    }

    /// Whether this entry deletes its key.
    #[inline]
    pub fn is_delete(self) -> bool {
        self.0 & 0xff == 0
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
    fn common_prefixes_are_counted_across_words() {
        assert_eq!(common_prefix(b"", b"abc"), 0);
        assert_eq!(common_prefix(b"abcdefghij", b"abcdefghiX"), 9);
        assert_eq!(common_prefix(b"abcdefghij", b"abcXefghij"), 3);
        assert_eq!(common_prefix(b"abcdefgh", b"abcdefgh"), 8);
        assert_eq!(common_prefix(b"abcdefgh", b"abcdefghi"), 8);
    }
}
