//! An open that is refused changes nothing on disk: no LOCK, no directory, no SYNC.
//!
//! The bug: every open created LOCK first and looked at the directory afterwards. `lsmkv /etc GET a`
//! left a file in /etc.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lsmkv::{Db, ErrorKind, Options, SyncMode};
use tempfile::TempDir;

/// Every name below `dir` with a hash of its bytes and the time of its last change; a directory has
/// the time only. A file that was created and removed again changes the time of its directory.
fn everything(dir: &Path) -> BTreeMap<PathBuf, (Option<u64>, (i64, i64))> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let bytes = (!meta.is_dir()).then(|| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&fs::read(&path).unwrap());
            hasher.finish()
        });
        if meta.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path, (bytes, (meta.mtime(), meta.mtime_nsec())));
    }
    found
}

fn refused(scratch: &Path, dir: &Path, options: Options, kind: ErrorKind) -> String {
    let before = everything(scratch);
    let error = Db::open(dir, options).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    let message = error.to_string();
    assert_eq!(everything(scratch), before, "{message}");
    message
}

fn read_only() -> Options {
    Options { read_only: true, ..Options::default() }
}

fn existing_only() -> Options {
    Options { create_if_missing: false, ..Options::default() }
}

fn new_only() -> Options {
    Options { error_if_exists: true, ..Options::default() }
}

fn path_of(dir: &Path, matches: impl Fn(&str) -> bool) -> PathBuf {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.into_iter().find(|path| matches(path.file_name().unwrap().to_str().unwrap())).unwrap()
}

/// A store with a table and a log, whose LOCK is gone, as in a copy that left it out.
fn store_without_lock(scratch: &Path) -> PathBuf {
    let dir = scratch.join("store");
    let db = Db::open(&dir, Options::default()).unwrap();
    db.set(b"in a table", b"1").unwrap();
    db.close().unwrap();
    let synced = Options { sync: SyncMode::Always, ..Options::default() };
    let db = Db::open(&dir, synced).unwrap();
    for i in 0..100u32 {
        db.set(format!("in the log {i}").as_bytes(), b"2").unwrap();
    }
    drop(db);
    fs::remove_file(dir.join("LOCK")).unwrap();
    dir
}

#[test]
fn a_directory_that_is_missing_or_empty_stays_so() {
    let scratch = TempDir::new().unwrap();
    let missing = scratch.path().join("missing");
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for dir in [&missing, &empty] {
        for options in [read_only(), existing_only()] {
            let message = refused(scratch.path(), dir, options, ErrorKind::Invalid);
            assert!(message.contains(dir.to_str().unwrap()), "{message}");
            assert!(message.contains("there is no store"), "{message}");
        }
    }
}

#[test]
fn a_directory_of_other_files_is_left_alone() {
    let scratch = TempDir::new().unwrap();
    let dir = scratch.path().join("etc");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("passwd"), b"root").unwrap();
    for options in [Options::default(), read_only(), existing_only(), new_only()] {
        let message = refused(scratch.path(), &dir, options, ErrorKind::Incompatible);
        assert!(message.contains("passwd"), "{message}");
    }
    // A file is no directory.
    let file = dir.join("passwd");
    refused(scratch.path(), &file, Options::default(), ErrorKind::Io);
}

#[test]
fn a_store_that_must_not_exist_or_is_damaged_is_left_alone() {
    let scratch = TempDir::new().unwrap();
    let dir = store_without_lock(scratch.path());
    refused(scratch.path(), &dir, new_only(), ErrorKind::Invalid);
    let spoil = |path: &Path, change: &dyn Fn(&mut Vec<u8>), kind: ErrorKind| {
        let good = fs::read(path).unwrap();
        let mut bad = good.clone();
        change(&mut bad);
        fs::write(path, bad).unwrap();
        for options in [Options::default(), read_only()] {
            refused(scratch.path(), &dir, options, kind);
        }
        fs::write(path, good).unwrap();
    };
    let manifest = path_of(&dir, |name| name.starts_with("MANIFEST"));
    let log = path_of(&dir, |name| name.ends_with(".log"));
    spoil(&dir.join("CURRENT"), &|bytes| bytes[0] ^= 1, ErrorKind::Corrupt);
    let newer = |bytes: &mut Vec<u8>| {
        let covered = "lsmkv format 9\nsomething new\n";
        let crc = crc32fast::hash(covered.as_bytes());
        *bytes = format!("{covered}crc {crc:08x}\n").into_bytes();
    };
    spoil(&dir.join("CURRENT"), &newer, ErrorKind::Incompatible);
    spoil(&manifest, &|bytes| bytes[30] ^= 1, ErrorKind::Corrupt);
    spoil(&log, &|bytes| bytes[60] ^= 1, ErrorKind::Corrupt);
    for name in [path_of(&dir, |name| name.ends_with(".table")), dir.join("CURRENT")] {
        let away = scratch.path().join("away");
        fs::rename(&name, &away).unwrap();
        for options in [Options::default(), read_only()] {
            refused(scratch.path(), &dir, options, ErrorKind::Corrupt);
        }
        fs::rename(&away, &name).unwrap();
    }
    let db = Db::open(&dir, Options::default()).unwrap();
    assert_eq!(db.dbsize().unwrap(), 101);
    assert!(dir.join("LOCK").exists(), "an open to write has its lock file");
}

#[test]
fn a_store_without_a_lock_file_is_read_without_one() {
    let scratch = TempDir::new().unwrap();
    let dir = store_without_lock(scratch.path());
    let before = everything(scratch.path());
    let db = Db::open(&dir, read_only()).unwrap();
    assert_eq!(db.dbsize().unwrap(), 101);
    // It is locked all the same; a second reader needs no lock.
    refused(scratch.path(), &dir, Options::default(), ErrorKind::Busy);
    assert_eq!(Db::open(&dir, read_only()).unwrap().dbsize().unwrap(), 101);
    db.close().unwrap();
    assert_eq!(everything(scratch.path()), before);
    Db::open(&dir, Options::default()).unwrap().close().unwrap();
}

#[test]
fn a_writer_excludes_writers_also_in_a_new_store_and_readers_change_nothing() {
    let scratch = TempDir::new().unwrap();
    let dir = scratch.path().join("store");
    let db = Db::open(&dir, Options::default()).unwrap();
    for options in [Options::default(), new_only()] {
        refused(scratch.path(), &dir, options, ErrorKind::Busy);
    }
    let before = everything(scratch.path());
    let beside = Db::open(&dir, read_only()).unwrap();
    beside.refresh().unwrap();
    beside.close().unwrap();
    assert_eq!(everything(scratch.path()), before);
    drop(db);
    Db::open(&dir, read_only()).unwrap();
}
