//! Keys, and orders in which to visit them.
//!
//! A key is 16 hexadecimal digits, so byte order is number order. Stored keys are the even
//! numbers and absent ones the odd, so that a lookup of an absent key falls inside the stored range
//! and asks every filter.

/// Bytes of every key.
pub(crate) const KEY_BYTES: usize = 16;

pub(crate) type Key = [u8; KEY_BYTES];

/// The `index`-th key that is stored.
pub(crate) fn stored(index: u64) -> Key {
    encode(index.wrapping_mul(2))
}

/// A key that never is, just above the `index`-th stored one.
pub(crate) fn absent(index: u64) -> Key {
    encode(index.wrapping_mul(2).wrapping_add(1))
}

fn encode(number: u64) -> Key {
    let mut key = [0; KEY_BYTES];
    for (digit, place) in key.iter_mut().zip((0..16).rev()) {
        let nibble = (number >> (place * 4) & 15) as u8;
        *digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    }
    key
}

/// A small, fast generator (splitmix64): the same seed gives the same work to every peer.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform in `0..bound`; 0 for an empty range.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(bound);
        (wide >> 64) as u64
    }
}

/// Spreads every bit of `x` over all of the result.
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A seeded permutation of `0..size` in constant memory: a Feistel network over the next even
/// power of two, walked until it falls inside the range.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    size: u64,
    half_bits: u32,
    rounds: [u64; 4],
}

impl Permutation {
    pub(crate) fn new(size: u64, seed: u64) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        let mut random = Random::new(seed);
        Self {
            size,
            half_bits: bits.div_ceil(2).max(1),
            rounds: std::array::from_fn(|_| random.next()),
        }
    }

    /// Where `index` goes. Indexes at or beyond the size stay where they are.
    pub(crate) fn at(&self, index: u64) -> u64 {
        if index >= self.size {
            return index;
        }
        // The network permutes the whole power of two, so the walk returns into the range at
        // the latest when it has come round to where it began.
        let mut place = self.shuffle(index);
        while place >= self.size {
            place = self.shuffle(place);
        }
        place
    }

    fn shuffle(&self, place: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (place >> self.half_bits, place & mask);
        for round in self.rounds {
            (left, right) = (right, left ^ (mix(right ^ round) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_numbers_and_absent_ones_lie_between() {
        assert_eq!(&stored(0x1f), b"000000000000003e");
        for i in [0, 1, 7, 8, 255, 1 << 40] {
            assert!(stored(i) < absent(i));
            assert!(absent(i) < stored(i + 1));
        }
    }

    #[test]
    fn a_permutation_visits_every_place_once() {
        for size in [1, 2, 3, 5, 16, 17, 1000, 4096, 4097] {
            let order = Permutation::new(size, 7);
            let mut seen: Vec<u64> = (0..size).map(|i| order.at(i)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..size), "size {size}");
        }
    }

    #[test]
    fn a_permutation_depends_on_its_seed_and_nothing_else() {
        let order = |seed| {
            let order = Permutation::new(1000, seed);
            (0..1000).map(|i| order.at(i)).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn a_permutation_leaves_few_neighbours_together() {
        let order = Permutation::new(10_000, 3);
        let steps = (1..10_000).filter(|i| order.at(*i) == order.at(i - 1) + 1).count();
        assert!(steps < 10, "{steps} ascending neighbours");
    }

    #[test]
    fn random_numbers_stay_below_their_bound_and_cover_it() {
        let mut random = Random::new(9);
        let mut counts = [0_u32; 10];
        (0..10_000).for_each(|_| counts[usize::try_from(random.below(10)).unwrap()] += 1);
        assert!(counts.iter().all(|c| (800..1200).contains(c)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}
