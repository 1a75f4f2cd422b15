//! Counters of what compaction filters have removed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of entries that compaction filters removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Rows of the data and score trees, including tombstones.
    pub(crate) rows: u64,
    /// Records of the meta tree.
    pub(crate) records: u64,
}

/// The totals since the store was opened. All compaction threads add to them.
#[derive(Debug, Default)]
pub(crate) struct RemovedTotals {
    rows: AtomicU64,
    records: AtomicU64,
    #[cfg(test)]
    interlude: interlude::Interlude,
}

impl RemovedTotals {
    /// Adds the counts of one compaction.
    pub(crate) fn add(&self, removed: Removed) {
        self.rows.fetch_add(removed.rows, Ordering::Relaxed);
        self.records.fetch_add(removed.records, Ordering::Relaxed);
    }

    /// The totals so far.
    pub(crate) fn total(&self) -> Removed {
        let (rows, records) = (&self.rows, &self.records);
        Removed { rows: rows.load(Ordering::Relaxed), records: records.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod interlude {
    use parking_lot::Mutex;

    /// What a test lets happen while a compaction runs.
    #[derive(Default)]
    pub(super) struct Interlude(Mutex<Option<Box<dyn FnOnce() + Send>>>);

    impl std::fmt::Debug for Interlude {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Interlude")
        }
    }

    impl crate::keyspace::reclaimed::RemovedTotals {
        /// Runs once, when the next compaction or garbage estimate of rows has captured its read
        /// points.
        pub(crate) fn set_interlude(&self, interlude: impl FnOnce() + Send + 'static) {
            *self.interlude.0.lock() = Some(Box::new(interlude));
        }

        /// Whether the interlude has run.
        pub(crate) fn interlude_is_over(&self) -> bool {
            self.interlude.0.lock().is_none()
        }

        pub(crate) fn run_interlude(&self) {
            let interlude = self.interlude.0.lock().take();
            interlude.into_iter().for_each(|interlude| interlude());
        }
    }
}
