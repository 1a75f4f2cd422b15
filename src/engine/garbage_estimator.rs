//! Garbage estimation: every table is estimated once per `reclaim_interval_s`, and also before a
//! compaction would move or drop it without reading it.
//!
//! Threads: one thread at a time works on the estimates that are due, in short time slices with
//! pauses. That is an idle compaction thread, or the maintenance thread of a store without
//! compaction threads. Estimates are kept in memory, with the tables.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::batch::TreeId;
use crate::engine::compaction::picker;
use crate::engine::compaction::{FilterFactory, FilterJob};
use crate::engine::core::Core;
use crate::engine::garbage::TableStats;
use crate::engine::shadowed::shadowed_bytes;
use crate::engine::version::TableFile;
use crate::error::Result;
use crate::sync::Instant;

/// Longest time spent on estimates at once. A pause of the same length follows.
pub(crate) const SLICE: Duration = Duration::from_millis(10);

/// Age from which on an estimate is made anew while the disk is full.
const FULL_DISK_AGE: Duration = Duration::from_secs(1);

/// Longest time to look for the current garbage of a store, and of one that is only read.
const LOOK: Duration = Duration::from_millis(5);
const READ_ONLY_LOOK: Duration = Duration::from_secs(1);

/// Estimates the garbage of a tree's tables at one read point.
///
/// Everything visible at the read point stays readable until the estimator is dropped.
pub(crate) struct GarbageEstimator<'a> {
    factory: &'a Arc<dyn FilterFactory>,
    pub(crate) job: FilterJob,
}

impl GarbageEstimator<'_> {
    /// Estimates the garbage of a table and stores the estimate with it.
    pub(crate) fn estimate(&self, file: &TableFile) -> Result<()> {
        let stats = TableStats::new(file.table()?);
        let garbage = self.factory.estimate_garbage(&self.job, &stats);
        // A table whose estimate fails keeps the old figures and waits for its next turn.
        let figures = garbage.as_ref().copied();
        file.set_garbage(figures.unwrap_or_else(|_| file.garbage_estimate().garbage));
        garbage.map(|_| ())
    }

    /// Estimates the garbage of each of `files`.
    pub(crate) fn estimate_all(&self, files: &[Arc<TableFile>]) -> Result<()> {
        files.iter().try_for_each(|file| self.estimate(file))
    }
}

impl Core {
    /// An estimator for a tree at the current read point; `None` if the tree has no filter.
    pub(crate) fn garbage_estimator(&self, tree: usize) -> Result<Option<GarbageEstimator<'_>>> {
        let Some(factory) = &self.tree(tree)?.config.filter else { return Ok(None) };
        let tree = TreeId(u8::try_from(tree).unwrap_or(u8::MAX));
        Ok(Some(GarbageEstimator { factory, job: self.filter_job(tree) }))
    }

    /// Whether files that are about to be moved contain garbage, which a move would not remove.
    pub(crate) fn would_move_garbage(&self, tree: usize, files: &[Arc<TableFile>]) -> Result<bool> {
        if self.options.reclaim_interval_s == 0 {
            return Ok(false);
        }
        let Some(estimator) = self.garbage_estimator(tree)? else { return Ok(false) };
        estimator.estimate_all(files)?;
        Ok(files.iter().any(|file| picker::has_garbage(file)))
    }

    /// The tables whose estimate is at least `age` old, with their trees, oldest estimate first.
    pub(crate) fn estimates_older_than(&self, age: Duration) -> Vec<(usize, Arc<TableFile>)> {
        let view = self.view.load();
        let mut due = Vec::new();
        for (tree, levels) in view.version.trees.iter().enumerate() {
            if self.trees.get(tree).is_none_or(|tree| tree.config.filter.is_none()) {
                continue;
            }
            let is_old = |file: &&Arc<TableFile>| file.garbage_estimate().made_at.elapsed() >= age;
            due.extend(levels.files().filter(is_old).map(|file| (tree, Arc::clone(file))));
        }
        // Another thread may make a new estimate meanwhile: each is looked at once.
        due.sort_by_cached_key(|(_, file)| file.garbage_estimate().made_at);
        due
    }

    fn estimates_due(&self) -> Vec<(usize, Arc<TableFile>)> {
        match self.options.reclaim_interval_s {
            0 => Vec::new(),
            _ if self.space.is_full() => self.estimates_older_than(FULL_DISK_AGE),
            seconds => self.estimates_older_than(Duration::from_secs(seconds)),
        }
    }

    /// Whether any table is due for a new estimate.
    pub(crate) fn garbage_estimate_is_due(&self) -> bool {
        !self.estimates_due().is_empty()
    }

    /// Estimates tables that are due, for at most one time slice; `false` if there were none.
    pub(crate) fn estimate_some_garbage(&self) -> Result<bool> {
        let Some(_one_at_a_time) = self.work.estimating.try_lock() else { return Ok(false) };
        let begun = Instant::now();
        let mut estimated = false;
        for (tree, file) in &self.estimates_due() {
            if begun.elapsed() >= SLICE || self.stop_if_asked().is_err() {
                break;
            }
            if let Some(estimator) = self.garbage_estimator(*tree)? {
                estimator.estimate(file)?;
                estimated = true;
            }
        }
        Ok(estimated)
    }

    /// The bytes that a compaction of everything would remove now: estimates of all tables made
    /// anew, and entries that newer ones hide. After [`LOOK`] the latest estimates of the remaining
    /// tables count, and fewer entries are looked at; but one table of each tree is always estimated,
    /// so that a small store has right figures on a busy machine too. Nothing is stored.
    pub(crate) fn current_garbage(&self) -> Result<u64> {
        let time = if self.options.read_only { READ_ONLY_LOOK } else { LOOK };
        let deadline = Instant::now() + time;
        let mut bytes = 0;
        for tree in 0..self.trees.len() {
            bytes += self.current_garbage_of(tree, deadline)?;
        }
        Ok(bytes)
    }

    fn current_garbage_of(&self, tree: usize, deadline: Instant) -> Result<u64> {
        let Some(estimator) = self.garbage_estimator(tree)? else { return Ok(0) };
        let view = estimator.job.view();
        let levels = view.version.trees.get(tree);
        let (mut garbage, mut total) = (0u64, 0u64);
        for (place, file) in levels.into_iter().flat_map(|levels| levels.files()).enumerate() {
            total += file.meta().size;
            let estimate = match place == 0 || Instant::now() < deadline {
                true => estimator
                    .factory
                    .estimate_garbage(&estimator.job, &TableStats::new(file.table()?))?,
                false => file.garbage_estimate().garbage,
            };
            garbage += estimate.bytes;
        }
        // What is hidden may be counted among the expired and unreachable too.
        Ok((garbage + shadowed_bytes(&estimator.job, deadline)?).min(total))
    }

    /// Total garbage by the latest estimates, and the age of the oldest estimate.
    pub(crate) fn estimated_garbage(&self) -> (u64, Duration) {
        let all = self.estimates_older_than(Duration::ZERO);
        let bytes = all.iter().map(|(_, file)| file.garbage_estimate().garbage.bytes).sum();
        let oldest = all.first();
        let age = oldest.map(|(_, file)| file.garbage_estimate().made_at.elapsed());
        (bytes, age.unwrap_or_default())
    }
}
