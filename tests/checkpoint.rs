//! Copies of a store that is in use: complete or absent, of one point in time, without delay for
//! the original.
//!
//! `LSMKV_SWEEP=all` tries every way to fail at every call, not only at some.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

mod support;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libc::{EINTR, EIO, ENOSPC};
use lsmkv::engine::{Engine, EngineConfig, FaultFs, FileSystem, MemFs};
use lsmkv::io::fault::{Effect, Fault, Method};
use lsmkv::io::mem::CrashMode;
use lsmkv::io::splitmix::SplitMix64;
use lsmkv::{ErrorKind, Options, Result, SyncMode};
use parking_lot::Mutex;
use support::{
    DATA, DIR, META, State, Write, assert_state, commit, delete, open, put, tiny, trees,
};

const COPY: &str = "/copies/copy";

fn quiet() -> Options {
    Options { background_threads: 0, sync: SyncMode::Off, block_bytes: 1 << 10, ..tiny() }
}

fn open_in(fs: &Arc<dyn FileSystem>, dir: &str) -> Result<Engine> {
    let options = Options { create_if_missing: dir == DIR, ..quiet() };
    Engine::open(Arc::clone(fs), Path::new(dir), EngineConfig { options, trees: trees() })
}

fn open_mem(fs: &MemFs, dir: &str) -> Result<Engine> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    open_in(&fs, dir)
}

/// The directory for copies, durable.
fn with_copies(fs: &MemFs) {
    fs.create_dir(Path::new("/copies")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
}

/// Commits over all trees that each name themselves; returns the state after them.
fn fill(engine: &Engine, state: &mut State, random: &mut SplitMix64, commits: u64) {
    for _ in 0..commits {
        let number = random.below(1 << 30);
        let writes: Vec<_> = (0..3)
            .flat_map(|tree| {
                let key = format!("key{:03}", random.below(200));
                let value = format!("{number}").repeat(1 + random.below(8) as usize);
                let last = Write::put(tree, b"last", format!("{number}").as_bytes());
                let other = format!("key{:03}", random.below(200));
                [
                    Write::put(tree, key.as_bytes(), value.as_bytes()),
                    last,
                    Write::delete(tree, other.as_bytes()),
                ]
            })
            .collect();
        commit(engine, &writes, None);
        state.apply(&writes);
    }
}

/// A store with tables on several levels, segments of an earlier life, and a log of this one.
fn lived_in(fs: &MemFs) -> (Engine, State) {
    let (mut state, mut random) = (State::default(), SplitMix64::new(3));
    let engine = open(fs, &quiet());
    fill(&engine, &mut state, &mut random, 150);
    engine.flush().unwrap();
    fill(&engine, &mut state, &mut random, 20);
    drop(engine);
    let engine = open(fs, &quiet());
    fill(&engine, &mut state, &mut random, 20);
    (engine, state)
}

fn names_in(fs: &MemFs, dir: &str) -> Vec<PathBuf> {
    fs.paths().into_iter().filter(|path| path.starts_with(dir)).collect()
}

/// Nothing of a copy is there, finished or not.
fn assert_no_copy(fs: &MemFs) {
    assert_eq!(fs.list(Path::new("/copies")).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn a_copy_holds_what_was_there_and_both_go_on_by_themselves() {
    for backup in [false, true] {
        let fs = MemFs::new();
        with_copies(&fs);
        let (engine, mut state) = lived_in(&fs);
        let then = state.clone();
        if backup {
            let target: Arc<dyn FileSystem> = Arc::new(fs.clone());
            let mut go_on = |_, _| ControlFlow::Continue(());
            assert!(engine.backup(&target, Path::new(COPY), &mut go_on).unwrap());
        } else {
            engine.checkpoint(Path::new(COPY)).unwrap();
        }
        let mut random = SplitMix64::new(9);
        fill(&engine, &mut state, &mut random, 100);
        engine.compact().unwrap();
        for life in 0..2 {
            let copy = open_mem(&fs, COPY).unwrap();
            assert_state(&copy, &then, &life);
            copy.verify().unwrap();
            copy.close().unwrap();
        }
        let copy = open_mem(&fs, COPY).unwrap();
        let mut other = then;
        fill(&copy, &mut other, &mut SplitMix64::new(11), 100);
        copy.compact().unwrap();
        drop(copy);
        assert_state(&open_mem(&fs, COPY).unwrap(), &other, &"the copy");
        assert_state(&engine, &state, &"the original");
        engine.verify().unwrap();
    }
}

#[test]
fn a_copy_of_a_copy_is_one_too_also_when_nothing_is_in_the_log_or_in_tables() {
    let fs = MemFs::new();
    with_copies(&fs);
    let (engine, state) = lived_in(&fs);
    engine.checkpoint(Path::new("/copies/a")).unwrap();
    let a = open_mem(&fs, "/copies/a").unwrap();
    a.checkpoint(Path::new("/copies/b")).unwrap();
    a.flush().unwrap();
    a.checkpoint(Path::new("/copies/c")).unwrap();
    let logs =
        names_in(&fs, "/copies/c").into_iter().filter(|p| p.extension() == Some("log".as_ref()));
    assert_eq!(logs.count(), 0, "all is in tables");
    for name in ["/copies/b", "/copies/c"] {
        let copy = open_mem(&fs, name).unwrap();
        assert_state(&copy, &state, &name);
        copy.close().unwrap();
        assert_state(&open_mem(&fs, name).unwrap(), &state, &name);
    }
    let empty = MemFs::new();
    with_copies(&empty);
    let engine = open(&empty, &quiet());
    engine.checkpoint(Path::new(COPY)).unwrap();
    assert_state(&open_mem(&empty, COPY).unwrap(), &State::default(), &"nothing");
    put(&engine, META, b"k", b"only in the log");
    engine.checkpoint(Path::new("/copies/log")).unwrap();
    let copy = open_mem(&empty, "/copies/log").unwrap();
    assert_eq!(copy.get(META, b"k").unwrap().unwrap(), "only in the log");
}

/// Tables of the version and segments of the log that are being copied stay until that is done,
/// though the store would have removed them long since; then they go.
#[test]
fn what_is_being_copied_does_not_vanish_though_all_of_it_is_deleted_and_rewritten_meanwhile() {
    let (fs, target) = (MemFs::new(), MemFs::new());
    with_copies(&target);
    let (engine, mut state) = lived_in(&fs);
    drop(engine);
    let many_segments = Options { write_buffer: 1 << 20, log_segment_bytes: 4 << 10, ..quiet() };
    let engine = open(&fs, &many_segments);
    fill(&engine, &mut state, &mut SplitMix64::new(8), 60);
    assert!(engine.stats().log_segments > 3);
    let to: Arc<dyn FileSystem> = Arc::new(target.clone());
    let (mut calls, mut last) = (0u64, 0);
    let done = engine.backup(&to, Path::new(COPY), &mut |copied, total| {
        assert!(copied >= last && copied <= total);
        last = copied;
        calls += 1;
        if calls == 1 {
            for (tree, rows) in support::TREES.into_iter().zip(&state.0) {
                rows.keys().for_each(|key| delete(&engine, tree, key));
            }
            engine.compact().unwrap();
        }
        ControlFlow::Continue(())
    });
    assert!(done.unwrap() && calls > 3);
    assert_state(&engine, &State::default(), &"the original is empty");
    assert_state(&open_mem(&target, COPY).unwrap(), &state, &"the copy is of before");
    put(&engine, META, b"k", b"v");
    engine.flush().unwrap();
    let logs = names_in(&fs, DIR).into_iter().filter(|p| p.extension() == Some("log".as_ref()));
    assert_eq!(engine.stats().log_segments, 1, "segments that were kept for the copy are gone");
    assert!(logs.count() <= 2, "one, and perhaps the next one");
    let tables = names_in(&fs, DIR).into_iter().filter(|p| p.extension() == Some("table".as_ref()));
    assert_eq!(tables.count(), 1, "and so are tables");
}

#[test]
fn a_backup_can_be_ended_at_any_point_and_leaves_nothing() {
    let (fs, target) = (MemFs::new(), MemFs::new());
    with_copies(&target);
    let (engine, state) = lived_in(&fs);
    let to: Arc<dyn FileSystem> = Arc::new(target.clone());
    let mut calls = 0;
    for stop_at in 1.. {
        calls = 0;
        let done = engine.backup(&to, Path::new(COPY), &mut |_, _| {
            calls += 1;
            if calls == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if done.unwrap() {
            break;
        }
        assert_no_copy(&target);
    }
    assert!(calls > 5, "{calls}");
    assert_state(&open_mem(&target, COPY).unwrap(), &state, &"not ended");
}

#[test]
fn a_backup_notices_damage_and_names_the_file_that_has_it() {
    let fs = MemFs::new();
    with_copies(&fs);
    let (engine, _) = lived_in(&fs);
    let to: Arc<dyn FileSystem> = Arc::new(fs.clone());
    let tables = names_in(&fs, DIR).into_iter().filter(|p| p.extension() == Some("table".as_ref()));
    for path in tables.collect::<Vec<_>>() {
        let sound = fs.read_file(&path).unwrap();
        let mut bytes = sound.clone();
        bytes[20] ^= 1;
        fs.write_file(&path, &bytes).unwrap();
        let error =
            engine.backup(&to, Path::new(COPY), &mut |_, _| ControlFlow::Continue(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains(path.to_str().unwrap()), "{error}");
        assert_no_copy(&fs);
        fs.write_file(&path, &sound).unwrap();
    }
    assert!(engine.degraded().is_none());
    engine.checkpoint(Path::new(COPY)).unwrap();
}

#[test]
fn a_target_that_cannot_be_is_refused_and_left_alone() {
    let fs = MemFs::new();
    with_copies(&fs);
    let (engine, state) = lived_in(&fs);
    let refused = |dir: &str, kind: ErrorKind| {
        assert_eq!(engine.checkpoint(Path::new(dir)).unwrap_err().kind(), kind, "{dir}");
    };
    fs.create_dir(Path::new("/copies/empty")).unwrap();
    fs.write_file(Path::new("/copies/file"), b"x").unwrap();
    refused("/copies/empty", ErrorKind::Invalid);
    refused("/copies/file", ErrorKind::Invalid);
    refused(DIR, ErrorKind::Invalid);
    refused("/db/inside", ErrorKind::Invalid);
    refused("/", ErrorKind::Invalid);
    refused("/none/copy", ErrorKind::Io);
    // Not what a checkpoint that was interrupted left: nothing is removed.
    fs.create_dir(Path::new("/copies/.mine.lsmkv-partial")).unwrap();
    let letters = Path::new("/copies/.mine.lsmkv-partial/letters");
    fs.write_file(letters, b"x").unwrap();
    refused("/copies/mine", ErrorKind::Invalid);
    assert_eq!(fs.read_file(letters).unwrap(), b"x");
    engine.checkpoint(Path::new(COPY)).unwrap();
    refused(COPY, ErrorKind::Invalid);
    assert_state(&open_mem(&fs, COPY).unwrap(), &state, &"the first one");
    let memory = open(&MemFs::untracked(), &quiet());
    let error = memory.checkpoint(Path::new("copy")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn two_copies_at_once_need_two_names() {
    let (fs, target) = (MemFs::new(), MemFs::new());
    with_copies(&target);
    let (engine, state) = lived_in(&fs);
    let to: Arc<dyn FileSystem> = Arc::new(target.clone());
    let go_on = |_, _| ControlFlow::Continue(());
    let mut inside = false;
    let done = engine.backup(&to, Path::new(COPY), &mut |_, _| {
        if !std::mem::replace(&mut inside, true) {
            let error = engine.backup(&to, Path::new(COPY), &mut { go_on }).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(engine.backup(&to, Path::new("/copies/other"), &mut { go_on }).unwrap());
        }
        ControlFlow::Continue(())
    });
    assert!(done.unwrap());
    for name in [COPY, "/copies/other"] {
        assert_state(&open_mem(&target, name).unwrap(), &state, &name);
    }
}

#[test]
fn closing_the_store_ends_a_backup() {
    let (fs, target) = (MemFs::new(), MemFs::new());
    with_copies(&target);
    let (engine, state) = lived_in(&fs);
    let to: Arc<dyn FileSystem> = Arc::new(target.clone());
    std::thread::scope(|scope| {
        let mut closing = None;
        let error = engine.backup(&to, Path::new(COPY), &mut |_, _| {
            closing.get_or_insert_with(|| scope.spawn(|| engine.close()));
            while engine.check_open().is_ok() {
                std::thread::yield_now();
            }
            ControlFlow::Continue(())
        });
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Closed);
        closing.unwrap().join().unwrap().unwrap();
    });
    assert_no_copy(&target);
    assert_eq!(engine.checkpoint(Path::new(COPY)).unwrap_err().kind(), ErrorKind::Closed);
    assert_state(&open_mem(&fs, DIR).unwrap(), &state, &"the original");
}

/// After a power cut the original is as it was, and the copy whole or absent; then one can be made.
fn check_after_cut(left: &MemFs, state: &State, promised: bool, what: &str) {
    let original = open_mem(left, DIR).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_state(&original, state, &what);
    let exists = left.exists(Path::new(COPY)).unwrap();
    assert!(exists || !promised, "{what}: the copy is lost");
    if !exists {
        let copied = original.checkpoint(Path::new(COPY));
        copied.unwrap_or_else(|error| panic!("{what}: another attempt: {error}"));
    }
    let copy = open_mem(left, COPY).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_state(&copy, state, &what);
    copy.verify().unwrap();
}

fn cut_at_every_sync(backup: bool) {
    let fs = MemFs::new();
    with_copies(&fs);
    let (engine, state) = lived_in(&fs);
    engine.sync().unwrap();
    let photographs: Arc<Mutex<Vec<(MemFs, String)>>> = Arc::default();
    let album = Arc::clone(&photographs);
    fs.on_sync(move |fs, point| {
        let what = format!("{:?} sync {} of {}", point.stage, point.number, point.path.display());
        album.lock().push((fs.deep_clone(), what));
    });
    if backup {
        let to: Arc<dyn FileSystem> = Arc::new(fs.clone());
        engine.backup(&to, Path::new(COPY), &mut |_, _| ControlFlow::Continue(())).unwrap();
    } else {
        engine.checkpoint(Path::new(COPY)).unwrap();
    }
    let photographs = std::mem::take(&mut *photographs.lock());
    assert!(photographs.len() >= 10, "{} photographs", photographs.len());
    let modes =
        [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Chaotic, CrashMode::KeepAll];
    for (photograph, what) in &photographs {
        for (seed, mode) in (0..12).map(|n| (n, modes[n as usize % 4])) {
            let what = format!("backup {backup}, {what}, {mode:?} {seed}");
            check_after_cut(&photograph.crash_clone(seed, mode), &state, false, &what);
        }
    }
    for (seed, mode) in (0..12).map(|n| (n, modes[n as usize % 4])) {
        let what = format!("backup {backup}, when it has returned, {mode:?} {seed}");
        check_after_cut(&fs.crash_clone(seed, mode), &state, true, &what);
    }
}

#[test]
fn a_power_cut_at_any_sync_of_a_checkpoint_leaves_the_original_and_a_whole_copy_or_none() {
    cut_at_every_sync(false);
}

#[test]
fn a_power_cut_at_any_sync_of_a_backup_leaves_the_original_and_a_whole_copy_or_none() {
    cut_at_every_sync(true);
}

/// The calls of one copy fail, each in its turn.
struct Sweep {
    prepared: MemFs,
    state: State,
    backup: bool,
}

impl Sweep {
    fn copy(&self, engine: &Engine, fs: &FaultFs) -> Result<()> {
        if !self.backup {
            return engine.checkpoint(Path::new(COPY));
        }
        let to: Arc<dyn FileSystem> = Arc::new(fs.clone());
        engine.backup(&to, Path::new(COPY), &mut |_, _| ControlFlow::Continue(())).map(|_| ())
    }

    /// Whether the fault came to anything: false past the last call.
    fn strike(&self, call: u64, sticky: bool, effect: Effect) -> bool {
        let mem = self.prepared.deep_clone();
        let fs = FaultFs::new(Arc::new(mem.clone()));
        let shared: Arc<dyn FileSystem> = Arc::new(fs.clone());
        let engine = open_in(&shared, DIR).unwrap();
        let mut state = self.state.clone();
        fill(&engine, &mut state, &mut SplitMix64::new(5), 10);
        let from = fs.calls() + call;
        fs.arm(if sticky { Fault::sticky(from, effect) } else { Fault::once(from, effect) });
        let result = self.copy(&engine, &fs);
        fs.disarm();
        let struck = fs.struck();
        let what =
            format!("backup {}, {effect:?}, sticky {sticky}: {:?}", self.backup, struck.first());
        self.check_result(&result, effect, !struck.is_empty(), &what);
        let exists = mem.exists(Path::new(COPY)).unwrap();
        assert!(exists || result.is_err(), "{what}: no copy and no error");
        if exists {
            assert_state(&open_mem(&mem, COPY).unwrap(), &state, &what);
        }
        let degrades = struck.iter().any(|call| {
            let sync = matches!(call.method, Method::SyncData | Method::SyncAll);
            call.path.starts_with(DIR) && (sync || call.path.ends_with("SYNC"))
        });
        match engine.degraded() {
            Some(cause) => assert!(degrades, "{what}: {cause}"),
            None => {
                put(&engine, DATA, b"and", b"on");
                state.apply(&[Write::put(1, b"and", b"on")]);
                let again = engine.checkpoint(Path::new("/copies/again"));
                again.unwrap_or_else(|error| panic!("{what}: another: {error}"));
                if !exists {
                    let again = self.copy(&engine, &fs);
                    again.unwrap_or_else(|error| panic!("{what}: again: {error}"));
                    assert_state(&open_mem(&mem, COPY).unwrap(), &state, &what);
                }
            }
        }
        assert_state(&engine, &state, &what);
        drop(engine);
        assert_state(&open_mem(&mem, DIR).unwrap(), &state, &what);
        !struck.is_empty()
    }

    fn check_result(&self, result: &Result<()>, effect: Effect, struck: bool, what: &str) {
        let Err(error) = result else { return };
        assert!(struck, "{what}: {error} without a fault");
        let (Effect::Errno(errno) | Effect::Torn(errno)) = effect else {
            panic!("{what}: a short transfer is no error: {error}");
        };
        assert_eq!(error.os_errno(), errno, "{what}: {error}");
    }

    fn run(backup: bool) {
        let prepared = MemFs::new();
        with_copies(&prepared);
        let (engine, state) = lived_in(&prepared);
        drop(engine);
        let sweep = Self { prepared, state, backup };
        let every = std::env::var("LSMKV_SWEEP").is_ok_and(|which| which == "all");
        let kinds = [
            (Effect::Errno(EIO), false, 1),
            (Effect::Errno(EIO), true, 2),
            (Effect::Errno(ENOSPC), false, 3),
            (Effect::Errno(ENOSPC), true, 5),
            // Interrupted calls are repeated, for ever if need be: only once.
            (Effect::Errno(EINTR), false, 5),
            (Effect::Torn(EIO), false, 5),
            (Effect::Short, true, 5),
        ];
        for (effect, sticky, step) in kinds {
            let calls = (1..).step_by(if every { 1 } else { step });
            let struck = calls.take_while(|call| sweep.strike(*call, sticky, effect)).count();
            assert!(struck > 40 / step, "{struck} calls");
        }
    }
}

#[test]
fn a_fault_of_any_call_of_a_checkpoint_is_told_and_harms_nothing() {
    Sweep::run(false);
}

#[test]
fn a_fault_of_any_call_of_a_backup_is_told_and_harms_nothing() {
    Sweep::run(true);
}
