//! Space that comes back, as a user sees it: deletes, expiry, queues, and power cuts in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::ManualClock;
use lsmkv::io::mem::CrashMode;
use lsmkv::{Db, Options, SyncMode};
use parking_lot::Mutex;

fn quiet() -> Options {
    Options { ttl_cleaner_interval_s: 0, ..Options::default() }
}

fn open(fs: &MemFs, options: &Options) -> Db {
    let clock = Arc::new(ManualClock::at(1000));
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options.clone(), clock).unwrap()
}

/// Bytes and entries in the tables of all trees.
fn tables(db: &Db) -> (u64, u64) {
    let stats = db.engine_stats();
    let levels = || stats.trees.iter().flat_map(|tree| &tree.levels);
    (levels().map(|level| level.bytes).sum(), levels().map(|level| level.entries).sum())
}

fn stat(db: &Db, name: &str) -> f64 {
    let stats = db.stats().unwrap();
    stats.iter().find(|stat| stat.name == name).unwrap_or_else(|| panic!("{name}")).value.as_f64()
}

fn sound(db: &Db) {
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn a_deleted_collection_of_100_000_leaves_less_than_a_hundredth() {
    let fs = MemFs::untracked();
    let db = open(&fs, &quiet());
    let elements: Vec<Vec<u8>> = (0..100_000u32).map(|n| n.to_string().into_bytes()).collect();
    for some in elements.chunks(1000) {
        let some: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
        db.rpush(b"big", &some).unwrap();
    }
    db.set(b"small", b"value").unwrap();
    db.compact().unwrap();
    let (before, entries) = tables(&db);
    assert_eq!(entries, 100_002);
    assert_eq!(db.del(&[b"big"]).unwrap(), 1);
    db.compact().unwrap();
    let (after, entries) = tables(&db);
    assert!(after * 100 < before, "{before} bytes before, {after} after");
    assert_eq!(entries, 1);
    assert_eq!(stat(&db, "rows_removed"), 100_000.0);
    sound(&db);
}

#[test]
fn a_queue_of_any_length_leaves_only_what_is_in_it() {
    let fs = MemFs::untracked();
    let options = Options { write_buffer: 64 << 10, table_bytes: 16 << 10, ..quiet() };
    let db = open(&fs, &options);
    for n in 0..20_000u32 {
        db.rpush(b"queue", &[&n.to_be_bytes()]).unwrap();
        if n >= 10 {
            let popped = db.lpop(b"queue").unwrap().unwrap();
            assert_eq!(popped[..], (n - 10).to_be_bytes());
        }
    }
    db.compact().unwrap();
    assert_eq!(tables(&db).1, 1 + 10);
    sound(&db);
}

/// Without a sync before the result is installed: the DEL is in an unsynced log, the rows are
/// dropped and that is durable, the power goes: the list is back without its elements.
#[test]
fn after_a_power_cut_a_deleted_list_is_gone_or_whole() {
    let fs = MemFs::new();
    let options = Options { sync: SyncMode::Off, ..quiet() };
    let db = open(&fs, &options);
    for n in 0..20u32 {
        db.rpush(b"deleted", &[&n.to_be_bytes()]).unwrap();
        db.rpush(b"trimmed", &[&n.to_be_bytes()]).unwrap();
    }
    db.flush().unwrap();
    db.sync().unwrap();
    db.del(&[b"deleted"]).unwrap();
    db.lpop_many(b"trimmed", 15).unwrap();
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&cuts);
    fs.on_sync(move |fs, _| taken.lock().push(fs.deep_clone()));
    db.compact().unwrap();
    assert_eq!(tables(&db).1, 1 + 5, "the story needs rows to be dropped");
    cuts.lock().push(fs.deep_clone());
    let (mut whole, mut gone) = (0, 0);
    for cut in cuts.lock().iter() {
        for (seed, mode) in (0..4).flat_map(|seed| CrashMode::ALL.map(|mode| (seed, mode))) {
            let db = open(&cut.crash_clone(seed, mode), &options);
            sound(&db);
            match db.llen(b"deleted").unwrap() {
                0 => gone += 1,
                20 => whole += 1,
                length => panic!("{length} of 20 elements"),
            }
            let length = db.llen(b"trimmed").unwrap();
            assert!(length == 20 || length == 5, "{length}");
        }
    }
    assert!(whole > 0 && gone > 0, "{whole} whole, {gone} gone");
}

#[test]
fn what_a_store_says_of_itself_has_names() {
    let db = open(&MemFs::untracked(), &quiet());
    for n in 0..100u32 {
        db.set(&n.to_be_bytes(), b"value").unwrap();
    }
    assert_eq!(stat(&db, "keys_estimated"), 100.0);
    db.compact().unwrap();
    assert_eq!(stat(&db, "keys_estimated"), 100.0);
    assert_eq!(stat(&db, "expired_keys_estimated"), 0.0);
    assert_eq!(stat(&db, "table_entries"), 100.0);
    let stats = db.stats().unwrap();
    let names: std::collections::HashSet<_> = stats.iter().map(|stat| stat.name).collect();
    assert_eq!(names.len(), stats.len(), "each name once");
}
