//! A disk that fills up, and a store on it: what the tests of full disks share.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "shared by test binaries, each of which uses a part"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use lsmkv::engine::{Batch, Engine, FileSystem, MemFs, TreeId, WriteOptions};
use lsmkv::io::mem::CrashMode;
use lsmkv::{Error, ErrorKind, Options, SyncMode};

use crate::fault_support::{Contents, Shape, assert_same, nothing, open_mem, read_all};
use crate::support::counts::{CountedBatch, assert_counts};

pub const SHAPE: Shape = Shape { keys: 1 << 40, value_bytes: 900, marks: false };
pub const MIB: u64 = 1 << 20;
/// A file of someone else on the same disk.
pub const BALLAST: &str = "/ballast";

/// Small memtables, tables and segments, so that a small disk has many.
pub fn options(threads: u32) -> Options {
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

/// A disk, a store on it, what the store holds, and the number of the next batch.
pub struct Disk {
    pub fs: MemFs,
    pub engine: Engine,
    pub model: Contents,
    pub next: u64,
}

impl Disk {
    /// A disk of `capacity` bytes and a store on it that has filled it.
    pub fn filled(capacity: u64, options: &Options) -> Self {
        let fs = MemFs::with_capacity(capacity);
        fs.create(Path::new(BALLAST)).unwrap().allocate(MIB).unwrap();
        let engine = open_mem(&fs, options.clone()).unwrap();
        let mut disk = Self { fs, engine, model: nothing(), next: 0 };
        disk.fill();
        disk
    }

    /// Writes until the disk is full for good: threads may still find a last bit of space.
    pub fn fill(&mut self) {
        assert!(self.write_up_to(100_000), "the disk is never full");
    }

    /// Writes `count` batches, or until three in a row were refused. Returns whether they were.
    pub fn write_up_to(&mut self, count: u64) -> bool {
        let mut refused = 0;
        for _ in 0..count {
            match self.write_next(SyncMode::Off) {
                Ok(()) => {
                    SHAPE.apply(self.next, &mut self.model);
                    refused = 0;
                }
                Err(error) => {
                    assert_full(&error);
                    refused += 1;
                }
            }
            self.next += 1;
            if refused == 3 {
                break;
            }
        }
        assert!(self.engine.degraded().is_none(), "a full disk is no fault");
        refused == 3
    }

    /// Writes the next batch, and tells of each key whether it is set.
    pub fn write_next(&self, sync: SyncMode) -> lsmkv::Result<()> {
        let mut counted = CountedBatch::new(&self.engine);
        for (tree, key, value) in SHAPE.writes(self.next) {
            counted.write(TreeId(tree), &key, value.as_deref());
        }
        let options = WriteOptions { sync: Some(sync), ..WriteOptions::default() };
        self.engine.write(&mut counted.batch, options).map(|_| ())
    }

    pub fn check(&self, when: &str) {
        check(&self.engine, &self.model, when);
    }

    /// Deletes go through on the full disk, by what is reserved for them.
    pub fn delete_some(&mut self, count: usize) {
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
    pub fn delete_share(&mut self, percent: usize) {
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
    pub fn work_resumes(&mut self, timeout: Duration) {
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
    pub fn becomes_idle(&self) {
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
    pub fn check_reopened(self, options: &Options) {
        let killed = self.fs.crash_clone(0, CrashMode::KeepAll);
        let engine = open_mem(&killed, options.clone()).unwrap();
        check(&engine, &self.model, "after the process died");
        self.engine.close().unwrap();
        let engine = open_mem(&self.fs, options.clone()).unwrap();
        check(&engine, &self.model, "after a close");
        engine.verify().unwrap();
    }
}

/// The error says that the disk is full, and nothing else.
pub fn assert_full(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    assert_eq!(error.os_errno(), libc::ENOSPC, "{error:?}");
}

/// The store holds `model`: by walks, reads and counts.
pub fn check(engine: &Engine, model: &Contents, when: &str) {
    let found = read_all(engine, model).unwrap_or_else(|error| panic!("{when}: {error:?}"));
    assert_same(&found, model, when);
    let reader = engine.reader().unwrap();
    for (tree, keys) in (0..).map(TreeId).zip(model) {
        let keys: Vec<&[u8]> = keys.keys().map(Vec::as_slice).collect();
        assert_counts(&reader, tree, &keys);
    }
}
