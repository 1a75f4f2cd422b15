//! Sets of stripes.

/// Enough that writers of different keys rarely meet. A power of two.
pub(super) const STRIPES: usize = 256;

const WORDS: usize = STRIPES.div_ceil(64);

/// A set of stripes, with a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StripeSet([u64; WORDS]);

impl StripeSet {
    /// All stripes.
    pub(super) const ALL: Self = Self([u64::MAX; WORDS]);

    /// Adds a stripe.
    pub(super) fn add(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    /// Whether a stripe is in the set.
    pub(super) fn has(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_stripes_that_were_added() {
        let mut some = StripeSet::default();
        [0, 63, 64, STRIPES - 1].into_iter().for_each(|index| some.add(index));
        let has: Vec<usize> = (0..STRIPES + 100).filter(|index| some.has(*index)).collect();
        assert_eq!(has, [0, 63, 64, STRIPES - 1]);
        assert!((0..STRIPES).all(|index| StripeSet::ALL.has(index)));
    }
}
