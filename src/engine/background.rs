//! The background threads of a store: one flushes, some compact, and one does maintenance. The
//! maintenance thread prepares log segments, syncs at intervals, and keeps memory within its
//! budget.
//!
//! A panic or a permanent failure degrades the store. Work that fails for a reason that may pass (a
//! full disk, too many open files) is tried again, and writers that would otherwise wait for it get
//! the error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::engine::background_work::RetryMark;
use crate::engine::core::Core;
use crate::engine::garbage_estimator;
use crate::engine::wal::Log;
use crate::error::{Error, ErrorKind, Result};
use crate::options::SyncMode;
use crate::sync::Instant;
use crate::sync::atomic::Ordering;

/// How long failed work waits before it is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// How often the maintenance thread runs while there is something to sync.
const ROUND: Duration = Duration::from_millis(200);
/// How often the maintenance thread runs otherwise.
const QUIET_ROUND: Duration = Duration::from_secs(2);
/// The block cache leaves room for large blocks for about this long after the last one.
const LARGE_BLOCKS_MEMORY: Duration = Duration::from_secs(10);
/// Sleep of a thread that is woken when there is work.
const UNTIL_WOKEN: Duration = Duration::from_secs(3600);

/// Starts the threads of a writable store.
pub(crate) fn start(core: &Arc<Core>) -> Result<()> {
    if core.options.background_threads == 0 {
        return spawn(core, "lsmkv-keeper", Core::maintenance_loop);
    }
    spawn(core, "lsmkv-flush", Core::flush_loop)?;
    spawn(core, "lsmkv-keeper", Core::maintenance_loop)?;
    for _ in 0..core.options.background_threads {
        spawn(core, "lsmkv-compact", Core::compaction_loop)?;
    }
    Ok(())
}

fn spawn(core: &Arc<Core>, name: &str, body: fn(&Core)) -> Result<()> {
    let own = Arc::clone(core);
    let run = move || {
        crate::sync::background::give_way();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&own))) {
            own.health.degrade(&panic_error(&*panic));
            own.work.note_progress();
        }
    };
    let builder = crate::sync::thread::Builder::new().name(name.to_owned());
    match crate::sync::without_signals(|| builder.spawn(run)) {
        Ok(handle) => core.work.add_thread(handle),
        Err(error) => return Err(Error::io("start a thread for", &core.dir, &error)),
    }
    Ok(())
}

fn panic_error(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::new(ErrorKind::Panic, format!("a background thread panicked: {}", text.unwrap_or("?")))
}

impl Core {
    fn flush_loop(&self) {
        while !self.work.is_stopping() {
            let since = self.work.retry_mark();
            let result = self.flush_oldest();
            self.work.flush_ended(self.note_failure(&result), since);
            match result {
                Ok(true) => {
                    self.work.note_progress();
                    self.work.wake_compactors();
                }
                Ok(false) => self.work.wait_for_flush(UNTIL_WOKEN),
                Err(_) => self.work.wait_to_retry_flush(RETRY, since),
            }
        }
    }

    fn compaction_loop(&self) {
        while !self.work.is_stopping() {
            let since = self.work.compaction_began();
            let result = self.compact_once();
            let failure = self.note_failure(&result);
            self.work.compaction_ended(!matches!(result, Ok(false)), failure, since);
            self.work.note_progress();
            match result {
                Ok(true) => self.adjust_memory(),
                Ok(false) => self.estimate_garbage_or_sleep(since),
                Err(_) => self.work.wait_to_retry_compaction(RETRY, since),
            }
        }
    }

    /// What a compaction thread does without a compaction: it estimates garbage, which may make a
    /// compaction due.
    fn estimate_garbage_or_sleep(&self, since: RetryMark) {
        let result = self.estimate_some_garbage();
        drop(self.note_failure(&result));
        match result {
            Ok(true) => self.work.wait_for_compaction(garbage_estimator::SLICE),
            Ok(false) => self.work.wait_for_compaction(UNTIL_WOKEN),
            Err(_) => self.work.wait_to_retry_compaction(RETRY, since),
        }
    }

    /// The error of failed work that others are told about. Corruption is permanent and degrades
    /// the store.
    fn note_failure(&self, result: &Result<bool>) -> Option<Error> {
        let error = result.as_ref().err()?;
        match error.kind() {
            ErrorKind::Closed => return None,
            ErrorKind::Corrupt => drop(self.health.degrade(error)),
            _ => {}
        }
        self.work.wake_waiters();
        Some(error.clone())
    }

    fn maintenance_loop(&self) {
        let (mut last_sync, mut last_sequence) = (Instant::now(), 0);
        let mut last_forgotten = last_sync;
        let Some(log) = &self.log else { return };
        while !self.work.is_stopping() {
            let interval = self.options.sync == SyncMode::Interval
                || self.work.syncs_at_intervals.load(Ordering::Relaxed);
            let unsynced = interval && log.durable() < log.appended();
            let full = self.space.is_full();
            let round =
                if unsynced || full { ROUND.min(self.limits.sync_interval) } else { QUIET_ROUND };
            self.work.wait_for_maintenance(round.min(self.limits.sync_interval.max(ROUND)));
            if self.space.is_full() {
                let sequence = self.sequences.visible();
                let is_idle = std::mem::replace(&mut last_sequence, sequence) == sequence;
                self.relieve(log, is_idle);
            } else if log.needs_preparation() {
                // If this fails, the writer that needs the segment tries again and gets the error.
                let _ = log.prepare_next();
            }
            if interval && last_sync.elapsed() >= self.limits.sync_interval {
                last_sync = Instant::now();
                if log.durable() < log.appended() {
                    // A failure has degraded the store, and writers get the error.
                    let _ = log.sync_all();
                }
            }
            if last_forgotten.elapsed() >= LARGE_BLOCKS_MEMORY {
                last_forgotten = Instant::now();
                self.cache.forget_large_blocks();
            }
            self.adjust_memory();
            self.schedule_garbage_estimates();
        }
    }

    fn schedule_garbage_estimates(&self) {
        if self.options.background_threads == 0 {
            drop(self.note_failure(&self.estimate_some_garbage()));
        } else if self.garbage_estimate_is_due() {
            self.work.wake_compactors();
        }
    }

    /// Does the work of the background threads in the calling thread, for a store without threads.
    pub(crate) fn work_inline(&self) -> Result<()> {
        let flushed = self.flush_all();
        while self.compact_once()? {}
        if self.space.is_full() && self.estimate_some_garbage()? {
            while self.compact_once()? {}
        }
        // Compactions may have made the space that a flush lacked.
        flushed.or_else(|_| self.flush_all())?;
        self.adjust_memory();
        Ok(())
    }

    fn flush_all(&self) -> Result<()> {
        while self.flush_oldest()? {}
        Ok(())
    }

    /// What the maintenance thread does while the disk is full: it flushes deletes, so that they
    /// free space, and ends the full state when there is space.
    fn relieve(&self, log: &Log, is_idle: bool) {
        if self.options.background_threads > 0 {
            if is_idle
                && let Some(_no_commit_runs) = self.committer.try_lead()
                && !self.view.load().active.is_empty()
                && self.view.load().immutable.is_empty()
            {
                self.freeze(log);
            }
            self.work.wake_compactors();
        }
        self.note_space();
    }

    /// Ends the full state if there is space; otherwise returns why not. The leader calls this. In
    /// a store without threads it does the work that may free space.
    #[cold]
    pub(crate) fn regain_space(&self, log: &Log) -> Result<()> {
        let regained = self.space.reconsider();
        if self.options.background_threads > 0 || regained.is_ok() {
            return regained;
        }
        if !self.view.load().active.is_empty() && self.view.load().immutable.is_empty() {
            self.freeze(log);
        }
        let _ = self.work_inline();
        self.space.reconsider()
    }
}
