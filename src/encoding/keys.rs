//! Keys of the meta tree: `[space:4][user key]`, the space big-endian.
//!
//! A space is where one logical database's keys live. A database number maps to a space, so that
//! emptying or swapping a database is a change of that mapping. Space 0 is reserved for records
//! of the store itself; database `n` lives in space `n + 1` unless a record says otherwise, and
//! ids handed out later start above [`Space::FIRST_FRESH`], so neither can meet the other.

use smallvec::SmallVec;

/// The 4-byte id that begins every key of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Space(u32);

impl Space {
    /// Where the store keeps records of its own.
    pub const RESERVED: Self = Self(0);
    /// The smallest id a durable counter may hand out.
    pub const FIRST_FRESH: Self = Self(0x0001_0001);

    /// The space a database number has before it was ever emptied or swapped.
    pub const fn of_database(number: u16) -> Self {
        // Widening; `u32::from` is not const.
        Self(number as u32 + 1)
    }

    /// The id as it stands in keys.
    pub const fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

/// Bytes of a meta key before the user key.
pub const SPACE_BYTES: usize = 4;

/// A key of the meta tree. Short ones stay on the stack: a look-up allocates nothing.
pub type MetaKey = SmallVec<[u8; 96]>;

/// `[space:4][user key]`.
#[inline]
pub fn meta_key(space: Space, user_key: &[u8]) -> MetaKey {
    let mut key = MetaKey::with_capacity(SPACE_BYTES + user_key.len());
    key.extend_from_slice(&space.to_bytes());
    key.extend_from_slice(user_key);
    key
}

/// Takes a meta key apart; `None` if it is too short to be one.
pub fn split_meta_key(key: &[u8]) -> Option<(Space, &[u8])> {
    let (space, user_key) = key.split_first_chunk()?;
    Some((Space(u32::from_be_bytes(*space)), user_key))
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
}
