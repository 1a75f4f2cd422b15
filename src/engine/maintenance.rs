//! Maintenance that a user asks for: reclaiming garbage, waiting for background work, resuming
//! after a full disk, and verifying all tables.

use std::time::Duration;

use crate::engine::handle::Engine;
use crate::error::Result;

/// How often a caller that waits for background work checks it, beside being woken.
const POLL: Duration = Duration::from_millis(200);

impl Engine {
    /// Estimates the garbage of every table now rather than within `reclaim_interval_s`, and
    /// returns once the garbage found is gone.
    pub fn reclaim(&self) -> Result<()> {
        let core = &self.core;
        // In tree order: removing entries of one tree may make entries of a later tree garbage.
        for tree in 0..core.trees.len() {
            core.writable()?;
            let all = core.estimates_older_than(Duration::ZERO);
            for (_, file) in all.iter().filter(|(of, _)| *of == tree) {
                core.stop_if_asked()?;
                if let Some(estimator) = core.garbage_estimator(tree)? {
                    estimator.estimate(file)?;
                }
            }
            self.wait_idle()?;
        }
        Ok(())
    }

    /// Returns once the background threads have nothing left to flush or compact.
    pub fn wait_idle(&self) -> Result<()> {
        let core = &self.core;
        core.writable()?;
        if core.options.background_threads == 0 {
            return core.work_inline();
        }
        loop {
            core.health.check()?;
            core.check_open()?;
            if let Some(cause) = core.work.stuck(true) {
                return Err(cause);
            }
            let attempts = core.work.compaction_attempts();
            let due = core.compaction_is_due();
            let flushed = core.view.load().immutable.is_empty();
            if !due && flushed && core.work.no_compaction_since(attempts) {
                return Ok(());
            }
            if due {
                core.work.wake_compactors();
            }
            core.work.wait_for_progress(POLL);
        }
    }

    /// Tries work that failed on a full disk again now. An error means that it still fails.
    pub fn resume(&self) -> Result<()> {
        let log = self.core.writable()?;
        self.core.health.check()?;
        log.prepare_next()?;
        self.core.work.retry();
        while self.core.flush_oldest()? {
            self.core.work.note_progress();
        }
        self.core.space.reconsider()
    }

    /// Reads and checks every block of every table.
    pub fn verify(&self) -> Result<()> {
        self.core.check_open()?;
        let view = self.core.view.load_full();
        for file in view.version.files() {
            file.table()?.verify()?;
        }
        Ok(())
    }
}
