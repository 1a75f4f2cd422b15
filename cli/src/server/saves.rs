//! SAVE and BGSAVE: what is in memory and in the log goes to tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lsmkv::{Db, Result};

use super::shared::unix_seconds;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Saves {
    last_s: AtomicU64,
    running: AtomicBool,
    last_failed: AtomicBool,
}

impl Saves {
    pub(crate) fn new() -> Self {
        Self {
            last_s: AtomicU64::new(unix_seconds()),
            running: AtomicBool::new(false),
            last_failed: AtomicBool::new(false),
        }
    }

    /// Seconds since 1970 of the last one that succeeded, or of the start.
    pub(crate) fn last_s(&self) -> u64 {
        self.last_s.load(Ordering::Relaxed)
    }

    /// Whether one runs in the background.
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn last_failed(&self) -> bool {
        self.last_failed.load(Ordering::Relaxed)
    }

    /// Saves now.
    pub(crate) fn save(&self, db: &Db) -> Result<()> {
        let result = db.sync().and_then(|()| db.flush());
        self.last_failed.store(result.is_err(), Ordering::Relaxed);
        if result.is_ok() {
            self.last_s.store(unix_seconds(), Ordering::Relaxed);
        }
        result
    }

    /// Saves in a thread; `false` if one is at it already.
    pub(crate) fn start(self: &Arc<Self>, db: &Db) -> bool {
        if self.running.swap(true, Ordering::SeqCst) {
            return false;
        }
        let (saves, db) = (Arc::clone(self), db.clone());
        let run = move || {
            if let Err(error) = saves.save(&db) {
                super::log::line(&format!("background save: {error}"));
            }
            saves.running.store(false, Ordering::SeqCst);
        };
        let started = std::thread::Builder::new().name("lsmkv-save".into()).spawn(run).is_ok();
        if !started {
            self.running.store(false, Ordering::SeqCst);
        }
        started
    }
}
