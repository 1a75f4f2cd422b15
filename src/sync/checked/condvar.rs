//! A condition variable.

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

use super::checker::sync;
use super::checker::thread::yield_now;
use super::{Instant, MutexGuard};

/// Waits with a shorter limit are polls.
const LONG_WAIT: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(crate) struct Condvar(sync::Condvar);

pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self(sync::Condvar::new())
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        guard.pass_through(|held| self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn wait_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        limit: Duration,
    ) -> WaitTimeoutResult {
        if limit < LONG_WAIT {
            MutexGuard::unlocked(guard, yield_now);
            return WaitTimeoutResult(true);
        }
        self.wait(guard);
        WaitTimeoutResult(false)
    }

    pub(crate) fn wait_until<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        let limit = deadline.checked_duration_since(Instant::now()).unwrap_or_default();
        self.wait_for(guard, limit)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}
