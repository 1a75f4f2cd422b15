//! Big commands: what others see of them halfway, and what is left of those that end there.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::{CrashMode, MemFs};
use crate::error::ErrorKind;
use crate::io::clock::ManualClock;
use crate::keyspace::trees::{DATA, META, SCORE};
use crate::options::{Options, SyncMode};
use crate::txn::Db;
use crate::types::testing::unpacked;
use crate::types::{Aggregate, By, Combine, SortBy, SortOptions, Type, ZAdd, ZRange};

fn options() -> Options {
    // A string of more than 64 bytes has a row for every 16.
    let (inline_max_bytes, chunk_bytes) = (64, 16);
    Options { ttl_cleaner_interval_s: 0, inline_max_bytes, chunk_bytes, ..unpacked() }
}

fn open(fs: &MemFs, options: &Options) -> Db {
    let clock = Arc::new(ManualClock::at(1000));
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options.clone(), clock).unwrap()
}

/// A store in which 2 KiB of rows are much.
fn narrow(fs: &MemFs, options: &Options) -> Db {
    let db = open(fs, options);
    db.store().spills().spill_at(2 << 10);
    db
}

fn name(n: u32) -> String {
    format!("member:{n:06}")
}

/// A key of each type with `count` rows each.
fn fill(db: &Db, count: u32) {
    let names: Vec<String> = (0..count).map(name).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let pairs: Vec<_> = names.iter().map(|name| (*name, *name)).collect();
    let scored: Vec<_> = names.iter().zip(0u32..).map(|(name, n)| (f64::from(n), *name)).collect();
    db.hset(b"hash", &pairs).unwrap();
    db.sadd(b"set", &names).unwrap();
    db.zadd(b"zset", &scored, ZAdd::default()).unwrap();
    db.rpush(b"list", &names).unwrap();
    for n in 0..count {
        db.append(b"string", format!("chunk:{n:010}").as_bytes()).unwrap();
    }
}

/// Everything that can be read of a key.
fn shown(db: &Db, key: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pair = |a: &[u8], b: &[u8]| (a.to_vec(), b.to_vec());
    let all = ZRange::of(By::Rank(0, -1));
    match db.kind(key).unwrap() {
        None => Vec::new(),
        Some(Type::String) => vec![pair(b"", &db.get(key).unwrap().unwrap())],
        Some(Type::Hash) => db.hgetall(key).unwrap().iter().map(|(a, b)| pair(a, b)).collect(),
        Some(Type::Set) => db.smembers(key).unwrap().iter().map(|a| pair(a, b"")).collect(),
        Some(Type::List) => db.lrange(key, 0, -1).unwrap().iter().map(|a| pair(a, b"")).collect(),
        Some(Type::ZSet) => {
            let scored = db.zrange_withscores(key, &all).unwrap();
            scored.iter().map(|(a, score)| pair(a, score.to_string().as_bytes())).collect()
        }
    }
}

const KEYS: [&[u8]; 5] = [b"hash", b"set", b"zset", b"list", b"string"];

fn sound(db: &Db) {
    assert_eq!(db.check().unwrap(), [""; 0]);
}

fn entries(db: &Db) -> [u64; 3] {
    let stats = db.engine_stats();
    [META, DATA, SCORE]
        .map(|tree| stats.trees[tree.index()].levels.iter().map(|level| level.entries).sum())
}

#[test]
fn what_is_larger_than_a_commit_comes_in_several_and_is_the_same() {
    let fs = MemFs::untracked();
    let db = narrow(&fs, &options());
    fill(&db, 300);
    for key in KEYS {
        let before = shown(&db, key);
        let (spills, commits) = (db.store().spills().count(), db.engine_stats().commits);
        assert!(db.copy(key, b"copy", true).unwrap());
        let spills = db.store().spills().count() - spills;
        assert!(spills >= 4, "{spills} commits of 2 KiB");
        assert_eq!(db.engine_stats().commits - commits, spills as u64 + 1);
        assert_eq!(shown(&db, b"copy"), before);
        db.rename(b"copy", b"renamed").unwrap();
        assert!(db.renamenx(b"renamed", b"copy").unwrap());
        assert!(db.r#move(b"copy", 1).unwrap());
        let other = db.select(1).unwrap();
        assert_eq!(shown(&other, b"copy"), before);
        assert!(other.copy_to(b"copy", key, 0, true).unwrap());
        assert_eq!(shown(&db, key), before);
        other.del(&[b"copy"]).unwrap();
    }
    sound(&db);
    db.compact().unwrap();
    assert_eq!(entries(&db), [5, 1500, 300], "what was copied from is gone");
    db.close().unwrap();
    sound(&open(&fs, &options()));
}

#[test]
fn stored_results_are_those_that_are_replied_however_large() {
    let db = narrow(&MemFs::untracked(), &options());
    fill(&db, 300);
    let names: Vec<String> = (200..500).map(name).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    db.sadd(b"other", &names).unwrap();
    let (sets, zsets): ([&[u8]; 2], [&[u8]; 2]) = ([b"set", b"other"], [b"zset", b"other"]);
    let of = |members: Vec<bytes::Bytes>| -> Vec<_> {
        members.into_iter().map(|member| (member.to_vec(), Vec::new())).collect()
    };
    let spills = db.store().spills().count();
    assert_eq!(db.sunionstore(b"to", &sets).unwrap(), 500);
    assert_eq!(shown(&db, b"to"), of(db.sunion(&sets).unwrap()));
    assert_eq!(db.sinterstore(b"to", &sets).unwrap(), 100);
    assert_eq!(shown(&db, b"to"), of(db.sinter(&sets).unwrap()));
    assert_eq!(db.sdiffstore(b"to", &sets).unwrap(), 200);
    assert_eq!(shown(&db, b"to"), of(db.sdiff(&sets).unwrap()));
    let how = Combine { weights: &[2.0, 3.0], aggregate: Aggregate::Sum };
    let scored = |members: Vec<(bytes::Bytes, f64)>| -> Vec<_> {
        members.into_iter().map(|(m, score)| (m.to_vec(), score.to_string().into_bytes())).collect()
    };
    assert_eq!(db.zunionstore(b"to", &zsets, how).unwrap(), 500);
    assert_eq!(shown(&db, b"to"), scored(db.zunion(&zsets, how).unwrap()));
    assert_eq!(db.zscore(b"to", name(250).as_bytes()).unwrap(), Some(503.0));
    assert_eq!(db.zinterstore(b"to", &zsets, how).unwrap(), 100);
    assert_eq!(shown(&db, b"to"), scored(db.zinter(&zsets, how).unwrap()));
    assert_eq!(db.zdiffstore(b"to", &zsets).unwrap(), 200);
    assert_eq!(shown(&db, b"to"), scored(db.zdiff(&zsets).unwrap()));
    for range in [ZRange::of(By::Rank(20, -10)), ZRange::of(By::Rank(100, -1)).reversed()] {
        let expected = db.zrange_withscores(b"zset", &range).unwrap().len();
        assert_eq!(db.zrangestore(b"to", b"zset", &range).unwrap(), expected as i64);
        assert_eq!(db.zcard(b"to").unwrap(), expected as i64);
    }
    let sort = SortOptions { by: SortBy::Elements, alpha: true, ..SortOptions::default() };
    assert_eq!(db.sort_store(b"other", &sort, b"to").unwrap(), 300);
    assert_eq!(shown(&db, b"to"), of(db.smembers(b"other").unwrap()));
    assert!(db.store().spills().count() > spills + 20);
    assert_eq!(db.sdiffstore(b"set", &[b"set", b"set"]).unwrap(), 0);
    assert_eq!(db.exists(&[b"set"]).unwrap(), 0);
    sound(&db);
}

/// The rows of a big COPY reach the tables, and a compaction filters them, before its record
/// is written.
#[test]
fn a_big_copy_half_written_when_a_filter_runs_loses_nothing_and_shows_nothing() {
    for key in KEYS {
        let db = narrow(&MemFs::untracked(), &options());
        fill(&db, 300);
        let before = shown(&db, key);
        let other = db.clone();
        let seen = Arc::new(Mutex::new(0));
        let times = Arc::clone(&seen);
        db.store().spills().after_spills(move |spills| {
            if spills % 2 == 1 {
                other.compact().unwrap();
            } else {
                other.flush().unwrap();
            }
            assert_eq!(other.exists(&[b"copy"]).unwrap(), 0);
            sound(&other);
            *times.lock() += 1;
        });
        assert!(db.copy(key, b"copy", false).unwrap());
        assert!(*seen.lock() >= 4);
        db.store().spills().after_spills(|_| {});
        db.compact().unwrap();
        assert_eq!((shown(&db, b"copy"), shown(&db, key)), (before.clone(), before));
        sound(&db);
    }
}

#[test]
fn a_command_that_dies_halfway_leaves_what_a_compaction_takes_away() {
    let fs = MemFs::new();
    let db = narrow(&fs, &options());
    fill(&db, 300);
    let before = shown(&db, b"zset");
    let halfway = Arc::new(Mutex::new(None));
    let (taken, of) = (Arc::clone(&halfway), fs.clone());
    db.store().spills().after_spills(move |spills| {
        if spills == 4 {
            *taken.lock() = Some(of.deep_clone());
        }
    });
    db.rename(b"zset", b"renamed").unwrap();
    let left = halfway.lock().take().unwrap();
    let db = open(&left, &options());
    assert_eq!((shown(&db, b"zset"), db.exists(&[b"renamed"]).unwrap()), (before, 0));
    sound(&db);
    let rows = |db: &Db| entries(db)[DATA.index()] + entries(db)[SCORE.index()];
    db.flush().unwrap();
    assert!(rows(&db) > 1500, "rows of the version that was being built");
    db.compact().unwrap();
    assert_eq!(entries(&db), [5, 1500, 300]);
    sound(&db);
}

/// The power goes before and after every sync of a big command, and after every spill.
#[test]
fn after_a_power_cut_a_big_command_is_there_whole_or_not_at_all() {
    for (sync, seed) in [(SyncMode::Off, 1), (SyncMode::Always, 2)] {
        let options = Options { sync, write_buffer: 64 << 10, ..options() };
        let fs = MemFs::new();
        let db = narrow(&fs, &options);
        fill(&db, 120);
        db.sync().unwrap();
        let photographs: Arc<Mutex<Vec<MemFs>>> = Arc::default();
        let album = Arc::clone(&photographs);
        fs.on_sync(move |fs, _| album.lock().push(fs.deep_clone()));
        let (album, of, other) = (Arc::clone(&photographs), fs.clone(), db.clone());
        db.store().spills().after_spills(move |spills| {
            album.lock().push(of.deep_clone());
            if spills % 3 == 0 {
                other.flush().unwrap();
            }
        });
        let before: Vec<_> = KEYS.iter().map(|key| shown(&db, key)).collect();
        for key in KEYS {
            assert!(db.copy(key, &[b"copy of ", key].concat(), true).unwrap());
        }
        db.store().spills().after_spills(|_| {});
        let photographed = photographs.lock().len();
        assert!(photographed > 20, "{photographed}");
        let mut absent = 0;
        for photograph in photographs.lock().drain(..) {
            for mode in [CrashMode::DropUnsynced, CrashMode::Chaotic] {
                let db = open(&photograph.crash_clone(seed, mode), &options);
                for (key, before) in KEYS.iter().zip(&before) {
                    assert_eq!(shown(&db, key), *before, "the source");
                    let copy = shown(&db, &[b"copy of ", *key].concat());
                    assert!(copy.is_empty() || copy == *before, "{} rows", copy.len());
                    absent += usize::from(copy.is_empty());
                }
                sound(&db);
            }
        }
        assert!(absent > photographed, "{absent} of {photographed}");
    }
}

#[test]
fn a_disk_that_fills_up_in_the_middle_leaves_nothing_visible() {
    let options = Options { log_segment_bytes: 64 << 10, write_buffer: 64 << 10, ..options() };
    let fs = MemFs::untracked();
    let db = narrow(&fs, &options);
    fill(&db, 2000);
    db.set(b"to", b"as it was").unwrap();
    db.flush().unwrap();
    let before = shown(&db, b"hash");
    let of = fs.clone();
    db.store().spills().after_spills(move |spills| {
        if spills == 3 {
            of.set_capacity(of.bytes_in_use());
        }
    });
    let mut refused = None;
    for _ in 0..50 {
        if let Err(error) = db.copy(b"hash", b"to", true) {
            refused = Some(error);
            break;
        }
        db.set(b"to", b"as it was").unwrap();
    }
    assert_eq!(refused.expect("the disk is full").kind(), ErrorKind::Full);
    assert_eq!(shown(&db, b"hash"), before);
    assert_eq!(db.get(b"to").unwrap().as_deref(), Some(&b"as it was"[..]));
    assert_eq!(db.engine_stats().reserved, 0, "no version is being built any more");
    fs.set_capacity(u64::MAX);
    db.resume().unwrap();
    sound(&db);
    assert!(db.copy(b"hash", b"to", true).unwrap());
    assert_eq!(shown(&db, b"to"), before);
    db.compact().unwrap();
    assert_eq!(entries(&db)[DATA.index()], 12_000, "nothing of the failed ones is left");
    sound(&db);
}

/// Rows that were spilled are newer than the transaction's read point.
#[test]
fn later_commands_of_the_same_transaction_find_what_was_spilled() {
    let db = narrow(&MemFs::untracked(), &options());
    fill(&db, 300);
    db.write(&[b"set", b"to", b"again", b"zset", b"z"], |tx| {
        assert_eq!(tx.sunionstore(b"to", &[b"set"])?, 300);
        assert!(tx.sismember(b"to", name(0).as_bytes())?);
        assert!(tx.sismember(b"to", name(299).as_bytes())?);
        assert_eq!(tx.smembers(b"to")?.len(), 300);
        assert_eq!(tx.srem(b"to", &[name(0).as_bytes(), b"none"])?, 1);
        assert_eq!(tx.sadd(b"to", &[name(0).as_bytes(), name(1).as_bytes(), b"new"])?, 2);
        assert!(tx.copy(b"to", b"again", false)?);
        assert_eq!(tx.scard(b"again")?, 301);
        tx.rename(b"zset", b"z")?;
        assert_eq!(tx.zrank(b"z", name(7).as_bytes())?, Some(7));
        Ok(())
    })
    .unwrap();
    assert!(db.store().spills().count() > 10);
    assert_eq!(shown(&db, b"again"), shown(&db, b"to"));
    assert_eq!((db.scard(b"to").unwrap(), db.zcard(b"z").unwrap()), (301, 300));
    sound(&db);
}

#[test]
fn a_transaction_that_is_given_up_leaves_garbage_and_no_trace() {
    let db = narrow(&MemFs::untracked(), &options());
    fill(&db, 300);
    let given_up = db.write(&[b"hash", b"to"], |tx| {
        tx.copy(b"hash", b"to", false)?;
        tx.rename(b"none", b"to")
    });
    assert_eq!(given_up.unwrap_err().kind(), ErrorKind::NoSuchKey);
    assert_eq!(db.exists(&[b"to"]).unwrap(), 0);
    db.compact().unwrap();
    assert_eq!(entries(&db), [5, 1500, 300]);
    sound(&db);
}

/// Rows in a space that no database stands for yet would be dead to a compaction.
#[test]
fn a_copy_into_a_database_that_the_same_transaction_emptied_survives_a_compaction() {
    let fs = MemFs::untracked();
    let db = narrow(&fs, &options());
    fill(&db, 300);
    let txn = db.begin().unwrap();
    txn.flushdb().unwrap();
    let names: Vec<String> = (0..300).map(name).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    txn.sadd(b"few", &names).unwrap();
    txn.sunionstore(b"many", &[b"few"]).unwrap();
    txn.rename(b"many", b"all").unwrap();
    db.compact().unwrap();
    assert_eq!(shown(&txn, b"all").len(), 300);
    txn.commit().unwrap();
    db.compact().unwrap();
    assert_eq!(shown(&db, b"all").len(), 300);
    sound(&db);
}

#[test]
fn a_transaction_sees_what_it_has_spilled_and_what_it_takes_back_leaves_no_trace() {
    let fs = MemFs::untracked();
    let db = narrow(&fs, &options());
    fill(&db, 300);
    let before = shown(&db, b"hash");
    let txn = db.begin().unwrap();
    txn.copy(b"hash", b"copy", false).unwrap();
    assert!(db.store().spills().count() > 0, "the copy was too small to matter");
    txn.hdel(b"copy", &[name(7).as_bytes()]).unwrap();
    db.compact().unwrap();
    let gone = |(field, _): &(Vec<u8>, Vec<u8>)| field != name(7).as_bytes();
    let expected: Vec<_> = before.iter().filter(|pair| gone(pair)).cloned().collect();
    assert_eq!(shown(&txn, b"copy"), expected);
    assert_eq!(shown(&db, b"copy"), []);
    txn.rollback().unwrap();
    db.compact().unwrap();
    assert_eq!(shown(&db, b"copy"), []);
    let txn = db.begin().unwrap();
    txn.copy(b"hash", b"copy", false).unwrap();
    txn.commit().unwrap();
    db.compact().unwrap();
    assert_eq!(shown(&db, b"copy"), before);
    sound(&db);
}
