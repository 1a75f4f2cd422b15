//! Compactions that garbage estimates call for: drops of unneeded tables, and rewrites of tables
//! that are mostly garbage.
//!
//! A table written by a merge starts without garbage and is estimated again only after an
//! interval. So a table is rewritten for its garbage at most once per interval, whatever the
//! estimates say.

use std::collections::HashSet;
use std::sync::Arc;

use super::{DEEPEST, any_busy, rewrite_in_place};
use crate::engine::compaction::plan::{Plan, Reason};
use crate::engine::files::FileNumber;
use crate::engine::garbage::TableNeed;
use crate::engine::version::{LEVELS, Levels, TableFile};

/// Whether a file has too much garbage to be moved as it is: a tenth of its size or more.
pub fn has_garbage(file: &TableFile) -> bool {
    garbage_bytes(file).saturating_mul(10) >= file.meta().size.max(1)
}

/// Whether rewriting a file frees as much as it writes: half of the file or more is garbage.
pub(super) fn is_mostly_garbage(file: &TableFile) -> bool {
    garbage_bytes(file).saturating_mul(2) >= file.meta().size.max(1)
}

pub(super) fn garbage_bytes(file: &TableFile) -> u64 {
    file.garbage_estimate().garbage.bytes
}

/// Picks files that may be dropped unread. Deeper levels come first: once a file is gone, those
/// above it no longer shadow anything and may go too.
pub(super) fn pick_unneeded(levels: &Levels, busy: &HashSet<FileNumber>) -> Option<Plan> {
    (0..LEVELS).rev().find_map(|level| {
        let mut files = Vec::new();
        // In level 0 the oldest files come last.
        for file in levels.level(level).iter().rev() {
            if !busy.contains(&file.meta().number) && is_droppable(levels, level, file, &files) {
                files.push(Arc::clone(file));
            }
        }
        (!files.is_empty()).then_some(Plan::Drop { level, files })
    })
}

/// Whether all of these files of a level may be dropped unread, by their latest estimates.
pub fn may_drop(levels: &Levels, level: usize, files: &[Arc<TableFile>]) -> bool {
    files.iter().all(|file| is_droppable(levels, level, file, files))
}

/// Whether `file` may be dropped together with `others` of its level.
fn is_droppable(
    levels: &Levels,
    level: usize,
    file: &TableFile,
    others: &[Arc<TableFile>],
) -> bool {
    match file.garbage_estimate().garbage.need {
        TableNeed::MayBeRead => false,
        TableNeed::ShadowsOlder => !may_shadow(levels, level, file, others),
        TableNeed::Unneeded => true,
    }
}

/// Whether files other than `others` may hold older entries of the keys of `file`.
fn may_shadow(levels: &Levels, level: usize, file: &TableFile, others: &[Arc<TableFile>]) -> bool {
    let meta = file.meta();
    let older_in_level0 = || {
        let older = levels.level(0).iter().skip_while(|other| other.meta().number != meta.number);
        older.skip(1).any(|other| {
            let goes_too = others.iter().any(|it| it.meta().number == other.meta().number);
            !goes_too && other.meta().bounds.touch(&meta.bounds)
        })
    };
    (level == 0 && older_in_level0())
        || (level + 1..LEVELS).any(|deeper| !levels.overlapping(deeper, &meta.bounds).is_empty())
}

/// Picks the file of a sorted level with the most garbage, if that is half of it or more.
pub(super) fn pick_garbage(levels: &Levels, busy: &HashSet<FileNumber>) -> Option<Plan> {
    let files = (1..LEVELS).flat_map(|level| levels.level(level).iter().map(move |f| (level, f)));
    let (level, worst) = files
        .filter(|(level, file)| {
            let touched = levels.overlapping(*level, &file.meta().bounds);
            is_mostly_garbage(file) && !any_busy(touched, busy)
        })
        .max_by_key(|(_, file)| garbage_bytes(file))?;
    Some(rewrite(levels, level, worst, busy))
}

/// Rewrites a file within its level. It is merged into the next level instead if the files it
/// overlaps there are no larger than itself: tombstones that the filter writes then move closer
/// to the deepest level, where they can be dropped.
fn rewrite(
    levels: &Levels,
    level: usize,
    file: &Arc<TableFile>,
    busy: &HashSet<FileNumber>,
) -> Plan {
    let meta = file.meta();
    let below = levels.overlapping(level + 1, &meta.bounds);
    let overlap: u64 = below.iter().map(|below| below.meta().size).sum();
    let sinks = !below.is_empty() && overlap <= meta.size && !any_busy(below, busy);
    if !sinks || level == DEEPEST {
        return rewrite_in_place(levels, level, file, Reason::Garbage);
    }
    let inputs = vec![(level, vec![Arc::clone(file)]), (level + 1, below.to_vec())];
    Plan::Merge { inputs, output_level: level + 1, reason: Reason::Garbage }
}
