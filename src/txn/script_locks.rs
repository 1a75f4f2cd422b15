//! Which stripes running scripts hold, and since when.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::txn::stripe_set::StripeSet;

/// The stripes that scripts hold.
#[derive(Debug)]
pub(super) struct ScriptLocks {
    /// The time after which a script is slow; `None` for never.
    slow_after: Mutex<Option<Duration>>,
    running: Mutex<Vec<HeldByScript>>,
}

#[derive(Debug)]
struct HeldByScript {
    since: Instant,
    stripes: StripeSet,
}

/// Notes that a script holds its stripes, until it is dropped.
#[derive(Debug)]
pub(super) struct NotedScript<'a> {
    locks: &'a ScriptLocks,
    since: Instant,
}

impl ScriptLocks {
    pub(super) fn new(slow_after: Option<Duration>) -> Self {
        Self { slow_after: Mutex::new(slow_after), running: Mutex::default() }
    }

    /// The time after which a script counts as slow; `None` if none does.
    pub(super) fn slow_after(&self) -> Option<Duration> {
        *self.slow_after.lock()
    }

    /// Sets the time after which a script is slow; `None` for never.
    pub(super) fn set_slow_after(&self, slow_after: Option<Duration>) {
        *self.slow_after.lock() = slow_after;
    }

    /// Notes that a script holds these stripes.
    pub(super) fn note(&self, stripes: StripeSet) -> NotedScript<'_> {
        let since = Instant::now();
        self.running.lock().push(HeldByScript { since, stripes });
        NotedScript { locks: self, since }
    }

    /// Whether a slow script holds this stripe.
    pub(super) fn is_slow(&self, index: usize) -> bool {
        let Some(slow_after) = *self.slow_after.lock() else { return false };
        let is_slow = |script: &HeldByScript| {
            script.stripes.has(index) && script.since.elapsed() >= slow_after
        };
        self.running.lock().iter().any(is_slow)
    }
}

impl Drop for NotedScript<'_> {
    fn drop(&mut self) {
        let mut running = self.locks.running.lock();
        if let Some(at) = running.iter().position(|script| script.since == self.since) {
            running.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(stripes: &[usize]) -> StripeSet {
        let mut set = StripeSet::default();
        stripes.iter().for_each(|index| set.add(*index));
        set
    }

    #[test]
    fn a_script_is_slow_for_those_who_want_its_stripes_once_its_time_has_passed() {
        let locks = ScriptLocks::new(Some(Duration::ZERO));
        let script = locks.note(set(&[3, 200]));
        assert!(locks.is_slow(3) && locks.is_slow(200) && !locks.is_slow(4));
        drop(script);
        assert!(!locks.is_slow(3));
        let patient = ScriptLocks::new(Some(Duration::from_secs(3600)));
        let _script = patient.note(set(&[3]));
        assert!(!patient.is_slow(3));
        let never = ScriptLocks::new(None);
        let _script = never.note(set(&[3]));
        assert!(!never.is_slow(3));
    }
}
