//! What INFO says of the keys of a database. The store keeps no count of them: a small database is
//! counted anew each time, a larger one at most once a second, and of a large one keys are drawn.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lsmkv::types::ScanOptions;
use lsmkv::{Db, Error};
use parking_lot::Mutex;

/// Up to so many keys, each is looked at, each time.
const SMALL: usize = 1000;
/// Up to so many keys they are counted; beyond, their number is estimated.
const COUNTED: usize = 16_384;
/// Keys drawn of a larger database.
const DRAWN: usize = 100;
/// How long what was found out of all but small databases is told.
const KEPT: Duration = Duration::from_secs(1);

/// Keys that were looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// How many keys there are, if they were counted.
    pub(super) keys: Option<u64>,
    looked_at: u64,
    /// Those with a time to live, and the sum of these times.
    timed: u64,
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

    /// Of a database that is not small.
    fn of_larger(db: &Db, mut keys: Vec<Bytes>, mut cursor: Vec<u8>) -> Result<Self, Error> {
        while !cursor.is_empty() && keys.len() < COUNTED {
            let (next, more) = page(db, &cursor)?;
            cursor = next;
            keys.extend(more);
        }
        if cursor.is_empty() {
            let (count, step) = (keys.len() as u64, keys.len().div_ceil(SMALL).max(1));
            return Ok(Self { keys: Some(count), ..Self::of(db, keys.into_iter().step_by(step))? });
        }
        let drawn: Result<Vec<_>, _> = (0..DRAWN).map(|_| db.randomkey()).collect();
        Self::of(db, drawn?.into_iter().flatten())
    }

    /// What PTTL says of a key: -2 if it is gone by now, -1 if it has no time to live.
    fn note(&mut self, pttl: i64) {
        self.looked_at += u64::from(pttl != -2);
        if let Ok(ttl_ms) = u64::try_from(pttl) {
            self.timed += 1;
            self.ttl_ms += u128::from(ttl_ms);
        }
    }

    /// How many of so many keys have a time to live, if the others are like these.
    pub(super) fn expires_among(&self, keys: u64) -> u64 {
        let share = u128::from(self.timed) * u128::from(keys) / u128::from(self.looked_at.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    pub(super) fn average_ttl_ms(&self) -> u64 {
        let average = self.ttl_ms / u128::from(self.timed.max(1));
        u64::try_from(average).unwrap_or(u64::MAX)
    }
}

fn page(db: &Db, cursor: &[u8]) -> Result<(Vec<u8>, Vec<Bytes>), Error> {
    db.scan(cursor, &ScanOptions { count: SMALL as u64, ..ScanOptions::default() })
}

/// What was last found out of databases that are not small, by number.
#[derive(Debug, Default)]
pub(crate) struct Keyspace(Mutex<BTreeMap<u32, (Instant, Sample)>>);

impl Keyspace {
    /// The keys of a database, or some of them.
    pub(super) fn sample(&self, db: &Db) -> Result<Sample, Error> {
        let (cursor, keys) = page(db, b"")?;
        if cursor.is_empty() {
            let sample = Sample::of(db, keys)?;
            return Ok(Sample { keys: Some(sample.looked_at), ..sample });
        }
        // Who asks meanwhile waits, and is told the same.
        let mut known = self.0.lock();
        if let Some((at, sample)) = known.get(&db.database())
            && at.elapsed() < KEPT
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

    /// Every third key expires, and all of these come after the others.
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
        Keyspace::default().sample(&db).unwrap()
    }

    #[test]
    fn small_databases_are_counted_and_larger_ones_told_from_a_part() {
        let small = sample(900);
        assert_eq!((small.keys, small.expires_among(900)), (Some(900), 300));
        let middle = sample(6000);
        assert_eq!(middle.keys, Some(6000));
        // Every seventh key is looked at, and the two sorts meet in one place.
        assert!(middle.expires_among(6000).abs_diff(2000) <= 7);
        // A third of 100 draws, with a deviation of 4.7: beyond six of them once in 10^9 runs.
        let large = sample(20_000);
        assert_eq!(large.keys, None);
        let share = large.expires_among(100);
        assert!((5..=62).contains(&share), "{share}");
        let average = large.average_ttl_ms();
        assert!((900_000..=1_000_000).contains(&average), "{average}");
    }
}
