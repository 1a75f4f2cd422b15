//! Which keys a tree's writes may hold, by a few bits of their hashes.
//!
//! Most keys that a command looks for among the writes kept aside are not there, and a search in
//! order compares long keys that begin alike. With many writes this tells nearly all of those at
//! once.

use crate::engine::hash_key;

/// From so many keys on it is worth it.
const FEW: usize = 16;
/// With more than this many it would not tell any more.
const MANY: usize = 2048;
/// 16 bits for each of 512 keys, a kilobyte.
const WORDS: usize = 128;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Seen(Option<Box<[u64; WORDS]>>);

impl Seen {
    /// Whether the key may be one of those that were noted; `count` is how many there are.
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

    /// Notes a key that is added to those in `others`.
    #[inline]
    pub(super) fn note<'k>(&mut self, key: &[u8], others: impl ExactSizeIterator<Item = &'k [u8]>) {
        if self.0.is_none() && others.len() >= FEW {
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
    let hash = hash_key(key);
    (usize::try_from(hash >> 6).unwrap_or(0) % WORDS, 1 << (hash % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_may_be_there_and_most_else_is_not() {
        let (mut seen, mut keys) = (Seen::default(), Vec::<Vec<u8>>::new());
        let name = |n: u32| format!("a long beginning that all have {n}").into_bytes();
        assert!(!seen.may_hold(&name(0), 0));
        for n in 0..256 {
            seen.note(&name(n), keys.iter().map(Vec::as_slice));
            keys.push(name(n));
            assert!(keys.iter().all(|key| seen.may_hold(key, keys.len())));
        }
        let false_alarms = (256..10_256).filter(|n| seen.may_hold(&name(*n), keys.len())).count();
        assert!(false_alarms < 800, "{false_alarms} of 10,000");
        assert!(seen.may_hold(&name(9999), MANY + 1), "it does not tell any more");
    }
}
