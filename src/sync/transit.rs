//! Opens and closes of stores that are in progress. Their stores have threads, but no handle shows
//! them yet: a child that is forked meanwhile has inherited an open store.

use std::sync::atomic::{AtomicUsize, Ordering};

static IN_TRANSIT: AtomicUsize = AtomicUsize::new(0);

/// An open or a close in progress, until it is dropped.
pub(crate) struct Transit(());

impl Transit {
    pub(crate) fn begin() -> Self {
        IN_TRANSIT.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Whether an open or a close is in progress.
    pub(crate) fn any() -> bool {
        IN_TRANSIT.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Transit {
    fn drop(&mut self) {
        IN_TRANSIT.fetch_sub(1, Ordering::SeqCst);
    }
}
