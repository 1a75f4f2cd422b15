//! Lets tests watch and steer the spills of collections under construction.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

type Interlude = Box<dyn FnMut(usize) + Send>;

/// The spills of one store.
#[derive(Default)]
pub(crate) struct Spills {
    threshold: Mutex<Option<usize>>,
    count: AtomicUsize,
    interlude: Mutex<Option<Interlude>>,
}

impl Spills {
    /// The number of bytes at which rows are spilled, if the test has set one.
    pub(crate) fn threshold(&self) -> Option<usize> {
        *self.threshold.lock()
    }

    /// Spills rows as soon as there are this many bytes of them.
    pub(crate) fn spill_at(&self, bytes: usize) {
        *self.threshold.lock() = Some(bytes);
    }

    /// Calls `interlude` after every spill from now on, with their number so far.
    pub(crate) fn after_spills(&self, interlude: impl FnMut(usize) + Send + 'static) {
        *self.interlude.lock() = Some(Box::new(interlude));
    }

    /// The number of spills so far.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a spill and runs the interlude.
    pub(crate) fn spilled(&self) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(interlude) = &mut *self.interlude.lock() {
            interlude(count);
        }
    }
}
