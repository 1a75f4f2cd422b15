//! Compaction filters: what they are told, what their decisions do, and that no power cut parts
//! what they decided by from what they removed. And collectors, the other guests of a tree.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lsmkv::engine::files::FileKind;
use lsmkv::engine::sstable::BlockCache;
use lsmkv::engine::sstable::{Table, TableCounters};
use lsmkv::engine::{
    Collector, CollectorFactory, Decision, Engine, FileSystem, Filter, FilterFactory, FilterJob,
    Garbage, IterOptions, MemFs, ReservedNumber, Sequence, TableNeed, TableStats, Tag, TreeConfig,
    TreeId,
};
use lsmkv::io::mem::CrashMode;
use lsmkv::{Error, ErrorKind, Options, Result, SyncMode};
use parking_lot::Mutex;
use support::{DATA, META, Reads, delete, open, open_with, put, rows_forward, tiny, trees};

/// What a filter was told and asked.
#[derive(Clone, Debug, Default)]
struct Told {
    tree: Option<TreeId>,
    bottommost: bool,
    sequences: Vec<Sequence>,
    reserved: Vec<u64>,
    keys: Vec<Vec<u8>>,
}

/// Drops values that begin with `drop`, deletes those that begin with `expire`, and keeps notes.
#[derive(Debug, Default)]
struct ByValue {
    told: Arc<Mutex<Vec<Told>>>,
    fails: AtomicBool,
}

impl ByValue {
    fn told(&self) -> Vec<Told> {
        std::mem::take(&mut self.told.lock())
    }
}

struct ByValueFilter(Arc<Mutex<Vec<Told>>>);

impl FilterFactory for ByValue {
    fn filter(&self, job: &FilterJob) -> Result<Option<Box<dyn Filter>>> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Io, "this filter does not like the day"));
        }
        self.told.lock().push(Told {
            tree: Some(job.tree),
            bottommost: job.bottommost,
            sequences: job.sequences(),
            reserved: job.pinned.reserved.clone(),
            keys: Vec::new(),
        });
        Ok(Some(Box::new(ByValueFilter(Arc::clone(&self.told)))))
    }
}

impl Filter for ByValueFilter {
    fn decide(&mut self, key: &[u8], _: Tag, value: &[u8]) -> Result<Decision> {
        self.0.lock().last_mut().unwrap().keys.push(key.to_vec());
        Ok(match value {
            _ if value.starts_with(b"drop") => Decision::Drop,
            _ if value.starts_with(b"expire") => Decision::Tombstone,
            _ => Decision::Keep,
        })
    }
}

fn with_filter(filter: Arc<dyn FilterFactory>) -> Vec<TreeConfig> {
    let mut trees = trees();
    trees[DATA.index()].filter = Some(filter);
    trees
}

fn quiet() -> Options {
    Options { background_threads: 0, ..tiny() }
}

#[test]
fn what_a_filter_drops_stays_away_with_its_older_versions() {
    let (fs, filter) = (MemFs::new(), Arc::new(ByValue::default()));
    let engine = open_with(&fs, &quiet(), with_filter(filter.clone()));
    for value in ["keep", "drop me"] {
        put(&engine, DATA, b"a", value.as_bytes());
        put(&engine, META, b"a", value.as_bytes());
        engine.flush().unwrap();
    }
    put(&engine, DATA, b"b", b"keep");
    assert_eq!(engine.read(DATA, b"a").as_deref(), Some(&b"drop me"[..]), "no merge, no filter");
    engine.compact().unwrap();
    assert_eq!(engine.stats().filtered, 1);
    let check = |engine: &Engine| {
        assert_eq!(engine.read(DATA, b"a"), None);
        assert_eq!(engine.read(DATA, b"b").as_deref(), Some(&b"keep"[..]));
        assert_eq!(engine.read(META, b"a").as_deref(), Some(&b"drop me"[..]), "not its tree");
    };
    check(&engine);
    drop(engine);
    check(&open(&fs, &quiet()));
    let [told] = &filter.told()[..] else { panic!("one merge, one filter") };
    assert_eq!(told.tree, Some(DATA));
    assert!(told.bottommost, "the whole tree was merged");
    assert_eq!(told.keys, [b"a", b"b"], "hidden versions are not asked about");
}

#[test]
fn a_tombstone_above_older_data_hides_it_for_good() {
    let (fs, filter) = (MemFs::new(), Arc::new(ByValue::default()));
    let options = Options { level_ratio: 2, write_buffer: 4 << 10, ..quiet() };
    let engine = open_with(&fs, &options, with_filter(filter.clone()));
    let key = |index: u32| format!("key{:05}", index.wrapping_mul(7919) % 4000).into_bytes();
    for index in 0..4000 {
        put(&engine, DATA, &key(index), &[b'o'; 60]);
    }
    engine.wait_idle().unwrap();
    let expire = |index: u32| index.is_multiple_of(10);
    for index in (0..4000).filter(|index| expire(*index)) {
        put(&engine, DATA, &key(index), b"expire");
    }
    engine.flush().unwrap();
    filter.told();
    let check = |engine: &Engine, all_merged: bool| {
        for index in 0..4000 {
            match engine.read(DATA, &key(index)) {
                Some(value) if expire(index) => assert!(!all_merged && value == b"expire"),
                found => assert_eq!(found.is_some(), !expire(index), "{index}"),
            }
        }
    };
    engine.wait_idle().unwrap();
    check(&engine, false);
    for index in 0..200 {
        put(&engine, DATA, format!("other{index}").as_bytes(), &[b'x'; 100]);
        if index % 50 == 49 {
            engine.flush().unwrap();
            engine.wait_idle().unwrap();
            check(&engine, false);
        }
    }
    assert!(filter.told().iter().any(|told| !told.bottommost), "the story needs older data below");
    engine.compact().unwrap();
    check(&engine, true);
    drop(engine);
    let engine = open(&fs, &options);
    check(&engine, true);
    engine.compact().unwrap();
    check(&engine, true);
}

#[test]
fn a_filter_is_told_of_snapshots_and_asked_about_what_each_sees() {
    let filter = Arc::new(ByValue::default());
    let engine = open_with(&MemFs::new(), &quiet(), with_filter(filter.clone()));
    put(&engine, DATA, b"k", b"1");
    let first = engine.snapshot().unwrap();
    put(&engine, DATA, b"k", b"2");
    put(&engine, DATA, b"k", b"3");
    let second = engine.snapshot().unwrap();
    let same = engine.snapshot().unwrap();
    put(&engine, DATA, b"k", b"4");
    engine.compact().unwrap();
    let [told] = &filter.told()[..] else { panic!("one merge") };
    assert_eq!(told.sequences, [first.sequence(), second.sequence(), engine.sequence()]);
    assert_eq!(told.keys.len(), 3, "a version for each reader");
    drop((first, second, same));
    engine.compact().unwrap();
    let [told] = &filter.told()[..] else { panic!("one merge") };
    assert_eq!(told.sequences, [engine.sequence()]);
    assert_eq!(told.keys.len(), 1);
}

#[test]
fn a_filter_knows_reserved_numbers_until_they_are_dropped() {
    let filter = Arc::new(ByValue::default());
    let engine = open_with(&MemFs::new(), &quiet(), with_filter(filter.clone()));
    let numbers = [engine.reserve_number(), engine.reserve_number()];
    assert!(numbers[0].number() < numbers[1].number());
    put(&engine, DATA, b"k", b"v");
    assert!(engine.sequence() > numbers[1].number(), "it precedes every later commit");
    engine.compact().unwrap();
    assert_eq!(filter.told()[0].reserved, numbers.each_ref().map(ReservedNumber::number));
    let [first, second] = numbers;
    drop(first);
    engine.compact().unwrap();
    assert_eq!(filter.told()[0].reserved, [second.number()]);
    drop(second);
    engine.compact().unwrap();
    assert_eq!(filter.told()[0].reserved, []);
    assert_eq!(engine.stats().reserved, 0);
}

#[test]
fn a_filter_that_fails_loses_nothing() {
    let (fs, filter) = (MemFs::new(), Arc::new(ByValue::default()));
    let engine = open_with(&fs, &quiet(), with_filter(filter.clone()));
    put(&engine, DATA, b"a", b"drop me");
    put(&engine, DATA, b"b", b"keep");
    filter.fails.store(true, Ordering::SeqCst);
    assert_eq!(engine.compact().unwrap_err().kind(), ErrorKind::Io);
    assert!(engine.degraded().is_none());
    assert_eq!(rows_forward(&engine, DATA).len(), 2);
    filter.fails.store(false, Ordering::SeqCst);
    engine.compact().unwrap();
    assert_eq!(rows_forward(&engine, DATA), [(b"b".to_vec(), b"keep".to_vec())]);
}

/// Drops every row of the data tree whose first byte is no key of the meta tree, as of the
/// newest visible commit: what the Redis layer does with rows of deleted collections.
#[derive(Debug)]
struct Orphans;

struct OrphansFilter(Vec<Vec<u8>>);

impl FilterFactory for Orphans {
    fn filter(&self, job: &FilterJob) -> Result<Option<Box<dyn Filter>>> {
        let mut owners = job.iter(META, job.current(), IterOptions::default())?;
        let mut alive = Vec::new();
        owners.seek_to_first()?;
        while owners.valid() {
            alive.push(owners.key().to_vec());
            owners.next()?;
        }
        Ok(Some(Box::new(OrphansFilter(alive))))
    }
}

impl Filter for OrphansFilter {
    fn decide(&mut self, key: &[u8], _: Tag, _: &[u8]) -> Result<Decision> {
        let owned = self.0.iter().any(|owner| key.starts_with(owner));
        Ok(if owned { Decision::Keep } else { Decision::Drop })
    }
}

/// Whether the owner is there, and how many of its rows.
fn owner_and_rows(fs: &MemFs, seed: u64, mode: CrashMode) -> (bool, usize) {
    let engine = open(&fs.crash_clone(seed, mode), &quiet());
    (engine.read(META, b"h").is_some(), rows_forward(&engine, DATA).len())
}

/// Without the sync before the installation: the delete of the owner is in an unsynced log, its
/// rows are dropped and that is synced, the power goes: the owner is back, without its rows.
#[test]
fn a_power_cut_never_brings_back_an_owner_whose_rows_were_dropped() {
    let fs = MemFs::new();
    let options = Options { sync: SyncMode::Off, write_buffer: 64 << 10, ..quiet() };
    let engine = open_with(&fs, &options, with_filter(Arc::new(Orphans)));
    put(&engine, META, b"h", b"a hash");
    for field in 0..4 {
        put(&engine, DATA, format!("h{field}").as_bytes(), b"value");
        // Overlapping tables are merged; others would only be moved, past the filter.
        put(&engine, DATA, b"h9", b"value");
        engine.flush().unwrap();
    }
    delete(&engine, META, b"h");
    let (owner, rows) = owner_and_rows(&fs, 0, CrashMode::DropUnsynced);
    assert_eq!((owner, rows), (true, 5), "the story needs the delete to be unsynced");
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&cuts);
    fs.on_sync(move |fs, point| taken.lock().push((point.number, fs.deep_clone())));
    engine.wait_idle().unwrap();
    assert_eq!(engine.stats().filtered, 5, "the story needs the rows to be dropped");
    cuts.lock().push((u64::MAX, fs.deep_clone()));
    for (number, fs) in cuts.lock().iter() {
        for (seed, mode) in (0..8).flat_map(|seed| CrashMode::ALL.map(|mode| (seed, mode))) {
            let (owner, rows) = owner_and_rows(fs, seed, mode);
            assert!(!owner || rows == 5, "sync {number}, {mode:?}, seed {seed}: {rows} rows left");
        }
    }
    let (owner, rows) = owner_and_rows(&fs, 0, CrashMode::DropUnsynced);
    assert_eq!((owner, rows), (false, 0), "what was installed is durable");
}

/// Estimates the garbage of every table of the data tree as it is told to. Its filter drops
/// nothing.
#[derive(Debug, Default)]
struct FixedEstimates {
    need: Mutex<TableNeed>,
    /// Garbage of each file, in percent.
    garbage_percent: AtomicU64,
    /// Whether only tables of one entry count as not needed.
    only_small: AtomicBool,
    fails: AtomicBool,
}

impl FilterFactory for FixedEstimates {
    fn filter(&self, _: &FilterJob) -> Result<Option<Box<dyn Filter>>> {
        Ok(Some(Box::new(ByValueFilter(Arc::new(Mutex::new(vec![Told::default()]))))))
    }

    fn estimate_garbage(&self, job: &FilterJob, table: &TableStats<'_>) -> Result<Garbage> {
        assert_eq!(job.tree, DATA);
        if self.fails.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Io, "this estimate fails"));
        }
        let bytes = table.size() * self.garbage_percent.load(Ordering::SeqCst) / 100;
        let spared = self.only_small.load(Ordering::SeqCst) && table.properties().entries > 1;
        let need = if spared { TableNeed::MayBeRead } else { *self.need.lock() };
        Ok(Garbage { bytes, need })
    }
}

/// A store with one table of the data tree at the bottom, and the estimates of its garbage.
fn estimated(fs: &MemFs) -> (Engine, Arc<FixedEstimates>) {
    let estimates = Arc::new(FixedEstimates::default());
    let engine = open_with(fs, &quiet(), with_filter(estimates.clone()));
    for key in [b"a", b"b", b"c"] {
        put(&engine, DATA, key, b"keep");
        put(&engine, META, key, b"keep");
    }
    engine.compact().unwrap();
    (engine, estimates)
}

#[test]
fn a_table_that_is_not_needed_goes_unread() {
    let fs = MemFs::new();
    let (engine, estimates) = estimated(&fs);
    engine.reclaim().unwrap();
    assert_eq!(engine.stats().drops, 0);
    *estimates.need.lock() = TableNeed::Unneeded;
    let reads = engine.stats().block_reads();
    engine.reclaim().unwrap();
    let stats = engine.stats();
    assert_eq!((stats.drops, stats.dropped_entries, stats.block_reads()), (1, 3, reads));
    assert!(stats.dropped_bytes > 0);
    assert_eq!(rows_forward(&engine, DATA), []);
    drop(engine);
    let engine = open(&fs, &quiet());
    assert_eq!(rows_forward(&engine, DATA), []);
    assert_eq!(rows_forward(&engine, META).len(), 3, "not its tree");
}

#[test]
fn a_table_that_shadows_older_data_stays_above_it_and_goes_with_it() {
    let (engine, estimates) = estimated(&MemFs::new());
    put(&engine, DATA, b"b", b"newer");
    engine.flush().unwrap();
    *estimates.need.lock() = TableNeed::ShadowsOlder;
    estimates.only_small.store(true, Ordering::SeqCst);
    engine.reclaim().unwrap();
    assert_eq!(engine.stats().drops, 0);
    assert_eq!(engine.read(DATA, b"b").as_deref(), Some(&b"newer"[..]), "no older value shows");
    estimates.only_small.store(false, Ordering::SeqCst);
    engine.reclaim().unwrap();
    assert_eq!(engine.stats().drops, 2, "the older, then what shadowed it");
    assert_eq!(rows_forward(&engine, DATA), []);
}

/// An estimate of garbage where the filter finds none must not keep the store busy forever.
#[test]
fn a_table_of_garbage_is_rewritten_once_per_estimate() {
    let (engine, estimates) = estimated(&MemFs::new());
    estimates.garbage_percent.store(80, Ordering::SeqCst);
    for round in 1..=3 {
        engine.reclaim().unwrap();
        assert_eq!(engine.stats().merges_for_garbage, round);
        assert_eq!(engine.stats().garbage_bytes, 0, "what was written anew counts as clean");
    }
    assert_eq!(rows_forward(&engine, DATA).len(), 3);
}

#[test]
fn an_estimate_that_fails_loses_nothing() {
    let (engine, estimates) = estimated(&MemFs::new());
    estimates.fails.store(true, Ordering::SeqCst);
    assert_eq!(engine.reclaim().unwrap_err().kind(), ErrorKind::Io);
    assert!(engine.degraded().is_none());
    estimates.fails.store(false, Ordering::SeqCst);
    engine.reclaim().unwrap();
    assert_eq!(rows_forward(&engine, DATA).len(), 3);
}

/// Counts the entries of a table.
#[derive(Debug)]
struct Counting;

struct Count(u64);

impl CollectorFactory for Counting {
    fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![Box::new(Count(0))]
    }
}

impl Collector for Count {
    fn add(&mut self, _: &[u8], _: Tag, _: &[u8]) {
        self.0 += 1;
    }

    fn finish(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(b"count".to_vec(), self.0.to_le_bytes().to_vec())]
    }
}

/// What the tables in a file system say of themselves: entries, and what was collected.
fn collected(fs: &MemFs) -> Vec<(u64, Option<u64>)> {
    let paths = fs.paths();
    let numbered =
        paths.iter().filter_map(|path| match FileKind::parse(path.file_name().unwrap().as_ref()) {
            Some(FileKind::Table(number)) => Some((path, number)),
            _ => None,
        });
    let read = numbered.map(|(path, number)| {
        let file = fs.open(path).unwrap();
        let size = file.len().unwrap();
        let cache = Arc::new(BlockCache::new(0));
        let counters = Arc::new(TableCounters::default());
        let table = Table::open(file, path.clone(), number, size, cache, counters).unwrap();
        let properties = table.properties();
        let count = properties.collected(b"count");
        (properties.entries, count.map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())))
    });
    read.collect()
}

#[test]
fn collectors_write_their_properties_into_each_table_of_their_tree() {
    let fs = MemFs::new();
    let mut trees = trees();
    trees[DATA.index()].collectors = Some(Arc::new(Counting));
    let engine = open_with(&fs, &quiet(), trees);
    for index in 0..300 {
        put(&engine, DATA, format!("key{index}").as_bytes(), &[b'v'; 100]);
    }
    engine.flush().unwrap();
    let flushed = collected(&fs);
    assert!(!flushed.is_empty() && flushed.iter().all(|(entries, count)| *count == Some(*entries)));
    put(&engine, META, b"k", b"v");
    engine.compact().unwrap();
    let merged = collected(&fs);
    assert!(merged.len() > 2, "several tables of one tree, and one of another");
    assert_eq!(merged.iter().filter_map(|(_, count)| *count).sum::<u64>(), 300);
    assert_eq!(merged.iter().filter(|(_, count)| count.is_none()).count(), 1, "not its tree");
}
