//! The hash of user keys. Memtables, Bloom filters, the indexes inside blocks and the lock stripes
//! of the layer above share it, so a key is hashed once per lookup.
//!
//! Whoever chooses keys must not be able to choose keys of equal hash. So every store draws a seed,
//! which its manifest keeps. A table keeps the seed that it was written with: tables from before
//! there were seeds have none, and copies of tables may come from another store.

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A seed for the hash of user keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashSeed(u64);

impl HashSeed {
    /// The absence of a seed. Tables of format 1 were written without.
    pub const NONE: Self = Self(0);

    /// A seed that nobody can guess.
    pub fn random() -> Self {
        // Every `RandomState` has other keys, from the randomness of the operating system.
        Self(RandomState::new().hash_one(0u8).max(1))
    }

    /// The seed that is stored as `raw`.
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The stored form; 0 for no seed.
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    /// The hash of a user key.
    #[inline]
    pub fn hash(self, key: &[u8]) -> u64 {
        xxh3_64_with_seed(key, self.0)
    }
}

/// A user key with its hash.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey<'k> {
    key: &'k [u8],
    seed: HashSeed,
    hash: u64,
}

impl<'k> HashedKey<'k> {
    /// Hashes a key.
    #[inline]
    pub fn new(key: &'k [u8], seed: HashSeed) -> Self {
        Self { key, seed, hash: seed.hash(key) }
    }

    /// The key.
    #[inline]
    pub fn key(&self) -> &'k [u8] {
        self.key
    }

    /// The hash of the key with its own seed.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The hash of the key with `seed`, which is nearly always its own.
    #[inline]
    pub fn hash_with(&self, seed: HashSeed) -> u64 {
        if seed == self.seed { self.hash } else { seed.hash(self.key) }
    }
}

/// A hash without a seed, which is the same in every process and version.
#[cfg(test)]
pub(crate) fn stable_hash(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_the_seed_and_is_hashed_again_for_another_one() {
        let (one, other) = (HashSeed::from_raw(1), HashSeed::from_raw(2));
        let key = HashedKey::new(b"key", one);
        assert_eq!(key.hash(), one.hash(b"key"));
        assert_eq!(key.hash_with(one), key.hash());
        assert_eq!(key.hash_with(other), other.hash(b"key"));
        assert_ne!(key.hash_with(other), key.hash());
        assert_eq!(HashSeed::NONE.hash(b"key"), stable_hash(b"key"));
        assert_ne!(HashSeed::random(), HashSeed::random());
        assert_ne!(HashSeed::random(), HashSeed::NONE);
    }
}
