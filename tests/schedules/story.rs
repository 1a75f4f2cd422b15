//! A store in memory that several threads use at once, and what must hold whatever their order:
//!
//! - a commit that was acknowledged is in every later read, and after a reopen;
//! - a batch is in all trees or in none;
//! - a snapshot and a reader show a prefix of the commits, with all that were acknowledged before,
//!   and the reader's sequence number says where the prefix ends;
//! - after a power cut the store has a prefix of the commits, with all that were durable;
//! - a close ends every wait, and nobody waits for ever.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use lsmkv::engine::{
    Batch, Commit, CrashMode, Engine, EngineConfig, MemFs, Sequence, TreeConfig, TreeId,
    WriteOptions,
};
use lsmkv::{ErrorKind, Options, SyncMode};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const TREES: [TreeId; 2] = [TreeId(0), TreeId(1)];
/// The keys of the writers.
const KEYS: [&[u8]; 8] = [b"a0", b"a1", b"a2", b"a3", b"b0", b"b1", b"b2", b"b3"];

/// A commit that was acknowledged.
#[derive(Clone)]
struct Known {
    key: Vec<u8>,
    sequence: Sequence,
    durable: bool,
}

/// A store and what its writers know.
struct Story {
    fs: MemFs,
    engine: Engine,
    known: Mutex<Vec<Known>>,
    /// Of each read the key, the sequence, and whether the key was there.
    seen: Mutex<Vec<(Vec<u8>, Sequence, bool)>>,
}

fn open(fs: &MemFs, background_threads: u32) -> Engine {
    let options = Options {
        background_threads,
        write_buffer: 64 << 10,
        table_bytes: 64 << 10,
        log_segment_bytes: 64 << 10,
        memory_budget: 4 << 20,
        sync: SyncMode::Off,
        ..Options::default()
    };
    let trees = ["first", "second"].map(TreeConfig::named).to_vec();
    let config = EngineConfig { options, trees };
    Engine::open(Arc::new(fs.clone()), Path::new("/db"), config).unwrap()
}

/// Long enough for a few commits to fill the memtables.
fn value(key: &[u8]) -> Vec<u8> {
    key.repeat(4000)
}

/// Whether the key is there, in both trees or in none; `None` if the store was closed.
fn is_there(get: impl Fn(TreeId) -> lsmkv::Result<Option<Bytes>>, key: &[u8]) -> Option<bool> {
    let [first, second] = match TREES.map(get) {
        [Ok(first), Ok(second)] => [first, second],
        [Err(error), _] | [_, Err(error)] => {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            return None;
        }
    };
    assert_eq!(first, second, "a batch is in all trees or in none");
    let found = first.inspect(|found| assert!(*found == value(key), "the value is whole"));
    Some(found.is_some())
}

impl Story {
    fn begin() -> Arc<Self> {
        let fs = MemFs::new();
        let engine = open(&fs, 1);
        Arc::new(Self { fs, engine, known: Mutex::default(), seen: Mutex::default() })
    }

    fn known(&self) -> Vec<Known> {
        self.known.lock().unwrap().clone()
    }

    /// Commits a key; `None` if the store was closed.
    fn commit(&self, key: &[u8], durable: bool) -> Option<Commit> {
        let mut batch = Batch::new();
        TREES.iter().for_each(|tree| batch.put(*tree, key, &value(key)));
        let sync = Some(if durable { SyncMode::Always } else { SyncMode::Off });
        match self.engine.write(&mut batch, WriteOptions { sync, frees_space: false }) {
            Ok(commit) => {
                let known = Known { key: key.to_vec(), sequence: commit.sequence, durable };
                self.known.lock().unwrap().push(known);
                Some(commit)
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
                None
            }
        }
    }

    /// A thread that commits a few keys of its own.
    fn writer(self: &Arc<Self>, number: u8, commits: u8) -> thread::JoinHandle<()> {
        let story = Arc::clone(self);
        thread::spawn(move || {
            for i in 0..commits {
                if story.commit(&[b'a' + number, b'0' + i], thread_rng().gen_bool(0.4)).is_none() {
                    return;
                }
            }
        })
    }

    fn flusher(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let story = Arc::clone(self);
        thread::spawn(move || closed_or(story.engine.flush()))
    }

    /// A thread that reads the store at one moment, several times.
    fn reader(self: &Arc<Self>) -> thread::JoinHandle<()> {
        let story = Arc::clone(self);
        thread::spawn(move || {
            let before = story.known();
            let (Ok(snapshot), Ok(reader)) = (story.engine.snapshot(), story.engine.reader())
            else {
                return;
            };
            for known in &before {
                let there = is_there(|tree| snapshot.get(tree, &known.key), &known.key);
                assert!(there.unwrap_or(true), "an acknowledged commit is in the snapshot");
                let there = is_there(|tree| reader.get(tree, &known.key), &known.key);
                assert!(there.unwrap_or(true), "an acknowledged commit is read");
            }
            for _ in 0..2 {
                for key in KEYS {
                    let there = is_there(|tree| snapshot.get(tree, key), key);
                    story.note(key, snapshot.sequence(), there);
                    let there = is_there(|tree| reader.get(tree, key), key);
                    story.note(key, reader.sequence(), there);
                }
            }
        })
    }

    /// Notes what a read at a sequence found, unless the store was closed.
    fn note(&self, key: &[u8], sequence: Sequence, there: Option<bool>) {
        if let Some(there) = there {
            self.seen.lock().unwrap().push((key.to_vec(), sequence, there));
        }
    }

    /// Every read found what had been committed up to its sequence, and nothing else: also of the
    /// commits that were under way, whose sequences only their writers learned.
    fn check_reads(&self) {
        let known = self.known();
        for (key, at, there) in self.seen.lock().unwrap().iter() {
            if let Some(known) = known.iter().find(|known| known.key == *key) {
                assert_eq!(*there, known.sequence <= *at, "{key:?} at {at}: {}", known.sequence);
            }
        }
    }
}

fn closed_or(result: lsmkv::Result<()>) {
    if let Err(error) = result {
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    }
}

/// Opens what is on disk and compares: all of `promised` is there, and of `all` a prefix.
fn check(fs: &MemFs, promised: &[Known], mut all: Vec<Known>) {
    let engine = open(fs, 0);
    let found = |key: &[u8]| is_there(|tree| engine.get(tree, key), key).unwrap();
    for known in promised {
        assert!(found(&known.key), "{:?} was promised and is lost", known.key);
    }
    all.sort_by_key(|known| known.sequence);
    let there: Vec<bool> = all.iter().map(|known| found(&known.key)).collect();
    assert!(there.is_sorted_by(|a, b| a >= b), "not a prefix: {there:?}");
    engine.verify().unwrap();
}

/// Writers, a flush, a reader and a close. A group of the queue may be one of several commits.
pub(crate) fn with_close(_: u64) {
    let story = Story::begin();
    let threads =
        [story.writer(0, 3), story.writer(1, 3), story.flusher(), story.reader(), story.reader()];
    if thread_rng().gen_bool(0.5) {
        thread::yield_now();
    }
    story.engine.close().unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    story.check_reads();
    let known = story.known();
    check(&story.fs, &known, known.clone());
}

/// A power cut at any moment, with a store that goes on.
pub(crate) fn with_power_cut(seed: u64) {
    let story = Story::begin();
    let mut threads = vec![story.writer(0, 4), story.writer(1, 4), story.flusher()];
    let cut = {
        let story = Arc::clone(&story);
        thread::spawn(move || {
            for _ in 0..thread_rng().gen_range(0..200) {
                thread::yield_now();
            }
            let durable: Vec<_> = story.known().into_iter().filter(|it| it.durable).collect();
            let modes = [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Chaotic];
            (story.fs.crash_clone(seed, modes[thread_rng().gen_range(0..3)]), durable)
        })
    };
    threads.push(story.reader());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    story.check_reads();
    let (fs, durable) = cut.join().unwrap();
    check(&fs, &durable, story.known());
    story.engine.close().unwrap();
}

/// Threads that wait until their commits are durable, or the store closes.
pub(crate) fn with_waits(_: u64) {
    let story = Story::begin();
    let waits = [0, 1, 2].map(|number| {
        let story = Arc::clone(&story);
        thread::spawn(move || {
            let Some(commit) = story.commit(&[b'w', b'0' + number], false) else { return };
            match story.engine.wait_until_closing(commit, None) {
                Ok(durable) => assert!(durable),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
            }
        })
    });
    let writer = story.writer(0, 2);
    story.engine.announce_close();
    story.engine.close().unwrap();
    waits.into_iter().chain([writer]).for_each(|thread| thread.join().unwrap());
    let known = story.known();
    check(&story.fs, &known, known.clone());
}
