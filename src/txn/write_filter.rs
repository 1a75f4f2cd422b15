//! A Bloom filter over the keys of a tree's pending writes.
//!
//! Most keys that a command looks up among the pending writes are not there, and a search in order
//! compares long keys with common prefixes. With many writes the filter answers nearly all of these
//! lookups at once. Its hash has a seed of the process: nobody can choose keys that the filter takes
//! for one.

use std::sync::LazyLock;

use crate::engine::HashSeed;

/// The filter is built when there are this many keys.
const FEW: usize = 16;
/// With more keys than this the filter would no longer tell them apart.
const MANY: usize = 2048;
/// A kilobyte: 16 bits for each of 512 keys.
const WORDS: usize = 128;

/// Tells which keys are certainly not among the pending writes.
#[derive(Debug, Default)]
pub(super) struct WriteFilter(Option<Box<[u64; WORDS]>>);

impl WriteFilter {
    /// Whether the key may be one of the `count` keys added so far.
    #[inline]
    pub(super) fn may_hold(&self, key: &[u8], count: usize) -> bool {
        match &self.0 {
            Some(bits) if count <= MANY => {
                let (word, bit) = place(key);
                bits.get(word).is_none_or(|word| word & bit != 0)
            }
            _ => count > 0,
        }
    }

    /// Adds a key to the `count` keys in `others`.
    #[inline]
    pub(super) fn note<'k>(
        &mut self,
        key: &[u8],
        count: usize,
        others: impl Iterator<Item = &'k [u8]>,
    ) {
        if self.0.is_none() && count >= FEW {
            let bits = self.0.insert(Box::new([0; WORDS]));
            others.for_each(|key| set(bits, key));
        }
        if let Some(bits) = &mut self.0 {
            set(bits, key);
        }
    }
}

fn set(bits: &mut [u64; WORDS], key: &[u8]) {
    let (word, bit) = place(key);
    if let Some(word) = bits.get_mut(word) {
        *word |= bit;
    }
}

#[inline]
fn place(key: &[u8]) -> (usize, u64) {
    static SEED: LazyLock<HashSeed> = LazyLock::new(HashSeed::random);
    let hash = SEED.hash(key);
    (usize::try_from(hash >> 6).unwrap_or(0) % WORDS, 1 << (hash % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tells_apart(name: fn(u32) -> Vec<u8>) {
        let (mut seen, mut keys) = (WriteFilter::default(), Vec::<Vec<u8>>::new());
        assert!(!seen.may_hold(&name(0), 0));
        for n in 0..256 {
            seen.note(&name(n), keys.len(), keys.iter().map(Vec::as_slice));
            keys.push(name(n));
            assert!(keys.iter().all(|key| seen.may_hold(key, keys.len())));
        }
        let false_alarms = (256..10_256).filter(|n| seen.may_hold(&name(*n), keys.len())).count();
        assert!(false_alarms < 800, "{false_alarms} of 10,000");
        assert!(seen.may_hold(&name(9999), MANY + 1), "it does not tell any more");
    }

    #[test]
    fn what_was_noted_may_be_there_and_most_else_is_not() {
        tells_apart(|n| format!("a long beginning that all have {n}").into_bytes());
    }

    /// The bug: of keys that an unseeded hash maps to one value, the filter took all for one.
    #[test]
    fn keys_that_collide_without_a_seed_are_told_apart() {
        // XXH3-64 without a seed multiplies the last 16 bytes by a factor that is zero.
        const CANCELS: [u8; 8] = [0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb];
        let name =
            |n: u32| [b"sixteen bytes is", &CANCELS[..], &u64::from(n).to_be_bytes()].concat();
        tells_apart(name);
    }
}
