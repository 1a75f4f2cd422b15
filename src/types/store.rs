//! What all handles of one open store share.
//!
//! A write holds the stripes of its keys while it reads what it depends on and until its batch is
//! visible, and waits for durability only after that: waiting with a stripe held would cost a
//! device flush for every write of a hot key. So a write may be seen before it is durable.
//! Reads take no lock.

use std::path::Path;
use std::sync::Arc;

use crate::encoding::keys::meta_key;
use crate::engine::{Commit, Engine, EngineConfig, FileSystem, TreeConfig, WriteOptions, hash_key};
use crate::error::Result;
use crate::io::clock::Clock;
use crate::options::{Options, SyncMode};
use crate::types::cursors::Cursors;
use crate::types::limits::Limits;
use crate::types::spaces::Spaces;
use crate::types::stripes::{Held, Stripes};
use crate::types::times::Times;
use crate::types::txn::{Pending, TREES, Tx};

/// See the module's documentation.
pub(crate) struct Store {
    engine: Engine,
    times: Arc<Times>,
    stripes: Stripes,
    spaces: Spaces,
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
        let trees = TREES.map(TreeConfig::named).to_vec();
        let engine = Engine::open(fs, dir, EngineConfig { options: limits.widen(options), trees })?;
        let spaces = Spaces::load(&engine.reader()?, databases)?;
        let times = Arc::new(Times::new(clock));
        let (stripes, cursors) = (Stripes::new(), Cursors::new());
        Ok(Self { engine, times, stripes, spaces, limits, cursors, sync })
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
        let Pending { mut batch, frees_space, building, assignments } = tx.into_pending();
        let commit = self.engine.commit(&mut batch, WriteOptions { sync: None, frees_space })?;
        for (number, space) in assignments {
            self.spaces.assign(number, space);
        }
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
