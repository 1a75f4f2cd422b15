//! The compaction picker: a pure function from the tables of a tree to the next step of leveled
//! compaction, if one is due.
//!
//! Level sizes are dynamic. The deepest level has no limit, and each level above may have `1 /
//! ratio` of the size below it. The first level whose limit is at most `base_bytes` is the base
//! level, into which level 0 is merged. The levels between them stay empty. So a small store has
//! two levels, and overwritten data takes about `1 / ratio` of the space.

mod garbage;

use std::collections::HashSet;
use std::sync::Arc;

pub use garbage::{has_garbage, may_drop};

use super::plan::{Plan, Reason};
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::version::{LEVELS, Levels, TableFile};

/// Options of the picker.
#[derive(Clone, Debug)]
pub struct PickerOptions {
    /// Number of level-0 files at which level 0 is due.
    pub level0_files: usize,
    /// Largest size of the base level, in bytes.
    pub base_bytes: u64,
    /// Size of a level relative to the level above it.
    pub ratio: u64,
    /// A file that overlaps more bytes than this in the level after next is not moved.
    pub move_overlap_bytes: u64,
    /// Tombstones at or below this sequence number can be dropped at the bottom.
    pub oldest_snapshot: Sequence,
    /// Whether a writer waits for space, so that a merge that frees little is worth it too.
    pub space_is_urgent: bool,
}

/// The base level and the size limits of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelTargets {
    /// The level into which level 0 is merged.
    pub base: usize,
    /// Size limit by level. Level 0 and the deepest level have none.
    pub bytes: [u64; LEVELS],
}

const DEEPEST: usize = LEVELS - 1;

/// Derives the limits from the current sizes.
pub fn targets(levels: &Levels, settings: &PickerOptions) -> LevelTargets {
    let mut size = (1..LEVELS).map(|level| levels.level_bytes(level)).max().unwrap_or(0);
    let mut bytes = [0; LEVELS];
    let mut base = DEEPEST;
    while size > settings.base_bytes && base > 1 {
        size /= settings.ratio.max(2);
        base -= 1;
        if let Some(target) = bytes.get_mut(base) {
            *target = size.max(1);
        }
    }
    LevelTargets { base, bytes }
}

/// The next compaction, if one is due. Files in `busy` take part in a running compaction. Drops
/// cost nothing and come first. Merges of garbage wait until the levels are within their limits.
pub fn pick(levels: &Levels, busy: &HashSet<FileNumber>, settings: &PickerOptions) -> Option<Plan> {
    garbage::pick_unneeded(levels, busy)
        .or_else(|| pick_due(levels, busy, settings))
        .or_else(|| pick_tombstones(levels, busy, settings))
        .or_else(|| garbage::pick_garbage(levels, busy))
}

/// The compaction that frees the most for what it reads, for a full disk, with its gain: bytes freed
/// for each byte read, by estimate. `None` if no tombstone or garbage is left that could go.
///
/// Every such plan moves tombstones down or removes them, so that repeating it comes to an end.
pub fn pick_freeing(
    levels: &Levels,
    busy: &HashSet<FileNumber>,
    settings: &PickerOptions,
) -> Option<(f64, Plan)> {
    let useful = |file: &TableFile| {
        let droppable = file.meta().max_sequence <= settings.oldest_snapshot;
        file.meta().tombstones > 0 && droppable || has_garbage(file)
    };
    let level0 = levels.level(0);
    let from_level0 = level0.iter().any(|file| useful(file)).then(|| {
        let plan = pick_level0(levels, &targets(levels, settings), busy, settings)?;
        Some((gain(&plan), plan))
    });
    let deeper = (1..LEVELS).flat_map(|level| {
        let files = levels.level(level).iter().filter(|file| useful(file));
        files.map(move |file| (level, file))
    });
    let plans = deeper.filter_map(|(level, file)| {
        let bounds = &file.meta().bounds;
        let below = levels.overlapping(level + 1, bounds);
        if any_busy(levels.overlapping(level, bounds), busy) || any_busy(below, busy) {
            return None;
        }
        let overlaps = |deeper| !levels.overlapping(deeper, bounds).is_empty();
        let plan = match !(level + 1..LEVELS).any(overlaps) {
            true => rewrite_in_place(levels, level, file, Reason::Tombstones),
            false => push_down(levels, level, file, settings, Reason::Tombstones),
        };
        Some((gain(&plan), plan))
    });
    let least = if settings.space_is_urgent { f64::MIN_POSITIVE } else { LEAST_GAIN };
    let plans = plans.chain(from_level0.flatten()).filter(|(gain, _)| *gain >= least);
    let unneeded = garbage::pick_unneeded(levels, busy).map(|plan| (f64::MAX, plan));
    unneeded.into_iter().chain(plans).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// A merge on a full disk that would free less than this part of what it reads is not worth its
/// own needs, unless a writer waits.
const LEAST_GAIN: f64 = 0.02;

/// Bytes that a plan is likely to free for each byte it reads: garbage, and an average entry and
/// itself for each tombstone.
fn gain(plan: &Plan) -> f64 {
    let (mut freed, mut read) = (0.0, 0.0);
    let (mut entries, mut tombstones) = (0, 0);
    for (_, file) in plan.files() {
        let meta = file.meta();
        read += meta.size as f64;
        freed += garbage::garbage_bytes(file) as f64;
        entries += meta.entries;
        tombstones += meta.tombstones;
    }
    freed += read / entries.max(1) as f64 * tombstones as f64;
    freed / f64::max(read, 1.0)
}

/// A compaction of the level that exceeds its limit the most.
fn pick_due(levels: &Levels, busy: &HashSet<FileNumber>, settings: &PickerOptions) -> Option<Plan> {
    let targets = targets(levels, settings);
    let mut due: Vec<(f64, usize)> = (1..DEEPEST)
        .filter_map(|level| {
            let score = score(levels, level, &targets, busy);
            (score >= 1.0).then_some((score, level))
        })
        .collect();
    let level0 = level0_score(levels, settings);
    if level0 >= 1.0 {
        // Level 0 slows every read and finally stops writers, so it comes first among equals.
        due.push((level0 * 2.0, 0));
    }
    due.sort_by(|a, b| b.0.total_cmp(&a.0));
    due.iter().find_map(|(_, level)| match level {
        0 => pick_level0(levels, &targets, busy, settings),
        _ => pick_file(levels, *level, busy, settings),
    })
}

/// How urgent a compaction of level 0 is. It is due from 1 on.
pub fn level0_score(levels: &Levels, settings: &PickerOptions) -> f64 {
    let files = levels.level(0);
    if files.iter().any(|f| droppable_tombstones(f, settings) || garbage::is_mostly_garbage(f)) {
        return 1.0;
    }
    files.len() as f64 / settings.level0_files.max(1) as f64
}

fn score(levels: &Levels, level: usize, targets: &LevelTargets, busy: &HashSet<FileNumber>) -> f64 {
    let idle = levels.level(level).iter().filter(|file| !busy.contains(&file.meta().number));
    let bytes: u64 = idle.map(|file| file.meta().size).sum();
    match targets.bytes.get(level) {
        _ if bytes == 0 => 0.0,
        Some(&target) if target > 0 => bytes as f64 / target as f64,
        // A level above the base level must be empty.
        _ => 1.0,
    }
}

fn any_busy(files: &[Arc<TableFile>], busy: &HashSet<FileNumber>) -> bool {
    files.iter().any(|file| busy.contains(&file.meta().number))
}

/// Merges level 0 into the base level, or moves its files if nothing overlaps. While other
/// compactions are in the way, it merges files of level 0 with each other.
fn pick_level0(
    levels: &Levels,
    targets: &LevelTargets,
    busy: &HashSet<FileNumber>,
    settings: &PickerOptions,
) -> Option<Plan> {
    let files = levels.level(0);
    if files.is_empty() || any_busy(files, busy) {
        return pick_within_level0(files, busy, settings);
    }
    // Levels between 0 and the base level may still hold files after the base level moved down. The
    // output must not be deeper than the first of them: newer entries would be below older ones.
    let first_filled = (1..LEVELS).find(|level| !levels.level(*level).is_empty());
    let to = first_filled.map_or(targets.base, |level| level.min(targets.base));
    let bounds = files.iter().map(|file| file.meta().bounds.clone());
    let bounds = bounds.reduce(|all, bounds| all.union(&bounds))?;
    let below = levels.overlapping(to, &bounds);
    if any_busy(below, busy) {
        return pick_within_level0(files, busy, settings);
    }
    let full_of_garbage = files.iter().any(|file| has_garbage(file));
    if below.is_empty() && disjoint(files) && !full_of_garbage {
        return Some(Plan::Move { from: 0, to, files: files.to_vec() });
    }
    let inputs = vec![(0, files.to_vec()), (to, below.to_vec())];
    let full = files.len() >= settings.level0_files;
    let reason = if full_of_garbage && !full { Reason::Garbage } else { Reason::Level0 };
    Some(Plan::Merge { inputs, output_level: to, reason })
}

/// Merges the newest files of level 0 into one. A long compaction of the levels below, such as a
/// full one, then stops neither readers nor writers. A file larger than all newer ones together is
/// left out, so that each entry is rewritten a logarithmic number of times.
fn pick_within_level0(
    files: &[Arc<TableFile>],
    busy: &HashSet<FileNumber>,
    settings: &PickerOptions,
) -> Option<Plan> {
    let (mut run, mut bytes) = (Vec::new(), 0);
    for file in files.iter().take_while(|file| !busy.contains(&file.meta().number)) {
        let size = file.meta().size;
        if run.len() >= 2 && size > bytes {
            break;
        }
        run.push(Arc::clone(file));
        bytes += size;
    }
    let due = files.len() >= settings.level0_files * 2 && run.len() >= settings.level0_files;
    due.then(|| Plan::Merge { inputs: vec![(0, run)], output_level: 0, reason: Reason::Level0 })
}

fn disjoint(files: &[Arc<TableFile>]) -> bool {
    let mut sorted: Vec<_> = files.iter().map(|file| file.meta()).collect();
    sorted.sort_by(|a, b| a.bounds.smallest().cmp(b.bounds.smallest()));
    sorted.windows(2).all(|pair| matches!(pair, [a, b] if !a.bounds.touch(&b.bounds)))
}

/// Pushes down the file of `level` that costs the least relative to its size. Its cost is the size
/// of the overlapping files in the next level, less its garbage.
fn pick_file(
    levels: &Levels,
    level: usize,
    busy: &HashSet<FileNumber>,
    settings: &PickerOptions,
) -> Option<Plan> {
    let best = levels
        .level(level)
        .iter()
        .filter(|file| !busy.contains(&file.meta().number))
        .filter_map(|file| {
            let meta = file.meta();
            let below = levels.overlapping(level + 1, &meta.bounds);
            let dragged: u64 = below.iter().map(|f| f.meta().size).sum();
            let cost = dragged as f64 - garbage::garbage_bytes(file) as f64;
            (!any_busy(below, busy)).then(|| (cost / meta.size.max(1) as f64, file))
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(push_down(levels, level, best.1, settings, Reason::Size))
}

/// Moves or merges a file of a sorted level into the next level.
fn push_down(
    levels: &Levels,
    level: usize,
    file: &Arc<TableFile>,
    settings: &PickerOptions,
    reason: Reason,
) -> Plan {
    let meta = file.meta();
    let below = levels.overlapping(level + 1, &meta.bounds);
    let further = levels.overlapping(level + 2, &meta.bounds);
    let further_bytes: u64 = further.iter().map(|f| f.meta().size).sum();
    let movable = reason == Reason::Size && !has_garbage(file);
    if below.is_empty() && further_bytes <= settings.move_overlap_bytes && movable {
        return Plan::Move { from: level, to: level + 1, files: vec![Arc::clone(file)] };
    }
    let inputs = vec![(level, vec![Arc::clone(file)]), (level + 1, below.to_vec())];
    Plan::Merge { inputs, output_level: level + 1, reason }
}

/// Whether at least half of a file is tombstones that could be dropped if they were deeper. If
/// values were deleted under a snapshot, half of the entries are tombstones, and all of the file is
/// garbage.
fn droppable_tombstones(file: &TableFile, settings: &PickerOptions) -> bool {
    let meta = file.meta();
    meta.tombstones * 2 >= meta.entries && meta.max_sequence <= settings.oldest_snapshot
}

/// Rewrites a file within its level, with those whose bounds tie with its own.
fn rewrite_in_place(levels: &Levels, level: usize, file: &TableFile, reason: Reason) -> Plan {
    let inputs = vec![(level, levels.overlapping(level, &file.meta().bounds).to_vec())];
    Plan::Merge { inputs, output_level: level, reason }
}

fn pick_tombstones(
    levels: &Levels,
    busy: &HashSet<FileNumber>,
    settings: &PickerOptions,
) -> Option<Plan> {
    (1..LEVELS).find_map(|level| {
        let file = levels.level(level).iter().find(|file| {
            let meta = file.meta();
            let below = levels.overlapping(level + 1, &meta.bounds);
            droppable_tombstones(file, settings)
                && !any_busy(levels.overlapping(level, &meta.bounds), busy)
                && !any_busy(below, busy)
        })?;
        if level < DEEPEST {
            return Some(push_down(levels, level, file, settings, Reason::Tombstones));
        }
        Some(rewrite_in_place(levels, level, file, Reason::Tombstones))
    })
}

#[cfg(test)]
mod tests;
