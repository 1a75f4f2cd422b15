//! A histogram of the expiries in a table, small enough for the table's properties.
//!
//! ```text
//! count varint | (earliest varint, latest - earliest varint, records varint, bytes varint) * count
//! ```
//!
//! There are at most [`BUCKETS`] buckets, ascending and disjoint. Every record with an expiry is in
//! one; each bucket begins and ends at the expiry of some record.

use crate::io::codec::{Reader, put_varint};

/// The name of the property.
pub(crate) const PROPERTY: &[u8] = b"expiry";
/// The largest number of buckets.
pub(crate) const BUCKETS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    earliest: u64,
    latest: u64,
    records: u64,
    bytes: u64,
}

/// Tells when the records of a table expire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    buckets: Vec<Bucket>,
}

/// An amount of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    /// The number of records.
    pub(crate) records: u64,
    /// The bytes of their keys and values.
    pub(crate) bytes: u64,
}

impl Histogram {
    /// Counts a record that expires at `expire_ms` and has this many bytes.
    pub(crate) fn add(&mut self, expire_ms: u64, bytes: u64) {
        let at = self.buckets.partition_point(|bucket| bucket.latest < expire_ms);
        match self.buckets.get_mut(at) {
            Some(bucket) if bucket.earliest <= expire_ms => {
                bucket.records += 1;
                bucket.bytes = bucket.bytes.saturating_add(bytes);
            }
            _ => {
                let (earliest, latest) = (expire_ms, expire_ms);
                self.buckets.insert(at, Bucket { earliest, latest, records: 1, bytes });
                if self.buckets.len() > BUCKETS {
                    self.merge_nearest();
                }
            }
        }
    }

    /// Joins the two neighbours that span the least time together.
    fn merge_nearest(&mut self) {
        let spans = self.buckets.windows(2).map(|pair| match pair {
            [a, b] => b.latest - a.earliest,
            _ => u64::MAX,
        });
        let Some((at, _)) = spans.enumerate().min_by_key(|(_, span)| *span) else { return };
        let later = self.buckets.remove(at + 1);
        if let Some(bucket) = self.buckets.get_mut(at) {
            bucket.latest = later.latest;
            bucket.records = bucket.records.saturating_add(later.records);
            bucket.bytes = bucket.bytes.saturating_add(later.bytes);
        }
    }

    /// Whether some record may have an expiry after `after` and by `through`. A `false` is certain.
    pub(crate) fn any_between(&self, after: u64, through: u64) -> bool {
        self.buckets.iter().any(|bucket| bucket.earliest <= through && bucket.latest > after)
    }

    /// Whether the histogram covers this many records and the last expiry has passed at `now_ms`.
    pub(crate) fn all_expired(&self, records: u64, now_ms: u64) -> bool {
        let counted = self.buckets.iter().fold(0u64, |sum, it| sum.saturating_add(it.records));
        counted == records && self.buckets.last().is_some_and(|last| last.latest <= now_ms)
    }

    /// Estimates how much has expired at `now_ms`, with expiries evenly spread within a bucket.
    pub(crate) fn expired(&self, now_ms: u64) -> Amount {
        let mut sum = Amount::default();
        for bucket in self.buckets.iter().filter(|bucket| bucket.earliest <= now_ms) {
            let whole = u128::from(bucket.latest - bucket.earliest) + 1;
            let part = u128::from(now_ms.min(bucket.latest) - bucket.earliest) + 1;
            let share = |of: u64| u64::try_from(u128::from(of) * part / whole).unwrap_or(of);
            sum.records = sum.records.saturating_add(share(bucket.records));
            sum.bytes = sum.bytes.saturating_add(share(bucket.bytes));
        }
        sum
    }

    /// Encodes the histogram.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.buckets.len() as u64);
        for bucket in &self.buckets {
            put_varint(&mut out, bucket.earliest);
            put_varint(&mut out, bucket.latest - bucket.earliest);
            put_varint(&mut out, bucket.records);
            put_varint(&mut out, bucket.bytes);
        }
        out
    }

    /// Decodes a histogram; `None` if the bytes are malformed.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let count = reader.varint()?;
        if count > BUCKETS as u64 {
            return None;
        }
        let mut buckets: Vec<Bucket> = Vec::new();
        for _ in 0..count {
            let earliest = reader.varint()?;
            let latest = earliest.checked_add(reader.varint()?)?;
            let (records, bytes) = (reader.varint()?, reader.varint()?);
            if buckets.last().is_some_and(|last| last.latest >= earliest) {
                return None;
            }
            buckets.push(Bucket { earliest, latest, records, bytes });
        }
        reader.is_empty().then_some(Self { buckets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_stored_form_is_as_drawn() {
        let mut histogram = Histogram::default();
        histogram.add(5, 100);
        histogram.add(2, 10);
        histogram.add(5, 1);
        assert_eq!(histogram.encode(), [2, 2, 0, 1, 10, 5, 0, 2, 101]);
    }

    #[test]
    fn what_no_version_writes_is_refused() {
        assert_eq!(Histogram::decode(&[]), None);
        assert_eq!(Histogram::decode(&[17]), None, "too many");
        assert_eq!(Histogram::decode(&[2, 5, 0, 1, 1, 5, 0, 1, 1]), None, "overlapping");
        assert_eq!(Histogram::decode(&[0, 0]), None, "too long");
    }

    proptest! {
        #[test]
        fn nothing_that_expired_is_ever_missed(
            expiries in prop::collection::vec(1u64..100_000, 0..200),
            after in 0u64..100_000, through in 0u64..100_000,
        ) {
            let mut histogram = Histogram::default();
            for expiry in &expiries {
                histogram.add(*expiry, 10);
            }
            prop_assert!(histogram.buckets.len() <= BUCKETS);
            prop_assert_eq!(Histogram::decode(&histogram.encode()), Some(histogram.clone()));
            if expiries.iter().any(|expiry| (after + 1..=through).contains(expiry)) {
                prop_assert!(histogram.any_between(after, through));
            }
            let all = histogram.expired(100_000);
            prop_assert_eq!(all.records, expiries.len() as u64);
            prop_assert_eq!(all.bytes, 10 * expiries.len() as u64);
            let count = expiries.len() as u64;
            let last = expiries.iter().max();
            prop_assert_eq!(histogram.all_expired(count, through), last.is_some_and(|it| *it <= through));
            prop_assert!(!histogram.all_expired(count + 1, u64::MAX), "one never expires");
            if let Some(first) = expiries.iter().min() {
                prop_assert_eq!(histogram.expired(first - 1), Amount::default());
                prop_assert!(!histogram.any_between(0, first - 1));
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Histogram::decode(&bytes);
        }
    }
}
