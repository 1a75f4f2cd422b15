//! Deletes keys that have expired, so that even what no compaction touches goes away.
//!
//! A round walks the tables of the meta tree whose histogram shows something expired, and the
//! memtables if something there may have, without filling the cache. What it finds it deletes in
//! batches until it has caught up, a few keys under their locks at a time; each key is looked at
//! again under its lock, since it may have been written meanwhile. A table that was walked is left alone until more of it has expired.
//!
//! Threads: one, with a weak hold on the store; it sleeps on a condition variable and ends at once
//! when the store is closed or its last handle is dropped. `Db::clean_expired` runs a round in the
//! caller's thread; there is one round at a time.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use crate::encoding::keys::{Space, after_prefix, meta_key, split_meta_key};
use crate::encoding::meta::Header;
use crate::engine::{IterOptions, Properties};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::types::reclaim::histogram_of;
use crate::types::store::{Counts, Store};
use crate::types::txn::META;

/// Records walked before the files and memtables in hand are let go and taken anew.
const STRETCH: usize = 65_536;
/// Keys that are locked together; ordered by stripe, they take about a quarter as many.
const LOCKED: usize = 32;
/// The longest rest after a batch.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// Whether a round rests after each batch for as long as the batch took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Polite,
    Full,
}

/// The cleaner of one store.
#[derive(Debug)]
pub(crate) struct Cleaner {
    /// Zero for no thread.
    interval: Duration,
    batch: usize,
    bell: Arc<Bell>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// By file number: what had expired by then is gone from the table. Held during a round.
    walked: Mutex<HashMap<u64, u64>>,
    /// No record of the memtables expires before this, unless a round walks them right now.
    soonest: AtomicU64,
    deleted: AtomicU64,
    last_deleted: AtomicU64,
    last_at_ms: AtomicU64,
}

/// What the cleaner has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleaned {
    /// Keys deleted since the store was opened.
    pub(crate) total: u64,
    /// Keys deleted by the last round.
    pub(crate) last: u64,
    /// When the last round ended, in milliseconds since 1970; 0 if there was none.
    pub(crate) last_at_ms: u64,
}

#[derive(Debug, Default)]
struct Bell {
    stopped: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.stopped.lock() = true;
        self.rung.notify_all();
    }

    /// Sleeps; `false` if that was cut short because it is time to stop.
    fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut stopped = self.stopped.lock();
        while !*stopped {
            if self.rung.wait_until(&mut stopped, end).timed_out() {
                return !*stopped;
            }
        }
        false
    }

    fn stopped(&self) -> bool {
        *self.stopped.lock()
    }
}

impl Cleaner {
    pub(crate) fn new(options: &Options) -> Self {
        let seconds = if options.read_only { 0 } else { options.ttl_cleaner_interval_s };
        Self {
            interval: Duration::from_secs(seconds),
            batch: usize::try_from(options.ttl_cleaner_batch).unwrap_or(usize::MAX).max(1),
            bell: Arc::default(),
            thread: Mutex::new(None),
            walked: Mutex::default(),
            // What recovery put into the memtables is not known.
            soonest: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
            last_deleted: AtomicU64::new(0),
            last_at_ms: AtomicU64::new(0),
        }
    }

    /// Starts the thread of a store, if it is to have one.
    pub(crate) fn start(store: &Arc<Store>) -> Result<()> {
        let cleaner = store.cleaner();
        if cleaner.interval.is_zero() {
            return Ok(());
        }
        let (bell, interval, store) =
            (Arc::clone(&cleaner.bell), cleaner.interval, Arc::downgrade(store));
        let thread = std::thread::Builder::new()
            .name("lsmkv-cleaner".to_owned())
            .spawn(move || run(&bell, interval, &store))
            .map_err(|e| Error::new(ErrorKind::Io, format!("start the cleaner's thread: {e}")))?;
        *cleaner.thread.lock() = Some(thread);
        Ok(())
    }

    /// Ends the round and the sleep that are under way.
    pub(crate) fn ask_to_stop(&self) {
        self.bell.ring();
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(&self) {
        self.ask_to_stop();
        let thread = self.thread.lock().take();
        // The cleaner itself may drop the last handle, and must not wait for itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            // A panic was caught and recorded in the thread.
            let _ = thread.join();
        }
    }

    /// A commit with a record that expires then is visible. Noted only now: a round that forgets
    /// the note and then walks the memtables finds the record, or finds the note next time.
    #[inline]
    pub(crate) fn note(&self, expire_ms: Option<u64>) {
        if let Some(expire_ms) = expire_ms {
            self.soonest.fetch_min(expire_ms, Ordering::AcqRel);
        }
    }

    #[cfg(test)]
    pub(crate) fn soonest(&self) -> u64 {
        self.soonest.load(Ordering::Acquire)
    }

    pub(crate) fn cleaned(&self) -> Cleaned {
        Cleaned {
            total: self.deleted.load(Ordering::Relaxed),
            last: self.last_deleted.load(Ordering::Relaxed),
            last_at_ms: self.last_at_ms.load(Ordering::Relaxed),
        }
    }

    /// A rest after a batch that took so long; `false` if the store is being closed.
    fn rest(&self, pace: Pace, took: Duration) -> bool {
        match pace {
            Pace::Polite => self.bell.sleep(took.clamp(Duration::from_millis(1), LONGEST_REST)),
            Pace::Full => !self.bell.stopped(),
        }
    }
}

/// The thread.
fn run(bell: &Bell, interval: Duration, store: &Weak<Store>) {
    while bell.sleep(interval) {
        let Some(store) = store.upgrade() else { return };
        // A failed round is tried again after the interval: a full disk may have space then.
        if catch_unwind(AssertUnwindSafe(|| store.clean(Pace::Polite))).is_err() {
            let cause = Error::new(ErrorKind::Panic, "the cleaner of expired keys panicked");
            store.engine().degrade(&cause);
            return;
        }
    }
}

/// Part of a database's keys.
struct Stretch {
    /// User keys that have expired.
    expired: Vec<Vec<u8>>,
    /// Where to go on, as a key of the meta tree; `None` at the end.
    next: Option<Vec<u8>>,
}

impl Store {
    /// Deletes what has expired by now; how many keys that were. Ends early when the store is
    /// being closed.
    pub(crate) fn clean(&self, pace: Pace) -> Result<u64> {
        let cleaner = self.cleaner();
        let mut walked = cleaner.walked.lock();
        let through = self.times().now();
        let mut tables = HashMap::new();
        self.engine().reader()?.tables(META, |number, _| {
            tables.insert(number, through);
        })?;
        let soonest = cleaner.soonest.swap(u64::MAX, Ordering::AcqRel);
        let round = Round { store: self, through, pace, memtables: soonest <= through };
        let result = round.run(&walked);
        if !round.memtables || result.is_err() {
            cleaner.note(Some(soonest));
        }
        let (deleted, complete) = result?;
        // After a clock that stepped back some of it may have been found alive again.
        if complete && self.times().now() >= through {
            *walked = tables;
        } else {
            cleaner.note(Some(soonest));
        }
        cleaner.last_deleted.store(deleted, Ordering::Relaxed);
        cleaner.last_at_ms.store(self.times().now(), Ordering::Relaxed);
        Ok(deleted)
    }

    /// Deletes those keys that have still expired, a few at a time: all at once would lock nearly
    /// every stripe. Nothing is lost if a power cut takes it back.
    pub(super) fn delete_expired(&self, database: u32, keys: &[&[u8]]) -> Result<u64> {
        let mut keys = keys.to_vec();
        self.sort_by_stripe(self.spaces().of(database)?, &mut keys);
        keys.chunks(LOCKED).map(|some| self.delete_few_expired(database, some)).sum()
    }

    fn delete_few_expired(&self, database: u32, keys: &[&[u8]]) -> Result<u64> {
        let (deleted, _) = self.write(database, keys, Counts::No, |tx| {
            tx.frees_space();
            let mut deleted = 0;
            for key in keys {
                let record = tx.row(META, &meta_key(tx.space(), key))?;
                let header = record.and_then(|record| Header::decode(&record).ok());
                // Again, now that no one else can write it.
                if header.is_some_and(|header| header.expired(tx.now())) {
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
    /// Keys deleted, and whether all was walked.
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
                self.store.cleaner().deleted.fetch_add(gone, Ordering::Relaxed);
                next = stretch.next;
                let more = next.is_some() || !keys.is_empty();
                if more && !self.store.cleaner().rest(self.pace, begun.elapsed()) {
                    return Ok((deleted, false));
                }
            }
        }
        Ok((deleted, true))
    }

    /// Finds up to a batch of keys that seem to have expired.
    fn walk(&self, space: Space, from: &[u8], walked: &HashMap<u64, u64>) -> Result<Stretch> {
        let cleaner = self.store.cleaner();
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(from)),
            upper: after_prefix(&space.to_bytes()).map(Bytes::from),
            no_fill: true,
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
                return Ok(Stretch { expired, next: Some(records.key().to_vec()) });
            }
            seen += 1;
            if let (Some((_, key)), Ok(header)) =
                (split_meta_key(records.key()), Header::decode(records.value()))
            {
                if header.expired(self.through) {
                    expired.push(key.to_vec());
                } else if self.memtables && header.expire_ms != 0 {
                    // The note that led here was forgotten.
                    cleaner.note(Some(header.expire_ms));
                }
            }
            records.next()?;
        }
        Ok(Stretch { expired, next: None })
    }
}
