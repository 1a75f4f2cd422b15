//! SAVE and BGSAVE: they flush the memtables and the log to tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::Result;
use crate::txn::Db;

use super::clock::unix_seconds;
use super::log::Log;

/// The state of SAVE and BGSAVE.
#[derive(Debug)]
pub(crate) struct BackgroundSave {
    last_s: AtomicU64,
    running: AtomicBool,
    last_failed: AtomicBool,
    log: Log,
}

impl BackgroundSave {
    pub(crate) fn new(log: Log) -> Self {
        Self {
            last_s: AtomicU64::new(unix_seconds()),
            running: AtomicBool::new(false),
            last_failed: AtomicBool::new(false),
            log,
        }
    }

    /// The time of the last successful save, or of the server's start, in seconds since 1970.
    pub(crate) fn last_s(&self) -> u64 {
        self.last_s.load(Ordering::Relaxed)
    }

    /// Whether a background save is running.
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn last_failed(&self) -> bool {
        self.last_failed.load(Ordering::Relaxed)
    }

    /// Flushes in the calling thread.
    pub(crate) fn save(&self, db: &Db) -> Result<()> {
        let result = db.sync().and_then(|()| db.flush());
        self.last_failed.store(result.is_err(), Ordering::Relaxed);
        if result.is_ok() {
            self.last_s.store(unix_seconds(), Ordering::Relaxed);
        }
        result
    }

    /// Flushes in a new thread; returns `false` if a background save is already running.
    pub(crate) fn start(self: &Arc<Self>, db: &Db) -> bool {
        if self.running.swap(true, Ordering::SeqCst) {
            return false;
        }
        let (saves, db) = (Arc::clone(self), db.clone());
        let run = move || {
            crate::sync::background::give_way();
            if let Err(error) = saves.save(&db) {
                saves.log.line(&format!("background save: {error}"));
            }
            saves.running.store(false, Ordering::SeqCst);
        };
        let started = crate::sync::spawn("lsmkv-save", run).is_ok();
        if !started {
            self.running.store(false, Ordering::SeqCst);
        }
        started
    }
}
