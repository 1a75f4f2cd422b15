//! A look at a store that another process may have open: without the lock, without a write.
//!
//! The file system given to the library refuses every change and takes no lock. It remembers the
//! descriptors of the files it opened, so what was seen once stays readable when the other process
//! removes it; and it opens all tables and logs before anything is read: that takes no time to
//! speak of.
//! The other process goes on meanwhile, so what is read while opening may still not fit together
//! (the log has gone on to another segment): then the whole is tried again.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lsmkv::engine::{FileSystem, RealFs};
use lsmkv::io::clock::RealClock;
use lsmkv::io::fs::{File, LockGuard};
use lsmkv::types::KeyRange;
use lsmkv::{Db, Error, ErrorKind, Options};
use parking_lot::Mutex;

use crate::failure::Failure;

/// Times a moving store is tried at least, and how long, before what was found is believed.
const LEAST_ATTEMPTS: u32 = 20;
const PATIENCE: Duration = Duration::from_secs(5);
/// Between attempts: at first none, a busy store has changed anyhow.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// See the module's documentation.
#[derive(Debug, Default)]
struct Unlocked {
    opened: Mutex<HashMap<PathBuf, Arc<dyn File>>>,
}

#[derive(Debug)]
struct NoLock;

impl LockGuard for NoLock {
    fn abandon(&self) {}
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl FileSystem for Unlocked {
    fn create(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        refused()
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.opened.lock().get(path) {
            return Ok(Arc::clone(file));
        }
        let file = RealFs.open(path)?;
        self.opened.lock().insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open_write(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        RealFs.list(dir)
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.opened.lock().contains_key(path) || RealFs.exists(path)?)
    }

    fn resolve(&self, dir: &Path) -> io::Result<PathBuf> {
        RealFs.resolve(dir)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Ok(Box::new(NoLock))
    }
}

impl Unlocked {
    /// Holds the tables and logs that are in `dir` now. What cannot be opened is gone, or is missed
    /// when it is needed.
    fn hold_all(&self, dir: &Path) -> io::Result<()> {
        let dir = self.resolve(dir)?;
        for name in self.list(&dir)? {
            if matches!(name.extension().and_then(OsStr::to_str), Some("table" | "log")) {
                let _ = self.open(&dir.join(name));
            }
        }
        Ok(())
    }
}

/// Opens the store in `dir` as it is at this moment, whether or not it is open elsewhere.
pub(crate) fn open(dir: &Path, mut options: Options) -> Result<Db, Failure> {
    options.read_only = true;
    options.create_if_missing = false;
    options.ttl_cleaner_interval_s = 0;
    let begun = Instant::now();
    for attempt in 1.. {
        match attempt_open(dir, options.clone()) {
            Ok(db) => return Ok(db),
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => {
                return Err(error.into());
            }
            Err(error) if attempt >= LEAST_ATTEMPTS && begun.elapsed() > PATIENCE => {
                return Err(error.into());
            }
            Err(_) => std::thread::sleep((Duration::from_millis(1) * attempt).min(LONGEST_PAUSE)),
        }
    }
    Err(Failure::new("the store cannot be opened"))
}

fn attempt_open(dir: &Path, options: Options) -> Result<Db, Error> {
    let fs = Arc::new(Unlocked::default());
    // A directory that cannot be listed is reported by the store.
    let _ = fs.hold_all(dir);
    let db = Db::open_on(fs, dir, options, Arc::new(RealClock))?;
    // Opens every table, so that its descriptor is held.
    db.tables()?;
    // The first key: what the log brought can be walked.
    drop(db.iter(KeyRange::default())?);
    Ok(db)
}
