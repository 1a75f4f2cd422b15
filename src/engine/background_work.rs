//! The work of the background threads, and the wake-ups of threads that wait for it.
//!
//! Nothing waits without also watching for the end of the store.

use std::collections::HashSet;
use std::time::Duration;

use crate::engine::files::FileNumber;
use crate::error::Error;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::JoinHandle;
use crate::sync::{Condvar, Instant, Mutex, MutexGuard};

/// How often a caller that waits for running compactions checks them, beside being woken.
const PAUSE_POLL: Duration = Duration::from_millis(5);

/// Requests for background work, its failures, and its threads.
#[derive(Debug, Default)]
pub(crate) struct BackgroundWork {
    state: Mutex<WorkState>,
    flusher: Condvar,
    compactors: Condvar,
    maintenance: Condvar,
    progress: Condvar,
    /// Held during a flush. Flushes run one at a time, so that level 0 has the order of the
    /// memtables.
    pub(crate) flushing: Mutex<()>,
    /// Tables that take part in a running compaction. Locked before `state`.
    pub(crate) busy: Mutex<HashSet<FileNumber>>,
    /// Held by the thread that works on the garbage estimates that are due.
    pub(crate) estimating: Mutex<()>,
    /// Held by the caller that has paused compaction: a full compaction, or a close.
    exclusive: Mutex<()>,
    pub(crate) stopping: AtomicBool,
    /// Set once a writer relies on background syncs, whatever the sync mode of the store.
    pub(crate) syncs_at_intervals: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct WorkState {
    flush: bool,
    compact: bool,
    prepare: bool,
    /// Why flushes or compactions fail at present.
    flush_failure: Option<Error>,
    compact_failure: Option<Error>,
    /// Compactions that are running.
    compacting: usize,
    /// How often a compaction thread has looked for work.
    attempts: u64,
    pauses: usize,
    /// How often a retry was requested. A failure of work begun before the last one is stale.
    retries: u64,
    /// How often a compaction has ended and released the disk space it used meanwhile.
    releases: u64,
    /// How often a flush or a step of a merge has ended.
    steps: u64,
}

/// Why work may be tried again; compared with a later value, it tells whether a failure is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryMark {
    retries: u64,
    releases: u64,
}

impl RetryMark {
    /// Whether a retry was requested between the two marks.
    pub(crate) fn retry_requested(self, earlier: Self) -> bool {
        self.retries != earlier.retries
    }
}

impl WorkState {
    fn mark(&self) -> RetryMark {
        RetryMark { retries: self.retries, releases: self.releases }
    }
}

impl BackgroundWork {
    pub(crate) fn wake_flusher(&self) {
        self.state.lock().flush = true;
        self.flusher.notify_one();
    }

    pub(crate) fn wake_compactors(&self) {
        self.state.lock().compact = true;
        self.compactors.notify_all();
    }

    /// Asks the maintenance thread to prepare the next log segment.
    pub(crate) fn prepare_log(&self) {
        self.state.lock().prepare = true;
        self.maintenance.notify_one();
    }

    /// Wakes threads that wait for a flush or a compaction to end.
    pub(crate) fn note_progress(&self) {
        let _state = self.state.lock();
        self.progress.notify_all();
    }

    /// Notes that a flush or a step of a merge has succeeded.
    pub(crate) fn note_step(&self) {
        self.state.lock().steps += 1;
        self.progress.notify_all();
    }

    /// How often a flush or a step of a merge has succeeded, and whether a flush or a compaction is
    /// running. A thread that only looks for a compaction does not count.
    pub(crate) fn steps(&self) -> (u64, bool) {
        let runs = self.flushing.is_locked() || !self.busy.lock().is_empty();
        (self.state.lock().steps, runs)
    }

    pub(crate) fn wait_for_progress(&self, limit: Duration) {
        self.progress.wait_for(&mut self.state.lock(), limit);
    }

    /// The error with which flushes fail at present or, with `waits_for_compactions`, compactions.
    ///
    /// `None` while a compaction runs: when it ends it releases the disk space it used, and a
    /// flush that found too little space is tried again then.
    pub(crate) fn stuck(&self, waits_for_compactions: bool) -> Option<Error> {
        let state = self.state.lock();
        if state.compacting > 0 {
            return None;
        }
        let compactions = state.compact_failure.clone().filter(|_| waits_for_compactions);
        state.flush_failure.clone().or(compactions)
    }

    pub(crate) fn compaction_paused(&self) -> bool {
        self.state.lock().pauses > 0
    }

    /// Prevents compactions from starting, and returns once none is running: neither in the
    /// threads, nor in a writer of a store without threads, nor in an earlier caller of this.
    pub(crate) fn pause_compaction(&self) -> CompactionPause<'_> {
        let exclusive = self.exclusive.lock();
        self.state.lock().pauses += 1;
        while !self.busy.lock().is_empty() {
            self.wait_for_progress(PAUSE_POLL);
        }
        CompactionPause { work: self, _exclusive: exclusive }
    }

    /// Clears failures so that the work is tried again now.
    pub(crate) fn retry(&self) {
        let mut state = self.state.lock();
        (state.flush_failure, state.compact_failure) = (None, None);
        (state.flush, state.compact, state.prepare) = (true, true, true);
        state.retries += 1;
        drop(state);
        self.flusher.notify_all();
        self.compactors.notify_all();
        self.maintenance.notify_all();
    }

    /// Adds a thread for [`BackgroundWork::stop`] to wait for.
    pub(crate) fn add_thread(&self, thread: JoinHandle<()>) {
        self.threads.lock().push(thread);
    }

    /// Ends all threads and waits for them.
    pub(crate) fn stop(&self) {
        {
            // Under the lock, so that no thread checks the flag before and sleeps after.
            let _state = self.state.lock();
            self.stopping.store(true, Ordering::Release);
            self.flusher.notify_all();
            self.compactors.notify_all();
            self.maintenance.notify_all();
            self.progress.notify_all();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // The thread itself has caught and recorded a panic. One of these threads may drop the
            // last handle, and must not wait for itself.
            if thread.thread().id() != crate::sync::thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The current retry mark.
    pub(crate) fn retry_mark(&self) -> RetryMark {
        self.state.lock().mark()
    }

    /// Notes that a flush begun at `since` has ended. A failure that is stale does not count.
    pub(crate) fn flush_ended(&self, failure: Option<Error>, since: RetryMark) {
        let mut state = self.state.lock();
        let stale = state.mark() != since;
        state.flush_failure = failure.filter(|_| !stale);
    }

    /// Notes that a compaction thread looks for work.
    pub(crate) fn compaction_began(&self) -> RetryMark {
        let mut state = self.state.lock();
        state.compacting += 1;
        state.attempts += 1;
        state.mark()
    }

    /// Notes that a compaction begun at `since` has ended. `worked` is `false` if there was nothing
    /// to do. A failure that is stale does not count.
    pub(crate) fn compaction_ended(&self, worked: bool, failure: Option<Error>, since: RetryMark) {
        let mut state = self.state.lock();
        state.compacting -= 1;
        let stale = state.retries != since.retries;
        state.compact_failure = failure.filter(|_| !stale);
        if worked {
            state.releases += 1;
            state.flush_failure = None;
            self.flusher.notify_all();
        }
    }

    /// How often compaction threads have looked for work.
    pub(crate) fn compaction_attempts(&self) -> u64 {
        self.state.lock().attempts
    }

    /// Whether no compaction is running and none was attempted since `attempts` was read. What a
    /// running one holds is not due for others, and what it leaves behind may be.
    pub(crate) fn no_compaction_since(&self, attempts: u64) -> bool {
        let state = self.state.lock();
        state.compacting == 0 && state.attempts == attempts
    }

    /// Sleeps until a flush is requested.
    pub(crate) fn wait_for_flush(&self, limit: Duration) {
        self.sleep(&self.flusher, limit, |state| std::mem::take(&mut state.flush));
    }

    /// Sleeps after a failed flush, until there is a reason to try again.
    pub(crate) fn wait_to_retry_flush(&self, limit: Duration, since: RetryMark) {
        self.sleep(&self.flusher, limit, |state| state.mark() != since);
    }

    /// Sleeps until a compaction is requested.
    pub(crate) fn wait_for_compaction(&self, limit: Duration) {
        self.sleep(&self.compactors, limit, |state| std::mem::take(&mut state.compact));
    }

    /// Sleeps after a failed compaction, until a retry is requested.
    pub(crate) fn wait_to_retry_compaction(&self, limit: Duration, since: RetryMark) {
        let requested = |state: &mut WorkState| state.mark().retry_requested(since);
        self.sleep(&self.compactors, limit, requested);
    }

    /// Sleeps until the next log segment is to be prepared.
    pub(crate) fn wait_for_maintenance(&self, limit: Duration) {
        self.sleep(&self.maintenance, limit, |state| std::mem::take(&mut state.prepare));
    }

    /// Wakes threads that wait for progress, so that they notice a failure.
    pub(crate) fn wake_waiters(&self) {
        self.progress.notify_all();
    }

    /// Sleeps until `wanted` returns `true`, the limit passes, or the store stops.
    fn sleep(&self, condvar: &Condvar, limit: Duration, wanted: impl Fn(&mut WorkState) -> bool) {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while !wanted(&mut state) && !self.is_stopping() {
            if condvar.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }
}

/// Keeps compaction paused until it is dropped.
#[derive(Debug)]
pub(crate) struct CompactionPause<'a> {
    work: &'a BackgroundWork,
    _exclusive: MutexGuard<'a, ()>,
}

impl Drop for CompactionPause<'_> {
    fn drop(&mut self) {
        self.work.state.lock().pauses -= 1;
        self.work.wake_compactors();
    }
}
