//! Deletes expired keys, so that even those go away that no compaction touches.
//!
//! A round walks the tables of the meta tree whose histogram shows expired records, and the
//! memtables if something in them may have expired, without filling the cache. It deletes what it
//! finds in batches, a few keys under their locks at a time. Each key is checked again under its
//! lock, because it may have been written meanwhile. A table that was walked is skipped until more
//! of it has expired.
//!
//! Threads: one, with a weak reference to the store. It sleeps on a condition variable and ends at
//! once when the store is closed or its last handle dropped. `Db::clean_expired` runs a round in
//! the caller's thread. Only one round runs at a time.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::encoding::keys::{Space, after_prefix, meta_key, split_meta_key};
use crate::encoding::meta::Header;
use crate::engine::{CacheFill, IterOptions, Properties};
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::cleaner_state::StopSignal;
use crate::keyspace::trees::META;
use crate::messages::events::Classes;
use crate::reclaim::expiries::histogram_of;
use crate::txn::execution::ChangeTracking;
use crate::txn::store::Store;

/// The number of records walked before the reader is renewed, so that files and memtables are not
/// kept for long.
const STRETCH: usize = 65_536;
/// The number of keys that are locked together. Ordered by stripe, they need about a quarter as
/// many locks.
const LOCKED: usize = 32;
/// The interval between rounds while expired keys are announced.
const OFTEN: Duration = Duration::from_millis(500);
/// The longest pause after a batch.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// Whether a round pauses after each batch for as long as the batch took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Polite,
    Full,
}

/// Starts the cleaner thread of a store, if the options ask for one.
pub(crate) fn start(store: &Arc<Store>) -> Result<()> {
    let cleaner = store.cleaner();
    if cleaner.interval.is_zero() {
        return Ok(());
    }
    let (stop, interval) = (Arc::clone(cleaner.stop_signal()), cleaner.interval);
    let weak = Arc::downgrade(store);
    let thread = crate::sync::spawn("lsmkv-cleaner", move || run(&stop, interval, &weak))
        .map_err(|e| Error::new(ErrorKind::Io, format!("start the cleaner's thread: {e}")))?;
    cleaner.own_thread(thread);
    Ok(())
}

/// The body of the thread.
fn run(stop: &StopSignal, interval: Duration, store: &Weak<Store>) {
    crate::sync::background::give_way();
    let mut due = Instant::now() + interval;
    while stop.sleep(interval.min(OFTEN)) {
        let Some(store) = store.upgrade() else { return };
        // Who wants to know of expired keys wants to know soon.
        let announces = store.hub().wants_expired();
        if !announces && Instant::now() < due {
            continue;
        }
        due = Instant::now() + interval;
        // A failed round is tried again after the interval: a full disk may have space then.
        if catch_unwind(AssertUnwindSafe(|| store.clean(Pace::Polite))).is_err() {
            let cause = Error::new(ErrorKind::Panic, "the cleaner of expired keys panicked");
            store.engine().degrade(&cause);
            return;
        }
    }
}

/// Expired keys of one database.
struct ExpiredBatch {
    /// The user keys.
    expired: Vec<Vec<u8>>,
    /// The meta key at which the walk continues; `None` at the end.
    next: Option<Vec<u8>>,
}

impl Store {
    /// Deletes all keys that have expired by now and returns their number. Ends early when the
    /// store is being closed.
    pub(crate) fn clean(&self, pace: Pace) -> Result<u64> {
        let cleaner = self.cleaner();
        let mut walked = cleaner.begin_round();
        let through = self.clock().now();
        let mut tables = HashMap::new();
        self.engine().reader()?.table_properties(META, |number, _| {
            tables.insert(number, through);
        })?;
        let soonest = cleaner.take_soonest();
        let round = Round { store: self, through, pace, memtables: soonest <= through };
        let result = round.run(&walked);
        if !round.memtables || result.is_err() {
            cleaner.note_expiry(Some(soonest));
        }
        let (deleted, complete) = result?;
        // After a clock that stepped back, some of these records may have been alive again.
        if complete && self.clock().now() >= through {
            *walked = tables;
        } else {
            cleaner.note_expiry(Some(soonest));
        }
        cleaner.end_round(deleted, self.clock().now());
        Ok(deleted)
    }

    /// Deletes those of the keys that are still expired, a few at a time: locking all would take
    /// nearly every stripe. The deletion need not survive a power cut.
    pub(super) fn delete_expired(&self, database: u32, keys: &[&[u8]]) -> Result<u64> {
        let mut keys = keys.to_vec();
        self.sort_by_stripe(self.spaces().of(database)?, &mut keys);
        keys.chunks(LOCKED).map(|some| self.delete_few_expired(database, some)).sum()
    }

    fn delete_few_expired(&self, database: u32, keys: &[&[u8]]) -> Result<u64> {
        let (deleted, _) = self.write(database, keys, ChangeTracking::Ignored, |tx| {
            tx.frees_space();
            let mut deleted = 0;
            for key in keys {
                let record = tx.row(META, &meta_key(tx.space(), key))?;
                let header = record.and_then(|record| Header::decode(&record).ok());
                // Checked again, now that no one else can write the key.
                if header.is_some_and(|header| header.expired(tx.now())) {
                    tx.notify(Classes::EXPIRED, "expired", key);
                    tx.delete_record(key);
                    deleted += 1;
                }
            }
            Ok(deleted)
        })?;
        Ok(deleted)
    }
}

struct Round<'a> {
    store: &'a Store,
    through: u64,
    pace: Pace,
    memtables: bool,
}

impl Round<'_> {
    /// Walks all databases; the number of deleted keys, and whether the walk was complete.
    fn run(&self, walked: &HashMap<u64, u64>) -> Result<(u64, bool)> {
        let mut deleted = 0;
        for database in 0..self.store.spaces().count() {
            let space = self.store.spaces().of(database)?;
            let mut next = Some(meta_key(space, b"").to_vec());
            while let Some(from) = next {
                let begun = Instant::now();
                let stretch = self.walk(space, &from, walked)?;
                let keys: Vec<&[u8]> = stretch.expired.iter().map(Vec::as_slice).collect();
                let gone = self.store.delete_expired(database, &keys)?;
                deleted += gone;
                self.store.cleaner().count_deleted(gone);
                next = stretch.next;
                let more = next.is_some() || !keys.is_empty();
                if more && !self.rest(begun.elapsed()) {
                    return Ok((deleted, false));
                }
            }
        }
        Ok((deleted, true))
    }

    /// Rests after a batch that took this long; `false` if the store is being closed.
    fn rest(&self, took: Duration) -> bool {
        let stop = self.store.cleaner().stop_signal();
        match self.pace {
            Pace::Polite => stop.sleep(took.clamp(Duration::from_millis(1), LONGEST_REST)),
            Pace::Full => !stop.is_sent(),
        }
    }

    /// Finds up to a batch of keys that seem to have expired.
    fn walk(&self, space: Space, from: &[u8], walked: &HashMap<u64, u64>) -> Result<ExpiredBatch> {
        let cleaner = self.store.cleaner();
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(from)),
            upper: after_prefix(&space.to_bytes()).map(Bytes::from),
            cache_fill: CacheFill::Skip,
        };
        let wanted = |number, properties: &Properties| {
            let since = walked.get(&number).copied().unwrap_or(0);
            histogram_of(properties).is_none_or(|it| it.any_between(since, self.through))
        };
        let reader = self.store.engine().reader()?;
        let mut records = reader.iter_over(META, options, self.memtables, wanted)?;
        let mut expired: Vec<Vec<u8>> = Vec::new();
        let mut seen = 0;
        records.seek_to_first()?;
        while records.valid() {
            if expired.len() >= cleaner.batch || seen >= STRETCH {
                return Ok(ExpiredBatch { expired, next: Some(records.key().to_vec()) });
            }
            seen += 1;
            if let (Some((_, key)), Ok(header)) =
                (split_meta_key(records.key()), Header::decode(records.value()))
            {
                if header.expired(self.through) {
                    expired.push(key.to_vec());
                } else if self.memtables && header.expire_ms != 0 {
                    // The note that led here was cleared.
                    cleaner.note_expiry(Some(header.expire_ms));
                }
            }
            records.next()?;
        }
        Ok(ExpiredBatch { expired, next: None })
    }
}
