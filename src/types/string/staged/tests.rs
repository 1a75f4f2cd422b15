//! Strings that come in parts: what others see halfway, and what is left of those that never end.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::engine::{CrashMode, MemFs};
use crate::io::clock::ManualClock;
use crate::keyspace::trees::DATA;
use crate::options::{Options, SyncMode};
use crate::types::{Condition, Expiry, SetExpiry, SetOptions, SetOutcome};

/// A string of more than 64 bytes has a row for every 16.
fn options() -> Options {
    let (inline_max_bytes, chunk_bytes) = (64, 16);
    Options { ttl_cleaner_interval_s: 0, inline_max_bytes, chunk_bytes, ..Options::default() }
}

fn open_with(fs: &MemFs, options: Options) -> Db {
    let clock = Arc::new(ManualClock::at(1000));
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, clock).unwrap()
}

fn open() -> Db {
    open_with(&MemFs::untracked(), options())
}

/// Bytes with a hole of some chunks in them.
fn bytes(len: usize) -> Vec<u8> {
    let hole = 1000..1100;
    (0..len).map(|at| if hole.contains(&at) { 0 } else { (at / 7 % 250) as u8 + 1 }).collect()
}

fn staged(db: &Db, value: &[u8], part: usize) -> StagedString {
    let mut string = StagedString::begin(db, b"k", value.len()).unwrap();
    value.chunks(part).for_each(|part| string.push(part));
    string
}

fn put(db: &Db, string: &mut StagedString) -> Result<()> {
    db.write(&[b"k"], |tx| tx.set_by(b"k", |tx, deadline| string.put(tx, deadline)))
}

fn rows(db: &Db) -> u64 {
    db.engine_stats().trees[DATA.index()].levels.iter().map(|level| level.entries).sum()
}

fn being_built(db: &Db) -> u64 {
    db.engine_stats().reserved
}

fn sound(db: &Db) {
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn a_string_in_parts_of_any_size_is_the_string_that_came_whole() {
    let db = open();
    for (len, part) in [(65, 1), (200_000, 7), (200_001, 16), (200_015, 4096), (300_000, 300_000)] {
        let value = bytes(len);
        db.set(b"k", b"old").unwrap();
        let mut string = staged(&db, &value, part);
        assert_eq!(db.get(b"k").unwrap().unwrap(), &b"old"[..]);
        assert_eq!(being_built(&db), 1);
        assert!(string.memory() < 300 << 10, "{}", string.memory());
        put(&db, &mut string).unwrap();
        drop(string);
        assert!(db.get(b"k").unwrap().unwrap() == value, "{len} in parts of {part}");
        assert_eq!(being_built(&db), 0);
        sound(&db);
        // The record counts the rows: holes have none.
        db.set(b"whole", &value).unwrap();
        let chunks = |key: &[u8]| {
            let string = db.read(|tx| tx.string(key)).unwrap();
            let Some(crate::types::StringValue::Chunked(it)) = string else { panic!("{string:?}") };
            (it.chunks.rows, it.chunks.len, it.chunks.shift)
        };
        assert_eq!(chunks(b"k"), chunks(b"whole"));
    }
}

#[test]
fn options_are_those_of_the_moment_at_which_the_command_runs() {
    let db = open();
    let value = bytes(1000);
    let with = |options: SetOptions| {
        let mut string = staged(&db, &value, 100);
        db.write(&[b"k"], |tx| {
            tx.set_with_by(b"k", options, |tx, deadline| string.put(tx, deadline))
        })
    };
    let if_missing = SetOptions { condition: Condition::IfMissing, ..SetOptions::default() };
    assert!(with(if_missing).unwrap().written);
    db.set(b"k", b"old").unwrap();
    assert!(!with(if_missing).unwrap().written);
    assert_eq!(db.get(b"k").unwrap().unwrap(), &b"old"[..]);
    let until = SetExpiry::At(Expiry::AtMilliseconds(5000));
    let old = with(SetOptions { expiry: until, get: true, ..SetOptions::default() }).unwrap();
    assert_eq!(old, SetOutcome { written: true, old: Some("old".into()) });
    assert_eq!(db.pttl(b"k").unwrap(), 4000);
    with(SetOptions { expiry: SetExpiry::Keep, ..SetOptions::default() }).unwrap();
    assert_eq!(db.pttl(b"k").unwrap(), 4000);
    let passed = SetExpiry::At(Expiry::AtMilliseconds(500));
    assert!(with(SetOptions { expiry: passed, ..SetOptions::default() }).unwrap().written);
    assert_eq!(db.exists(&[b"k"]).unwrap(), 0);
    let wrong = SetExpiry::At(Expiry::Seconds(0));
    assert!(with(SetOptions { expiry: wrong, ..SetOptions::default() }).is_err());
    assert_eq!(being_built(&db), 0);
    db.compact().unwrap();
    assert_eq!(rows(&db), 0);
    sound(&db);
}

/// What a client that stalls holds: its rows, through flushes and compactions.
#[test]
fn rows_stay_while_the_string_is_built_and_go_when_it_is_given_up() {
    let db = open();
    let value = bytes(300_000);
    let (mut kept, given_up) = (staged(&db, &value, 65_536), staged(&db, &value, 65_536));
    for _ in 0..2 {
        db.flush().unwrap();
        db.compact().unwrap();
        sound(&db);
    }
    assert!(rows(&db) > 25_000, "{}", rows(&db));
    assert_eq!(db.dbsize().unwrap(), 0);
    drop(given_up);
    db.compact().unwrap();
    sound(&db);
    assert!((10_000..25_000).contains(&rows(&db)), "{}", rows(&db));
    put(&db, &mut kept).unwrap();
    drop(kept);
    db.compact().unwrap();
    assert!(db.get(b"k").unwrap().unwrap() == value);
    db.del(&[b"k"]).unwrap();
    db.compact().unwrap();
    assert_eq!(rows(&db), 0);
}

#[test]
fn a_string_lands_in_the_database_that_was_selected_even_if_it_was_emptied_or_swapped() {
    type Change = fn(&Db);
    let changes: [(Change, usize); 3] = [
        (|db| db.flushdb().unwrap(), 0),
        (|db| db.flushall().unwrap(), 0),
        (|db| db.swapdb(0, 1).unwrap(), 1),
    ];
    for (change, keys_of_other) in changes {
        for (before, compacts) in [(250_000, false), (250_000, true), (100, true)] {
            let db = open();
            let value = bytes(300_000);
            db.set(b"k", b"old").unwrap();
            let mut string = StagedString::begin(&db, b"k", value.len()).unwrap();
            string.push(&value[..before]);
            change(&db);
            if compacts {
                db.compact().unwrap();
            }
            string.push(&value[before..]);
            if compacts {
                db.compact().unwrap();
            }
            put(&db, &mut string).unwrap();
            drop(string);
            db.compact().unwrap();
            assert!(db.get(b"k").unwrap().unwrap() == value);
            assert_eq!(db.dbsize().unwrap(), 1);
            let other = db.select(1).unwrap();
            assert_eq!(other.dbsize().unwrap() as usize, keys_of_other);
            if keys_of_other > 0 {
                assert_eq!(other.get(b"k").unwrap().unwrap(), &b"old"[..]);
            }
            sound(&db);
            db.flushall().unwrap();
            db.compact().unwrap();
            assert_eq!(rows(&db), 0);
        }
    }
}

/// The power goes after every spill and at every sync, before and after the command.
#[test]
fn after_a_power_cut_the_string_is_there_whole_or_not_at_all() {
    for (sync, seed) in [(SyncMode::Off, 1), (SyncMode::Always, 2)] {
        let options = Options { sync, write_buffer: 64 << 10, ..options() };
        let fs = MemFs::new();
        let db = open_with(&fs, options.clone());
        db.set(b"k", b"old").unwrap();
        db.sync().unwrap();
        let photographs: Arc<Mutex<Vec<MemFs>>> = Arc::default();
        let album = Arc::clone(&photographs);
        fs.on_sync(move |fs, _| album.lock().push(fs.deep_clone()));
        let (album, of) = (Arc::clone(&photographs), fs.clone());
        db.store().spills().after_spills(move |_| album.lock().push(of.deep_clone()));
        let value = bytes(400_000);
        let mut string = staged(&db, &value, 50_000);
        put(&db, &mut string).unwrap();
        drop(string);
        db.store().spills().after_spills(|_| {});
        photographs.lock().push(fs.deep_clone());
        let mut old = 0;
        for photograph in photographs.lock().drain(..) {
            for mode in [CrashMode::DropUnsynced, CrashMode::Chaotic] {
                let db = open_with(&photograph.crash_clone(seed, mode), options.clone());
                let found = db.get(b"k").unwrap().unwrap();
                assert!(found == value || found == b"old"[..], "{} bytes", found.len());
                sound(&db);
                if found == b"old"[..] {
                    old += 1;
                    db.compact().unwrap();
                    assert_eq!(rows(&db), 0, "what was not named is gone");
                }
            }
        }
        assert!(old > 6, "{old}");
    }
}

#[test]
fn a_string_that_does_not_fit_the_disk_fails_when_it_is_put_and_leaves_nothing() {
    let options = Options { log_segment_bytes: 64 << 10, write_buffer: 64 << 10, ..options() };
    let fs = MemFs::untracked();
    let db = open_with(&fs, options);
    db.set(b"k", b"old").unwrap();
    db.flush().unwrap();
    let value = bytes(8 << 20);
    let mut string = staged(&db, &value[..200_000], 65_536);
    fs.set_capacity(fs.bytes_in_use());
    value[200_000..].chunks(65_536).for_each(|part| string.push(part));
    assert!(string.memory() < 1000, "what comes after the failure is dropped");
    assert_eq!(being_built(&db), 0);
    assert_eq!(put(&db, &mut string).unwrap_err().kind(), ErrorKind::Full);
    assert_eq!(db.get(b"k").unwrap().unwrap(), &b"old"[..]);
    fs.set_capacity(u64::MAX);
    db.resume().unwrap();
    sound(&db);
    db.compact().unwrap();
    assert_eq!(rows(&db), 0);
}

#[test]
fn what_has_to_come_as_a_whole_is_not_begun() {
    let fs = MemFs::untracked();
    let db = open_with(&fs, Options { max_key_bytes: 10, max_value_bytes: 1000, ..options() });
    let begins = |db: &Db, key: &[u8], len| StagedString::begin(db, key, len).is_some();
    assert!(begins(&db, b"k", 1000) && begins(&db, b"0123456789", 65));
    assert!(!begins(&db, b"k", 64), "it fits into a record");
    assert!(!begins(&db, b"k", 1001) && !begins(&db, b"0123456789a", 100), "too long");
    assert!(!begins(&db.snapshot().unwrap(), b"k", 100));
    assert_eq!(being_built(&db), 0);
    db.close().unwrap();
    assert!(!begins(&db, b"k", 100));
}

#[test]
fn who_needs_it_in_one_piece_gets_that() {
    let db = open();
    let value = bytes(200_003);
    let mut string = staged(&db, &value, 1000);
    assert!(string.take_whole(&db).unwrap() == value);
    assert!(put(&db, &mut string).is_err(), "it was taken");
}
