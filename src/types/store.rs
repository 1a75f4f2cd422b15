//! What all handles of one open store share.
//!
//! A write holds the stripes of its keys while it reads what it depends on and until its batch is
//! visible, and waits for durability only after that: waiting with a stripe held would cost a
//! device flush for every write of a hot key. So a write may be seen before it is durable.
//! Reads take no lock.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::encoding::keys::{Space, meta_key};
use crate::engine::{Commit, Engine, EngineConfig, FileSystem, WriteOptions, hash_key};
use crate::error::{Error, ErrorKind, Result};
use crate::io::clock::Clock;
use crate::io::splitmix::SplitMix64;
use crate::options::{Options, SyncMode};
use crate::types::cleaner::Cleaner;
use crate::types::conflicts::{Conflicts, KeyId};
use crate::types::cursors::Cursors;
use crate::types::limits::Limits;
use crate::types::packing::Packing;
use crate::types::reclaim::Reclaim;
use crate::types::sizes::Sizes;
use crate::types::spaces::Spaces;
use crate::types::stripes::{Held, Stripes};
use crate::types::times::Times;
use crate::types::txn::{Look, Overlay, Tx};

/// See the module's documentation.
pub(crate) struct Store {
    engine: Engine,
    times: Arc<Times>,
    stripes: Stripes,
    spaces: Arc<Spaces>,
    reclaim: Arc<Reclaim>,
    cleaner: Cleaner,
    limits: Limits,
    packing: Packing,
    cursors: Cursors,
    sizes: Sizes,
    conflicts: Arc<Conflicts>,
    sync: SyncMode,
    txn_max_bytes: usize,
    turns: AtomicU64,
    spare_bytes: usize,
    #[cfg(test)]
    builds: crate::types::build::Builds,
}

/// The log's reserve is as large as its segments, but no larger than this.
const MOST_SPARE_BYTES: u64 = 1 << 20;

/// What a write may touch.
#[derive(Debug)]
pub(crate) enum Scope<'k> {
    /// These keys of these databases and no others.
    Keys(Vec<(u32, &'k [u8])>),
    /// Any key of any database.
    Every,
}

/// The answer of a write, and its commit if it changed something: visible, and durable later.
pub(crate) type Done<T> = (T, Option<Commit>);

/// Whether those who watch a key are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    AsChange,
    /// What had expired was not there before either.
    No,
}

impl Store {
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        options: Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        options.validate()?;
        let limits = Limits { key: options.max_key_bytes, value: options.max_value_bytes };
        let (sync, databases) = (options.sync, options.databases);
        let txn_max_bytes = usize::try_from(options.txn_max_bytes).unwrap_or(usize::MAX);
        let spare_bytes = usize::try_from(options.log_segment_bytes.min(MOST_SPARE_BYTES) / 4);
        let spare_bytes = spare_bytes.unwrap_or(0);
        let packing = Packing::of(&options, spare_bytes);
        let times = Arc::new(Times::new(clock));
        let reclaim = Arc::new(Reclaim::new(Arc::clone(&times)));
        let cleaner = Cleaner::new(&options);
        let trees = reclaim.trees();
        let engine = Engine::open(fs, dir, EngineConfig { options: limits.widen(options), trees })?;
        let spaces = Arc::new(Spaces::load(&engine.reader()?, databases)?);
        reclaim.follow(&spaces);
        let cursors = Cursors::load(&engine)?;
        Ok(Self {
            engine,
            times,
            stripes: Stripes::new(),
            spaces,
            reclaim,
            cleaner,
            limits,
            packing,
            cursors,
            sizes: Sizes::default(),
            conflicts: Arc::default(),
            sync,
            txn_max_bytes,
            turns: AtomicU64::new(0),
            spare_bytes,
            #[cfg(test)]
            builds: Default::default(),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// True for about one of `n` calls, in no order that a caller could be in step with.
    pub(crate) fn one_in(&self, n: u64) -> bool {
        SplitMix64::new(self.turns.fetch_add(1, Ordering::Relaxed)).one_in(n)
    }

    /// Most bytes that may be written beside what a command asks for: a quarter of what the log
    /// sets aside for a full disk.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.spare_bytes
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// What is kept whole in its record.
    pub(crate) fn packing(&self) -> Packing {
        self.packing
    }

    pub(crate) fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// Where scans by number go on.
    pub(crate) fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    /// How many keys databases have.
    pub(crate) fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    pub(crate) fn times(&self) -> &Arc<Times> {
        &self.times
    }

    pub(crate) fn conflicts(&self) -> &Arc<Conflicts> {
        &self.conflicts
    }

    /// Bytes a transaction may keep aside.
    pub(crate) fn txn_max_bytes(&self) -> usize {
        self.txn_max_bytes
    }

    pub(crate) fn reclaim(&self) -> &Reclaim {
        &self.reclaim
    }

    pub(crate) fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    #[cfg(test)]
    pub(crate) fn builds(&self) -> &crate::types::build::Builds {
        &self.builds
    }

    /// Stops the cleaner, flushes, and releases the directory.
    pub(crate) fn close(&self) -> Result<()> {
        self.cleaner.ask_to_stop();
        // Without them scans by number start again: no reason to fail.
        let _ = self.cursors.save(&self.engine);
        let result = self.engine.close();
        self.cleaner.stop();
        result
    }

    /// Runs a read at one moment.
    pub(crate) fn read<T>(
        &self,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let (space, reader) = loop {
            let changes = self.spaces.changes();
            let moment = (self.spaces.of(database)?, self.engine.reader()?);
            // Emptied or swapped in between: the space may be that of another moment.
            if self.spaces.changes() == changes {
                break moment;
            }
        };
        let now = self.times.now();
        let look = Look { reader, now, database, space, as_of_reader: false };
        work(&mut Tx::new(self, look, Overlay::default()))
    }

    /// Runs a write that depends on these keys of `database` and no others, and commits it whole;
    /// if it fails, nothing of it.
    pub(crate) fn write<T>(
        &self,
        database: u32,
        keys: &[&[u8]],
        counts: Counts,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let held = self.lock_keys(&keys.iter().map(|key| (database, *key)), None)?;
        self.write_locked(database, held, counts, work)
    }

    /// The same for a write that may touch what `scope` says; an error if the locks cannot be had
    /// before the deadline.
    pub(crate) fn write_in<T>(
        &self,
        database: u32,
        scope: &Scope<'_>,
        deadline: Option<Instant>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let held = match scope {
            Scope::Keys(keys) => self.lock_keys(&keys.iter().copied(), deadline)?,
            Scope::Every => self.lock_every(deadline)?,
        };
        self.write_locked(database, held, Counts::AsChange, work)
    }

    /// The locks of these keys of these databases.
    fn lock_keys<'k>(
        &self,
        keys: &(impl Iterator<Item = (u32, &'k [u8])> + Clone),
        deadline: Option<Instant>,
    ) -> Result<Held<'_>> {
        loop {
            let changes = self.spaces.changes();
            let hash = |(database, key)| {
                self.spaces.of(database).map(|space| hash_key(&meta_key(space, key)))
            };
            let hashes = keys.clone().map(hash).collect::<Result<SmallVec<[u64; 4]>>>()?;
            let held = self.lock_hashes(hashes.into_iter(), deadline)?;
            // Emptied or swapped while we waited: what we hold are the locks of other keys.
            if self.spaces.changes() == changes {
                return Ok(held);
            }
        }
    }

    /// The locks of the keys whose records have keys with these hashes.
    pub(super) fn lock_hashes(
        &self,
        hashes: impl Iterator<Item = u64>,
        deadline: Option<Instant>,
    ) -> Result<Held<'_>> {
        self.stripes.lock_all(hashes, deadline).ok_or_else(too_late)
    }

    /// All locks.
    pub(super) fn lock_every(&self, deadline: Option<Instant>) -> Result<Held<'_>> {
        self.stripes.lock_every(deadline).ok_or_else(too_late)
    }

    fn write_locked<T>(
        &self,
        database: u32,
        held: Held<'_>,
        counts: Counts,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        let time = self.times.register();
        let (reader, space) = (self.engine.reader()?, self.spaces.of(database)?);
        let look = Look { reader, now: time.now(), database, space, as_of_reader: false };
        let mut tx = Tx::new(self, look, Overlay::default());
        let answer = work(&mut tx)?;
        let overlay = tx.into_overlay();
        let commit = self.commit(&overlay, counts)?;
        drop((overlay, time, held));
        Ok((answer, commit))
    }

    /// Orders keys by their stripes, so that neighbours share locks.
    pub(super) fn sort_by_stripe(&self, space: Space, keys: &mut [&[u8]]) {
        keys.sort_by_cached_key(|key| Stripes::index(hash_key(&meta_key(space, key))));
    }

    /// Makes what is kept aside visible, all at once; `None` if there is nothing. The caller holds
    /// the stripes of all keys in it, and keeps the overlay until this returns: the versions built
    /// in it are named by no visible record before.
    pub(super) fn commit(&self, overlay: &Overlay, counts: Counts) -> Result<Option<Commit>> {
        if !overlay.is_dirty() {
            return Ok(None);
        }
        let mut batch = overlay.batch();
        let changing = (!overlay.assignments().is_empty()).then(|| self.spaces.change());
        let options = WriteOptions { sync: None, frees_space: overlay.frees_space() };
        let commit = self.engine.commit(&mut batch, options)?;
        for (number, space) in overlay.assignments() {
            self.spaces.assign(*number, *space);
        }
        drop(changing);
        // After the commit is visible: see `Conflicts` and `Cleaner::note`.
        if counts == Counts::AsChange && self.conflicts.anyone() {
            let mut keys = Vec::new();
            overlay.changed_keys(|key| keys.push(KeyId::of(key)));
            self.conflicts.note(&keys, commit.sequence);
        }
        self.cleaner.note(overlay.soonest_expiry());
        Ok(Some(commit))
    }

    /// Waits until a visible write is as durable as its sync mode promises, `sync` or else that of
    /// the store. No lock may be held.
    pub(crate) fn settle(&self, commit: Option<Commit>, sync: Option<SyncMode>) -> Result<()> {
        let Some(commit) = commit else { return Ok(()) };
        if sync.unwrap_or(self.sync) == SyncMode::Always {
            self.engine.wait_durable(commit, None)?;
        } else if sync == Some(SyncMode::Interval) {
            self.engine.sync_at_intervals();
        }
        Ok(())
    }
}

fn too_late() -> Error {
    Error::new(ErrorKind::Timeout, "other writers held the keys for too long; nothing was changed")
}

/// The moment until which to wait for locks.
pub(crate) fn deadline_in(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

impl Drop for Store {
    fn drop(&mut self) {
        self.cleaner.stop();
    }
}
