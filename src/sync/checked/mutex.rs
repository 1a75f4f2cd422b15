//! A mutex without poisoning.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use super::checker::sync;

#[derive(Default)]
pub(crate) struct Mutex<T>(sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` only while the guard is passed to a condition variable or unlocked.
    held: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, held: Some(self.lock_inner()) }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Some(MutexGuard { mutex: self, held: Some(self.0.try_lock().ok()?) })
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.0.try_lock().is_err()
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_inner(&self) -> sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// Runs `run` without the lock.
    pub(crate) fn unlocked<R>(guard: &mut Self, run: impl FnOnce() -> R) -> R {
        drop(guard.held.take());
        let result = run();
        guard.held = Some(guard.mutex.lock_inner());
        result
    }

    /// Replaces the lock that is held, for a condition variable.
    pub(super) fn pass_through(
        &mut self,
        wait: impl FnOnce(sync::MutexGuard<'a, T>) -> sync::MutexGuard<'a, T>,
    ) {
        if let Some(held) = self.held.take() {
            self.held = Some(wait(held));
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        let Some(held) = &self.held else { unreachable!("the lock is held") };
        held
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        let Some(held) = &mut self.held else { unreachable!("the lock is held") };
        held
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MutexGuard")
    }
}
