//! A pointer that is replaced while others read it.
//!
//! It promises no more than arc-swap does: a read finds everything that was written before the value
//! was stored, and nothing orders it with other reads and stores. Under loom a read may find an
//! older value if nothing forbids it. So all values live as long as the pointer; shuttle has no
//! older values, and drops what was replaced.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::atomic::{AtomicUsize, Ordering};

/// A value that was read.
pub(crate) struct Guard<T>(T);

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

pub(crate) struct ArcSwapOption<T> {
    /// The index of the current value in `values`.
    current: AtomicUsize,
    values: Mutex<Vec<Option<Arc<T>>>>,
}

impl<T> ArcSwapOption<T> {
    pub(crate) fn empty() -> Self {
        Self { current: AtomicUsize::new(0), values: Mutex::new(vec![None]) }
    }

    pub(crate) fn load_full(&self) -> Option<Arc<T>> {
        let index = self.current.load(Ordering::Acquire);
        self.values.lock().unwrap_or_else(PoisonError::into_inner).get(index).cloned().flatten()
    }

    pub(crate) fn load(&self) -> Guard<Option<Arc<T>>> {
        Guard(self.load_full())
    }

    pub(crate) fn swap(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.push(value);
        let next = values.len() - 1;
        drop(values);
        let last = self.current.swap(next, Ordering::AcqRel);
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let last = values.get_mut(last)?;
        if cfg!(shuttle) { last.take() } else { last.clone() }
    }

    pub(crate) fn store(&self, value: Option<Arc<T>>) {
        drop(self.swap(value));
    }
}

pub(crate) struct ArcSwap<T>(ArcSwapOption<T>);

impl<T> ArcSwap<T> {
    pub(crate) fn from_pointee(value: T) -> Self {
        let values = Mutex::new(vec![Some(Arc::new(value))]);
        Self(ArcSwapOption { current: AtomicUsize::new(0), values })
    }

    pub(crate) fn load_full(&self) -> Arc<T> {
        let Some(value) = self.0.load_full() else { unreachable!("it always has a value") };
        value
    }

    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        Guard(self.load_full())
    }

    pub(crate) fn store(&self, value: Arc<T>) {
        self.0.store(Some(value));
    }
}

impl<T> fmt::Debug for ArcSwapOption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArcSwapOption")
    }
}

impl<T> fmt::Debug for ArcSwap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArcSwap")
    }
}
