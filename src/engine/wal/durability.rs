//! How far the log is durable, and flushes of the device that all waiting threads share.
//!
//! At most one flush runs at a time. A thread that needs one while none is running flushes
//! everything appended so far. Other threads wait: those covered by the running flush for its end,
//! the rest for the end of the next flush. When a flush ends, it wakes all of the former and
//! exactly one of the latter, which runs the next flush. Flushes alternate between two condition
//! variables.
//!
//! No lock is held while the device works, so appends go on. A failed flush is final: it degrades
//! the store, and every waiting thread gets the cause. Lock order: no other lock is taken under
//! `state`.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::files::{FileNumber, log_path};
use crate::engine::health::Health;
use crate::engine::wal::position::LogPosition;
use crate::engine::wal::segment::Segment;
use crate::engine::wal::sync_file::SyncFile;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::File;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Instant, Mutex, MutexGuard};

/// Longest time for which a flush waits for other writers to join. It waits only if the last flush
/// was shared.
const GATHER_LIMIT: Duration = Duration::from_micros(50);

/// The flush state of a log.
#[derive(Debug)]
pub struct Durability {
    state: Mutex<FlushState>,
    turns: [Condvar; 2],
    health: Arc<Health>,
    sync_file: Arc<SyncFile>,
    dir: PathBuf,
    syncs: AtomicU64,
}

#[derive(Debug)]
struct FlushState {
    appended: LogPosition,
    durable: LogPosition,
    /// Segments with records that may not be durable, oldest first.
    unsynced: VecDeque<(FileNumber, Arc<dyn File>)>,
    flushing: bool,
    /// Number of the running or last flush.
    turn: u64,
    /// The running flush covers everything before this position.
    covered: LogPosition,
    /// Number of waiting threads for even and odd turns.
    waiting: [usize; 2],
    /// Number of threads that shared the last flush.
    last_shared_by: usize,
    /// The store is about to close, so waits in mode `UntilClosing` end.
    closing: bool,
    closed: bool,
}

/// Whether a wait continues after a close was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitMode {
    /// It continues: a write or flush is running, which a close lets finish.
    UntilDurable,
    /// It ends: nothing is running but the wait itself.
    UntilClosing,
}

const EVERYTHING: LogPosition = LogPosition { segment: u64::MAX, offset: u64::MAX };

impl Durability {
    /// The state of a log that begins at `start` and has no records yet.
    pub fn new(
        start: LogPosition,
        dir: PathBuf,
        health: Arc<Health>,
        sync_file: Arc<SyncFile>,
    ) -> Self {
        let state = FlushState {
            appended: start,
            durable: start,
            unsynced: VecDeque::new(),
            flushing: false,
            turn: 0,
            covered: start,
            waiting: [0; 2],
            last_shared_by: 0,
            closing: false,
            closed: false,
        };
        let turns = [Condvar::new(), Condvar::new()];
        let syncs = AtomicU64::new(0);
        Self { state: Mutex::new(state), turns, health, sync_file, dir, syncs }
    }

    /// Where the last record ends.
    pub fn appended(&self) -> LogPosition {
        self.state.lock().appended
    }

    /// Everything before this is durable.
    pub fn durable(&self) -> LogPosition {
        self.state.lock().durable
    }

    /// Number of flushes so far.
    pub fn sync_count(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// The durable position to store in new records; an error if no records may be appended.
    pub fn before_append(&self) -> Result<LogPosition> {
        let state = self.state.lock();
        self.check(&state, WaitMode::UntilDurable)?;
        Ok(state.durable)
    }

    /// Notes that records were written to `segment` up to `end`.
    pub fn after_append(&self, segment: &Segment, end: u64) {
        let mut state = self.state.lock();
        state.appended = LogPosition::new(segment.number, end);
        if state.unsynced.back().is_none_or(|(number, _)| *number != segment.number) {
            state.unsynced.push_back((segment.number, Arc::clone(&segment.file)));
        }
    }

    /// Waits until everything before `position` is durable, and flushes if no other thread does.
    /// Returns `false` if `timeout` passes first. The timeout does not interrupt a flush that this
    /// call runs itself; with a timeout of zero it runs none.
    pub fn wait(&self, position: LogPosition, timeout: Option<Duration>) -> Result<bool> {
        self.wait_in(WaitMode::UntilDurable, position, timeout)
    }

    /// Waits until everything before `position` is durable, or `timeout` passes, as
    /// [`Durability::wait`]. Fails with `Closed` as soon as [`Durability::announce_close`] is called,
    /// unless a flush that it runs itself makes `position` durable.
    pub fn wait_until_closing(
        &self,
        position: LogPosition,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.wait_in(WaitMode::UntilClosing, position, timeout)
    }

    fn wait_in(
        &self,
        mode: WaitMode,
        position: LogPosition,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        let mut state = self.state.lock();
        loop {
            if state.durable >= position {
                return Ok(true);
            }
            if let Err(error) = self.check(&state, mode) {
                // This thread may have been chosen to flush next, and will not.
                self.wake_all();
                return Err(error);
            }
            if position > state.appended {
                let text = format!("{position} is beyond the log's end {}", state.appended);
                return Err(Error::new(ErrorKind::Misuse, text));
            }
            if timeout == Some(Duration::ZERO) {
                return Ok(false);
            }
            if !state.flushing {
                self.flush(&mut state)?;
            } else if self.wait_for_turn(&mut state, position, deadline) {
                return Ok(state.durable >= position);
            }
        }
    }

    /// Ends all present and future waits of [`Durability::wait_until_closing`]. Writes go on.
    pub fn announce_close(&self) {
        self.state.lock().closing = true;
        self.wake_all();
    }

    /// Ends all waits: those for what is not durable fail with `Closed`, and so do later appends.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.wake_all();
    }

    fn wake_all(&self) {
        self.turns.iter().for_each(|turn| _ = turn.notify_all());
    }

    fn check(&self, state: &FlushState, mode: WaitMode) -> Result<()> {
        if state.closed {
            return Err(Error::new(ErrorKind::Closed, "the log has been closed"));
        }
        if state.closing && mode == WaitMode::UntilClosing {
            return Err(Error::new(ErrorKind::Closed, "the store is being closed"));
        }
        self.health.check()
    }

    /// Waits for the flush that covers `position`. Returns whether the deadline passed.
    fn wait_for_turn(
        &self,
        state: &mut MutexGuard<'_, FlushState>,
        position: LogPosition,
        deadline: Option<Instant>,
    ) -> bool {
        let turn = if position <= state.covered { state.turn } else { state.turn + 1 };
        *state.waiters(turn) += 1;
        let condvar = self.condvar(turn);
        let timed_out = match deadline {
            Some(deadline) => condvar.wait_until(state, deadline).timed_out(),
            None => {
                condvar.wait(state);
                false
            }
        };
        if !state.has_ended(turn) {
            *state.waiters(turn) -= 1;
        }
        if timed_out && !state.flushing {
            // This thread may have been chosen to flush next: let another one do it.
            self.condvar(state.turn + 1).notify_one();
        }
        timed_out
    }

    fn condvar(&self, turn: u64) -> &Condvar {
        let [even, odd] = &self.turns;
        if turn.is_multiple_of(2) { even } else { odd }
    }

    /// Flushes everything appended, and releases the lock meanwhile.
    fn flush(&self, state: &mut MutexGuard<'_, FlushState>) -> Result<()> {
        state.flushing = true;
        state.turn += 1;
        // Until the flush begins, any thread that has appended may join.
        state.covered = EVERYTHING;
        self.gather(state);
        state.covered = state.appended;
        let target = state.appended;
        let segments: Vec<_> = state.unsynced.iter().cloned().collect();
        let outcome = MutexGuard::unlocked(state, || self.sync_segments(&segments, target));
        if outcome.is_ok() {
            state.durable = target;
            state.unsynced.retain(|(number, _)| *number >= target.segment);
        }
        state.flushing = false;
        let turn = state.turn;
        state.last_shared_by = std::mem::take(state.waiters(turn)) + 1;
        self.condvar(turn).notify_all();
        match outcome {
            Ok(()) => _ = self.condvar(turn + 1).notify_one(),
            Err(_) => _ = self.condvar(turn + 1).notify_all(),
        }
        outcome
    }

    /// Gives the writers that shared the last flush a moment to append and join this one. Otherwise
    /// one of them would flush alone, and the others, just too late, would wait for two flushes.
    fn gather(&self, state: &mut MutexGuard<'_, FlushState>) {
        let expected = state.last_shared_by;
        if expected <= 1 {
            return;
        }
        let started = Instant::now();
        let turn = state.turn;
        while *state.waiters(turn) + 1 < expected && started.elapsed() < GATHER_LIMIT {
            MutexGuard::unlocked(state, crate::sync::thread::yield_now);
        }
    }

    fn sync_segments(
        &self,
        segments: &[(FileNumber, Arc<dyn File>)],
        target: LogPosition,
    ) -> Result<()> {
        let synced = catch_unwind(AssertUnwindSafe(|| self.sync_in_order(segments, target)))
            .unwrap_or_else(|_| Err(Error::new(ErrorKind::Panic, "a flush of the log panicked")));
        synced.map_err(|cause| self.health.degrade(&cause))
    }

    fn sync_in_order(
        &self,
        segments: &[(FileNumber, Arc<dyn File>)],
        target: LogPosition,
    ) -> Result<()> {
        for (number, file) in segments {
            file.sync_data().map_err(|e| Error::io("sync", &log_path(&self.dir, *number), &e))?;
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.sync_file.note_log(target)
    }
}

impl FlushState {
    /// Number of threads that wait for `turn`. It is reset when the turn ends.
    fn waiters(&mut self, turn: u64) -> &mut usize {
        let [even, odd] = &mut self.waiting;
        if turn.is_multiple_of(2) { even } else { odd }
    }

    fn has_ended(&self, turn: u64) -> bool {
        turn < self.turn || (turn == self.turn && !self.flushing)
    }
}

#[cfg(test)]
mod tests;
