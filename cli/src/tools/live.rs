//! Reads a store that another process may have open, without a lock and without a write.
//!
//! The library gets a file system that refuses every change and takes no lock. It keeps every
//! opened file, so the data stays readable when the other process removes a file. It opens all
//! tables and logs before it reads anything, which takes very little time. The other process goes
//! on meanwhile, so what it reads may still be inconsistent, for instance when the log has moved on
//! to another segment. Then it starts again.

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
use crate::store::explain_open;

/// The minimum number of attempts, and their minimum total time, before an error counts.
const MIN_ATTEMPTS: u32 = 20;
const RETRY_TIME: Duration = Duration::from_secs(5);
/// The maximum pause between two attempts. The first pauses are short, since a busy store changes
/// quickly.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// A file system without locks that refuses every change.
#[derive(Debug, Default)]
struct UnlockedFs {
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

impl FileSystem for UnlockedFs {
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

    fn lock_dir(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Ok(Box::new(NoLock))
    }
}

impl UnlockedFs {
    /// Opens all tables and logs that are in `dir` now. A file that cannot be opened is gone, or
    /// its absence shows later.
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

/// Opens the store in `dir` as of this moment, whether or not another process has it open.
pub(crate) fn open(dir: &Path, mut options: Options) -> Result<Db, Failure> {
    options.read_only = true;
    options.create_if_missing = false;
    options.ttl_cleaner_interval_s = 0;
    let begun = Instant::now();
    for attempt in 1.. {
        match attempt_open(dir, options.clone()) {
            Ok(db) => return Ok(db),
            Err(error) if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => {
                return Err(explain_open(error, dir));
            }
            Err(error) if attempt >= MIN_ATTEMPTS && begun.elapsed() > RETRY_TIME => {
                return Err(error.into());
            }
            Err(_) => std::thread::sleep((Duration::from_millis(1) * attempt).min(MAX_PAUSE)),
        }
    }
    Err(Failure::new("the store cannot be opened"))
}

fn attempt_open(dir: &Path, options: Options) -> Result<Db, Error> {
    let fs = Arc::new(UnlockedFs::default());
    // The store reports a directory that cannot be listed.
    let _ = fs.hold_all(dir);
    let db = Db::open_on(fs, dir, options, Arc::new(RealClock))?;
    // Opens every table, so that its descriptor stays open.
    db.tables()?;
    // Reads the first key: the replayed log is readable.
    drop(db.iter(KeyRange::default())?);
    Ok(db)
}
