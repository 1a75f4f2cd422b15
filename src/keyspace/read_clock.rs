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
    /// The time registered last, and the number of its readers. Most commands find it gone from
    /// use, or are of the same millisecond.
    latest: (u64, usize),
    /// The number of further readers at each time.
    others: BTreeMap<u64, usize>,
}

impl TimesInUse {
    fn add(&mut self, now: u64) {
        let (time, readers) = self.latest;
        if time == now {
            self.latest.1 += 1;
            return;
        }
        if readers > 0 {
            *self.others.entry(time).or_insert(0) += readers;
        }
        self.latest = (now, 1);
    }

    fn remove(&mut self, time: u64) {
        if self.latest.0 == time && self.latest.1 > 0 {
            self.latest.1 -= 1;
        } else if let Some(readers) = self.others.get_mut(&time) {
            *readers -= 1;
            if *readers == 0 {
                self.others.remove(&time);
            }
        }
    }

    fn earliest(&self) -> Option<u64> {
        let latest = (self.latest.1 > 0).then_some(self.latest.0);
        self.others.keys().next().copied().into_iter().chain(latest).min()
    }
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
        state.add(now);
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
        let earliest = state.earliest().unwrap_or(u64::MAX);
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
        self.clock.state.lock().remove(self.now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    proptest! {
        // Few times, so that they come again, and the clock steps back.
        #[test]
        fn the_earliest_of_all_readers_counts_in_whatever_order_they_come_and_go(
            steps in prop::collection::vec((1u64..20, any::<bool>(), 0usize..12), 1..300),
        ) {
            let clock = Arc::new(ManualClock::at(0));
            let times = Arc::new(ReadClock::new(clock.clone()));
            let mut readers: Vec<RegisteredTime> = Vec::new();
            for (now, comes, which) in steps {
                clock.set(now);
                if comes {
                    readers.push(times.register());
                } else if which < readers.len() {
                    readers.swap_remove(which);
                }
                let earliest = readers.iter().map(RegisteredTime::now).min();
                prop_assert_eq!(times.state.lock().earliest(), earliest);
            }
            readers.clear();
            prop_assert!(times.state.lock().earliest().is_none());
            prop_assert!(times.state.lock().others.is_empty());
        }
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
