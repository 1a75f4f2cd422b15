//! What the stories in tests/ share: a model of three trees, the history of its commits, and how a
//! store is opened and compared with them.
//!
//! Each test file uses some of it, so what one leaves out is no dead code.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

pub mod counts;
pub mod ops;
pub mod walk;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use lsmkv::engine::{
    Batch, Engine, EngineConfig, Iter, IterOptions, MemFs, Reader, Snapshot, TreeConfig, TreeId,
    WriteOptions,
};
use lsmkv::{Options, Result, SyncMode};

use counts::{CountedBatch, assert_counts};

pub const META: TreeId = TreeId(0);
pub const DATA: TreeId = TreeId(1);
pub const SCORE: TreeId = TreeId(2);
pub const TREES: [TreeId; 3] = [META, DATA, SCORE];
pub const DIR: &str = "/db";

/// The three trees of the Redis layer, without filters.
pub fn trees() -> Vec<TreeConfig> {
    ["meta", "data", "score"].map(TreeConfig::named).to_vec()
}

/// Everything so small that a few hundred writes reach several levels and log segments.
pub fn tiny() -> Options {
    Options {
        write_buffer: 8 << 10,
        table_bytes: 4 << 10,
        block_bytes: 256,
        level_ratio: 3,
        log_segment_bytes: 16 << 10,
        memory_budget: 1 << 20,
        ..Options::default()
    }
}

pub fn open(fs: &MemFs, options: &Options) -> Engine {
    open_with(fs, options, trees())
}

pub fn open_with(fs: &MemFs, options: &Options, trees: Vec<TreeConfig>) -> Engine {
    try_open(fs, options, trees).expect("the store opens")
}

pub fn try_open(fs: &MemFs, options: &Options, trees: Vec<TreeConfig>) -> Result<Engine> {
    let config = EngineConfig { options: options.clone(), trees };
    Engine::open(Arc::new(fs.clone()), Path::new(DIR), config)
}

/// Bytes as a person reads them: text where it is text, runs counted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob(pub Vec<u8>);

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.first() {
            Some(byte) if self.0.len() > 8 && self.0.iter().all(|b| b == byte) => {
                write!(f, "{byte:#04x}*{}", self.0.len())
            }
            _ => write!(f, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

/// One write of a commit: a value, or `None` to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub tree: usize,
    pub key: Blob,
    pub value: Option<Blob>,
}

impl Write {
    pub fn put(tree: usize, key: &[u8], value: &[u8]) -> Self {
        Self { tree, key: Blob(key.to_vec()), value: Some(Blob(value.to_vec())) }
    }

    pub fn delete(tree: usize, key: &[u8]) -> Self {
        Self { tree, key: Blob(key.to_vec()), value: None }
    }
}

/// Turns the writes of one commit into a batch, in their order. All keys are counted: the caller is
/// the only writer.
pub fn batch_of(engine: &Engine, writes: &[Write]) -> Batch {
    let mut counted = CountedBatch::new(engine);
    for write in writes {
        let value = write.value.as_ref().map(|value| &value.0[..]);
        counted.write(TREES[write.tree], &write.key.0, value);
    }
    counted.batch
}

pub fn commit(engine: &Engine, writes: &[Write], sync: Option<SyncMode>) {
    let options = WriteOptions { sync, ..WriteOptions::default() };
    engine.write(&mut batch_of(engine, writes), options).expect("a write succeeds");
}

pub fn put(engine: &Engine, tree: TreeId, key: &[u8], value: &[u8]) {
    let mut counted = CountedBatch::new(engine);
    counted.write(tree, key, Some(value));
    engine.write(&mut counted.batch, WriteOptions::default()).expect("a put succeeds");
}

pub fn delete(engine: &Engine, tree: TreeId, key: &[u8]) {
    let mut counted = CountedBatch::new(engine);
    counted.write(tree, key, None);
    engine.write(&mut counted.batch, WriteOptions::default()).expect("a delete succeeds");
}

pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The contents of the three trees.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct State(pub [Rows; 3]);

impl State {
    pub fn apply(&mut self, writes: &[Write]) {
        for write in writes {
            let rows = &mut self.0[write.tree];
            match &write.value {
                Some(value) => rows.insert(write.key.0.clone(), value.0.clone()),
                None => rows.remove(&write.key.0),
            };
        }
    }

    /// The first few differences, for a person.
    pub fn difference(&self, other: &State) -> String {
        let mut lines = Vec::new();
        for (tree, (ours, theirs)) in self.0.iter().zip(&other.0).enumerate() {
            let keys: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for key in keys.into_iter().filter(|key| ours.get(*key) != theirs.get(*key)) {
                let show = |rows: &Rows| rows.get(key).map(|value| Blob(value.clone()));
                let (left, right) = (show(ours), show(theirs));
                lines.push(format!("tree {tree} {:?}: {left:?} / {right:?}", Blob(key.clone())));
            }
        }
        let more = lines.len().saturating_sub(8);
        lines.truncate(8);
        format!("{} and {more} more", lines.join("\n  "))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "State{:?}", self.0.each_ref().map(Rows::len))
    }
}

/// The commits of a store in their order, of which all before `base` are promised to survive.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// After the last commit that is promised.
    base: State,
    /// Commits since.
    pending: Vec<Vec<Write>>,
    /// After all commits.
    pub now: State,
}

impl History {
    /// Of `commits`, the first `promised` must survive.
    pub fn of(commits: &[Vec<Write>], promised: usize) -> Self {
        let mut history = Self::default();
        for (index, writes) in commits.iter().enumerate() {
            if index == promised {
                history.promise();
            }
            history.record(writes);
        }
        if promised == commits.len() {
            history.promise();
        }
        history
    }

    pub fn record(&mut self, writes: &[Write]) {
        self.now.apply(writes);
        self.pending.push(writes.to_vec());
    }

    /// Everything so far must survive a power cut from here on.
    pub fn promise(&mut self) {
        self.base = self.now.clone();
        self.pending.clear();
    }

    /// How many of the commits that were not promised `found` has; `None` if it is no prefix.
    pub fn prefix(&self, found: &State) -> Option<usize> {
        let mut state = self.base.clone();
        if state == *found {
            return Some(0);
        }
        self.pending.iter().zip(1..).find_map(|(writes, count)| {
            state.apply(writes);
            (state == *found).then_some(count)
        })
    }

    /// After a crash that left `found`: it is a prefix, and is what the store goes on from.
    /// Recovery made it durable.
    pub fn recover(&mut self, found: State, what: &dyn fmt::Debug) {
        assert!(
            self.prefix(&found).is_some(),
            "after {what:?} the store is no prefix of its {} commits after the promise;\n\
             found / promised: {}\nfound / all: {}",
            self.pending.len(),
            found.difference(&self.base),
            found.difference(&self.now),
        );
        *self = Self { base: found.clone(), pending: Vec::new(), now: found };
    }
}

/// A store or a snapshot of it.
pub trait Reads {
    fn read(&self, tree: TreeId, key: &[u8]) -> Option<Vec<u8>>;
    fn read_many(&self, tree: TreeId, keys: &[&[u8]]) -> Vec<Option<Vec<u8>>>;
    fn walk(&self, tree: TreeId, options: IterOptions) -> Iter;
    fn read_point(&self) -> Reader;
}

macro_rules! reads {
    ($type:ty) => {
        impl Reads for $type {
            fn read(&self, tree: TreeId, key: &[u8]) -> Option<Vec<u8>> {
                self.get(tree, key).expect("a read succeeds").map(|value| value.to_vec())
            }

            fn read_many(&self, tree: TreeId, keys: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
                let values = self.multi_get(tree, keys).expect("reads succeed");
                values.into_iter().map(|value| value.map(|v| v.to_vec())).collect()
            }

            fn walk(&self, tree: TreeId, options: IterOptions) -> Iter {
                self.iter(tree, options).expect("an iterator opens")
            }

            fn read_point(&self) -> Reader {
                self.reader().expect("a reader opens")
            }
        }
    };
}

reads!(Engine);
reads!(Snapshot);

/// All rows of a tree, front to back.
pub fn rows_forward(store: &impl Reads, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut it = store.walk(tree, IterOptions::default());
    let mut rows = Vec::new();
    it.seek_to_first().expect("a seek succeeds");
    while it.valid() {
        rows.push((it.key().to_vec(), it.value().to_vec()));
        it.next().expect("a step succeeds");
    }
    rows
}

/// All rows of a tree, back to front, in ascending order.
pub fn rows_backward(store: &impl Reads, tree: TreeId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut it = store.walk(tree, IterOptions::default());
    let mut rows = Vec::new();
    it.seek_to_last().expect("a seek succeeds");
    while it.valid() {
        rows.push((it.key().to_vec(), it.value().to_vec()));
        it.prev().expect("a step succeeds");
    }
    rows.reverse();
    rows
}

/// Everything in the store, by iterators that must not repeat a key.
pub fn state_of(store: &impl Reads) -> State {
    State(TREES.map(|tree| {
        let rows = rows_forward(store, tree);
        assert!(rows.is_sorted_by(|a, b| a.0 < b.0), "an iterator ascends without repeating");
        rows.into_iter().collect()
    }))
}

/// The store holds exactly `expected`, read forward, backward, key by key, and by position.
pub fn assert_state(store: &impl Reads, expected: &State, what: &dyn fmt::Debug) {
    let found = state_of(store);
    let difference = || found.difference(expected);
    assert!(found == *expected, "{what:?}: found / expected, forward: {}", difference());
    for (tree, rows) in TREES.into_iter().zip(&expected.0) {
        let backward: Rows = rows_backward(store, tree).into_iter().collect();
        assert!(backward == *rows, "{what:?}: a backward walk of {tree:?} differs");
        let keys: Vec<&[u8]> = rows.keys().map(Vec::as_slice).collect();
        let values: Vec<_> = rows.values().cloned().map(Some).collect();
        assert!(store.read_many(tree, &keys) == values, "{what:?}: point reads of {tree:?} differ");
        assert_counts(&store.read_point(), tree, &keys);
    }
}

/// A number from the environment, to run a test for longer than CI does.
pub fn from_env(name: &str, otherwise: u32) -> u32 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => otherwise,
    }
}

/// Fails instead of hanging: a story that has not ended in time is a deadlock.
pub fn within(limit: Duration, story: impl FnOnce() + Send + 'static) {
    let (done, end) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        story();
        let _ = done.send(());
    });
    match end.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("still running after {limit:?}"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}
