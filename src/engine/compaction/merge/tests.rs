//! Weights through flushes and compactions, compared with a model: for every reader the weights of what
//! it sees add up to the number of keys that are set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::engine::compaction::output::OutputOptions;
use crate::engine::cursor::MergeCursor;
use crate::engine::entry::Sequence;
use crate::engine::files::{FileNumbers, table_path};
use crate::engine::hash::{HashSeed, stable_hash};
use crate::engine::memtable::{Memtable, MemtableCursor};
use crate::engine::sstable::{BlockCache, CacheFill, Table, TableCounters, WriterOptions};
use crate::io::fs::FileSystem;
use crate::io::mem::MemFs;
use crate::options::Compression;

const KEYS: u8 = 12;
const DIR: &str = "/db";

/// A key in the order of its number.
fn key(n: u8) -> Vec<u8> {
    format!("key:{n:03}").into_bytes()
}

/// A tree: memtable and tables, newest first, without levels.
struct Tree {
    fs: Arc<dyn FileSystem>,
    numbers: FileNumbers,
    memtable: Arc<Memtable>,
    tables: Vec<Arc<Table>>,
    sequence: Sequence,
    set: BTreeSet<u8>,
    snapshots: BTreeMap<Sequence, BTreeSet<u8>>,
}

impl Tree {
    fn new() -> Self {
        let fs: Arc<dyn FileSystem> = Arc::new(MemFs::untracked());
        fs.create_dir(Path::new(DIR)).unwrap();
        Self {
            fs,
            numbers: FileNumbers::starting_at(1),
            memtable: Arc::new(Memtable::new(0)),
            tables: Vec::new(),
            sequence: 0,
            set: BTreeSet::new(),
            snapshots: BTreeMap::new(),
        }
    }

    /// Commits writes as one who knows what is there. The value is as long as a few blocks hold.
    fn write(&mut self, writes: &BTreeMap<u8, bool>) {
        self.sequence += 1;
        for (n, put) in writes {
            let was = self.set.contains(n);
            let kind = match (put, was) {
                (true, true) => EntryKind::Put,
                (true, false) => EntryKind::PutAbsent,
                (false, true) => EntryKind::DeletePresent,
                (false, false) => EntryKind::Delete,
            };
            let (key, value) = (key(*n), if *put { vec![*n; 60] } else { Vec::new() });
            let tag = Tag::new(self.sequence, kind);
            self.memtable.insert(stable_hash(&key), &key, tag, &value).unwrap();
            if *put {
                self.set.insert(*n)
            } else {
                self.set.remove(n)
            };
        }
    }

    fn merge(&self, inputs: &mut impl Cursor, bottom: bool) -> (Vec<Arc<Table>>, MergeStats) {
        let mut outputs = TableOutputs::new(OutputOptions {
            fs: &self.fs,
            dir: Path::new(DIR),
            numbers: &self.numbers,
            collectors: None,
            writer: WriterOptions {
                block_bytes: 200,
                bloom_bits: 10,
                compression: Compression::None,
                hash_seed: HashSeed::NONE,
            },
            table_bytes: u64::MAX,
            small: None,
        });
        let merge = Merge {
            visibility: Visibility::new(self.snapshots.keys().copied().collect()),
            filter: None,
            is_bottom: Box::new(move |_| bottom),
            pause: Box::new(|_| Ok(())),
            cut_before: Box::new(|_| false),
            one_table: false,
        };
        let end = merge.run(inputs, &mut outputs).unwrap();
        let files = outputs.finish().unwrap();
        let open = |meta: crate::engine::version::FileMeta| {
            let path = table_path(Path::new(DIR), meta.number);
            let file = self.fs.open(&path).unwrap();
            let cache = Arc::new(BlockCache::new(1 << 20));
            let counters = Arc::new(TableCounters::default());
            Arc::new(Table::open(file, path, meta.number, meta.size, cache, counters).unwrap())
        };
        (files.into_iter().map(open).collect(), end.stats)
    }

    fn flush(&mut self) {
        let memtable = std::mem::replace(&mut self.memtable, Arc::new(Memtable::new(0)));
        let (tables, _) = self.merge(&mut MemtableCursor::new(memtable), false);
        self.tables.splice(0..0, tables);
    }

    fn compact(&mut self, from: usize, to: usize) {
        let cursors = self.tables[from..to].iter().map(|table| table.cursor(CacheFill::Skip));
        let mut inputs = MergeCursor::new(cursors.collect());
        let (tables, _) = self.merge(&mut inputs, to == self.tables.len());
        self.tables.splice(from..to, tables);
    }

    /// The entries of all sources.
    fn entries(&self) -> Vec<(Vec<u8>, Tag)> {
        let mut all = Vec::new();
        let mut take = |cursor: &mut dyn Cursor| {
            cursor.seek_to_first().unwrap();
            let before = all.len();
            while cursor.valid() {
                all.push((cursor.key().to_vec(), cursor.tag()));
                cursor.next().unwrap();
            }
            all[before..].iter().map(|(_, tag)| tag.weight()).sum::<i64>()
        };
        take(&mut MemtableCursor::new(Arc::clone(&self.memtable)));
        for table in &self.tables {
            let sum = take(&mut table.cursor(CacheFill::Skip));
            assert_eq!(table.properties().weight.unwrap_or(0), sum, "the properties have the sum");
        }
        all
    }

    fn check(&self, entries: &[(Vec<u8>, Tag)], at: Sequence, set: &BTreeSet<u8>) {
        for n in 0..KEYS {
            let of_key = entries.iter().filter(|(k, tag)| *k == key(n) && tag.sequence() <= at);
            let tags: Vec<Tag> = of_key.map(|(_, tag)| *tag).collect();
            let newest = tags.iter().max_by_key(|tag| tag.sequence());
            assert_eq!(newest.is_some_and(|tag| !tag.is_delete()), set.contains(&n), "{n} at {at}");
            let weight: i64 = tags.iter().map(|tag| tag.weight()).sum();
            assert_eq!(weight, i64::from(set.contains(&n)), "the weight of {n} at {at}: {tags:?}");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(BTreeMap<u8, bool>),
    Flush,
    Compact(usize, usize),
    Snapshot,
    Release(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => prop::collection::btree_map(0..KEYS, any::<bool>(), 1..4).prop_map(Step::Write),
        3 => Just(Step::Flush),
        3 => (0usize..8, 1usize..8).prop_map(|(from, count)| Step::Compact(from, count)),
        2 => Just(Step::Snapshot),
        1 => (0usize..8).prop_map(Step::Release),
    ]
}

proptest! {
    #[test]
    fn weights_add_up_for_every_reader(steps in prop::collection::vec(step(), 1..120)) {
        let mut tree = Tree::new();
        for step in steps {
            match step {
                Step::Write(writes) => tree.write(&writes),
                Step::Flush => tree.flush(),
                Step::Compact(from, count) => {
                    let from = from.min(tree.tables.len());
                    let to = (from + count).min(tree.tables.len());
                    tree.compact(from, to);
                }
                Step::Snapshot => _ = tree.snapshots.insert(tree.sequence, tree.set.clone()),
                Step::Release(at) => {
                    let released = tree.snapshots.keys().nth(at).copied();
                    released.map(|sequence| tree.snapshots.remove(&sequence));
                }
            }
            let entries = tree.entries();
            tree.check(&entries, tree.sequence, &tree.set);
            tree.snapshots.iter().for_each(|(at, set)| tree.check(&entries, *at, set));
        }
    }
}

/// Keys that come and go leave nothing behind at the bottom.
#[test]
fn a_tombstone_that_weighs_nothing_in_the_end_goes() {
    let mut tree = Tree::new();
    tree.write(&BTreeMap::from([(1, true), (2, true)]));
    tree.flush();
    tree.write(&BTreeMap::from([(1, false), (2, true)]));
    tree.flush();
    let cursors = tree.tables.iter().map(|table| table.cursor(CacheFill::Skip)).collect();
    let (tables, stats) = tree.merge(&mut MergeCursor::new(cursors), true);
    assert_eq!((stats.read, stats.shadowed, stats.elided), (4, 2, 1));
    assert_eq!((tables[0].properties().entries, tables[0].properties().weight), (1, Some(1)));
}

/// The row was dropped by a filter, and the tombstone above it was not seen then.
#[test]
fn a_tombstone_that_still_weighs_stays() {
    let mut tree = Tree::new();
    tree.write(&BTreeMap::from([(1, true)]));
    tree.memtable = Arc::new(Memtable::new(0));
    tree.write(&BTreeMap::from([(1, false), (2, true)]));
    tree.flush();
    tree.compact(0, 1);
    let entries = tree.entries();
    assert_eq!(entries[0], (key(1), Tag::new(2, EntryKind::DeletePresent)));
}
