//! The state of the cleaner of expired keys: its thread, its progress and its counters. The rounds
//! themselves are in `reclaim::cleaner`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::options::Options;

/// The cleaner of one store.
#[derive(Debug)]
pub(crate) struct CleanerState {
    /// The time between two rounds; zero if the store has no cleaner thread.
    pub(crate) interval: Duration,
    /// The number of keys that one batch deletes at most.
    pub(crate) batch: usize,
    stop: Arc<StopSignal>,
    thread: Mutex<Option<JoinHandle<()>>>,
    walked: Mutex<HashMap<u64, u64>>,
    /// No record of the memtables expires before this, except while a round walks them.
    soonest: AtomicU64,
    deleted: AtomicU64,
    last_deleted: AtomicU64,
    last_at_ms: AtomicU64,
}

/// The counters of a cleaner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cleaned {
    /// Keys deleted since the store was opened.
    pub(crate) total: u64,
    /// Keys deleted by the last round.
    pub(crate) last: u64,
    /// When the last round ended, in milliseconds since 1970; 0 if there was none.
    pub(crate) last_at_ms: u64,
}

/// Tells the cleaner's thread to stop and interrupts its sleep.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopSignal {
    fn send(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    /// Sleeps; `false` if the signal came first.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let mut stopped = self.stopped.lock();
        while !*stopped {
            if self.changed.wait_until(&mut stopped, end).timed_out() {
                return !*stopped;
            }
        }
        false
    }

    /// Whether the signal was sent.
    pub(crate) fn is_sent(&self) -> bool {
        *self.stopped.lock()
    }
}

impl CleanerState {
    pub(crate) fn new(options: &Options) -> Self {
        let seconds = if options.read_only { 0 } else { options.ttl_cleaner_interval_s };
        Self {
            interval: Duration::from_secs(seconds),
            batch: usize::try_from(options.ttl_cleaner_batch).unwrap_or(usize::MAX).max(1),
            stop: Arc::default(),
            thread: Mutex::new(None),
            walked: Mutex::default(),
            // The expiries of what recovery put into the memtables are unknown.
            soonest: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
            last_deleted: AtomicU64::new(0),
            last_at_ms: AtomicU64::new(0),
        }
    }

    /// The signal that ends rounds and the thread.
    pub(crate) fn stop_signal(&self) -> &Arc<StopSignal> {
        &self.stop
    }

    /// Hands over the thread, which [`CleanerState::stop`] joins.
    pub(crate) fn own_thread(&self, thread: JoinHandle<()>) {
        *self.thread.lock() = Some(thread);
    }

    /// Interrupts the current round or sleep and returns at once.
    pub(crate) fn request_stop(&self) {
        self.stop.send();
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(&self) {
        self.request_stop();
        let thread = self.thread.lock().take();
        // The cleaner itself may drop the last handle, and must not wait for itself.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            // A panic was caught and recorded in the thread.
            let _ = thread.join();
        }
    }

    /// Begins a round: no other round runs while the guard lives. By table number, the guard tells
    /// through which time the expired records of the table have been deleted.
    pub(crate) fn begin_round(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.walked.lock()
    }

    /// Notes that a visible commit holds a record with this expiry. The note comes after the commit
    /// is visible: a round that clears the note and then walks the memtables either finds the
    /// record, or the next round finds the note.
    #[inline]
    pub(crate) fn note_expiry(&self, expire_ms: Option<u64>) {
        if let Some(expire_ms) = expire_ms {
            self.soonest.fetch_min(expire_ms, Ordering::AcqRel);
        }
    }

    /// Clears the earliest noted expiry and returns it.
    pub(crate) fn take_soonest(&self) -> u64 {
        self.soonest.swap(u64::MAX, Ordering::AcqRel)
    }

    #[cfg(test)]
    pub(crate) fn soonest(&self) -> u64 {
        self.soonest.load(Ordering::Acquire)
    }

    /// Counts deleted keys of the current round.
    pub(crate) fn count_deleted(&self, keys: u64) {
        self.deleted.fetch_add(keys, Ordering::Relaxed);
    }

    /// Records the result of a round.
    pub(crate) fn end_round(&self, deleted: u64, now_ms: u64) {
        self.last_deleted.store(deleted, Ordering::Relaxed);
        self.last_at_ms.store(now_ms, Ordering::Relaxed);
    }

    /// The counters.
    pub(crate) fn cleaned(&self) -> Cleaned {
        Cleaned {
            total: self.deleted.load(Ordering::Relaxed),
            last: self.last_deleted.load(Ordering::Relaxed),
            last_at_ms: self.last_at_ms.load(Ordering::Relaxed),
        }
    }
}
