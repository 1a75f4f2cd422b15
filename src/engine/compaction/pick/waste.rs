//! Steps that are due because of what judges said of tables: drops, and merges of what is mostly
//! waste.
//!
//! A table that a merge wrote starts without waste, and is judged again only after an interval:
//! so a table is rewritten for its waste once an interval at most, whatever its judge says.

use std::collections::HashSet;
use std::sync::Arc;

use super::{DEEPEST, any_busy};
use crate::engine::compaction::plan::{Plan, Reason};
use crate::engine::compaction::waste::Needed;
use crate::engine::files::FileNumber;
use crate::engine::version::{LEVELS, Levels, TableFile};

/// Whether so much of a file is waste that moving it unfiltered would spread it: a tenth.
pub fn has_waste(file: &TableFile) -> bool {
    wasted(file).saturating_mul(10) >= file.meta().size.max(1)
}

/// Whether rewriting a file gives back as much as it writes: half of it is waste.
pub(super) fn is_mostly_waste(file: &TableFile) -> bool {
    wasted(file).saturating_mul(2) >= file.meta().size.max(1)
}

pub(super) fn wasted(file: &TableFile) -> u64 {
    file.verdict().waste.bytes
}

/// Files that may go unread, deepest first: what they covered lets those above go next.
pub(super) fn pick_dead(levels: &Levels, busy: &HashSet<FileNumber>) -> Option<Plan> {
    (0..LEVELS).rev().find_map(|level| {
        let mut files = Vec::new();
        // In level 0 the oldest come last.
        for file in levels.level(level).iter().rev() {
            if !busy.contains(&file.meta().number) && is_dead(levels, level, file, &files) {
                files.push(Arc::clone(file));
            }
        }
        (!files.is_empty()).then_some(Plan::Drop { level, files })
    })
}

/// Whether these files of a level may all go unread, by the last word on each.
pub fn may_drop(levels: &Levels, level: usize, files: &[Arc<TableFile>]) -> bool {
    files.iter().all(|file| is_dead(levels, level, file, files))
}

/// Whether `file` may go if `others` of its level do.
fn is_dead(levels: &Levels, level: usize, file: &TableFile, others: &[Arc<TableFile>]) -> bool {
    match file.verdict().waste.needed {
        Needed::Perhaps => false,
        Needed::AsCover => !covers(levels, level, file, others),
        Needed::Never => true,
    }
}

/// Whether older entries of the keys of `file` may lie in files other than `others`.
fn covers(levels: &Levels, level: usize, file: &TableFile, others: &[Arc<TableFile>]) -> bool {
    let meta = file.meta();
    let older_beside = || {
        let older = levels.level(0).iter().skip_while(|other| other.meta().number != meta.number);
        older.skip(1).any(|other| {
            let goes_too = others.iter().any(|it| it.meta().number == other.meta().number);
            !goes_too && other.meta().overlaps(&meta.smallest, &meta.largest)
        })
    };
    (level == 0 && older_beside())
        || (level + 1..LEVELS)
            .any(|deeper| !levels.overlapping(deeper, &meta.smallest, &meta.largest).is_empty())
}

/// The file of a sorted level with the most waste, if that is half of it or more.
pub(super) fn pick_wasteful(levels: &Levels, busy: &HashSet<FileNumber>) -> Option<Plan> {
    let files = (1..LEVELS).flat_map(|level| levels.level(level).iter().map(move |f| (level, f)));
    let (level, worst) = files
        .filter(|(_, file)| is_mostly_waste(file) && !busy.contains(&file.meta().number))
        .max_by_key(|(_, file)| wasted(file))?;
    Some(rewrite(levels, level, worst, busy))
}

/// Rewrites a file in its level; or into the next one if it drags no more than itself along, so
/// that deletes the filter puts in place of records come nearer to the bottom.
fn rewrite(
    levels: &Levels,
    level: usize,
    file: &Arc<TableFile>,
    busy: &HashSet<FileNumber>,
) -> Plan {
    let meta = file.meta();
    let below = levels.overlapping(level + 1, &meta.smallest, &meta.largest);
    let dragged: u64 = below.iter().map(|below| below.meta().size).sum();
    let sinks = !below.is_empty() && dragged <= meta.size && !any_busy(below, busy);
    let mut inputs = vec![(level, vec![Arc::clone(file)])];
    let mut output_level = level;
    if sinks && level < DEEPEST {
        output_level = level + 1;
        inputs.push((output_level, below.to_vec()));
    }
    Plan::Merge { inputs, output_level, reason: Reason::Waste }
}
