//! What time it is for whom.
//!
//! A command, snapshot or transaction looks at one time, fixed when it starts and registered until
//! it ends. A compaction that drops what has expired takes the least of the clock and all
//! registered times, and from then on no one starts with an earlier one: so what it drops as
//! expired is expired for everyone, now and later, whatever the clock does.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::io::clock::Clock;

/// The times in use.
#[derive(Debug)]
pub(crate) struct Times {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Nothing that had expired by then may be seen alive again.
    expired_through: u64,
    /// How many look at each time.
    registered: BTreeMap<u64, usize>,
}

impl Times {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// The time for a plain read, which holds on to nothing.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now_ms().max(self.state.lock().expired_through)
    }

    /// A time that counts until the guard is dropped.
    pub(crate) fn register(self: &Arc<Self>) -> RegisteredTime {
        let mut state = self.state.lock();
        let now = self.clock.now_ms().max(state.expired_through);
        *state.registered.entry(now).or_insert(0) += 1;
        RegisteredTime { times: Arc::clone(self), now }
    }

    /// What has expired by the result is expired for every present and future observer.
    pub(crate) fn expire(&self) -> u64 {
        let mut state = self.state.lock();
        let earliest = state.registered.keys().next().copied().unwrap_or(u64::MAX);
        let through = self.clock.now_ms().min(earliest);
        state.expired_through = state.expired_through.max(through);
        through
    }
}

/// A time someone looks at.
#[derive(Debug)]
pub(crate) struct RegisteredTime {
    times: Arc<Times>,
    now: u64,
}

impl RegisteredTime {
    pub(crate) fn now(&self) -> u64 {
        self.now
    }
}

impl Drop for RegisteredTime {
    fn drop(&mut self) {
        let mut state = self.times.state.lock();
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
        let times = Arc::new(Times::new(clock.clone()));
        let held = times.register();
        clock.set(200);
        assert_eq!(times.expire(), 100);
        drop(held);
        assert_eq!(times.expire(), 200);
    }

    #[test]
    fn a_clock_that_steps_back_brings_nothing_back() {
        let clock = Arc::new(ManualClock::at(200));
        let times = Arc::new(Times::new(clock.clone()));
        assert_eq!(times.expire(), 200);
        clock.set(50);
        assert_eq!(times.now(), 200);
        assert_eq!(times.register().now(), 200);
    }
}
