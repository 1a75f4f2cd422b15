//! A disk that fills up: writers are told, readers and deletes go on, nothing is lost, and work
//! resumes when there is space again.
//!
//! `LSMKV_DISK_FULL` sets how many sizes of disk are tried.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may")]

mod disk_support;
mod fault_support;
mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use disk_support::{BALLAST, Disk, MIB, check, options};
use fault_support::{Watchdog, number_from_env, open_mem};
use lsmkv::engine::FileSystem;
use lsmkv::io::mem::CrashMode;
use lsmkv::{ErrorKind, Options};

fn is_reserve_table(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("RESERVE-table"))
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

/// A merge waited a second for the reader and then went on, piece by piece, until the reserve was used
/// up, log segments included. A busy machine took that long for the deletes, and they were refused.
#[test]
fn a_reader_that_holds_tables_for_long_leaves_the_reserve_to_deletes() {
    let mut disk = Disk::filled(3 * MIB, &options(1));
    let reader = disk.engine.reader().unwrap();
    disk.delete_share(40);
    // A merge that goes on makes a step a second.
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut merges = u64::MAX;
    while std::mem::replace(&mut merges, disk.engine.stats().merges) != merges {
        assert!(Instant::now() < deadline, "{merges} merges, and no end");
        std::thread::sleep(Duration::from_millis(2500));
    }
    disk.delete_share(40);
    drop(reader);
    disk.work_resumes(Duration::from_secs(5));
    disk.check("after writes came back");
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
