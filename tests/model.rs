//! Random operations on a store and on a model of it, under random options, with crashes.
//!
//! The model is three sorted maps and the list of commits. After a crash the store must equal
//! some prefix of the commits that holds all that were promised: everything when only the process
//! died; else every commit that waited for the device and everything before a successful sync,
//! flush, compaction or close. Whatever recovery found is promised from then on.
//!
//! `LSMKV_MODEL_CASES` runs more cases than CI does. A failing case is printed in its smallest
//! form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

mod support;

use lsmkv::engine::{Batch, CacheFill, Engine, MemFs, Snapshot, WriteOptions};
use lsmkv::io::mem::CrashMode;
use lsmkv::{ErrorKind, Options, SyncMode};
use proptest::prelude::*;
use proptest::test_runner::Config;
use support::ops::{Op, fill_key, ops, options};
use support::walk::Walk;
use support::{History, Reads, State, TREES, Write, assert_state, commit, open, state_of};

/// A store beside its model.
struct Pair {
    fs: MemFs,
    /// Each life of the store has the next of these.
    options: Vec<Options>,
    lives: usize,
    engine: Option<Engine>,
    history: History,
    snapshots: Vec<(Snapshot, State)>,
    walks: Vec<Walk>,
}

impl Pair {
    fn new(options: Vec<Options>) -> Self {
        let mut pair = Self {
            fs: MemFs::new(),
            options,
            lives: 0,
            engine: None,
            history: History::default(),
            snapshots: Vec::new(),
            walks: Vec::new(),
        };
        pair.begin_life();
        pair
    }

    fn begin_life(&mut self) {
        let options = &self.options[self.lives % self.options.len()];
        self.engine = Some(open(&self.fs, options));
        self.lives += 1;
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().unwrap()
    }

    fn sync_mode(&self) -> SyncMode {
        self.options[(self.lives - 1) % self.options.len()].sync
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Commit { writes, durable } => self.commit(writes, *durable),
            Op::Fill { tree, first, count, step, value } => {
                for index in (*first..).step_by(*step as usize).take(*count as usize) {
                    self.commit(&[Write::put(*tree, &fill_key(index), &value.0)], false);
                }
            }
            Op::Clear { tree, first, count, step } => {
                for index in (*first..).step_by(*step as usize).take(*count as usize) {
                    self.commit(&[Write::delete(*tree, &fill_key(index))], false);
                }
            }
            Op::OpenSnapshot | Op::ReadSnapshot { .. } | Op::DropSnapshot { .. } => {
                self.snapshot_op(op);
            }
            Op::Get { .. } | Op::MultiGet { .. } | Op::Check => self.read_op(op),
            Op::Walk { .. } | Op::OpenWalk { .. } | Op::ResumeWalk { .. } | Op::DropWalk { .. } => {
                self.walk_op(op);
            }
            Op::WaitIdle => self.engine().wait_idle().expect("idle"),
            Op::Sync | Op::Flush | Op::Compact => self.durable_op(op),
            Op::Peek => self.peek(),
            Op::Reopen | Op::Abandon => self.reopen(matches!(op, Op::Reopen)),
            Op::Crash { mode, seed } => self.crash(*mode, *seed),
        }
    }

    fn commit(&mut self, writes: &[Write], durable: bool) {
        let sync = durable.then_some(SyncMode::Always);
        commit(self.engine(), writes, sync);
        self.history.record(writes);
        if durable || self.sync_mode() == SyncMode::Always {
            self.history.promise();
        }
        for write in writes {
            let expected = self.history.now.0[write.tree].get(&write.key.0).cloned();
            let found = self.engine().read(TREES[write.tree], &write.key.0);
            assert!(found == expected, "{:?} was just written", write.key);
        }
    }

    fn snapshot_op(&mut self, op: &Op) {
        match op {
            Op::OpenSnapshot => {
                let snapshot = self.engine().snapshot().expect("a snapshot");
                self.snapshots.push((snapshot, self.history.now.clone()));
            }
            Op::ReadSnapshot { which, tree, bounds, steps } => {
                let Some((snapshot, state)) = self.snapshots.get(*which) else { return };
                assert_state(snapshot, state, &"a snapshot");
                let iter = snapshot.walk(TREES[*tree], bounds.options(CacheFill::Fill));
                Walk::new(iter, &state.0[*tree], bounds).take(steps);
            }
            Op::DropSnapshot { which } if *which < self.snapshots.len() => {
                drop(self.snapshots.remove(*which));
            }
            _ => {}
        }
    }

    fn read_op(&self, op: &Op) {
        let model = &self.history.now;
        match op {
            Op::Get { tree, key } => {
                let expected = model.0[*tree].get(&key.0).cloned();
                assert!(self.engine().read(TREES[*tree], &key.0) == expected, "get {key:?}");
            }
            Op::MultiGet { tree, keys } => {
                let expected: Vec<_> =
                    keys.iter().map(|key| model.0[*tree].get(&key.0).cloned()).collect();
                let keys: Vec<&[u8]> = keys.iter().map(|key| &key.0[..]).collect();
                let found = self.engine().read_many(TREES[*tree], &keys);
                assert!(found == expected, "multi_get of {} keys", keys.len());
            }
            _ => assert_state(self.engine(), model, &"a check"),
        }
    }

    fn walk_op(&mut self, op: &Op) {
        match op {
            Op::Walk { tree, bounds, steps, cache_fill } => {
                let iter = self.engine().walk(TREES[*tree], bounds.options(*cache_fill));
                Walk::new(iter, &self.history.now.0[*tree], bounds).take(steps);
            }
            Op::OpenWalk { tree, bounds } => {
                let iter = self.engine().walk(TREES[*tree], bounds.options(CacheFill::Fill));
                self.walks.push(Walk::new(iter, &self.history.now.0[*tree], bounds));
            }
            Op::ResumeWalk { which, steps } => {
                if let Some(walk) = self.walks.get_mut(*which) {
                    walk.take(steps);
                }
            }
            Op::DropWalk { which } if *which < self.walks.len() => {
                drop(self.walks.remove(*which));
            }
            _ => {}
        }
    }

    fn durable_op(&mut self, op: &Op) {
        let done = match op {
            Op::Sync => self.engine().sync(),
            Op::Flush => self.engine().flush(),
            _ => self.engine().compact(),
        };
        done.expect("sync, flush and compact succeed");
        self.history.promise();
    }

    /// Everything that the process had written is there, and a read-only open changes nothing.
    fn peek(&self) {
        let copy = self.fs.crash_clone(0, CrashMode::KeepAll);
        let options = Options { read_only: true, ..self.options[0].clone() };
        let engine = open(&copy, &options);
        assert_state(&engine, &self.history.now, &"a read-only open");
        let refused = engine.write(&mut Batch::new(), WriteOptions::default());
        assert_eq!(refused.expect_err("read-only").kind(), ErrorKind::ReadOnly);
        engine.close().expect("close succeeds");
        assert_eq!((copy.bytes_written(), copy.sync_count()), (0, 0), "reading writes nothing");
    }

    fn reopen(&mut self, close: bool) {
        let engine = self.engine.take().unwrap();
        self.walks.clear();
        if close {
            engine.close().expect("close succeeds");
            self.history.promise();
            let error = engine.get(TREES[0], b"").expect_err("closed");
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
        drop(engine);
        for (snapshot, _) in self.snapshots.drain(..) {
            let error = snapshot.get(TREES[0], b"").expect_err("its store is gone");
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
        self.begin_life();
        assert_state(self.engine(), &self.history.now, &"a reopened store");
        self.history.promise();
    }

    fn crash(&mut self, mode: CrashMode, seed: u64) {
        let left = self.fs.crash_clone(seed, mode);
        self.snapshots.clear();
        self.walks.clear();
        self.engine = None;
        self.fs = left;
        self.begin_life();
        let found = state_of(self.engine());
        if mode == CrashMode::KeepAll {
            self.history.promise();
        }
        self.history.recover(found, &(mode, seed));
        assert_state(self.engine(), &self.history.now, &"a recovered store");
    }
}

fn check(options: Vec<Options>, ops: &[Op]) {
    let mut pair = Pair::new(options);
    for op in ops {
        pair.run(op);
    }
    assert_state(pair.engine(), &pair.history.now, &"the end");
    for (snapshot, state) in &pair.snapshots {
        assert_state(snapshot, state, &"a snapshot at the end");
    }
    pair.engine().verify().expect("every block is sound");
    pair.reopen(true);
}

fn config() -> Config {
    Config {
        cases: support::from_env("LSMKV_MODEL_CASES", 2000) / 2,
        failure_persistence: None,
        max_shrink_iters: 3000,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_store_that_works_in_the_callers_thread_follows_the_model(
        lives in prop::collection::vec(options(0), 1..3),
        ops in ops(),
    ) {
        check(lives, &ops);
    }

    #[test]
    fn a_store_with_background_threads_follows_the_model(
        lives in prop::collection::vec(options(1), 1..3),
        ops in ops(),
    ) {
        check(lives, &ops);
    }
}
