//! A disk that fills up: writers are told, readers and deletes go on, nothing is lost, and work
//! resumes when there is space again.
//!
//! `LSMKV_DISK_FULL` sets how many sizes of disk are tried.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may")]

mod fault_support;
mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use fault_support::{
    Contents, Shape, Watchdog, assert_same, nothing, number_from_env, open_mem, read_all,
};
use lsmkv::engine::{Batch, Engine, FileSystem, MemFs, TreeId, WriteOptions};
use lsmkv::io::mem::CrashMode;
use lsmkv::{ErrorKind, Options, SyncMode};
use support::counts::{CountedBatch, assert_counts};

const SHAPE: Shape = Shape { keys: 1 << 40, value_bytes: 900, marks: false };
const MIB: u64 = 1 << 20;
/// A file of someone else on the same disk.
const BALLAST: &str = "/ballast";

fn options(threads: u32) -> Options {
    Options {
        sync: SyncMode::Off,
        background_threads: threads,
        write_buffer: 24 << 10,
        table_bytes: 32 << 10,
        block_bytes: 1024,
        memory_budget: 2 << 20,
        log_segment_bytes: 96 << 10,
        ..Options::default()
    }
}

struct Disk {
    fs: MemFs,
    engine: Engine,
    model: Contents,
    next: u64,
}

impl Disk {
    /// A disk of `capacity` bytes and a store on it that has filled it.
    fn filled(capacity: u64, options: &Options) -> Self {
        let fs = MemFs::with_capacity(capacity);
        fs.create(Path::new(BALLAST)).unwrap().allocate(MIB).unwrap();
        let engine = open_mem(&fs, options.clone()).unwrap();
        let mut disk = Self { fs, engine, model: nothing(), next: 0 };
        disk.fill();
        disk
    }

    /// Writes until the disk is full for good: threads may still find a last bit of space.
    fn fill(&mut self) {
        let mut refused = 0;
        while refused < 3 {
            match self.write_next(SyncMode::Off) {
                Ok(()) => {
                    SHAPE.apply(self.next, &mut self.model);
                    refused = 0;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
                    assert_eq!(error.os_errno(), libc::ENOSPC, "{error:?}");
                    refused += 1;
                }
            }
            self.next += 1;
            assert!(self.next < 100_000, "the disk is never full");
        }
        assert!(self.engine.degraded().is_none(), "a full disk is no fault");
    }

    /// Writes the next batch, and tells of each key whether it is set.
    fn write_next(&self, sync: SyncMode) -> lsmkv::Result<()> {
        let mut counted = CountedBatch::new(&self.engine);
        for (tree, key, value) in SHAPE.writes(self.next) {
            counted.write(TreeId(tree), &key, value.as_deref());
        }
        let options = WriteOptions { sync: Some(sync), ..WriteOptions::default() };
        self.engine.write(&mut counted.batch, options).map(|_| ())
    }

    fn check(&self, when: &str) {
        check(&self.engine, &self.model, when);
    }

    /// Deletes go through on the full disk, by what is reserved for them.
    fn delete_some(&mut self, count: usize) {
        let started = Instant::now();
        for n in 0..count {
            let tree = n % 3;
            let Some(key) = self.model[tree].keys().next().cloned() else { continue };
            let mut batch = Batch::new();
            batch.delete_present(TreeId(u8::try_from(tree).unwrap()), &key);
            let frees = WriteOptions { frees_space: true, ..WriteOptions::default() };
            self.engine
                .write(&mut batch, frees)
                .unwrap_or_else(|error| panic!("delete {n} on a full disk: {error:?}"));
            self.model[tree].remove(&key);
        }
        assert!(started.elapsed() < Duration::from_secs(5), "deletes wait for space");
    }

    /// Deletes `percent` of all keys. None is refused.
    fn delete_share(&mut self, percent: usize) {
        for tree in 0..3 {
            let keys: Vec<_> = self.model[tree].keys().cloned().collect();
            let chosen = keys.iter().enumerate().filter(|(n, _)| n % 100 < percent);
            for (n, key) in chosen {
                let mut batch = Batch::new();
                batch.delete_present(TreeId(u8::try_from(tree).unwrap()), key);
                let frees = WriteOptions { frees_space: true, ..WriteOptions::default() };
                let deleted = self.engine.write(&mut batch, frees);
                deleted.unwrap_or_else(|error| panic!("delete {n} of tree {tree}: {error:?}"));
                self.model[tree].remove(key);
            }
        }
    }

    /// Writes go on, now or as soon as the threads have noticed.
    fn work_resumes(&mut self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut succeeded = 0;
        while succeeded < 40 {
            match self.write_next(SyncMode::Always) {
                Ok(()) => {
                    SHAPE.apply(self.next, &mut self.model);
                    succeeded += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
                    assert!(
                        Instant::now() < deadline,
                        "work does not resume: {error:?}, {} bytes free, {:?}",
                        self.fs.free_bytes(Path::new("/")).unwrap(),
                        self.engine.stats()
                    );
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            self.next += 1;
        }
        self.engine.flush().unwrap();
        self.becomes_idle();
    }

    /// Compactions that failed, the last perhaps just now, are tried again after a while.
    fn becomes_idle(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while let Err(error) = self.engine.wait_idle() {
            assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
            assert!(
                Instant::now() < deadline,
                "compactions do not resume: {error:?}, {} bytes in use",
                self.fs.bytes_in_use()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// After the process has died, and after it has closed the store.
    fn check_reopened(self, options: &Options) {
        let killed = self.fs.crash_clone(0, CrashMode::KeepAll);
        let engine = open_mem(&killed, options.clone()).unwrap();
        check(&engine, &self.model, "after the process died");
        self.engine.close().unwrap();
        let engine = open_mem(&self.fs, options.clone()).unwrap();
        check(&engine, &self.model, "after a close");
        engine.verify().unwrap();
    }
}

fn is_reserve_table(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("RESERVE-table"))
}

fn check(engine: &Engine, model: &Contents, when: &str) {
    let found = read_all(engine, model).unwrap_or_else(|error| panic!("{when}: {error:?}"));
    assert_same(&found, model, when);
    let reader = engine.reader().unwrap();
    for (tree, keys) in (0..).map(TreeId).zip(model) {
        let keys: Vec<&[u8]> = keys.keys().map(Vec::as_slice).collect();
        assert_counts(&reader, tree, &keys);
    }
}

/// Sizes from hardly enough to open a store to a store of many tables.
fn capacities() -> impl Iterator<Item = u64> {
    let count = number_from_env("LSMKV_DISK_FULL", 24);
    (0..count).map(move |i| MIB + (384 << 10) + i * (MIB / count) + i * 37)
}

#[test]
fn work_resumes_when_there_is_space_again() {
    let watchdog = Watchdog::start(Duration::from_secs(30));
    for (case, capacity) in capacities().enumerate() {
        for threads in [0, 1] {
            watchdog.beat();
            let mut disk = Disk::filled(capacity, &options(threads));
            disk.check("on the full disk");
            disk.delete_some(30);
            disk.check("after deletes on the full disk");
            if case % 2 == 0 {
                disk.fs.set_capacity(capacity + 4 * MIB);
            } else {
                disk.fs.remove(Path::new(BALLAST)).unwrap();
            }
            if case % 4 < 2 {
                disk.engine.resume().unwrap();
                disk.work_resumes(Duration::ZERO);
            } else {
                disk.work_resumes(Duration::from_secs(5));
            }
            disk.check("after work resumed");
            disk.check_reopened(&options(threads));
        }
    }
}

/// A flush that wrote its table and could then not record it left the table behind; retried ten
/// times a second, that ate the space others had freed.
#[test]
fn work_that_fails_for_want_of_space_leaves_nothing_behind() {
    for capacity in capacities() {
        let disk = Disk::filled(capacity, &options(0));
        let used = disk.fs.bytes_in_use();
        for _ in 0..5 {
            let _ = disk.engine.resume();
            let _ = disk.engine.flush();
            let _ = disk.engine.wait_idle();
        }
        let known: u64 =
            disk.engine.stats().trees.iter().flat_map(|tree| tree.levels).map(|l| l.files).sum();
        let is_table = |path: &&std::path::PathBuf| path.extension().is_some_and(|e| e == "table");
        let tables = || disk.fs.paths().iter().filter(is_table).count() as u64;
        // A removed table stays while the maintenance thread happens to look at it.
        let deadline = Instant::now() + Duration::from_secs(2);
        while tables() != known && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(tables(), known, "of {capacity} bytes {used} were in use");
    }
}

/// A new life began with tables, a manifest and a segment before anything of the old one was
/// given back: on a full disk no store opened, and so nothing could be deleted.
#[test]
fn a_store_on_a_full_disk_opens_again_and_takes_deletes() {
    for capacity in capacities() {
        for background_threads in [0, 1] {
            // As by default, a memtable is larger than the space held in reserve.
            let options = Options { write_buffer: 256 << 10, ..options(background_threads) };
            let Disk { fs, engine, model, next } = Disk::filled(capacity, &options);
            let killed = fs.crash_clone(0, CrashMode::KeepAll);
            // A close that cannot flush leaves everything in the log.
            engine.close().unwrap();
            drop(engine);
            for (fs, when) in [(fs, "closed"), (killed, "killed")] {
                let engine = open_mem(&fs, options.clone())
                    .unwrap_or_else(|error| panic!("{when}, {capacity} bytes: {error:?}"));
                let mut disk = Disk { fs, engine, model: model.clone(), next };
                disk.check(when);
                disk.delete_some(20);
                disk.check("after deletes");
                disk.fs.set_capacity(u64::MAX);
                disk.work_resumes(Duration::from_secs(5));
                disk.check_reopened(&options);
            }
        }
    }
}

/// Deletes were refused once the reserve was used up, and nothing but space from outside helped.
#[test]
fn deletes_alone_bring_writes_back() {
    let watchdog = Watchdog::start(Duration::from_secs(60));
    let count = number_from_env("LSMKV_DISK_FULL", 24) / 2;
    for case in 0..count {
        for threads in [0, 1] {
            watchdog.beat();
            let percent = if case % 2 == 0 { 100 } else { 60 };
            let mut disk = Disk::filled(3 * MIB + case * 41_113, &options(threads));
            let before: usize = disk.model.iter().map(std::collections::BTreeMap::len).sum();
            disk.delete_share(percent);
            disk.check("after the deletes");
            disk.work_resumes(Duration::from_secs(5));
            disk.check("after writes came back");
            assert!(before > 300, "{before} keys are too few to tell");
            disk.check_reopened(&options(threads));
        }
    }
}

/// A merge gives back the space of its inputs only once nobody reads them. It went on meanwhile, used
/// up the reserve, and deletes were refused, or what they had deleted could not be flushed.
#[test]
fn a_reader_that_holds_tables_delays_deletes_and_no_more() {
    let watchdog = Watchdog::start(Duration::from_secs(60));
    for case in 0..number_from_env("LSMKV_DISK_FULL", 24) / 3 {
        watchdog.beat();
        let mut disk = Disk::filled(3 * MIB + case * 41_113, &options(1));
        let reader = disk.engine.reader().unwrap();
        disk.delete_share(100);
        std::thread::sleep(Duration::from_millis(300));
        let left = disk.fs.paths().iter().filter(|path| is_reserve_table(path)).count();
        assert!(left > 0, "case {case}: merges used up the reserve");
        drop(reader);
        disk.work_resumes(Duration::from_secs(5));
        disk.check("after writes came back");
    }
}

/// Someone restarts a store again and again while the disk is full.
#[test]
fn opens_on_a_full_disk_do_not_make_it_fuller() {
    for capacity in capacities() {
        let disk = Disk::filled(capacity, &options(0));
        let fs = disk.fs.crash_clone(0, CrashMode::KeepAll);
        let mut used = Vec::new();
        for _ in 0..6 {
            match open_mem(&fs, options(0)) {
                Ok(engine) => check(&engine, &disk.model, "reopened on the full disk"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Full, "{error:?}"),
            }
            used.push(fs.bytes_in_use());
        }
        // File numbers grow with every open and are written in as few bytes as they need: that is
        // all that may be added, a byte each in a manifest of a few tables.
        let grown = used[5].saturating_sub(used[1]);
        assert!(grown <= 16, "{used:?} of {capacity}");
    }
}
