//! Keys of the three trees. Every integer in a key is big-endian.
//!
//! ```text
//! meta    [space:4][user key]
//! data    [space:4][esc(user key)][version:8][sub key]     sub key: field, member, or index:8
//! score   [space:4][esc(user key)][version:8][score:8][member]
//! ```
//!
//! `esc` writes a zero byte as `00 FF` and ends with `00 01`. So an escaped key delimits itself,
//! whatever its bytes are: no pair of key and sub key can be confused with another, and the rows of
//! the data and score trees sort by user key exactly as the records of the meta tree do.
//!
//! A space holds the keys of one logical database. A database number maps to a space, so emptying
//! or swapping a database only changes that mapping. Space 0 is reserved for records of the store
//! itself. Database `n` has space `n + 1` unless a record says otherwise, and later ids start at
//! [`Space::FIRST_FRESH`], so the two never overlap.

use std::borrow::Cow;

use smallvec::{Array, SmallVec};

use crate::encoding::order::score_bytes;
pub use crate::io::codec::after_prefix;

/// The 4-byte id that begins every key of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Space(u32);

impl Space {
    /// The space of the store's own records.
    pub const RESERVED: Self = Self(0);
    /// The smallest id that the durable counter gives out.
    pub const FIRST_FRESH: Self = Self(0x0001_0001);

    /// The space of a database that was never emptied or swapped.
    pub const fn of_database(number: u16) -> Self {
        // Widening; `u32::from` is not const.
        Self(number as u32 + 1)
    }

    /// The space with this id.
    pub const fn from_id(id: u32) -> Self {
        Self(id)
    }

    /// The id.
    pub const fn id(self) -> u32 {
        self.0
    }

    /// The id as it is encoded in keys.
    pub const fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

/// The length of a meta key before the user key.
pub const SPACE_BYTES: usize = 4;

/// A key of the meta tree. Short ones stay on the stack: a lookup allocates nothing.
pub type MetaKey = SmallVec<[u8; 96]>;

/// Concatenates the parts. Every command makes a few keys: appending to a `SmallVec` part by part
/// would cost several times as much.
#[inline]
fn joined<const N: usize>(parts: &[&[u8]]) -> SmallVec<[u8; N]>
where
    [u8; N]: Array<Item = u8>,
{
    let mut buffer = [0; N];
    let mut rest = &mut buffer[..];
    for part in parts {
        match rest.split_at_mut_checked(part.len()) {
            Some((place, after)) => {
                place.copy_from_slice(part);
                rest = after;
            }
            None => return SmallVec::from_vec(parts.concat()),
        }
    }
    let len = N - rest.len();
    SmallVec::from_buf_and_len(buffer, len)
}

/// Makes the meta key `[space:4][user key]`.
#[inline]
pub fn meta_key(space: Space, user_key: &[u8]) -> MetaKey {
    joined(&[&space.to_bytes(), user_key])
}

/// Splits a meta key; `None` if it is too short to be one.
pub fn split_meta_key(key: &[u8]) -> Option<(Space, &[u8])> {
    let (space, user_key) = key.split_first_chunk()?;
    Some((Space(u32::from_be_bytes(*space)), user_key))
}

/// The part of a data or score key before the sub key. It identifies one version of one collection.
pub type Prefix = SmallVec<[u8; 64]>;

/// The key of a row in the data or score tree.
pub type RowKey = SmallVec<[u8; 128]>;

const ESCAPE: u8 = 0xff;
const END: u8 = 0x01;

/// `esc(user_key)` without its end. Most keys have no zero byte and stay as they are.
fn escaped(user_key: &[u8]) -> Cow<'_, [u8]> {
    if !user_key.contains(&0) {
        return Cow::Borrowed(user_key);
    }
    let parts: Vec<_> = user_key.split(|byte| *byte == 0).collect();
    Cow::Owned(parts.join(&[0, ESCAPE][..]))
}

/// Makes the prefix `[space:4][esc(user key)][version:8]`.
pub fn prefix(space: Space, user_key: &[u8], version: u64) -> Prefix {
    joined(&[&space.to_bytes(), &escaped(user_key), &[0, END], &version.to_be_bytes()])
}

/// Makes the row key `[prefix][sub key]`.
#[inline]
pub fn row_key(prefix: &[u8], sub_key: &[u8]) -> RowKey {
    joined(&[prefix, sub_key])
}

/// Makes the key of a score row, `[prefix][score:8][member]`.
pub fn score_key(prefix: &[u8], score: f64, member: &[u8]) -> RowKey {
    joined(&[prefix, &score_bytes(score), member])
}

/// The parts of a key of the data or score tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The space of the database.
    pub space: Space,
    /// The user key, unescaped.
    pub user_key: Vec<u8>,
    /// The version of the collection.
    pub version: u64,
    /// The field, member, index, or score and member.
    pub sub_key: &'a [u8],
}

/// Splits a key of the data or score tree; `None` if it is malformed.
pub fn split_row_key(key: &[u8]) -> Option<Row<'_>> {
    let (space, escaped) = split_meta_key(key)?;
    let mut user_key = Vec::new();
    let mut bytes = escaped.iter().enumerate();
    let end = loop {
        match bytes.next()? {
            (_, 0) => match bytes.next()? {
                (at, &END) => break at + 1,
                (_, &ESCAPE) => user_key.push(0),
                _ => return None,
            },
            (_, byte) => user_key.push(*byte),
        }
    };
    let (version, sub_key) = escaped.get(end..)?.split_first_chunk()?;
    Some(Row { space, user_key, version: u64::from_be_bytes(*version), sub_key })
}

/// The length of a row key before its sub key, which the rows of one version of one collection
/// share; `None` if the key is malformed.
pub fn prefix_len(key: &[u8]) -> Option<usize> {
    let mut at = SPACE_BYTES;
    loop {
        let zero = at + key.get(at..)?.iter().position(|byte| *byte == 0)?;
        match *key.get(zero + 1)? {
            ESCAPE => at = zero + 2,
            END => {
                let end = zero + 2 + size_of::<u64>();
                return (end <= key.len()).then_some(end);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_its_space_big_endian_and_then_the_bytes() {
        let key = meta_key(Space::of_database(0), b"ab\0");
        assert_eq!(&key[..], [0, 0, 0, 1, b'a', b'b', 0]);
        assert_eq!(&meta_key(Space::of_database(511), b"")[..], [0, 0, 2, 0]);
    }

    #[test]
    fn no_database_starts_in_a_reserved_or_fresh_space() {
        assert!(Space::of_database(0) > Space::RESERVED);
        assert!(Space::of_database(u16::MAX) < Space::FIRST_FRESH);
    }

    #[test]
    fn a_key_shorter_than_a_space_is_no_key() {
        assert_eq!(split_meta_key(&[0, 0, 1]), None);
    }

    proptest! {
        #[test]
        fn every_key_splits_into_what_it_was_made_of(number: u16, user_key: Vec<u8>) {
            let space = Space::of_database(number);
            let key = meta_key(space, &user_key);
            prop_assert_eq!(split_meta_key(&key), Some((space, &user_key[..])));
        }

        #[test]
        fn keys_sort_by_space_and_then_as_the_user_sorts_them(
            a: (u16, Vec<u8>),
            b: (u16, Vec<u8>),
        ) {
            let key = |(number, user): &(u16, Vec<u8>)| meta_key(Space::of_database(*number), user);
            prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        }
    }

    proptest! {
        #[test]
        fn rows_sort_by_user_key_as_meta_records_do_and_come_apart_again(
            a: Vec<u8>, b: Vec<u8>, versions: (u64, u64), subs: (Vec<u8>, Vec<u8>),
        ) {
            let space = Space::of_database(3);
            let row = |key: &[u8], version, sub: &[u8]| row_key(&prefix(space, key, version), sub);
            let (first, second) = (row(&a, versions.0, &subs.0), row(&b, versions.1, &subs.1));
            if a != b {
                let meta = meta_key(space, &a).cmp(&meta_key(space, &b));
                prop_assert_eq!(first.cmp(&second), meta);
            }
            prop_assert_eq!(prefix_len(&first), Some(first.len() - subs.0.len()));
            let parts = split_row_key(&first).unwrap();
            prop_assert_eq!(parts, Row { space, user_key: a, version: versions.0, sub_key: &subs.0 });
        }

        #[test]
        fn arbitrary_bytes_are_a_row_or_not_but_never_a_panic(bytes: Vec<u8>) {
            let apart = split_row_key(&bytes).map(|row| bytes.len() - row.sub_key.len());
            prop_assert_eq!(prefix_len(&bytes), apart);
        }

        #[test]
        fn everything_with_a_prefix_lies_before_its_end(bytes: Vec<u8>, rest: Vec<u8>) {
            let with = [&bytes[..], &rest].concat();
            match after_prefix(&bytes) {
                Some(end) => prop_assert!(with < end && bytes < end),
                None => prop_assert!(bytes.iter().all(|byte| *byte == 0xff)),
            }
        }
    }

    #[test]
    fn neighbours_in_key_and_member_never_collide() {
        // Without delimiting, set `a` with member `b:c` would meet set `a:b` with member `c`.
        let space = Space::of_database(0);
        let row = |key: &[u8], member: &[u8]| row_key(&prefix(space, key, 7), member);
        assert_ne!(row(b"a", b"b:c"), row(b"a:b", b"c"));
        assert_ne!(row(b"a\0", b"x"), row(b"a", b"\0x"));
        assert_ne!(row(b"", b"\0\x01"), row(b"\0\x01", b""));
    }
}
