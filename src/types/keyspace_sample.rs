//! The number of keys and expiries in INFO. The store keeps no such count: a small database is
//! counted on every call, a larger one at most once a second, and a large one is sampled.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::engine::TreeStats;
use crate::error::Result;
use crate::keyspace::trees::META;
use crate::txn::Db;
use crate::types::scan::ScanOptions;

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
struct Sample {
    /// The number of keys, if they were counted.
    keys: Option<u64>,
    sampled: u64,
    /// The number of sampled keys with an expiry, and the sum of their times to live.
    with_expiry: u64,
    ttl_ms: u128,
}

impl Sample {
    fn of(db: &Db, keys: impl IntoIterator<Item = Bytes>) -> Result<Self> {
        let mut sample = Self::default();
        for key in keys {
            sample.note(db.pttl(&key)?);
        }
        Ok(sample)
    }

    /// Samples a database that is not small.
    fn of_larger(db: &Db, mut keys: Vec<Bytes>, mut cursor: Vec<u8>) -> Result<Self> {
        while !cursor.is_empty() && keys.len() < MAX_COUNTED {
            let (next, more) = page(db, &cursor)?;
            cursor = next;
            keys.extend(more);
        }
        if cursor.is_empty() {
            let (count, step) = (keys.len() as u64, keys.len().div_ceil(SMALL).max(1));
            return Ok(Self { keys: Some(count), ..Self::of(db, keys.into_iter().step_by(step))? });
        }
        let sampled: Result<Vec<_>> = (0..SAMPLE_SIZE).map(|_| db.randomkey()).collect();
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
    fn expires_among(&self, keys: u64) -> u64 {
        let share =
            u128::from(self.with_expiry) * u128::from(keys) / u128::from(self.sampled.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    fn average_ttl_ms(&self) -> u64 {
        let average = self.ttl_ms / u128::from(self.with_expiry.max(1));
        u64::try_from(average).unwrap_or(u64::MAX)
    }
}

fn page(db: &Db, cursor: &[u8]) -> Result<(Vec<u8>, Vec<Bytes>)> {
    db.scan(cursor, &ScanOptions { count: SMALL as u64, ..ScanOptions::default() })
}

/// The figures of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFigures {
    /// The number of the database.
    pub database: u32,
    /// The number of keys, counted or estimated.
    pub keys: u64,
    /// The number of keys with an expiry.
    pub expires: u64,
    /// The average time to live of those, in milliseconds.
    pub average_ttl_ms: u64,
}

/// Estimates the number of keys of a store. Each tombstone hides a record; overwritten records that
/// no merge has met yet count twice.
pub(crate) fn keys_estimated(meta: &TreeStats) -> u64 {
    let entries: u64 = meta.levels.iter().map(|level| level.entries).sum();
    let tombstones: u64 = meta.levels.iter().map(|level| level.tombstones).sum();
    (entries + meta.memtable_entries).saturating_sub(tombstones.saturating_mul(2))
}

/// The latest samples of databases that are not small, by database number.
#[derive(Debug, Default)]
pub struct KeyspaceSampler(Mutex<BTreeMap<u32, (Instant, Sample)>>);

impl KeyspaceSampler {
    /// The figures of every database that has keys. Those of large databases are estimates.
    pub fn figures(&self, db: &Db) -> Result<Vec<KeyFigures>> {
        let samples: Vec<(u32, Sample)> = (0..db.store().spaces().count())
            .map(|number| Ok((number, self.sample(&db.select(number)?)?)))
            .collect::<Result<_>>()?;
        let counted: u64 = samples.iter().filter_map(|(_, sample)| sample.keys).sum();
        let large = samples.iter().filter(|(_, sample)| sample.keys.is_none()).count().max(1);
        let estimate = match counted {
            // Only an estimate that is used is worth its cost.
            _ if samples.iter().all(|(_, sample)| sample.keys.is_some()) => 0,
            counted => {
                let stats = db.store().engine().stats();
                let all = stats.trees.get(META.index()).map_or(0, keys_estimated);
                all.saturating_sub(counted) / large as u64
            }
        };
        let figures = samples.into_iter().map(|(database, sample)| {
            let keys = sample.keys.unwrap_or(estimate.max(1));
            let (expires, average_ttl_ms) = (sample.expires_among(keys), sample.average_ttl_ms());
            KeyFigures { database, keys, expires, average_ttl_ms }
        });
        Ok(figures.filter(|figures| figures.keys > 0).collect())
    }

    /// Samples a database, or returns a recent sample.
    fn sample(&self, db: &Db) -> Result<Sample> {
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
    use crate::options::Options;
    use crate::types::ExpireIf;

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
                db.pexpire(key.as_bytes(), 1_000_000, ExpireIf::ALWAYS).unwrap();
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
