//! Has tables judged for waste: each once in `reclaim_interval_s`, and before it would pass a
//! filter by or go unread.
//!
//! Threads: one at a time judges what is due, a compactor with nothing else to do, in short
//! stretches with rests; the house keeper where there are no compactors. Verdicts are kept with
//! the tables, in memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::batch::TreeId;
use crate::engine::compaction::pick;
use crate::engine::compaction::waste::{Suspect, Waste};
use crate::engine::compaction::{FilterFactory, FilterJob};
use crate::engine::core::Core;
use crate::engine::version::TableFile;
use crate::error::Result;

/// How long tables are judged before there is a rest of the same length.
pub(crate) const STRETCH: Duration = Duration::from_millis(10);

/// A judge with the moment it judges by; what that can see stays until this is dropped.
pub(crate) struct Court<'a> {
    factory: &'a Arc<dyn FilterFactory>,
    pub(crate) job: FilterJob,
}

impl Court<'_> {
    /// Judges a table and notes the verdict.
    fn judge(&self, file: &TableFile) -> Result<()> {
        let waste = self.factory.judge(&self.job, &Suspect::new(file.table()?));
        // One that cannot be judged waits for its next turn like any other.
        file.note_waste(waste.as_ref().map_or(file.verdict().waste, Waste::clone));
        waste.map(|_| ())
    }

    pub(crate) fn judge_all(&self, files: &[Arc<TableFile>]) -> Result<()> {
        files.iter().try_for_each(|file| self.judge(file))
    }
}

impl Core {
    /// The judge of a tree at this moment; `None` if it has none.
    pub(crate) fn court(&self, tree: usize) -> Result<Option<Court<'_>>> {
        let Some(factory) = &self.tree(tree)?.config.filter else { return Ok(None) };
        let pinned = Arc::new(self.sequences.capture());
        // After the capture: the view must hold all that is visible at it.
        let view = self.view.load_full();
        let tree = TreeId(u8::try_from(tree).unwrap_or(u8::MAX));
        Ok(Some(Court { factory, job: FilterJob { tree, bottommost: false, pinned, view } }))
    }

    /// Whether files that are about to be moved hold waste, which a move would keep.
    pub(crate) fn would_move_waste(&self, tree: usize, files: &[Arc<TableFile>]) -> Result<bool> {
        if self.options.reclaim_interval_s == 0 {
            return Ok(false);
        }
        let Some(court) = self.court(tree)? else { return Ok(false) };
        court.judge_all(files)?;
        Ok(files.iter().any(|file| pick::has_waste(file)))
    }

    /// The tables whose last verdict is older than `age`, with their trees, oldest verdicts first.
    fn unjudged_for(&self, age: Duration) -> Vec<(usize, Arc<TableFile>)> {
        let view = self.view.load();
        let mut due = Vec::new();
        for (tree, levels) in view.version.trees.iter().enumerate() {
            if self.trees.get(tree).is_none_or(|tree| tree.config.filter.is_none()) {
                continue;
            }
            let old = levels.files().filter(|file| file.verdict().at.elapsed() >= age);
            due.extend(old.map(|file| (tree, Arc::clone(file))));
        }
        due.sort_by_key(|(_, file)| file.verdict().at);
        due
    }

    fn due(&self) -> Vec<(usize, Arc<TableFile>)> {
        match self.options.reclaim_interval_s {
            0 => Vec::new(),
            seconds => self.unjudged_for(Duration::from_secs(seconds)),
        }
    }

    pub(crate) fn judgement_is_due(&self) -> bool {
        !self.due().is_empty()
    }

    /// Judges tables that are due, for a short while; `false` if it judged none.
    pub(crate) fn judge_some(&self) -> Result<bool> {
        let Some(_one_at_a_time) = self.work.judging.try_lock() else { return Ok(false) };
        let begun = Instant::now();
        let mut judged = false;
        for (tree, file) in &self.due() {
            if begun.elapsed() >= STRETCH || self.stop_if_asked().is_err() {
                break;
            }
            if let Some(court) = self.court(*tree)? {
                court.judge(file)?;
                judged = true;
            }
        }
        Ok(judged)
    }

    /// Judges every table now and returns when what was found wasted is gone. Trees in order: what
    /// a later one holds may be waste because of what goes from an earlier one.
    pub(crate) fn reclaim(&self) -> Result<()> {
        for tree in 0..self.trees.len() {
            self.writable()?;
            for (_, file) in self.unjudged_for(Duration::ZERO).iter().filter(|(of, _)| *of == tree)
            {
                self.stop_if_asked()?;
                if let Some(court) = self.court(tree)? {
                    court.judge(file)?;
                }
            }
            self.wait_idle()?;
        }
        Ok(())
    }

    /// Bytes that the last verdicts call waste, and the age of the oldest verdict.
    pub(crate) fn waste_known(&self) -> (u64, Duration) {
        let all = self.unjudged_for(Duration::ZERO);
        let bytes = all.iter().map(|(_, file)| file.verdict().waste.bytes).sum();
        let oldest = all.first().map_or(Duration::ZERO, |(_, file)| file.verdict().at.elapsed());
        (bytes, oldest)
    }
}
