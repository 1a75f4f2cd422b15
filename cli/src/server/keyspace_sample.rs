//! The number of keys and expiries in INFO. The store keeps no such count: a small database is
//! counted on every call, a larger one at most once a second, and a large one is sampled.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lsmkv::types::ScanOptions;
use lsmkv::{Db, Error};
use parking_lot::Mutex;

/// A database of up to this many keys is read whole on every call.
const SMALL: usize = 1000;
/// The keys of a database are counted up to this number, and estimated beyond it.
const MAX_COUNTED: usize = 16_384;
/// The sample size for a larger database.
const SAMPLE_SIZE: usize = 100;
/// The time for which the figures of a larger database stay valid.
const VALID_FOR: Duration = Duration::from_secs(1);

/// A sample of the keys of a database.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    /// The number of keys, if they were counted.
    pub(crate) keys: Option<u64>,
    sampled: u64,
    /// The number of sampled keys with an expiry, and the sum of their times to live.
    with_expiry: u64,
    ttl_ms: u128,
}

impl Sample {
    fn of(db: &Db, keys: impl IntoIterator<Item = Bytes>) -> Result<Self, Error> {
        let mut sample = Self::default();
        for key in keys {
            sample.note(db.pttl(&key)?);
        }
        Ok(sample)
    }

    /// Samples a database that is not small.
    fn of_larger(db: &Db, mut keys: Vec<Bytes>, mut cursor: Vec<u8>) -> Result<Self, Error> {
        while !cursor.is_empty() && keys.len() < MAX_COUNTED {
            let (next, more) = page(db, &cursor)?;
            cursor = next;
            keys.extend(more);
        }
        if cursor.is_empty() {
            let (count, step) = (keys.len() as u64, keys.len().div_ceil(SMALL).max(1));
            return Ok(Self { keys: Some(count), ..Self::of(db, keys.into_iter().step_by(step))? });
        }
        let sampled: Result<Vec<_>, _> = (0..SAMPLE_SIZE).map(|_| db.randomkey()).collect();
        Self::of(db, sampled?.into_iter().flatten())
    }

    /// Adds a key by its PTTL: -2 if it no longer exists, -1 if it has no expiry.
    fn note(&mut self, pttl: i64) {
        self.sampled += u64::from(pttl != -2);
        if let Ok(ttl_ms) = u64::try_from(pttl) {
            self.with_expiry += 1;
            self.ttl_ms += u128::from(ttl_ms);
        }
    }

    /// Extrapolates how many of `keys` keys have an expiry.
    pub(crate) fn expires_among(&self, keys: u64) -> u64 {
        let share =
            u128::from(self.with_expiry) * u128::from(keys) / u128::from(self.sampled.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    pub(crate) fn average_ttl_ms(&self) -> u64 {
        let average = self.ttl_ms / u128::from(self.with_expiry.max(1));
        u64::try_from(average).unwrap_or(u64::MAX)
    }
}

fn page(db: &Db, cursor: &[u8]) -> Result<(Vec<u8>, Vec<Bytes>), Error> {
    db.scan(cursor, &ScanOptions { count: SMALL as u64, ..ScanOptions::default() })
}

/// The latest samples of databases that are not small, by database number.
#[derive(Debug, Default)]
pub(crate) struct KeyspaceSampler(Mutex<BTreeMap<u32, (Instant, Sample)>>);

impl KeyspaceSampler {
    /// Samples a database, or returns a recent sample.
    pub(crate) fn sample(&self, db: &Db) -> Result<Sample, Error> {
        let (cursor, keys) = page(db, b"")?;
        if cursor.is_empty() {
            let sample = Sample::of(db, keys)?;
            return Ok(Sample { keys: Some(sample.sampled), ..sample });
        }
        // Concurrent callers wait and get the same sample.
        let mut known = self.0.lock();
        if let Some((at, sample)) = known.get(&db.database())
            && at.elapsed() < VALID_FOR
        {
            return Ok(*sample);
        }
        let sample = Sample::of_larger(db, keys, cursor)?;
        known.insert(db.database(), (Instant::now(), sample));
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmkv::Options;

    #[test]
    fn the_share_of_keys_with_a_time_to_live_is_that_of_the_sample() {
        let mut sample = Sample::default();
        [-1, 1000, -2, 3000, -1].into_iter().for_each(|pttl| sample.note(pttl));
        assert_eq!((sample.expires_among(4), sample.average_ttl_ms()), (2, 2000));
        assert_eq!(sample.expires_among(1_000_000), 500_000);
        assert_eq!(Sample::default().expires_among(1000), 0);
    }

    /// Every third key has an expiry, and all of these sort last.
    fn sample(keys: usize) -> Sample {
        let db = Db::open(":memory:", Options::default()).unwrap();
        for n in 0..keys {
            let timed = n % 3 == 0;
            let key = format!("{}:{n}", if timed { "z" } else { "a" });
            db.set(key.as_bytes(), b"v").unwrap();
            if timed {
                db.pexpire(key.as_bytes(), 1_000_000, lsmkv::types::ExpireIf::ALWAYS).unwrap();
            }
        }
        KeyspaceSampler::default().sample(&db).unwrap()
    }

    #[test]
    fn small_databases_are_counted_and_larger_ones_told_from_a_part() {
        let small = sample(900);
        assert_eq!((small.keys, small.expires_among(900)), (Some(900), 300));
        let middle = sample(6000);
        assert_eq!(middle.keys, Some(6000));
        // Every seventh key is sampled, and the two kinds meet once.
        assert!(middle.expires_among(6000).abs_diff(2000) <= 7);
        // A third of 100 draws, with a deviation of 4.7: six deviations occur once in 10^9 runs.
        let large = sample(20_000);
        assert_eq!(large.keys, None);
        let share = large.expires_among(100);
        assert!((5..=62).contains(&share), "{share}");
        let average = large.average_ttl_ms();
        assert!((900_000..=1_000_000).contains(&average), "{average}");
    }
}
