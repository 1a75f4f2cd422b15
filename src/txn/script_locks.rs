//! Which stripes running scripts hold, and since when.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use smallvec::SmallVec;

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
    /// A bit for each stripe.
    stripes: SmallVec<[u64; 4]>,
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
    pub(super) fn note(&self, held: impl Iterator<Item = usize>) -> NotedScript<'_> {
        let mut stripes = SmallVec::new();
        for index in held {
            if stripes.len() <= index / 64 {
                stripes.resize(index / 64 + 1, 0);
            }
            if let Some(word) = stripes.get_mut(index / 64) {
                *word |= 1 << (index % 64);
            }
        }
        let since = Instant::now();
        self.running.lock().push(HeldByScript { since, stripes });
        NotedScript { locks: self, since }
    }

    /// Whether a slow script holds this stripe.
    pub(super) fn is_slow(&self, index: usize) -> bool {
        let Some(slow_after) = *self.slow_after.lock() else { return false };
        self.running.lock().iter().any(|script| {
            let word = script.stripes.get(index / 64).copied().unwrap_or(0);
            word & (1 << (index % 64)) != 0 && script.since.elapsed() >= slow_after
        })
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

    #[test]
    fn a_script_is_slow_for_those_who_want_its_stripes_once_its_time_has_passed() {
        let locks = ScriptLocks::new(Some(Duration::ZERO));
        let script = locks.note([3, 200].into_iter());
        assert!(locks.is_slow(3) && locks.is_slow(200) && !locks.is_slow(4));
        drop(script);
        assert!(!locks.is_slow(3));
        let patient = ScriptLocks::new(Some(Duration::from_secs(3600)));
        let _script = patient.note([3].into_iter());
        assert!(!patient.is_slow(3));
        let never = ScriptLocks::new(None);
        let _script = never.note([3].into_iter());
        assert!(!never.is_slow(3));
    }
}
