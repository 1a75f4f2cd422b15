//! The threads of an engine: one flushes, some compact, one keeps house (prepares log segments,
//! syncs at intervals, keeps memory within its budget).
//!
//! A panic or a failure that cannot pass degrades the store; one that may pass (a full disk, too
//! many open files) is tried again, and writers that would otherwise wait get the error. Nobody
//! waits without also watching for the end of the store.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::engine::core::Core;
use crate::engine::files::FileNumber;
use crate::engine::judge;
use crate::error::{Error, ErrorKind, Result};
use crate::options::SyncMode;

/// How long a failed piece of work rests before it is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// How often the house keeper looks around while there is something to sync, and otherwise.
const ROUND: Duration = Duration::from_millis(200);
const QUIET_ROUND: Duration = Duration::from_secs(2);
/// How often one who waits for running compactions to end looks, beside being woken.
const PAUSE_ROUND: Duration = Duration::from_millis(5);
/// Sleep of a thread that is woken when there is work.
const UNTIL_WOKEN: Duration = Duration::from_secs(3600);

/// What there is to do, and how those who wait for it are told.
#[derive(Debug, Default)]
pub(crate) struct Work {
    state: Mutex<State>,
    flusher: Condvar,
    compactors: Condvar,
    keeper: Condvar,
    progress: Condvar,
    /// One flush at a time: level 0 is in the order of the memtables.
    pub(crate) flushing: Mutex<()>,
    /// Tables that take part in a running compaction. Locked before `state`.
    pub(crate) busy: Mutex<HashSet<FileNumber>>,
    /// Held by whoever judges tables that are due.
    pub(crate) judging: Mutex<()>,
    /// Held by whoever has paused compaction: a rewrite of everything, or a close.
    alone: Mutex<()>,
    pub(crate) stopping: AtomicBool,
    /// Some writer relies on syncs in the background, whatever the mode of the store.
    pub(crate) syncs_at_intervals: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    flush: bool,
    compact: bool,
    prepare: bool,
    /// Why flushes or compactions fail at present.
    flush_failure: Option<Error>,
    compact_failure: Option<Error>,
    compacting: usize,
    /// How often a compactor has looked for work.
    looks: u64,
    pauses: usize,
    rounds: u64,
    /// How often work was asked to be tried again; a failure of work begun before is stale.
    retries: u64,
    /// How often a compaction has ended, and given back the space it took meanwhile.
    releases: u64,
}

impl State {
    /// Changes when a flush that failed has reason to be tried again.
    fn reasons_to_flush(&self) -> (u64, u64) {
        (self.retries, self.releases)
    }
}

impl Work {
    pub(crate) fn wake_flusher(&self) {
        self.state.lock().flush = true;
        self.flusher.notify_one();
    }

    pub(crate) fn wake_compactors(&self) {
        self.state.lock().compact = true;
        self.compactors.notify_all();
    }

    pub(crate) fn prepare_log(&self) {
        self.state.lock().prepare = true;
        self.keeper.notify_one();
    }

    /// Something was flushed or compacted: whoever waits for room looks again.
    pub(crate) fn note_progress(&self) {
        self.state.lock().rounds += 1;
        self.progress.notify_all();
    }

    pub(crate) fn wait_for_progress(&self, limit: Duration) {
        self.progress.wait_for(&mut self.state.lock(), limit);
    }

    /// Why flushes fail at present, or compactions if those are waited for too. Not while a
    /// compaction runs: what it takes of a nearly full disk it gives back at its end, and a flush
    /// that found no space beside it is tried again then.
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

    /// Lets no compaction begin, and returns once none runs: in the threads, in a writer of a
    /// store without threads, or in another caller of this, who goes first.
    pub(crate) fn pause_compaction(&self) -> Paused<'_> {
        let alone = self.alone.lock();
        self.state.lock().pauses += 1;
        while !self.busy.lock().is_empty() {
            self.wait_for_progress(PAUSE_ROUND);
        }
        Paused { work: self, _alone: alone }
    }

    /// Forgets failures so that the work is tried again now.
    pub(crate) fn retry(&self) {
        let mut state = self.state.lock();
        (state.flush_failure, state.compact_failure) = (None, None);
        (state.flush, state.compact, state.prepare) = (true, true, true);
        state.retries += 1;
        drop(state);
        self.flusher.notify_all();
        self.compactors.notify_all();
        self.keeper.notify_all();
    }

    /// Ends all threads and waits for them.
    pub(crate) fn stop(&self) {
        {
            // Under the lock, so that no thread checks before and sleeps after.
            let _state = self.state.lock();
            self.stopping.store(true, Ordering::Release);
            self.flusher.notify_all();
            self.compactors.notify_all();
            self.keeper.notify_all();
            self.progress.notify_all();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A panic was caught and recorded in the thread itself. The last handle may be
            // dropped by one of these threads, which must not wait for itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Sleeps until `wanted` is set (and clears it), the limit passes, or the store stops.
    fn sleep(&self, bell: &Condvar, limit: Duration, wanted: impl Fn(&mut State) -> bool) {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock();
        while !wanted(&mut state) && !self.stopping() {
            if bell.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }
}

/// Compactions go on when this is dropped.
#[derive(Debug)]
pub(crate) struct Paused<'a> {
    work: &'a Work,
    _alone: MutexGuard<'a, ()>,
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.work.state.lock().pauses -= 1;
        self.work.wake_compactors();
    }
}

/// Starts the threads of a store that takes writes.
pub(crate) fn start(core: &Arc<Core>) -> Result<()> {
    if core.options.background_threads == 0 {
        return spawn(core, "lsmkv-keeper", Core::keep_house);
    }
    spawn(core, "lsmkv-flush", Core::keep_flushing)?;
    spawn(core, "lsmkv-keeper", Core::keep_house)?;
    for _ in 0..core.options.background_threads {
        spawn(core, "lsmkv-compact", Core::keep_compacting)?;
    }
    Ok(())
}

fn spawn(core: &Arc<Core>, name: &str, body: fn(&Core)) -> Result<()> {
    let own = Arc::clone(core);
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&own))) {
            own.health.degrade(&panic_error(&*panic));
            own.work.note_progress();
        }
    });
    match thread {
        Ok(handle) => core.work.threads.lock().push(handle),
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
    fn keep_flushing(&self) {
        while !self.work.stopping() {
            let asked = self.work.state.lock().reasons_to_flush();
            let result = self.flush_oldest();
            let failure = self.failure_of(&result);
            {
                let mut state = self.work.state.lock();
                let stale = state.reasons_to_flush() != asked;
                state.flush_failure = failure.filter(|_| !stale);
            }
            match result {
                Ok(true) => {
                    self.work.note_progress();
                    self.work.wake_compactors();
                }
                Ok(false) => {
                    self.work.sleep(&self.work.flusher, UNTIL_WOKEN, |state| {
                        std::mem::take(&mut state.flush)
                    });
                }
                Err(_) => {
                    let again = |state: &mut State| state.reasons_to_flush() != asked;
                    self.work.sleep(&self.work.flusher, RETRY, again);
                }
            }
        }
    }

    fn keep_compacting(&self) {
        while !self.work.stopping() {
            let asked = {
                let mut state = self.work.state.lock();
                state.compacting += 1;
                state.looks += 1;
                state.retries
            };
            let result = self.compact_once();
            let failure = self.failure_of(&result);
            {
                let mut state = self.work.state.lock();
                state.compacting -= 1;
                let stale = state.retries != asked;
                state.compact_failure = failure.filter(|_| !stale);
                if !matches!(result, Ok(false)) {
                    state.releases += 1;
                    state.flush_failure = None;
                    self.work.flusher.notify_all();
                }
            }
            self.work.note_progress();
            match result {
                Ok(true) => self.adjust_memory(),
                Ok(false) => self.judge_or_sleep(asked),
                Err(_) => self.rest(asked),
            }
        }
    }

    /// What a compactor does with nothing to compact: it judges tables, which may change that.
    fn judge_or_sleep(&self, asked: u64) {
        let result = self.judge_some();
        drop(self.failure_of(&result));
        let limit = match result {
            Ok(true) => judge::STRETCH,
            Ok(false) => UNTIL_WOKEN,
            Err(_) => return self.rest(asked),
        };
        self.work.sleep(&self.work.compactors, limit, |state| std::mem::take(&mut state.compact));
    }

    /// What others are told of a piece of work; damage and lost log or manifest are final.
    fn failure_of(&self, result: &Result<bool>) -> Option<Error> {
        let error = result.as_ref().err()?;
        match error.kind() {
            ErrorKind::Closed => return None,
            ErrorKind::Corrupt => drop(self.health.degrade(error)),
            _ => {}
        }
        self.work.progress.notify_all();
        Some(error.clone())
    }

    /// After a failure a compactor tries again after a while, or at once when told to since
    /// `asked`.
    fn rest(&self, asked: u64) {
        self.work.sleep(&self.work.compactors, RETRY, |state| state.retries != asked);
    }

    fn keep_house(&self) {
        let mut last_sync = Instant::now();
        let Some(log) = &self.log else { return };
        while !self.work.stopping() {
            let interval = self.options.sync == SyncMode::Interval
                || self.work.syncs_at_intervals.load(Ordering::Relaxed);
            let unsynced = interval && log.durable() < log.appended();
            let round = if unsynced { ROUND.min(self.limits.sync_interval) } else { QUIET_ROUND };
            self.work.sleep(
                &self.work.keeper,
                round.min(self.limits.sync_interval.max(ROUND)),
                |state| std::mem::take(&mut state.prepare),
            );
            if log.needs_preparation() {
                // If this fails, the writer that needs the segment tries itself and is told.
                let _ = log.prepare_next();
            }
            if interval && last_sync.elapsed() >= self.limits.sync_interval {
                last_sync = Instant::now();
                if log.durable() < log.appended() {
                    // A failure has degraded the store; writers are told.
                    let _ = log.sync_all();
                }
            }
            self.adjust_memory();
            self.see_to_judging();
        }
    }

    fn see_to_judging(&self) {
        if self.options.background_threads == 0 {
            drop(self.failure_of(&self.judge_some()));
        } else if self.judgement_is_due() {
            self.work.wake_compactors();
        }
    }

    /// The work of the threads, done by the caller: for stores without threads.
    pub(crate) fn work_inline(&self) -> Result<()> {
        while self.flush_oldest()? {}
        while self.compact_once()? {}
        self.adjust_memory();
        Ok(())
    }

    /// Returns when nothing is left to flush or compact.
    pub(crate) fn wait_idle(&self) -> Result<()> {
        self.writable()?;
        if self.options.background_threads == 0 {
            return self.work_inline();
        }
        loop {
            self.health.check()?;
            self.check_open()?;
            if let Some(cause) = self.work.stuck(true) {
                return Err(cause);
            }
            let looks = self.work.state.lock().looks;
            let due = self.anything_to_compact();
            if !due && self.view.load().frozen.is_empty() && self.compactors_rest_since(looks) {
                return Ok(());
            }
            if due {
                self.work.wake_compactors();
            }
            self.work.wait_for_progress(ROUND);
        }
    }

    /// Whether no compactor is at work, nor was since it was counted: what it has taken is not due
    /// for others, and what it leaves may be.
    fn compactors_rest_since(&self, looks: u64) -> bool {
        let state = self.work.state.lock();
        state.compacting == 0 && state.looks == looks
    }
}
