//! Many threads on one store, while it switches memtables, flushes and compacts.
//!
//! Writers put the same number under the same key of all three trees. So a reader that finds two
//! numbers at one read point has seen half a batch, and one that finds a smaller number than before
//! has gone back in time. Every story is bounded: a hang fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lsmkv::engine::{Batch, Engine, IterOptions, MemFs, TreeId, WriteOptions};
use lsmkv::io::mem::{CrashMode, SyncStage};
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{Error, ErrorKind, Options, SyncMode};
use support::{Reads, TREES, open, rows_backward, rows_forward, tiny, within};

const LIMIT: Duration = Duration::from_secs(60);
const KEYS: u64 = 12;

fn key_of(writer: u64, key: u64) -> Vec<u8> {
    format!("writer{writer}-key{key:02}").into_bytes()
}

/// The number, and some weight to fill memtables.
fn value_of(number: u64) -> Vec<u8> {
    let mut value = number.to_be_bytes().to_vec();
    value.resize(8 + (number as usize * 37) % 400, b'.');
    value
}

fn number_in(value: &[u8]) -> u64 {
    u64::from_be_bytes(*value.first_chunk().unwrap())
}

/// The batch with which a writer gives one of its keys the number, or now and then removes it.
fn batch_with(writer: u64, number: u64) -> Batch {
    let mut batch = Batch::new();
    let key = key_of(writer, number % KEYS);
    for tree in TREES {
        if number.is_multiple_of(29) {
            batch.delete(tree, &key);
        } else {
            batch.put(tree, &key, &value_of(number));
        }
    }
    batch
}

fn write_numbers(engine: &Engine, writer: u64, stop: &AtomicBool) {
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        engine.write(&mut batch_with(writer, number), WriteOptions::default()).unwrap();
    }
}

/// Numbers by key, as an iterator shows them.
fn numbers(rows: Vec<(Vec<u8>, Vec<u8>)>) -> BTreeMap<Vec<u8>, u64> {
    rows.into_iter().map(|(key, value)| (key, number_in(&value))).collect()
}

/// Snapshots show all trees alike, forward, backward and by key, and do not change.
fn read_snapshots(engine: &Engine, seed: u64, stop: &AtomicBool) {
    let mut random = SplitMix64::new(seed);
    while !stop.load(Ordering::Relaxed) {
        let snapshot = engine.snapshot().unwrap();
        let first = numbers(rows_forward(&snapshot, TREES[0]));
        std::thread::sleep(Duration::from_millis(random.below(20)));
        for tree in TREES {
            assert_eq!(numbers(rows_forward(&snapshot, tree)), first, "{tree:?} forward");
            assert_eq!(numbers(rows_backward(&snapshot, tree)), first, "{tree:?} backward");
            for (writer, key) in (0..3).flat_map(|writer| (0..KEYS).map(move |key| (writer, key))) {
                let key = key_of(writer, key);
                let found = snapshot.read(tree, &key).map(|value| number_in(&value));
                assert_eq!(found.as_ref(), first.get(&key), "{tree:?} by key");
            }
        }
    }
}

/// What a reader has seen of a key it never sees an older state of: not in another tree, not by
/// another kind of read.
fn read_forward_in_time(engine: &Engine, seed: u64, stop: &AtomicBool) {
    let mut random = SplitMix64::new(seed);
    let mut seen = BTreeMap::<Vec<u8>, u64>::new();
    let mut note = |key: &[u8], number: u64| {
        let last = seen.entry(key.to_vec()).or_default();
        assert!(number >= *last, "{} after {last}: {number}", key.escape_ascii());
        *last = number;
    };
    while !stop.load(Ordering::Relaxed) {
        let tree = TREES[random.below(3) as usize];
        let key = key_of(random.below(3), random.below(KEYS));
        match random.below(4) {
            0 => {
                for (key, value) in rows_forward(engine, tree) {
                    note(&key, number_in(&value));
                }
            }
            1 => {
                for value in engine.read_many(tree, &[&key, &key]).iter().flatten() {
                    note(&key, number_in(value));
                }
            }
            _ => {
                if let Some(value) = engine.read(tree, &key) {
                    note(&key, number_in(&value));
                }
            }
        }
    }
}

fn disturb(engine: &Engine, seed: u64, stop: &AtomicBool) {
    let mut random = SplitMix64::new(seed);
    while !stop.load(Ordering::Relaxed) {
        match random.below(4) {
            0 => engine.compact().unwrap(),
            1 => engine.wait_idle().unwrap(),
            _ => engine.flush().unwrap(),
        }
        std::thread::sleep(Duration::from_millis(random.below(30)));
    }
}

#[test]
fn readers_see_whole_batches_and_never_go_back_in_time() {
    within(LIMIT, || {
        let fs = MemFs::new();
        let engine = open(&fs, &Options { background_threads: 2, ..tiny() });
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (engine, stop) = (&engine, &stop);
            for writer in 0..3 {
                scope.spawn(move || write_numbers(engine, writer, stop));
            }
            for seed in 0..2 {
                scope.spawn(move || read_snapshots(engine, seed, stop));
                scope.spawn(move || read_forward_in_time(engine, seed, stop));
            }
            scope.spawn(move || disturb(engine, 7, stop));
            std::thread::sleep(Duration::from_secs(3));
            stop.store(true, Ordering::Relaxed);
        });
        let stats = engine.stats();
        assert!(stats.flushes > 10 && stats.merges > 5, "the story needs both: {stats:?}");
        engine.verify().unwrap();
    });
}

/// Gives many keys of all trees one number at once, so that applying it takes a while.
fn write_large_batches(engine: &Engine, stop: &AtomicBool) {
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let mut batch = Batch::new();
        for (tree, key) in TREES.into_iter().flat_map(|tree| (0..400).map(move |key| (tree, key))) {
            batch.put(tree, &key_of(9, key), &u64::to_be_bytes(number));
        }
        engine.write(&mut batch, WriteOptions::default()).unwrap();
    }
}

/// Reads what a batch writes last, then what it writes first.
fn read_last_then_first(engine: &Engine, stop: &AtomicBool) {
    let (first, last) = (key_of(9, 0), key_of(9, 399));
    let number = |value: Option<Vec<u8>>| value.map_or(0, |value| number_in(&value));
    while !stop.load(Ordering::Relaxed) {
        let snapshot = engine.snapshot().unwrap();
        let end = number(snapshot.read(TREES[2], &last));
        assert_eq!(number(snapshot.read(TREES[0], &first)), end, "a snapshot");
        let both = engine.read_many(TREES[1], &[&last, &first]);
        assert_eq!(both[0], both[1], "several keys at one read point");
    }
}

#[test]
fn a_large_batch_is_not_visible_before_all_of_it_is_there() {
    within(LIMIT, || {
        let options = Options { background_threads: 1, write_buffer: 1 << 20, ..tiny() };
        let engine = open(&MemFs::new(), &options);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (engine, stop) = (&engine, &stop);
            scope.spawn(move || write_large_batches(engine, stop));
            for _ in 0..2 {
                scope.spawn(move || read_last_then_first(engine, stop));
            }
            std::thread::sleep(Duration::from_secs(1));
            stop.store(true, Ordering::Relaxed);
        });
    });
}

/// The bug: compactions asked for by users did not know of each other, nor of those that a writer
/// runs itself in a store without threads. Both merged the same tables, and the second to install
/// its result found them gone, which turned writes off.
#[test]
fn compactions_asked_for_by_several_threads_do_not_collide() {
    for background_threads in [0, 1, 3] {
        within(LIMIT, move || {
            let fs = MemFs::new();
            let engine = open(&fs, &Options { background_threads, ..tiny() });
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let (engine, stop) = (&engine, &stop);
                scope.spawn(move || write_numbers(engine, 0, stop));
                for seed in 0..3 {
                    scope.spawn(move || disturb(engine, seed, stop));
                }
                std::thread::sleep(Duration::from_millis(500));
                stop.store(true, Ordering::Relaxed);
            });
            assert!(engine.degraded().is_none());
            let expected = numbers(rows_forward(&engine, TREES[0]));
            engine.close().unwrap();
            let engine = open(&fs, &tiny());
            assert_eq!(numbers(rows_forward(&engine, TREES[2])), expected);
        });
    }
}

const WRITERS: u64 = 4;

/// A writer's one key in the stories that cut the power or close the store.
fn put_everywhere(writer: u64, number: u64) -> Batch {
    let mut batch = Batch::new();
    for tree in TREES {
        batch.put(tree, &key_of(writer, 0), &value_of(number));
    }
    batch
}

/// Writes numbers under one key a writer, durably, and notes each that was acknowledged.
fn write_durably(engine: &Engine, writer: u64, acknowledged: &AtomicU64, stop: &AtomicBool) {
    for number in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let mut batch = put_everywhere(writer, number);
        if writer.is_multiple_of(2) {
            engine.write(&mut batch, WriteOptions::default()).unwrap();
        } else {
            let commit = engine.commit(&mut batch, WriteOptions::default()).unwrap();
            assert!(engine.wait_durable(commit, None).unwrap());
        }
        acknowledged.store(number, Ordering::SeqCst);
    }
}

/// The newest numbers of all writers in one tree; 0 for none.
fn newest(engine: &Engine, tree: TreeId) -> Vec<u64> {
    let read = |writer| engine.read(tree, &key_of(writer, 0)).map_or(0, |v| number_in(&v));
    (0..WRITERS).map(read).collect()
}

#[test]
fn a_power_cut_loses_nothing_that_a_shared_flush_acknowledged() {
    within(LIMIT, || {
        let fs = MemFs::new();
        // A device that takes a moment, and now and then one long enough for every writer to come
        // and wait, however busy the machine: then flushes are shared.
        let flushes = AtomicU64::new(0);
        fs.on_sync(move |_, point| {
            if point.stage == SyncStage::Before && point.path.extension() == Some("log".as_ref()) {
                let long = flushes.fetch_add(1, Ordering::Relaxed).is_multiple_of(32);
                let micros = if long { 20_000 } else { 300 };
                std::thread::sleep(Duration::from_micros(micros));
            }
        });
        let options = Options { sync: SyncMode::Always, background_threads: 1, ..tiny() };
        let engine = open(&fs, &options);
        let acknowledged: [AtomicU64; WRITERS as usize] = Default::default();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (engine, stop) = (&engine, &stop);
            for (writer, acknowledged) in (0..).zip(&acknowledged) {
                scope.spawn(move || write_durably(engine, writer, acknowledged, stop));
            }
            let end = Instant::now() + Duration::from_secs(2);
            for seed in 0.. {
                let promised: Vec<_> =
                    acknowledged.iter().map(|number| number.load(Ordering::SeqCst)).collect();
                let mode = CrashMode::ALL[seed as usize % CrashMode::ALL.len()];
                let left = open(&fs.crash_clone(seed, mode), &options);
                let found = TREES.map(|tree| newest(&left, tree));
                assert!(found.iter().all(|numbers| *numbers == found[0]), "{mode:?}: {found:?}");
                let kept =
                    found[0].iter().zip(&promised).all(|(found, promised)| found >= promised);
                assert!(kept, "seed {seed}, {mode:?}: found {:?} of {promised:?}", found[0]);
                if Instant::now() > end {
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        let stats = engine.stats();
        assert!(stats.syncs < stats.commits, "no flush was shared: {stats:?}");
    });
}

fn only_closed(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

/// Writes until the store is closed; returns the last acknowledged number.
fn write_until_closed(engine: &Engine, writer: u64) -> u64 {
    for number in 1.. {
        let mut batch = put_everywhere(writer, number);
        if let Err(error) = engine.write(&mut batch, WriteOptions::default()) {
            only_closed(&error);
            return number - 1;
        }
    }
    unreachable!("the store is closed before")
}

fn read_until_closed(engine: &Engine) {
    loop {
        let result = engine.snapshot().and_then(|snapshot| {
            let mut it = snapshot.iter(TREES[1], IterOptions::default())?;
            it.seek_to_first()?;
            while it.valid() {
                it.next()?;
            }
            snapshot.get(TREES[1], b"")?;
            engine.get(TREES[0], &key_of(0, 0))
        });
        if let Err(error) = result {
            return only_closed(&error);
        }
    }
}

fn disturb_until_closed(engine: &Engine, seed: u64) {
    let mut random = SplitMix64::new(seed);
    loop {
        let result = match random.below(4) {
            0 => engine.compact(),
            1 => engine.wait_idle(),
            2 => engine.sync(),
            _ => engine.flush(),
        };
        if let Err(error) = result {
            return only_closed(&error);
        }
    }
}

#[test]
fn closing_under_load_ends_every_thread_and_keeps_what_was_acknowledged() {
    for round in 0..24 {
        within(LIMIT, move || {
            let sync = [SyncMode::Always, SyncMode::Off, SyncMode::Interval][round as usize % 3];
            let background_threads = (round as u32 / 3) % 3;
            let options = Options { sync, background_threads, ..tiny() };
            let fs = MemFs::new();
            let engine = open(&fs, &options);
            let acknowledged = std::thread::scope(|scope| {
                let engine = &engine;
                let writers: Vec<_> = (0..2)
                    .map(|writer| scope.spawn(move || write_until_closed(engine, writer)))
                    .collect();
                scope.spawn(move || read_until_closed(engine));
                scope.spawn(move || disturb_until_closed(engine, round));
                std::thread::sleep(Duration::from_millis(5 + round * 3));
                engine.close().unwrap();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
            });
            drop(engine);
            let engine = open(&fs.crash_clone(round, CrashMode::DropUnsynced), &options);
            for (writer, last) in (0..).zip(acknowledged) {
                let found = engine.read(TREES[2], &key_of(writer, 0)).map(|v| number_in(&v));
                assert!(found.unwrap_or(0) >= last, "round {round}: {found:?} of {last}");
            }
        });
    }
}

/// The bug: two threads that closed a store at once could both begin, and the second failed since
/// the first had put everything away.
#[test]
fn a_store_may_be_closed_by_several_threads_at_once() {
    within(LIMIT, || {
        for round in 0..1000 {
            let engine = open(&MemFs::new(), &Options { background_threads: round % 2, ..tiny() });
            let ready = AtomicU64::new(0);
            // Threads that spin leave together; those that are woken do not.
            let close = || {
                ready.fetch_add(1, Ordering::SeqCst);
                while ready.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
                engine.close()
            };
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(close);
                (close(), other.join().unwrap())
            });
            assert!(one.is_ok() && other.is_ok(), "round {round}: {one:?}, {other:?}");
        }
    });
}
