//! Values that cost nothing to make: slices of a pool filled once, half of each compressible.

use crate::keys::{Random, mix};

/// Large enough that one table block seldom holds the same value twice.
const POOL_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(crate) struct Values {
    pool: Vec<u8>,
    value_bytes: usize,
    count: u64,
}

impl Values {
    pub(crate) fn new(value_bytes: usize, seed: u64) -> Self {
        let mut random = Random::new(mix(seed));
        let count = (POOL_BYTES / value_bytes.max(1)).max(1);
        let mut pool = Vec::with_capacity(count * value_bytes);
        for _ in 0..count {
            push_half_random(&mut pool, value_bytes, &mut random);
        }
        Self { pool, value_bytes, count: count as u64 }
    }

    /// The value that belongs to `index`, always the same.
    pub(crate) fn of(&self, index: u64) -> &[u8] {
        let slot = usize::try_from(mix(index) % self.count).unwrap_or(0);
        let start = slot * self.value_bytes;
        self.pool.get(start..start + self.value_bytes).unwrap_or(&[])
    }
}

/// Random bytes, then the same ones again.
fn push_half_random(pool: &mut Vec<u8>, value_bytes: usize, random: &mut Random) {
    let start = pool.len();
    let fresh = value_bytes.div_ceil(2);
    while pool.len() < start + fresh {
        pool.extend_from_slice(&random.next().to_le_bytes());
    }
    pool.truncate(start + fresh);
    pool.extend_from_within(start..start + value_bytes - fresh);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_length_and_repeats_its_first_half() {
        for bytes in [0, 1, 2, 99, 100, 1024] {
            let values = Values::new(bytes, 1);
            let value = values.of(123);
            assert_eq!(value.len(), bytes);
            let (first, second) = value.split_at(bytes.div_ceil(2));
            assert!(first.starts_with(second));
        }
    }

    #[test]
    fn an_index_always_has_the_same_value_and_others_differ() {
        let values = Values::new(100, 1);
        assert_eq!(values.of(5), Values::new(100, 1).of(5));
        let same = (0..1000).filter(|i| values.of(*i) == values.of(i + 1)).count();
        assert!(same < 5, "{same} neighbours alike");
    }
}
