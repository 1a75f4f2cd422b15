//! Runs the plans of the strategy: one at a time for each compaction thread.

use std::collections::HashSet;
use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::compaction::merge::{Merge, Tally};
use crate::engine::compaction::pick::{self, Settings};
use crate::engine::compaction::survival::Survival;
use crate::engine::compaction::write::Outputs;
use crate::engine::compaction::{FilterJob, Plan, Reason};
use crate::engine::core::Core;
use crate::engine::entry::MAX_SEQUENCE;
use crate::engine::files::FileNumber;
use crate::engine::iter::merge::MergeCursor;
use crate::engine::source::{LevelCursor, Source};
use crate::engine::version::{Edit, FileMeta, LEVELS, Levels, TableFile};
use crate::error::Result;

/// A plan with the tree it is for; its files are busy until it is dropped.
struct Job<'a> {
    core: &'a Core,
    tree: usize,
    plan: Plan,
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let mut busy = self.core.work.busy.lock();
        for (_, file) in self.plan.files() {
            busy.remove(&file.meta().number);
        }
    }
}

/// A table with the tree and level it goes to.
type Added = (TreeId, u8, FileMeta);

/// Overlap with the level below the output at which a table is ended, in table sizes.
const OVERLAP_TABLES: u64 = 10;

impl Core {
    /// Runs the most urgent plan; `false` if nothing is due.
    pub(crate) fn compact_once(&self) -> Result<bool> {
        match self.next_job(|_| true) {
            Some(job) => self.run(&job, false).map(|()| true),
            None => Ok(false),
        }
    }

    /// Picks a plan and marks its files. Trees whose level 0 is fullest come first.
    fn next_job(&self, wanted: impl Fn(&Plan) -> bool) -> Option<Job<'_>> {
        let mut busy = self.work.busy.lock();
        if self.work.compaction_paused() {
            return None;
        }
        let view = self.view.load();
        let settings = self.pick_settings();
        let mut order: Vec<(usize, &Arc<Levels>)> = view.version.trees.iter().enumerate().collect();
        order.sort_by_key(|(_, levels)| std::cmp::Reverse(levels.level(0).len()));
        order.into_iter().find_map(|(tree, levels)| {
            let plan = pick::pick(levels, &busy, &settings).filter(&wanted)?;
            Some(self.claim(tree, plan, &mut busy))
        })
    }

    /// Whether the strategy has something to do.
    pub(crate) fn anything_to_compact(&self) -> bool {
        self.next_job(|_| true).is_some()
    }

    fn claim(&self, tree: usize, plan: Plan, busy: &mut HashSet<FileNumber>) -> Job<'_> {
        busy.extend(plan.files().map(|(_, file)| file.meta().number));
        Job { core: self, tree, plan }
    }

    fn pick_settings(&self) -> Settings {
        Settings {
            level0_files: self.limits.level0_files,
            base_bytes: self.limits.base_bytes,
            ratio: u64::from(self.options.level_ratio),
            move_overlap_bytes: self.options.table_bytes.saturating_mul(OVERLAP_TABLES),
            oldest_snapshot: self.sequences.live().first().copied().unwrap_or(MAX_SEQUENCE),
        }
    }

    fn run(&self, job: &Job<'_>, nested: bool) -> Result<()> {
        match &job.plan {
            Plan::Merge { inputs, output_level, reason } => {
                self.run_merge(job, inputs, *output_level, *reason, nested)?;
            }
            Plan::Move { files, .. } if self.would_move_waste(job.tree, files)? => {
                // Now that the waste is known, they are picked to be merged or dropped.
            }
            Plan::Move { to, files, .. } => {
                let (tree, level) = (TreeId(small(job.tree)), small(*to));
                let added = files.iter().map(|file| (tree, level, file.meta().clone())).collect();
                self.install_plan(job, added)?;
                self.activity.moves.add(files.len() as u64);
            }
            Plan::Drop { level, files } => self.run_drop(job, *level, files)?,
        }
        self.work.note_progress();
        Ok(())
    }

    /// Takes the plan's files out and puts `added` in.
    fn install_plan(&self, job: &Job<'_>, added: Vec<Added>) -> Result<()> {
        let tree = TreeId(small(job.tree));
        let removed = job.plan.files();
        let edit = Edit {
            removed: removed.map(|(from, file)| (tree, small(from), file.meta().number)).collect(),
            added,
            ..Edit::default()
        };
        self.install(edit, |_| {})
    }

    /// Drops files if they may still go, judged anew: what was known when the plan was made may
    /// have come from a thread that had seen less.
    fn run_drop(&self, job: &Job<'_>, level: usize, files: &[Arc<TableFile>]) -> Result<()> {
        let Some(court) = self.court(job.tree)? else { return Ok(()) };
        court.judge_all(files)?;
        let levels = court.job.view.version.trees.get(job.tree);
        if !levels.is_some_and(|levels| pick::may_drop(levels, level, files)) {
            return Ok(());
        }
        self.sync_what_was_read()?;
        self.install_plan(job, Vec::new())?;
        self.activity.drops.add(files.len() as u64);
        self.activity.dropped_bytes.add(job.plan.input_bytes());
        self.activity.dropped_entries.add(files.iter().map(|file| file.meta().entries).sum());
        Ok(())
    }

    /// Whoever judged did so by what it read, memtables included: a power cut must not take that
    /// back while what was judged is gone.
    fn sync_what_was_read(&self) -> Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.sync_all().map(|_| ()))
    }

    fn run_merge(
        &self,
        job: &Job<'_>,
        inputs: &[(usize, Vec<Arc<TableFile>>)],
        output_level: usize,
        reason: Reason,
        nested: bool,
    ) -> Result<()> {
        // Captured after the inputs were chosen: whoever pins a snapshot later sees at least all
        // of what the inputs hold.
        let pinned = Arc::new(self.sequences.capture());
        let view = self.view.load_full();
        let tree = self.tree(job.tree)?;
        let Some(levels) = view.version.trees.get(job.tree).cloned() else { return Ok(()) };
        let bottommost = !(output_level + 1..LEVELS).any(|level| !levels.level(level).is_empty());
        let id = TreeId(small(job.tree));
        let filter_job = FilterJob { tree: id, bottommost, pinned: Arc::clone(&pinned), view };
        let filter = match &tree.config.filter {
            Some(factory) => factory.filter(&filter_job)?,
            None => None,
        };
        let filtered = filter.is_some();
        let mut outputs = Outputs::new(self.workshop(tree, bottommost));
        let merge = Merge {
            survival: Survival::new(
                pinned.snapshots.iter().map(super::snapshot::SnapshotPin::sequence).collect(),
            ),
            filter,
            is_bottom: Box::new(|key| !levels.reaches_below(output_level, key)),
            pause: Box::new(|bytes| self.pause(bytes, nested)),
            cut_before: Box::new(self.overlap_limit(&levels, output_level)),
        };
        let mut cursor = MergeCursor::new(merge_sources(inputs)?);
        let tally = merge.run(&mut cursor, &mut outputs)?;
        drop(cursor);
        let files = outputs.finish()?;
        let mut added: Vec<_> =
            files.into_iter().map(|file| (id, small(output_level), file)).collect();
        self.or_discard(&mut added, |added| {
            if filtered {
                self.sync_what_was_read()?;
            }
            self.install_plan(job, added.clone())
        })?;
        self.count_merge(job, &added, tally, reason);
        Ok(())
    }

    fn count_merge(&self, job: &Job<'_>, files: &[Added], tally: Tally, reason: Reason) {
        let activity = &self.activity;
        activity.merges.add(1);
        activity.merges_for_tombstones.add(u64::from(reason == Reason::Tombstones));
        activity.merges_for_waste.add(u64::from(reason == Reason::Waste));
        activity.merge_read_bytes.add(job.plan.input_bytes());
        activity.merge_written_bytes.add(files.iter().map(|(_, _, file)| file.size).sum());
        activity.shadowed.add(tally.shadowed);
        activity.filtered.add(tally.filtered);
        activity.elided.add(tally.elided);
    }

    /// Between chunks of a merge: stop if the store does, keep to the rate, and let level 0 go
    /// first when it has become urgent.
    fn pause(&self, bytes: u64, nested: bool) -> Result<()> {
        self.stop_if_asked()?;
        self.rate.take(bytes, || self.stop_if_asked().is_ok());
        if nested {
            return Ok(());
        }
        let urgent = self
            .view
            .load()
            .version
            .trees
            .iter()
            .any(|levels| levels.level(0).len() >= self.limits.level0_slow);
        let from_level0 = |plan: &Plan| match plan {
            Plan::Merge { reason, .. } => *reason == Reason::Level0,
            Plan::Move { from, .. } => *from == 0,
            // Comes before any other step, and takes no time.
            Plan::Drop { .. } => true,
        };
        if urgent && let Some(job) = self.next_job(from_level0) {
            self.activity.preemptions.add(1);
            self.run(&job, true)?;
        }
        Ok(())
    }

    /// Ends a table where it would overlap too much of the level below: its later merge would be
    /// large.
    fn overlap_limit(
        &self,
        levels: &Levels,
        output_level: usize,
    ) -> impl FnMut(&[u8]) -> bool + use<> {
        let below: Vec<Arc<TableFile>> = levels.level(output_level + 1).to_vec();
        let limit = self.options.table_bytes.saturating_mul(OVERLAP_TABLES);
        let (mut at, mut overlapped) = (0, 0);
        move |key| {
            while let Some(file) = below.get(at).filter(|file| *file.meta().largest < *key) {
                overlapped += file.meta().size;
                at += 1;
            }
            let cut = overlapped > limit;
            if cut {
                overlapped = 0;
            }
            cut
        }
    }

    /// Flushes, then rewrites every tree into its deepest level.
    pub(crate) fn compact(&self) -> Result<()> {
        self.flush()?;
        self.writable()?.sync_all()?;
        let paused = self.work.pause_compaction();
        // The store may have been closed while this waited.
        self.writable()?;
        for tree in 0..self.trees.len() {
            if let Some(job) = self.whole_tree(tree) {
                self.run(&job, false)?;
            }
        }
        drop(paused);
        self.work.wake_compactors();
        Ok(())
    }

    fn whole_tree(&self, tree: usize) -> Option<Job<'_>> {
        let view = self.view.load();
        let levels = view.version.trees.get(tree)?;
        let inputs: Vec<_> = levels
            .iter()
            .filter(|(_, files)| !files.is_empty())
            .map(|(level, files)| (level, files.to_vec()))
            .collect();
        if inputs.is_empty() {
            return None;
        }
        let plan = Plan::Merge { inputs, output_level: LEVELS - 1, reason: Reason::Manual };
        Some(self.claim(tree, plan, &mut self.work.busy.lock()))
    }
}

fn merge_sources(inputs: &[(usize, Vec<Arc<TableFile>>)]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for (level, files) in inputs {
        if *level == 0 {
            for file in files {
                sources.push(Source::Table(file.table()?.cursor(false)));
            }
        } else if !files.is_empty() {
            sources.push(Source::Level(LevelCursor::new(files.clone(), false)));
        }
    }
    Ok(sources)
}

/// Levels and trees are few.
fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
