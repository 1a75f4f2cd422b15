//! What all handles of one open store share.
//!
//! A write holds the stripes of its keys while it reads what it depends on and until its batch is
//! visible, and waits for durability only after that: waiting with a stripe held would cost a
//! device flush for every write of a hot key. So a write may be seen before it is durable.
//! Reads take no lock.

use std::path::Path;
use std::sync::Arc;

use crate::encoding::keys::meta_key;
use crate::engine::{Commit, Engine, EngineConfig, FileSystem, WriteOptions, hash_key};
use crate::error::Result;
use crate::io::clock::Clock;
use crate::options::{Options, SyncMode};
use crate::types::cleaner::Cleaner;
use crate::types::cursors::Cursors;
use crate::types::limits::Limits;
use crate::types::reclaim::Reclaim;
use crate::types::spaces::Spaces;
use crate::types::stripes::{Held, Stripes};
use crate::types::times::Times;
use crate::types::txn::{Pending, Tx};

/// See the module's documentation.
pub(crate) struct Store {
    engine: Engine,
    times: Arc<Times>,
    stripes: Stripes,
    spaces: Arc<Spaces>,
    reclaim: Arc<Reclaim>,
    cleaner: Cleaner,
    limits: Limits,
    cursors: Cursors,
    sync: SyncMode,
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
        let times = Arc::new(Times::new(clock));
        let reclaim = Arc::new(Reclaim::new(Arc::clone(&times)));
        let cleaner = Cleaner::new(&options);
        let trees = reclaim.trees();
        let engine = Engine::open(fs, dir, EngineConfig { options: limits.widen(options), trees })?;
        let spaces = Arc::new(Spaces::load(&engine.reader()?, databases)?);
        reclaim.follow(&spaces);
        let (stripes, cursors) = (Stripes::new(), Cursors::new());
        Ok(Self { engine, times, stripes, spaces, reclaim, cleaner, limits, cursors, sync })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// Where scans by number go on.
    pub(crate) fn cursors(&self) -> &Cursors {
        &self.cursors
    }

    pub(crate) fn times(&self) -> &Arc<Times> {
        &self.times
    }

    pub(crate) fn reclaim(&self) -> &Reclaim {
        &self.reclaim
    }

    pub(crate) fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    /// Stops the cleaner, flushes, and releases the directory.
    pub(crate) fn close(&self) -> Result<()> {
        self.cleaner.ask_to_stop();
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
        let reader = self.engine.reader()?;
        let now = self.times.now();
        work(&mut Tx::new(self, reader, now, database)?)
    }

    /// Runs a write that depends on these keys of `database` and no others, and commits it whole;
    /// if it fails, nothing of it.
    pub(crate) fn write<T>(
        &self,
        database: u32,
        keys: &[&[u8]],
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let held = loop {
            let space = self.spaces.of(database)?;
            let hashes = keys.iter().map(|key| hash_key(&meta_key(space, key)));
            let held = self.stripes.lock_all(hashes);
            // Emptied or swapped while we waited: what we hold are the locks of other keys.
            if self.spaces.of(database)? == space {
                break held;
            }
        };
        self.write_locked(database, held, work)
    }

    /// Runs a write that may touch any key of any database.
    pub(crate) fn write_alone<T>(
        &self,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        self.write_locked(database, self.stripes.lock_every(), work)
    }

    fn write_locked<T>(
        &self,
        database: u32,
        held: Held<'_>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let time = self.times.register();
        let mut tx = Tx::new(self, self.engine.reader()?, time.now(), database)?;
        let answer = work(&mut tx)?;
        if !tx.is_dirty() {
            return Ok(answer);
        }
        let soonest_expiry = tx.soonest_expiry();
        let Pending { mut batch, frees_space, building, assignments } = tx.into_pending();
        let commit = self.engine.commit(&mut batch, WriteOptions { sync: None, frees_space })?;
        for (number, space) in assignments {
            self.spaces.assign(number, space);
        }
        // After the commit is visible: see `Cleaner::note`.
        self.cleaner.note(soonest_expiry);
        drop((building, time, held));
        self.settle(commit)?;
        Ok(answer)
    }

    /// Waits until a visible write is as durable as the sync mode promises.
    fn settle(&self, commit: Commit) -> Result<()> {
        match self.sync {
            SyncMode::Always => self.engine.wait_durable(commit, None).map(|_| ()),
            SyncMode::Interval | SyncMode::Off => Ok(()),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.cleaner.stop();
    }
}
