use super::*;
use crate::engine::garbage::{Garbage, TableNeed};
use crate::engine::open_files::OpenFiles;
use crate::engine::sstable::BlockCache;
use crate::engine::sstable::TableCounters;
use crate::engine::version::opener::TableOpener;
use crate::engine::version::{FileMeta, KeyBounds};
use crate::io::mem::MemFs;
use proptest::prelude::*;

const KIB: u64 = 1024;

fn settings() -> PickerOptions {
    PickerOptions {
        level0_files: 4,
        base_bytes: 100 * KIB,
        ratio: 10,
        move_overlap_bytes: 1000 * KIB,
        oldest_snapshot: u64::MAX >> 8,
        space_is_urgent: false,
    }
}

/// A file of `size` over keys `from..=to`; numbers double as sequences.
fn file(number: u64, from: u8, to: u8, size: u64) -> Arc<TableFile> {
    file_with(number, from, to, size, 0)
}

fn file_with(number: u64, from: u8, to: u8, size: u64, tombstones: u64) -> Arc<TableFile> {
    file_between(number, KeyBounds::of(&[from], &[to]), size, tombstones)
}

fn file_between(number: u64, bounds: KeyBounds, size: u64, tombstones: u64) -> Arc<TableFile> {
    let fs: Arc<MemFs> = Arc::new(MemFs::new());
    let opener = TableOpener {
        fs: fs.clone(),
        files: Arc::new(OpenFiles::new(fs, 1)),
        dir: "/".into(),
        cache: Arc::new(BlockCache::new(0)),
        counters: Arc::new(TableCounters::default()),
    };
    let meta = FileMeta {
        number,
        size,
        bounds,
        entries: 100,
        tombstones,
        min_sequence: number,
        max_sequence: number,
        raised: false,
        weight: 0,
    };
    Arc::new(TableFile::new(meta, Arc::new(opener)))
}

fn levels(files: &[(usize, Arc<TableFile>)]) -> Levels {
    files.iter().fold(Levels::default(), |levels, (level, file)| {
        levels.with_added(*level, Arc::clone(file)).unwrap()
    })
}

fn numbers(plan: &Plan) -> Vec<u64> {
    plan.files().map(|(_, file)| file.meta().number).collect()
}

fn pick_idle(levels: &Levels) -> Option<Plan> {
    pick(levels, &HashSet::new(), &settings())
}

#[test]
fn an_empty_or_small_tree_needs_nothing() {
    assert!(pick_idle(&Levels::default()).is_none());
    let few = levels(&[(0, file(3, 0, 9, KIB)), (0, file(2, 0, 9, KIB)), (6, file(1, 0, 9, KIB))]);
    assert!(pick_idle(&few).is_none());
}

#[test]
fn four_overlapping_files_of_level_0_are_merged_with_what_they_cover_below() {
    let tree = levels(&[
        (0, file(14, 0, 50, KIB)),
        (0, file(13, 0, 50, KIB)),
        (0, file(12, 0, 50, KIB)),
        (0, file(11, 0, 50, KIB)),
        (6, file(1, 0, 20, KIB)),
        (6, file(2, 40, 60, KIB)),
        (6, file(3, 61, 90, KIB)),
    ]);
    let Some(plan @ Plan::Merge { output_level: 6, .. }) = pick_idle(&tree) else { panic!() };
    assert_eq!(numbers(&plan), [14, 13, 12, 11, 1, 2]);
}

#[test]
fn a_sequential_load_is_moved_not_rewritten() {
    let tree = levels(&[
        (0, file(4, 31, 40, KIB)),
        (0, file(3, 21, 30, KIB)),
        (0, file(2, 11, 20, KIB)),
        (0, file(1, 0, 10, KIB)),
    ]);
    let Some(Plan::Move { from: 0, to: 6, files }) = pick_idle(&tree) else { panic!() };
    assert_eq!(files.len(), 4);
}

#[test]
fn levels_take_their_size_from_the_deepest() {
    let tree = levels(&[(6, file(1, 0, 9, 5000 * KIB))]);
    let LevelTargets { base, bytes } = targets(&tree, &settings());
    assert_eq!(base, 4, "5000 KiB, 500, 50: the first at most 100 KiB");
    assert_eq!(bytes[5], 500 * KIB);
    assert_eq!(bytes[4], 50 * KIB);
}

#[test]
fn level_0_never_passes_a_level_that_still_holds_older_entries() {
    // The base level is 6, but level 3 still has files from a time when the tree was larger.
    let zero = (1..=4).map(|n| (0, file(n + 10, 0, 50, KIB)));
    let mut files: Vec<_> = zero.collect();
    files.push((3, file(1, 10, 20, KIB)));
    let Some(plan) = pick_idle(&levels(&files)) else { panic!() };
    let Plan::Merge { output_level: 3, .. } = plan else { panic!("{plan:?}") };
}

#[test]
fn a_level_over_its_target_gives_the_file_that_drags_least() {
    let tree = levels(&[
        (5, file(1, 0, 9, 400 * KIB)),
        (5, file(2, 10, 19, 400 * KIB)),
        (6, file(3, 0, 5, 3000 * KIB)),
        (6, file(4, 15, 30, 200 * KIB)),
    ]);
    let Some(plan @ Plan::Merge { output_level: 6, .. }) = pick_idle(&tree) else { panic!() };
    assert_eq!(numbers(&plan), [2, 4]);
}

#[test]
fn files_of_a_running_step_are_left_alone() {
    let tree = levels(&[
        (0, file(14, 0, 50, KIB)),
        (0, file(13, 0, 50, KIB)),
        (0, file(12, 0, 50, KIB)),
        (0, file(11, 0, 50, KIB)),
        (6, file(1, 0, 20, KIB)),
    ]);
    for busy in [11, 14, 1] {
        assert!(pick(&tree, &HashSet::from([busy]), &settings()).is_none(), "{busy}");
    }
}

#[test]
fn a_file_of_mostly_tombstones_is_pushed_down_unless_a_snapshot_needs_it() {
    let tree = levels(&[(5, file_with(9, 0, 9, KIB, 60)), (6, file(1, 0, 9, 5000 * KIB))]);
    let Some(plan @ Plan::Merge { reason: Reason::Tombstones, .. }) = pick_idle(&tree) else {
        panic!()
    };
    assert_eq!(numbers(&plan), [9, 1]);
    let held = PickerOptions { oldest_snapshot: 8, ..settings() };
    assert!(pick(&tree, &HashSet::new(), &held).is_none());
}

#[test]
fn tombstones_at_the_bottom_are_rewritten_once_nothing_needs_them() {
    let tree = levels(&[(6, file_with(9, 0, 9, KIB, 60))]);
    let Some(plan @ Plan::Merge { output_level: 6, .. }) = pick_idle(&tree) else { panic!() };
    assert_eq!(numbers(&plan), [9]);
}

fn with_garbage(file: Arc<TableFile>, bytes: u64, need: TableNeed) -> Arc<TableFile> {
    file.set_garbage(Garbage { bytes, need });
    file
}

fn drops(plan: Option<Plan>) -> (usize, Vec<u64>) {
    let Some(Plan::Drop { level, files }) = plan else { panic!("{plan:?}") };
    (level, files.iter().map(|file| file.meta().number).collect())
}

#[test]
fn files_nobody_needs_are_dropped_before_anything_else() {
    let tree = levels(&[
        (0, file(14, 0, 50, KIB)),
        (0, file(13, 0, 50, KIB)),
        (0, with_garbage(file(12, 0, 50, KIB), KIB, TableNeed::Unneeded)),
        (0, file(11, 0, 50, KIB)),
        (6, file(1, 0, 20, KIB)),
    ]);
    assert_eq!(drops(pick_idle(&tree)), (0, vec![12]));
    assert!(pick(&tree, &HashSet::from([12]), &settings()).is_none(), "a running step has it");
}

#[test]
fn a_cover_is_dropped_only_where_it_covers_nothing() {
    let cover =
        |number, from, to| with_garbage(file(number, from, to, KIB), KIB, TableNeed::ShadowsOlder);
    let tree = levels(&[(4, cover(8, 0, 9)), (5, cover(9, 5, 20)), (6, file(1, 15, 30, KIB))]);
    let plan = pick_idle(&tree);
    assert!(!matches!(plan, Some(Plan::Drop { .. })), "9 shadows 1, and 8 shadows 9: {plan:?}");
    let tree = levels(&[(4, cover(8, 0, 9)), (5, cover(9, 5, 20)), (6, file(1, 21, 30, KIB))]);
    assert_eq!(drops(pick_idle(&tree)), (5, vec![9]), "the lower one first");
    let tree = levels(&[(4, cover(8, 0, 9)), (6, file(1, 21, 30, KIB))]);
    assert_eq!(drops(pick_idle(&tree)), (4, vec![8]));
}

#[test]
fn covers_of_level_0_go_together_with_what_they_cover() {
    let cover =
        |number, from, to| with_garbage(file(number, from, to, KIB), KIB, TableNeed::ShadowsOlder);
    let tree = levels(&[
        (0, cover(14, 0, 50)),
        (0, file(13, 40, 60, KIB)),
        (0, cover(12, 0, 30)),
        (0, cover(11, 0, 30)),
    ]);
    assert_eq!(drops(pick_idle(&tree)), (0, vec![11, 12]), "14 shadows 13, which stays");
    let busy = HashSet::from([11]);
    assert!(!matches!(pick(&tree, &busy, &settings()), Some(Plan::Drop { .. })), "12 shadows 11");
    let all = |numbers: &[u64]| {
        let files = tree.level(0).iter().filter(|file| numbers.contains(&file.meta().number));
        may_drop(&tree, 0, &files.cloned().collect::<Vec<_>>())
    };
    assert!(all(&[11]) && all(&[11, 12]) && !all(&[12]) && !all(&[13]) && !all(&[11, 14]));
}

#[test]
fn the_most_wasteful_file_is_rewritten_in_its_level() {
    let tree = levels(&[
        (5, with_garbage(file(4, 0, 9, 10 * KIB), 4 * KIB, TableNeed::MayBeRead)),
        (6, with_garbage(file(1, 0, 9, 100 * KIB), 50 * KIB, TableNeed::MayBeRead)),
        (6, with_garbage(file(2, 10, 19, 100 * KIB), 90 * KIB, TableNeed::MayBeRead)),
        (6, with_garbage(file(3, 20, 29, 100 * KIB), 49 * KIB, TableNeed::MayBeRead)),
    ]);
    let picked = |busy: &[u64]| pick(&tree, &busy.iter().copied().collect(), &settings());
    for (busy, number) in [(&[][..], 2), (&[2][..], 1)] {
        let Some(plan @ Plan::Merge { output_level: 6, reason: Reason::Garbage, .. }) =
            picked(busy)
        else {
            panic!("{:?}", picked(busy))
        };
        assert_eq!(numbers(&plan), [number]);
    }
    assert!(picked(&[1, 2]).is_none(), "less than half is not worth it");
}

#[test]
fn a_wasteful_file_sinks_if_it_drags_no_more_than_itself() {
    for (size, to, chosen) in [(3 * KIB, 6, vec![9, 1]), (2 * KIB, 5, vec![9])] {
        let tree = levels(&[
            (5, with_garbage(file(9, 0, 9, size), size / 2, TableNeed::MayBeRead)),
            (6, file(1, 5, 9, 3 * KIB)),
            (6, file(2, 50, 60, 5000 * KIB)),
        ]);
        let Some(plan @ Plan::Merge { output_level, reason: Reason::Garbage, .. }) =
            pick_idle(&tree)
        else {
            panic!()
        };
        assert_eq!((output_level, numbers(&plan)), (to, chosen));
    }
}

#[test]
fn waste_is_not_moved_but_merged() {
    let move_or_merge = |garbage| {
        let tree = levels(&[
            (0, file(4, 31, 40, KIB)),
            (0, with_garbage(file(3, 21, 30, 1000), garbage, TableNeed::MayBeRead)),
            (0, file(2, 11, 20, KIB)),
            (0, file(1, 0, 10, KIB)),
        ]);
        pick_idle(&tree)
    };
    assert!(matches!(move_or_merge(99), Some(Plan::Move { .. })), "too little to care");
    assert!(matches!(move_or_merge(100), Some(Plan::Merge { reason: Reason::Level0, .. })));
    let push = |garbage| {
        let file = with_garbage(file(1, 0, 9, 900 * KIB), garbage, TableNeed::MayBeRead);
        pick_idle(&levels(&[(5, file), (6, file_with(2, 20, 29, 3000 * KIB, 0))]))
    };
    assert!(matches!(push(0), Some(Plan::Move { from: 5, to: 6, .. })));
    assert!(matches!(push(90 * KIB), Some(Plan::Merge { output_level: 6, .. })));
}

#[test]
fn waste_in_level_0_makes_it_due_before_it_is_full() {
    let tree = |garbage| {
        levels(&[
            (0, with_garbage(file(12, 0, 50, KIB), garbage, TableNeed::MayBeRead)),
            (6, file(1, 0, 20, KIB)),
        ])
    };
    assert!(pick_idle(&tree(KIB / 2 - 1)).is_none());
    let Some(plan @ Plan::Merge { reason: Reason::Garbage, .. }) = pick_idle(&tree(KIB / 2)) else {
        panic!()
    };
    assert_eq!(numbers(&plan), [12, 1]);
}

#[test]
fn what_is_written_anew_counts_as_without_waste() {
    let old = with_garbage(file(1, 0, 9, KIB), KIB, TableNeed::MayBeRead);
    assert!(pick_idle(&levels(&[(6, old)])).is_some());
    assert!(pick_idle(&levels(&[(6, file(2, 0, 9, KIB))])).is_none());
}

proptest! {
    /// Whatever the shape, a plan takes for every key all older entries between its inputs and
    /// its output, so that no older entry ends up above a newer one.
    #[test]
    fn no_plan_leaves_an_older_entry_above_a_newer_one(
        shape in prop::collection::vec(
            (0usize..7, 0u8..100, 0u8..30, 1u64..900, 0u64..20), 0..40,
        ),
        full_of_garbage: bool,
    ) {
        let mut tree = Levels::default();
        for ((level, from, width, kib, garbage), number) in shape.into_iter().zip(1..) {
            let garbage = if full_of_garbage { garbage * 100 * KIB } else { 0 };
            let needed = if garbage > 1700 * KIB { TableNeed::ShadowsOlder } else { TableNeed::MayBeRead };
            let file = with_garbage(file(number, from, from + width, kib * KIB), garbage, needed);
            let next = tree.clone().with_added(level, file);
            if let Some(next) = next.filter(|next| next.first_overlap().is_none()) {
                tree = next;
            }
        }
        let Some(plan) = pick_idle(&tree) else { return Ok(()) };
        let chosen = numbers(&plan);
        let to = match &plan {
            Plan::Merge { output_level, .. } => *output_level,
            Plan::Move { to, .. } => *to,
            // Whatever is older than a file that only covers must be dropped too.
            Plan::Drop { .. } => LEVELS,
        };
        for (from, file) in plan.files() {
            for (level, others) in tree.iter().filter(|(level, _)| (from..=to).contains(level)) {
                for other in others {
                    let meta = other.meta();
                    let overlaps = meta.bounds.touch(&file.meta().bounds);
                    let newer = matches!(plan, Plan::Drop { .. }) && level == from
                        && other.meta().max_sequence > file.meta().max_sequence;
                    let moved = matches!(plan, Plan::Move { .. }) && level == from || newer;
                    if overlaps && !moved {
                        prop_assert!(chosen.contains(&meta.number), "{plan:?} leaves {meta:?}");
                    }
                }
            }
        }
    }
}

/// Exact bounds that agree in more bytes than a shortened bound keeps, as in a store of format 1.
#[test]
fn tables_whose_bounds_tie_are_told_apart_by_reads_and_rewritten_together() {
    let long = |end: &str| [&[b'p'; 2000], end.as_bytes()].concat();
    let exact = |from: &str, to: &str| KeyBounds::from_stored(&long(from), &long(to), false);
    let all_deleted = |number, bounds| file_between(number, bounds, 1000, 100);
    let levels = levels(&[
        (DEEPEST, file_between(3, exact("e", "f"), 1000, 0)),
        (DEEPEST, file_between(1, exact("a", "b"), 1000, 0)),
        (DEEPEST, all_deleted(2, exact("c", "d"))),
        (DEEPEST, file(4, b'z', b'z', 1000)),
    ]);
    assert_eq!(levels.first_overlap(), None);
    let holds = |key: &str| levels.file_for(DEEPEST, &long(key)).map(|it| it.meta().number);
    assert_eq!(
        [holds("a"), holds("bb"), holds("d"), holds("e")],
        [Some(1), None, Some(2), Some(3)]
    );
    assert_eq!(numbers(&pick_idle(&levels).unwrap()), [1, 2, 3]);
    let busy = HashSet::from([3]);
    assert_eq!(pick(&levels, &busy, &settings()).map(|plan| numbers(&plan)), None);
}

#[test]
fn while_the_levels_below_are_busy_the_newest_files_of_level_0_are_merged_with_each_other() {
    let mut files: Vec<_> = (10..18).map(|number| (0, file(number, 0, 9, KIB))).collect();
    files.push((0, file(9, 0, 9, 100 * KIB)));
    files.push((0, file(8, 0, 9, KIB)));
    files.push((1, file(1, 0, 9, 500 * KIB)));
    let levels = levels(&files);
    let plan = |busy: &[u64]| pick(&levels, &busy.iter().copied().collect(), &settings());
    let Some(Plan::Merge { inputs, output_level: 0, .. }) = plan(&[1]) else {
        panic!("no merge within level 0")
    };
    // Newest first, and without the file that is larger than all newer ones together.
    let merged: Vec<u64> = inputs[0].1.iter().map(|file| file.meta().number).collect();
    assert_eq!((inputs.len(), merged), (1, (10..18).rev().collect()));
    assert!(plan(&[1, 15]).is_none(), "no older file overtakes one that is busy");
    assert!(matches!(plan(&[]), Some(Plan::Merge { output_level: 1, .. })));
}

/// The bug: with one tombstone in a large merge no merge was picked, and a delete that needed the
/// space of that merge waited for ever.
#[test]
fn a_merge_that_frees_little_is_picked_once_a_writer_waits_for_space() {
    let levels = levels(&[(5, file_with(9, 0, 9, KIB, 1)), (6, file(1, 0, 9, 500 * KIB))]);
    let pick = |space_is_urgent| {
        let settings = PickerOptions { space_is_urgent, ..settings() };
        pick_freeing(&levels, &HashSet::new(), &settings).map(|(_, plan)| numbers(&plan))
    };
    assert_eq!(pick(false), None);
    assert_eq!(pick(true), Some(vec![9, 1]));
}
