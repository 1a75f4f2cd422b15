use super::*;
use crate::engine::cache::BlockCache;
use crate::engine::open_files::OpenFiles;
use crate::engine::sstable::TableCounters;
use crate::engine::tables::TableOpener;
use crate::engine::version::FileMeta;
use crate::io::mem::MemFs;
use bytes::Bytes;
use proptest::prelude::*;

const KIB: u64 = 1024;

fn settings() -> Settings {
    Settings {
        level0_files: 4,
        base_bytes: 100 * KIB,
        ratio: 10,
        move_overlap_bytes: 1000 * KIB,
        oldest_snapshot: u64::MAX >> 8,
    }
}

/// A file of `size` over keys `from..=to`; numbers double as sequences.
fn file(number: u64, from: u8, to: u8, size: u64) -> Arc<TableFile> {
    file_with(number, from, to, size, 0)
}

fn file_with(number: u64, from: u8, to: u8, size: u64, tombstones: u64) -> Arc<TableFile> {
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
        smallest: Bytes::copy_from_slice(&[from]),
        largest: Bytes::copy_from_slice(&[to]),
        entries: 100,
        tombstones,
        min_sequence: number,
        max_sequence: number,
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
    let Targets { base, bytes } = targets(&tree, &settings());
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
    let held = Settings { oldest_snapshot: 8, ..settings() };
    assert!(pick(&tree, &HashSet::new(), &held).is_none());
}

#[test]
fn tombstones_at_the_bottom_are_rewritten_once_nothing_needs_them() {
    let tree = levels(&[(6, file_with(9, 0, 9, KIB, 60))]);
    let Some(plan @ Plan::Merge { output_level: 6, .. }) = pick_idle(&tree) else { panic!() };
    assert_eq!(numbers(&plan), [9]);
}

proptest! {
    /// Whatever the shape, a plan takes for every key all older entries between its inputs and
    /// its output, so that no older entry ends up above a newer one.
    #[test]
    fn no_plan_leaves_an_older_entry_above_a_newer_one(
        shape in prop::collection::vec((0usize..7, 0u8..100, 0u8..30, 1u64..900), 0..40),
    ) {
        let mut tree = Levels::default();
        for ((level, from, width, kib), number) in shape.into_iter().zip(1..) {
            let next = tree.clone().with_added(level, file(number, from, from + width, kib * KIB));
            if let Some(next) = next.filter(|next| next.first_overlap().is_none()) {
                tree = next;
            }
        }
        let Some(plan) = pick_idle(&tree) else { return Ok(()) };
        let chosen = numbers(&plan);
        let to = match &plan {
            Plan::Merge { output_level, .. } => *output_level,
            Plan::Move { to, .. } => *to,
            Plan::Drop { .. } => return Ok(()),
        };
        for (from, file) in plan.files() {
            for (level, others) in tree.iter().filter(|(level, _)| (from..=to).contains(level)) {
                for other in others {
                    let meta = other.meta();
                    let overlaps = meta.overlaps(&file.meta().smallest, &file.meta().largest);
                    let moved = matches!(plan, Plan::Move { .. }) && level == from;
                    if overlaps && !moved {
                        prop_assert!(chosen.contains(&meta.number), "{plan:?} leaves {meta:?}");
                    }
                }
            }
        }
    }
}
