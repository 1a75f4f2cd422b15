//! The clock of readers: what time it is for each of them.
//!
//! A command, snapshot or transaction reads at one time, fixed when it starts and registered until
//! it ends. A compaction that drops expired records uses the minimum of the clock and all
//! registered times, and no reader starts with an earlier time afterwards. So what it drops is
//! expired for everyone, now and later, whatever the clock does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::io::clock::Clock;

/// A clock that knows the times in use.
#[derive(Debug)]
pub(crate) struct ReadClock {
    clock: Arc<dyn Clock>,
    state: Mutex<TimesInUse>,
    /// Whether compactions leave expired records alone.
    keeps_expired: AtomicBool,
}

#[derive(Debug, Default)]
struct TimesInUse {
    /// Records that had expired by then must not be read again.
    expired_through: u64,
    /// The number of readers at each time.
    registered: BTreeMap<u64, usize>,
}

impl ReadClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default(), keeps_expired: AtomicBool::new(false) }
    }

    /// The time for a single read, which registers nothing.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now_ms().max(self.state.lock().expired_through)
    }

    /// Registers the current time until the guard is dropped.
    pub(crate) fn register(self: &Arc<Self>) -> RegisteredTime {
        let mut state = self.state.lock();
        let now = self.clock.now_ms().max(state.expired_through);
        *state.registered.entry(now).or_insert(0) += 1;
        RegisteredTime { clock: Arc::clone(self), now }
    }

    /// Makes compactions leave expired records to the cleaner, which announces them.
    pub(crate) fn keep_expired(&self, keep: bool) {
        self.keeps_expired.store(keep, Ordering::Relaxed);
    }

    /// Returns a time; what has expired by then is expired for every present and future reader.
    pub(crate) fn expire(&self) -> u64 {
        if self.keeps_expired.load(Ordering::Relaxed) {
            return 0;
        }
        let mut state = self.state.lock();
        let earliest = state.registered.keys().next().copied().unwrap_or(u64::MAX);
        let through = self.clock.now_ms().min(earliest);
        state.expired_through = state.expired_through.max(through);
        through
    }
}

/// A time at which someone reads.
#[derive(Debug)]
pub(crate) struct RegisteredTime {
    clock: Arc<ReadClock>,
    now: u64,
}

impl RegisteredTime {
    pub(crate) fn now(&self) -> u64 {
        self.now
    }
}

impl Drop for RegisteredTime {
    fn drop(&mut self) {
        let mut state = self.clock.state.lock();
        if let Some(count) = state.registered.get_mut(&self.now) {
            *count -= 1;
            if *count == 0 {
                state.registered.remove(&self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::clock::ManualClock;

    #[test]
    fn nothing_expires_under_someone_who_still_sees_it_alive() {
        let clock = Arc::new(ManualClock::at(100));
        let times = Arc::new(ReadClock::new(clock.clone()));
        let held = times.register();
        clock.set(200);
        assert_eq!(times.expire(), 100);
        drop(held);
        assert_eq!(times.expire(), 200);
    }

    #[test]
    fn a_clock_that_steps_back_brings_nothing_back() {
        let clock = Arc::new(ManualClock::at(200));
        let times = Arc::new(ReadClock::new(clock.clone()));
        assert_eq!(times.expire(), 200);
        clock.set(50);
        assert_eq!(times.now(), 200);
        assert_eq!(times.register().now(), 200);
    }
}
