//! Runs the compactions that the picker plans: one at a time per compaction thread.

use std::collections::HashSet;
use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::compaction::merge::{Merge, MergeEnd, MergeStats};
use crate::engine::compaction::output::TableOutputs;
use crate::engine::compaction::picker::{self, PickerOptions};
use crate::engine::compaction::visibility::Visibility;
use crate::engine::compaction::{FilterJob, Plan, Reason};
use crate::engine::core::Core;
use crate::engine::cursor::MergeCursor;
use crate::engine::entry::{MAX_SEQUENCE, bound};
use crate::engine::files::FileNumber;
use crate::engine::handle::Engine;
use crate::engine::iter::source::{LevelCursor, Source};
use crate::engine::release::release;
use crate::engine::snapshot::SnapshotPin;
use crate::engine::sstable::CacheFill;
use crate::engine::version::{FileMeta, LEVELS, Levels, TableFile, VersionEdit};
use crate::error::Result;

/// A plan and the tree it is for. Its files are busy until the job is dropped.
struct CompactionJob<'a> {
    core: &'a Core,
    tree: usize,
    plan: Plan,
    busy: Vec<FileNumber>,
}

impl Drop for CompactionJob<'_> {
    fn drop(&mut self) {
        let mut busy = self.core.work.busy.lock();
        for number in &self.busy {
            busy.remove(number);
        }
    }
}

/// A new table with its tree and level.
type AddedTable = (TreeId, u8, FileMeta);

/// Space that a merge may take beyond that of its inputs.
const PIECE_SLACK_BYTES: u64 = 1 << 20;

/// A table is finished once it overlaps this many table sizes in the level below its own.
const OVERLAP_TABLES: u64 = 10;

impl Engine {
    /// Flushes, then merges all tables of each tree into its deepest level, so that no garbage is
    /// left.
    pub fn compact(&self) -> Result<()> {
        let core = &self.core;
        self.flush()?;
        core.writable()?.sync_all()?;
        let paused = core.work.pause_compaction();
        // The store may have been closed in the meantime.
        core.writable()?;
        let jobs: Vec<_> =
            (0..core.trees.len()).filter_map(|tree| core.full_compaction(tree)).collect();
        // The jobs have claimed every table. Tables that come now are compacted as usual.
        drop(paused);
        core.work.wake_compactors();
        for job in jobs {
            core.run(job, false)?;
        }
        core.work.wake_compactors();
        Ok(())
    }
}

impl Core {
    /// Runs the most urgent compaction; `false` if none is due. Fails with `Full` while that has to
    /// wait for readers: writers that wait for it must know.
    pub(crate) fn compact_once(&self) -> Result<bool> {
        match self.next_job(|_| true) {
            Some(job) if self.would_use_up_reserve(&job.plan) => Err(self.space.full_error()),
            Some(job) => {
                let ran = self.run(job, false);
                if let Err(error) = &ran
                    && self.space.free().is_none()
                {
                    self.space.note_failure(error);
                }
                self.note_space();
                if ran.is_ok() {
                    self.work.note_step();
                }
                ran.map(|()| true)
            }
            None => Ok(false),
        }
    }

    /// Picks a plan and marks its files as busy. Trees with the most level-0 files come first.
    fn next_job(&self, wanted: impl Fn(&Plan) -> bool) -> Option<CompactionJob<'_>> {
        let mut busy = self.work.busy.lock();
        if self.work.compaction_paused() {
            return None;
        }
        let view = self.view.load();
        let options = self.picker_options();
        let mut order: Vec<(usize, &Arc<Levels>)> = view.version.trees.iter().enumerate().collect();
        order.sort_by_key(|(_, levels)| std::cmp::Reverse(levels.level(0).len()));
        let due = order.iter().find_map(|(tree, levels)| {
            Some((*tree, picker::pick(levels, &busy, &options).filter(&wanted)?))
        });
        let freeing = || {
            let plans = order.iter().filter_map(|(tree, levels)| {
                let (gain, plan) = picker::pick_freeing(levels, &busy, &options)?;
                Some((gain, (*tree, plan)))
            });
            plans.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, plan)| plan)
        };
        let plan = match self.space.is_full() {
            // What only moves data about can wait, unless readers suffer.
            true => freeing().or(due.filter(|(tree, plan)| {
                let levels = view.version.trees.get(*tree);
                let crowded = levels.is_some_and(|it| it.level(0).len() >= self.limits.level0_slow);
                crowded || matches!(plan, Plan::Drop { .. } | Plan::Move { .. })
            })),
            false => due,
        };
        let (tree, plan) = plan.filter(|(_, plan)| wanted(plan))?;
        Some(self.claim(tree, plan, &mut busy))
    }

    /// Whether a compaction is due.
    pub(crate) fn compaction_is_due(&self) -> bool {
        self.next_job(|_| true).is_some()
    }

    fn claim(&self, tree: usize, plan: Plan, busy: &mut HashSet<FileNumber>) -> CompactionJob<'_> {
        let own: Vec<_> = plan.files().map(|(_, file)| file.meta().number).collect();
        busy.extend(own.iter().copied());
        CompactionJob { core: self, tree, plan, busy: own }
    }

    fn picker_options(&self) -> PickerOptions {
        PickerOptions {
            level0_files: self.limits.level0_files,
            base_bytes: self.limits.base_bytes,
            ratio: u64::from(self.options.level_ratio),
            move_overlap_bytes: self.options.table_bytes.saturating_mul(OVERLAP_TABLES),
            oldest_snapshot: self.sequences.live().first().copied().unwrap_or(MAX_SEQUENCE),
            space_is_urgent: self.space.has_waiters(),
        }
    }

    fn run(&self, mut job: CompactionJob<'_>, nested: bool) -> Result<()> {
        match &job.plan {
            Plan::Merge { .. } if self.lacks_space_for(&job.plan) => {
                self.run_in_pieces(&mut job, nested)?;
            }
            Plan::Merge { .. } => _ = self.run_merge(&job, nested, false)?,
            Plan::Move { files, .. } if self.would_move_garbage(job.tree, files)? => {
                // Now that the garbage is known, the files will be picked to be merged or dropped.
            }
            Plan::Move { to, files, .. } => {
                let (tree, level) = (TreeId(small(job.tree)), small(*to));
                let added = files.iter().map(|file| (tree, level, file.meta().clone())).collect();
                self.install_plan(&job, added, None)?;
                self.activity.moves.add(files.len() as u64);
            }
            Plan::Drop { level, files } => self.run_drop(&job, *level, files)?,
        }
        self.work.note_progress();
        let files = job.plan.files().map(|(_, file)| Arc::clone(file)).collect();
        drop(job);
        release(files);
        Ok(())
    }

    /// Installs an edit that removes the files of the plan and adds `added`. If the merge stopped
    /// before a key, files with later entries stay, and begin with that key.
    fn install_plan(
        &self,
        job: &CompactionJob<'_>,
        mut added: Vec<AddedTable>,
        stopped_before: Option<&[u8]>,
    ) -> Result<()> {
        let tree = TreeId(small(job.tree));
        let mut removed = Vec::new();
        for (level, file) in job.plan.files() {
            let rest = stopped_before.filter(|key| !file.meta().bounds.end_before(key));
            if let Some(key) = rest {
                if file.meta().bounds.smallest() >= bound(key) {
                    continue;
                }
                let table = file.table()?;
                file.set_next_start(table.approximate_offset(bound(key))?);
                let stays =
                    table.weight_between(bound(key), None, MAX_SEQUENCE, CacheFill::Skip)?;
                added.push((tree, small(level), file.meta().raised_to(key, stays)));
            }
            removed.push((tree, small(level), file.meta().number));
        }
        self.install(VersionEdit { removed, added, ..VersionEdit::default() }, |_| {})
    }

    /// Drops files if that is still allowed by new estimates. The estimates that led to the plan
    /// may come from a thread that had seen less.
    fn run_drop(
        &self,
        job: &CompactionJob<'_>,
        level: usize,
        files: &[Arc<TableFile>],
    ) -> Result<()> {
        let Some(estimator) = self.garbage_estimator(job.tree)? else { return Ok(()) };
        estimator.estimate_all(files)?;
        let view = estimator.job.view();
        let levels = view.version.trees.get(job.tree);
        if !levels.is_some_and(|levels| picker::may_drop(levels, level, files)) {
            return Ok(());
        }
        self.sync_log()?;
        self.install_plan(job, Vec::new(), None)?;
        self.activity.drops.add(files.len() as u64);
        self.activity.dropped_bytes.add(job.plan.input_bytes());
        self.activity.dropped_entries.add(files.iter().map(|file| file.meta().entries).sum());
        Ok(())
    }

    /// Makes everything durable that a filter or an estimate may have read, memtables included. A
    /// power cut must not undo what justified a removal.
    fn sync_log(&self) -> Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.sync_all().map(|_| ()))
    }

    /// Whether the result of a merge may not fit beside its inputs.
    pub(crate) fn lacks_space_for(&self, plan: &Plan) -> bool {
        let within_level0 = matches!(plan, Plan::Merge { output_level: 0, .. });
        let needed = plan.input_bytes().saturating_add(PIECE_SLACK_BYTES);
        let known = self.space.free().is_some();
        !within_level0 && if known { self.space.lacks(needed) } else { self.space.is_full() }
    }

    /// Runs a merge table by table: after each, the inputs give back what was read of them, so that
    /// the merge never takes much more space than there was.
    fn run_in_pieces(&self, job: &mut CompactionJob<'_>, nested: bool) -> Result<()> {
        let Plan::Merge { inputs, output_level, reason } = &job.plan else { return Ok(()) };
        let (output_level, reason) = (*output_level, *reason);
        let numbers = inputs.iter().map(|(level, files)| {
            (*level, files.iter().map(|file| file.meta().number).collect::<HashSet<_>>())
        });
        let numbers: Vec<_> = numbers.collect();
        let mut stopped = true;
        while stopped {
            let inputs = self.present_files(job.tree, &numbers);
            let before =
                inputs.iter().flat_map(|(_, files)| files.iter().map(Arc::downgrade)).collect();
            job.plan = Plan::Merge { inputs, output_level, reason };
            stopped = self.run_merge(job, nested, true)?;
            // Nothing may refer to the inputs any more, or they give back nothing.
            job.plan = Plan::Merge { inputs: Vec::new(), output_level, reason };
            self.note_space();
            self.work.note_step();
            self.wait_for_inputs(job.tree, &numbers, before)?;
        }
        Ok(())
    }

    /// The files of these numbers that are still in their levels, as they are now.
    pub(crate) fn present_files(
        &self,
        tree: usize,
        numbers: &[(usize, HashSet<FileNumber>)],
    ) -> Vec<(usize, Vec<Arc<TableFile>>)> {
        let view = self.view.load();
        let Some(levels) = view.version.trees.get(tree) else { return Vec::new() };
        let of = |(level, numbers): &(usize, HashSet<FileNumber>)| {
            let files = levels.level(*level).iter();
            let present = files.filter(|file| numbers.contains(&file.meta().number));
            (*level, present.cloned().collect())
        };
        numbers.iter().map(of).collect()
    }

    /// Merges the inputs of the plan, or writes one table of the result. Returns whether something
    /// is left to merge.
    fn run_merge(&self, job: &CompactionJob<'_>, nested: bool, one_table: bool) -> Result<bool> {
        let Plan::Merge { inputs, output_level, reason } = &job.plan else { return Ok(false) };
        let (output_level, reason) = (*output_level, *reason);
        let id = TreeId(small(job.tree));
        // Captured after the inputs were chosen: a snapshot pinned later sees everything that the
        // inputs hold.
        let mut filter_job = self.filter_job(id);
        let pinned = Arc::clone(&filter_job.pinned);
        let levels = self.view.load().version.trees.get(job.tree).cloned();
        let (tree, Some(levels)) = (self.tree(job.tree)?, levels) else { return Ok(false) };
        // Level 0 may hold older tables beside those that are merged.
        let within_level0 = output_level == 0;
        let bottommost = !within_level0
            && !(output_level + 1..LEVELS).any(|level| !levels.level(level).is_empty());
        filter_job.bottommost = bottommost;
        let filter = match &tree.config.filter {
            Some(factory) => factory.filter(&filter_job)?,
            None => None,
        };
        let filtered = filter.is_some();
        let mut options = self.output_options(tree, bottommost);
        let mut overlap_limit = self.overlap_limit(&levels, output_level);
        if within_level0 {
            options.table_bytes = u64::MAX;
        }
        if one_table {
            options = self.small_tables(options, None);
        }
        let mut outputs = TableOutputs::new(options);
        let merge = Merge {
            visibility: Visibility::new(
                pinned.snapshots.iter().map(SnapshotPin::sequence).collect(),
            ),
            filter,
            is_bottom: Box::new(|key| !within_level0 && !levels.reaches_below(output_level, key)),
            pause: Box::new(|bytes| self.pause(bytes, nested, reason)),
            cut_before: Box::new(|key| overlap_limit(key) && !within_level0),
            one_table,
        };
        let mut cursor = MergeCursor::new(merge_sources(inputs)?);
        let MergeEnd { stats, stopped_before } = merge.run(&mut cursor, &mut outputs)?;
        drop(cursor);
        let files = outputs.finish()?;
        let mut added: Vec<_> =
            files.into_iter().map(|file| (id, small(output_level), file)).collect();
        self.or_discard(&mut added, |added| {
            if filtered {
                self.sync_log()?;
            }
            self.install_plan(job, added.clone(), stopped_before.as_deref())
        })?;
        self.count_merge(job, &added, stats, reason);
        Ok(stopped_before.is_some())
    }

    /// A job that captures the read points of this moment.
    pub(crate) fn filter_job(&self, tree: TreeId) -> FilterJob {
        let (pinned, views) = (Arc::new(self.sequences.capture()), Arc::clone(&self.view));
        FilterJob { tree, bottommost: false, pinned, views }
    }

    fn count_merge(
        &self,
        job: &CompactionJob<'_>,
        files: &[AddedTable],
        stats: MergeStats,
        reason: Reason,
    ) {
        let activity = &self.activity;
        activity.merges.add(1);
        activity.merges_for_tombstones.add(u64::from(reason == Reason::Tombstones));
        activity.merges_for_garbage.add(u64::from(reason == Reason::Garbage));
        activity.merge_read_bytes.add(job.plan.input_bytes());
        activity.merge_written_bytes.add(files.iter().map(|(_, _, file)| file.size).sum());
        activity.shadowed.add(stats.shadowed);
        activity.filtered.add(stats.filtered);
        activity.elided.add(stats.elided);
    }

    /// Called between chunks of a merge: ends it when the store stops, limits its rate, and runs a
    /// compaction of level 0 first when that has become urgent. Merges that others wait for
    /// are not limited.
    fn pause(&self, bytes: u64, nested: bool, reason: Reason) -> Result<()> {
        self.stop_if_asked()?;
        let urgent = self
            .view
            .load()
            .version
            .trees
            .iter()
            .any(|levels| levels.level(0).len() >= self.limits.level0_slow);
        // The limit must make neither writers wait nor a caller that has paused compaction: level 0
        // is not merged until this merge ends.
        let waited_for = urgent && reason == Reason::Level0 || self.work.compaction_paused();
        if !waited_for && !self.space.is_full() {
            self.rate.take(bytes, || self.stop_if_asked().is_ok());
        }
        if nested {
            return Ok(());
        }
        let from_level0 = |plan: &Plan| match plan {
            Plan::Merge { reason, .. } => *reason == Reason::Level0,
            Plan::Move { from, .. } => *from == 0,
            // A drop comes before any other step and takes no time.
            Plan::Drop { .. } => true,
        };
        if urgent
            && let Some(job) = self.next_job(from_level0)
            && !self.would_use_up_reserve(&job.plan)
        {
            self.activity.preemptions.add(1);
            self.run(job, true)?;
        }
        Ok(())
    }

    /// Tells where to finish a table because it overlaps too much of the level below. Its later
    /// merge would be large.
    fn overlap_limit(
        &self,
        levels: &Levels,
        output_level: usize,
    ) -> impl FnMut(&[u8]) -> bool + use<> {
        let below: Vec<Arc<TableFile>> = levels.level(output_level + 1).to_vec();
        let limit = self.options.table_bytes.saturating_mul(OVERLAP_TABLES);
        let (mut at, mut overlapped) = (0, 0);
        let mut begun = false;
        move |key| {
            if !begun {
                // A merge in pieces begins in the middle.
                at = below.partition_point(|file| file.meta().bounds.end_before(key));
                begun = true;
            }
            while let Some(file) = below.get(at).filter(|file| file.meta().bounds.end_before(key)) {
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

    /// A merge of all tables of a tree into the deepest level.
    fn full_compaction(&self, tree: usize) -> Option<CompactionJob<'_>> {
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
                sources.push(Source::Table(file.table()?.cursor(CacheFill::Skip)));
            }
        } else if !files.is_empty() {
            sources.push(Source::Level(LevelCursor::new(files.clone(), CacheFill::Skip)));
        }
    }
    Ok(sources)
}

/// The number of a level or tree, of which there are few.
fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
