//! splitmix64: a small pseudo-random generator, with which a crash or a model test repeats from its
//! seed. Do not use it for anything that an adversary must not guess.

/// A stream of pseudo-random numbers, determined by its seed.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream for `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if `bound` is 0. For bounds below 2^32, the bias is below 2^-32.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// `true` with a probability of one in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Mixes the bits of `value`: a hash of one number.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_is_the_published_one() {
        // The reference output of splitmix64 for seed 1234567.
        let mut stream = SplitMix64::new(1_234_567);
        assert_eq!(stream.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(stream.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut stream = SplitMix64::new(1);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[usize::try_from(stream.below(5)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(stream.below(0), 0);
    }
}
