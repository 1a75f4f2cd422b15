//! What the fault tests share: numbered batches over three trees, the state they lead to, and
//! reading a whole store back in every way there is.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "shared by test binaries, each of which uses a part"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lsmkv::engine::{
    Batch, Engine, EngineConfig, FileSystem, IterOptions, MemFs, TreeConfig, TreeId, WriteOptions,
};
use lsmkv::{Options, Result, SyncMode};

/// Where the stores are.
pub const DIR: &str = "/db";
/// How many trees they have.
pub const TREES: u8 = 3;

/// Live keys of each tree.
pub type Contents = Vec<BTreeMap<Vec<u8>, Vec<u8>>>;

/// The three trees with `options`.
pub fn config(options: Options) -> EngineConfig {
    let trees = ["meta", "data", "score"].map(TreeConfig::named).to_vec();
    EngineConfig { options, trees }
}

/// Opens the store of the tests.
pub fn open(fs: &Arc<dyn FileSystem>, options: Options) -> Result<Engine> {
    Engine::open(Arc::clone(fs), Path::new(DIR), config(options))
}

/// Opens the store of the tests on memory.
pub fn open_mem(fs: &MemFs, options: Options) -> Result<Engine> {
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    open(&fs, options)
}

/// Which keys batches overwrite and delete, and how large their values are.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Different keys of each tree, beside the marks.
    pub keys: u64,
    /// Bytes of the longest value.
    pub value_bytes: u64,
    /// Whether each batch leaves a key of its own in each tree: to tell later which were applied.
    pub marks: bool,
}

fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n ^ (n >> 29)
}

/// The key in each tree that says which batch was the last.
pub const LAST: &[u8] = b"last";

/// The key that batch `n` alone writes.
pub fn mark(n: u64) -> Vec<u8> {
    format!("mark{n:06}").into_bytes()
}

impl Shape {
    /// What batch `n` does: in each tree a put, a delete, the number of the batch.
    pub fn writes(self, n: u64) -> Vec<(u8, Vec<u8>, Option<Vec<u8>>)> {
        let mut writes = Vec::new();
        for tree in 0..TREES {
            let noise = scatter(n * 4 + u64::from(tree));
            let key = |of: u64| format!("key{:06}", of % self.keys).into_bytes();
            let len = usize::try_from(noise % self.value_bytes).unwrap();
            let value = noise.to_le_bytes().iter().copied().cycle().take(len).collect();
            writes.push((tree, key(noise >> 8), Some(value)));
            writes.push((tree, key(noise >> 24), None));
            writes.push((tree, LAST.to_vec(), Some(n.to_be_bytes().to_vec())));
            if self.marks {
                writes.push((tree, mark(n), Some(Vec::new())));
            }
        }
        writes
    }

    /// Batch `n`.
    pub fn batch(self, n: u64) -> Batch {
        let mut batch = Batch::new();
        for (tree, key, value) in self.writes(n) {
            match value {
                Some(value) => batch.put(TreeId(tree), &key, &value),
                None => batch.delete(TreeId(tree), &key),
            }
        }
        batch
    }

    /// Does to `contents` what batch `n` does.
    pub fn apply(self, n: u64, contents: &mut Contents) {
        for (tree, key, value) in self.writes(n) {
            let tree = &mut contents[usize::from(tree)];
            match value {
                Some(value) => _ = tree.insert(key, value),
                None => _ = tree.remove(&key),
            }
        }
    }

    /// The state after these batches, in order.
    pub fn after(self, batches: impl IntoIterator<Item = u64>) -> Contents {
        let mut contents = nothing();
        batches.into_iter().for_each(|n| self.apply(n, &mut contents));
        contents
    }

    /// Writes batch `n`.
    pub fn write(self, engine: &Engine, n: u64, sync: SyncMode) -> Result<()> {
        let options = WriteOptions { sync: Some(sync), ..WriteOptions::default() };
        engine.write(&mut self.batch(n), options).map(|_| ())
    }
}

/// Three empty trees.
pub fn nothing() -> Contents {
    vec![BTreeMap::new(); usize::from(TREES)]
}

/// Every key by a walk forward, checked against a walk backward.
pub fn scan(engine: &Engine) -> Result<Contents> {
    (0..TREES).map(|tree| scan_tree(engine, TreeId(tree))).collect()
}

fn scan_tree(engine: &Engine, tree: TreeId) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut it = engine.iter(tree, IterOptions::default())?;
    let mut forward = Vec::new();
    it.seek_to_first()?;
    while it.valid() {
        forward.push((it.key().to_vec(), it.value().to_vec()));
        it.next()?;
    }
    let mut backward = Vec::new();
    it.seek_to_last()?;
    while it.valid() {
        backward.push((it.key().to_vec(), it.value().to_vec()));
        it.prev()?;
    }
    backward.reverse();
    assert_eq!(forward, backward, "the ways forward and backward of tree {tree:?} differ");
    assert!(forward.is_sorted_by(|a, b| a.0 < b.0), "keys of tree {tree:?} do not ascend");
    Ok(forward.into_iter().collect())
}

/// Reads everything: by walks both ways, and each key of `expected` and some that are not there
/// by itself. The walks' result; that the others agree with it is asserted.
pub fn read_all(engine: &Engine, expected: &Contents) -> Result<Contents> {
    let found = scan(engine)?;
    for (tree, (expected, found)) in (0..TREES).zip(expected.iter().zip(&found)) {
        let absent = [&b""[..], b"key", b"key000000x", b"zzz"].map(<[u8]>::to_vec);
        for key in expected.keys().chain(found.keys()).chain(&absent) {
            let value = engine.get(TreeId(tree), key)?;
            let name = String::from_utf8_lossy(key);
            assert_eq!(value.as_deref(), found.get(key).map(Vec::as_slice), "get {name} differs");
        }
    }
    Ok(found)
}

/// Compares without printing kilobytes.
pub fn assert_same(found: &Contents, expected: &Contents, context: &str) {
    if let Some(difference) = difference(found, expected) {
        panic!("{context}: {difference}");
    }
}

/// The first difference, if there is one.
pub fn difference(found: &Contents, expected: &Contents) -> Option<String> {
    for (tree, (found, expected)) in found.iter().zip(expected).enumerate() {
        let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        for (key, value) in expected {
            match found.get(key) {
                None => return Some(format!("tree {tree} has lost {}", name(key))),
                Some(other) if other != value => {
                    return Some(format!("tree {tree} has another value of {}", name(key)));
                }
                _ => {}
            }
        }
        if let Some(key) = found.keys().find(|key| !expected.contains_key(*key)) {
            return Some(format!("tree {tree} has {} too much", name(key)));
        }
    }
    None
}

/// Ends the process when nothing has moved for a while: a hang is a failure, not a long test.
pub struct Watchdog(Arc<AtomicU64>);

impl Watchdog {
    /// Watches from now on.
    pub fn start(limit: Duration) -> Self {
        let beats = Arc::new(AtomicU64::new(0));
        let watched = Arc::downgrade(&beats);
        std::thread::spawn(move || {
            let mut last = u64::MAX;
            while let Some(beats) = watched.upgrade() {
                let now = beats.load(Ordering::Relaxed);
                if now == last {
                    let _ = std::io::Write::write_all(
                        &mut std::io::stderr(),
                        format!("hang: nothing has moved since case {now}\n").as_bytes(),
                    );
                    std::process::abort();
                }
                last = now;
                drop(beats);
                std::thread::sleep(limit);
            }
        });
        Self(beats)
    }

    /// Something has moved.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A number from the environment, for long runs.
pub fn number_from_env(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
