//! Latencies in constant memory: buckets of one part in 64, so that a long run costs no more than
//! a short one and the peers' caches are left alone. The longest is kept exactly.

use std::time::Duration;

/// Values below `2 * HALF` have a bucket each; above, every power of two has `HALF` buckets.
const HALF_BITS: u32 = 6;
const HALF: u64 = 1 << HALF_BITS;
const BUCKETS: usize = ((u64::BITS - HALF_BITS + 1) << HALF_BITS) as usize;

#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    longest: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; BUCKETS], count: 0, longest: 0 }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get_mut(bucket_of(nanos)) {
            *bucket += 1;
        }
        self.count += 1;
        self.longest = self.longest.max(nanos);
    }

    pub(crate) fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }

    /// The latency that `per_mille` of a thousand do not exceed, at most a 64th too high.
    pub(crate) fn percentile(&self, per_mille: u64) -> Duration {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_end(index).min(self.longest));
            }
        }
        self.longest()
    }
}

fn bucket_of(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(HALF_BITS + 1);
    let index = u64::from(shift) * HALF + (nanos >> shift);
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The largest value that falls into a bucket.
fn upper_end(index: usize) -> u64 {
    let index = index as u64;
    let shift = (index / HALF).saturating_sub(1);
    let mantissa = index - shift * HALF;
    let end = (u128::from(mantissa) + 1) << shift;
    u64::try_from(end - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_bucket_whose_end_is_at_most_a_64th_above_it() {
        let edges = [0, 1, 63, 64, 127, 128, 129, 255, 256, 1_000_000, u64::MAX / 3, u64::MAX];
        for nanos in edges {
            let bucket = bucket_of(nanos);
            assert!(bucket < BUCKETS, "{nanos}");
            let end = upper_end(bucket);
            assert!(end >= nanos && end - nanos <= nanos / 64, "{nanos} ends at {end}");
        }
    }

    #[test]
    fn buckets_ascend_without_gaps() {
        for index in 1..2000 {
            assert_eq!(bucket_of(upper_end(index - 1) + 1), index);
        }
    }

    #[test]
    fn percentiles_split_a_known_series() {
        let mut histogram = Histogram::new();
        (1..=10_000).for_each(|us| histogram.record(Duration::from_micros(us)));
        for (per_mille, exact) in [(500, 5_000_u32), (990, 9_900), (999, 9_990)] {
            let found = histogram.percentile(per_mille).as_secs_f64() * 1e6 / f64::from(exact);
            assert!((1.0..1.0 + 1.0 / 64.0).contains(&found), "{per_mille}: {found}");
        }
        assert_eq!(histogram.longest(), Duration::from_millis(10));
        assert_eq!(histogram.percentile(1000), Duration::from_millis(10));
    }

    #[test]
    fn one_long_pause_shows_in_the_longest_only() {
        let mut histogram = Histogram::new();
        (0..9_999).for_each(|_| histogram.record(Duration::from_nanos(100)));
        histogram.record(Duration::from_secs(1));
        assert_eq!(histogram.percentile(999), Duration::from_nanos(100));
        assert_eq!(histogram.longest(), Duration::from_secs(1));
    }

    #[test]
    fn an_empty_histogram_says_zero() {
        assert_eq!(Histogram::new().percentile(500), Duration::ZERO);
    }
}
