//! Counts and selections by position, compared with the keys that are set.

use std::collections::HashMap;

use lsmkv::engine::{Batch, Engine, Reader, TreeId};

/// A batch that tells of every key whether it is set, as the only writer of the store knows it.
pub struct CountedBatch<'a> {
    engine: &'a Engine,
    changed: HashMap<(TreeId, Vec<u8>), bool>,
    pub batch: Batch,
}

impl<'a> CountedBatch<'a> {
    pub fn new(engine: &'a Engine) -> Self {
        Self { engine, changed: HashMap::new(), batch: Batch::new() }
    }

    /// Sets `key`, or deletes it.
    pub fn write(&mut self, tree: TreeId, key: &[u8], value: Option<&[u8]>) {
        let before = self.changed.insert((tree, key.to_vec()), value.is_some());
        let stored = || self.engine.get(tree, key).expect("a read succeeds").is_some();
        match (before.unwrap_or_else(stored), value) {
            (true, Some(value)) => self.batch.put(tree, key, value),
            (false, Some(value)) => self.batch.put_absent(tree, key, value),
            (true, None) => self.batch.delete_present(tree, key),
            (false, None) => self.batch.delete(tree, key),
        }
    }
}

/// Few numbers that look random, the same in every run.
fn scattered(seed: usize) -> impl Iterator<Item = usize> {
    (seed..).map(|n| {
        let n = (n as u64 ^ 0x5bd1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        usize::try_from((n ^ (n >> 29)) >> 8).expect("56 bits")
    })
}

/// `keys` are all that are set in `tree`, ascending: so counts and selections say.
pub fn assert_counts(reader: &Reader, tree: TreeId, keys: &[&[u8]]) {
    let count = |lower: &[u8], upper: &[u8]| {
        reader.count(tree, lower, upper).unwrap_or_else(|error| panic!("{tree:?}: {error:?}"))
    };
    let select = |lower: &[u8], upper: &[u8], nth: usize| {
        let selected = reader.select(tree, lower, upper, nth as u64);
        selected.unwrap_or_else(|error| panic!("{tree:?}, {nth}: {error:?}"))
    };
    assert_eq!(count(b"", b""), keys.len() as u64, "all of {tree:?}");
    assert_eq!(select(b"", b"", keys.len()), None, "beyond all of {tree:?}");
    let mut random = scattered(keys.len());
    let mut draw = |below: usize| random.next().unwrap_or(0) % below;
    for round in 0..12 {
        if keys.is_empty() {
            break;
        }
        // Bounds at keys, and right after them.
        let mut bounds = [draw(keys.len()), draw(keys.len())];
        bounds.sort_unstable();
        let [mut lower, mut upper] = bounds.map(|at| keys[at].to_vec());
        if round % 3 == 1 {
            lower.push(0);
        }
        if round % 2 == 1 {
            upper.push(0);
        }
        let first = keys.partition_point(|key| **key < *lower);
        let end = keys.partition_point(|key| **key < *upper).max(first);
        if upper.is_empty() {
            continue;
        }
        let what = (tree, lower.escape_ascii().to_string(), upper.escape_ascii().to_string());
        assert_eq!(count(&lower, &upper), (end - first) as u64, "{what:?}");
        assert_eq!(select(&lower, &upper, end - first), None, "{what:?}");
        if first < end {
            let nth = draw(end - first);
            assert_eq!(select(&lower, &upper, nth).as_deref(), Some(keys[first + nth]), "{what:?}");
        }
    }
}
