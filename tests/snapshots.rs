//! Snapshots keep what they saw and nothing longer; deletes take their space along.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

mod support;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use lsmkv::Options;
use lsmkv::engine::{Engine, LevelStats, MemFs};
use lsmkv::io::splitmix::SplitMix64;
use support::{DATA, META, Reads, SCORE, State, TREES, Write};
use support::{assert_state, commit, delete, open, put, tiny};

fn key(index: u32) -> Vec<u8> {
    format!("key{index:05}").into_bytes()
}

/// All tables together.
fn tables(engine: &Engine) -> LevelStats {
    let mut sum = LevelStats::default();
    for level in engine.stats().trees.iter().flat_map(|tree| tree.levels) {
        sum.files += level.files;
        sum.bytes += level.bytes;
        sum.entries += level.entries;
        sum.tombstones += level.tombstones;
    }
    sum
}

fn table_files(fs: &MemFs) -> usize {
    fs.paths().iter().filter(|path| path.extension() == Some("table".as_ref())).count()
}

#[test]
fn a_thousand_snapshots_under_load_leave_nothing_behind() {
    for background_threads in [0, 1] {
        let fs = MemFs::new();
        let engine = open(&fs, &Options { background_threads, ..tiny() });
        let mut random = SplitMix64::new(1);
        let (mut state, mut live) = (State::default(), VecDeque::new());
        for round in 0u32..1000 {
            let tree = random.below(3) as usize;
            let writes = (0..5).map(|_| {
                Write::put(tree, &key(random.below(50) as u32), &round.to_le_bytes().repeat(20))
            });
            let writes: Vec<_> = writes.collect();
            commit(&engine, &writes, None);
            state.apply(&writes);
            live.push_back((engine.snapshot().unwrap(), state.clone()));
            if live.len() > 30 {
                let at = random.below(live.len() as u64) as usize;
                let (snapshot, seen) = live.remove(at).unwrap();
                assert_state(&snapshot, &seen, &round);
            }
        }
        let pinned = tables(&engine).entries;
        assert_eq!(engine.stats().snapshots, live.len() as u64);
        live.clear();
        engine.wait_idle().unwrap();
        assert_eq!(engine.stats().snapshots, 0);
        engine.compact().unwrap();
        let rows = state.0.iter().map(|rows| rows.len() as u64).sum::<u64>();
        assert_eq!(tables(&engine).entries, rows, "of {pinned} only the newest versions are left");
        assert_eq!(table_files(&fs) as u64, tables(&engine).files, "no file stays behind");
        assert_state(&engine, &state, &"after compaction");
    }
}

#[test]
fn a_snapshot_keeps_old_values_across_flush_and_compaction() {
    let engine = open(&MemFs::new(), &tiny());
    put(&engine, DATA, b"k", b"first");
    let first = engine.snapshot().unwrap();
    put(&engine, DATA, b"k", b"hidden");
    put(&engine, DATA, b"k", b"second");
    let second = engine.snapshot().unwrap();
    delete(&engine, DATA, b"k");
    let third = engine.snapshot().unwrap();
    put(&engine, DATA, b"k", b"now");
    let check = |second_too: bool| {
        assert_eq!(engine.read(DATA, b"k").as_deref(), Some(&b"now"[..]));
        assert_eq!(third.read(DATA, b"k"), None);
        if second_too {
            assert_eq!(second.read(DATA, b"k").as_deref(), Some(&b"second"[..]));
        }
        assert_eq!(first.read(DATA, b"k").as_deref(), Some(&b"first"[..]));
    };
    check(true);
    engine.flush().unwrap();
    check(true);
    engine.compact().unwrap();
    check(true);
    assert_eq!(tables(&engine).entries, 4, "one version for each reader, the hidden one is gone");
    drop(third);
    engine.compact().unwrap();
    assert_eq!(second.read(DATA, b"k").as_deref(), Some(&b"second"[..]));
    drop(second);
    engine.compact().unwrap();
    assert_eq!(first.read(DATA, b"k").as_deref(), Some(&b"first"[..]));
    assert_eq!(tables(&engine).entries, 2);
    drop(first);
    engine.compact().unwrap();
    assert_eq!(tables(&engine).entries, 1);
    assert_eq!(engine.read(DATA, b"k").as_deref(), Some(&b"now"[..]));
}

#[test]
fn keys_with_many_versions_are_walked_right_at_every_read_point() {
    let engine = open(&MemFs::new(), &Options { write_buffer: 1 << 18, ..tiny() });
    let mut random = SplitMix64::new(7);
    let (mut state, mut seen) = (State::default(), Vec::new());
    for round in 0u32..2000 {
        // Few keys: runs of versions, of deletes too, that are longer than a walk steps over.
        let key = key(random.below(3) as u32);
        let write = match random.below(4) {
            0 => Write::delete(1, &key),
            _ => Write::put(1, &key, &round.to_le_bytes()),
        };
        commit(&engine, std::slice::from_ref(&write), None);
        state.apply(&[write]);
        if round % 97 == 0 {
            seen.push((engine.snapshot().unwrap(), state.clone()));
        }
        if round == 1200 {
            engine.flush().unwrap();
        }
    }
    for (snapshot, expected) in &seen {
        assert_state(snapshot, expected, &"a walk at a snapshot");
    }
    assert_state(&engine, &state, &"a walk now");
}

fn fill(engine: &Engine, count: u32) {
    for index in 0..count {
        commit(
            engine,
            &TREES.map(|tree| Write::put(tree.index(), &key(index), &[b'v'; 100])),
            None,
        );
    }
}

fn delete_all(engine: &Engine, count: u32) {
    for index in 0..count {
        commit(engine, &TREES.map(|tree| Write::delete(tree.index(), &key(index))), None);
    }
}

#[test]
fn deleting_everything_and_compacting_leaves_no_table() {
    for background_threads in [0, 1] {
        let fs = MemFs::new();
        let options = Options { background_threads, ..tiny() };
        let engine = open(&fs, &options);
        fill(&engine, 2000);
        engine.wait_idle().unwrap();
        assert!(tables(&engine).bytes > 200_000);
        delete_all(&engine, 2000);
        engine.compact().unwrap();
        assert_eq!(tables(&engine), LevelStats::default());
        // A background thread that estimates garbage may still read the last ones.
        let deadline = Instant::now() + Duration::from_secs(20);
        while table_files(&fs) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(table_files(&fs), 0);
        engine.close().unwrap();
        assert_state(&open(&fs, &options), &State::default(), &"after reopen");
    }
}

#[test]
fn files_of_tombstones_are_compacted_without_being_asked() {
    for background_threads in [0, 1] {
        let options = Options { background_threads, ..tiny() };
        let engine = open(&MemFs::new(), &options);
        fill(&engine, 1000);
        engine.wait_idle().unwrap();
        let snapshot = engine.snapshot().unwrap();
        delete_all(&engine, 1000);
        engine.flush().unwrap();
        engine.wait_idle().unwrap();
        let kept = tables(&engine);
        assert_eq!(kept.entries, 6000, "the snapshot sees the values, the others the deletes");
        drop(snapshot);
        engine.wait_idle().unwrap();
        let left = tables(&engine);
        assert_eq!((left.entries, left.tombstones), (0, 0), "{:?}", engine.stats());
        let stats = engine.stats();
        assert!(stats.elided >= 3000 && stats.merges_for_tombstones > 0, "{stats:?}");
        assert_state(&engine, &State::default(), &"deleted");
    }
}

#[test]
fn no_older_value_reappears_after_its_delete_was_dropped() {
    for (seed, with_snapshots) in (0..8).flat_map(|seed| [(seed, false), (seed, true)]) {
        let fs = MemFs::new();
        let options = Options { background_threads: seed as u32 % 2, level_ratio: 2, ..tiny() };
        let engine = open(&fs, &options);
        let mut random = SplitMix64::new(seed);
        let (mut state, mut snapshots) = (State::default(), VecDeque::new());
        for round in 0..40 {
            let first = random.below(600) as u32;
            let value = vec![round as u8; 10 + random.below(150) as usize];
            let deletes = random.below(5) < 2;
            for index in first..first + random.below(120) as u32 {
                let tree = [META, DATA, SCORE][index as usize % 3].index();
                let write = match deletes {
                    true => Write::delete(tree, &key(index)),
                    false => Write::put(tree, &key(index), &value),
                };
                commit(&engine, std::slice::from_ref(&write), None);
                state.apply(&[write]);
            }
            if with_snapshots {
                snapshots.push_back((engine.snapshot().unwrap(), state.clone()));
                if snapshots.len() > 3 {
                    let (snapshot, seen) = snapshots.pop_front().unwrap();
                    assert_state(&snapshot, &seen, &("snapshot", seed, round));
                }
            }
            match random.below(4) {
                0 => engine.flush().unwrap(),
                1 => engine.wait_idle().unwrap(),
                2 if random.one_in(5) => engine.compact().unwrap(),
                _ => continue,
            }
            assert_state(&engine, &state, &("seed", seed, round));
        }
        for (snapshot, seen) in snapshots {
            assert_state(&snapshot, &seen, &("the last snapshots of seed", seed));
        }
        engine.wait_idle().unwrap();
        assert!(engine.stats().elided > 0, "the story needs dropped deletes");
        assert_state(&engine, &state, &("seed", seed));
        drop(engine);
        assert_state(&open(&fs, &options), &state, &("reopened, seed", seed));
    }
}
