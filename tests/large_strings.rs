//! What commands on large strings cost, counted in bytes written and blocks read: the chunks that
//! they touch, not the string.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::{FaultFs, MemFs};
use lsmkv::io::clock::RealClock;
use lsmkv::types::{ExpireIf, KeyRange};
use lsmkv::{Db, Options, Type};

const CHUNK: u64 = 8 << 10;
/// The most bytes that records, keys and frames add to what a change writes.
const FRAME: u64 = 300;

fn open() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), Options::default()).unwrap();
    (dir, db)
}

/// The bytes that `work` adds to the log.
fn logged<T>(db: &Db, work: impl FnOnce() -> T) -> u64 {
    let before = db.engine_stats().log_bytes;
    work();
    db.engine_stats().log_bytes - before
}

/// The blocks of the meta and the data tree that `work` reads from files.
fn blocks<T>(db: &Db, work: impl FnOnce() -> T) -> [u64; 2] {
    let count = || {
        let stats = db.engine_stats();
        [stats.trees[0].block_reads, stats.trees[1].block_reads]
    };
    let before = count();
    work();
    let after = count();
    [after[0] - before[0], after[1] - before[1]]
}

fn filled(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 % 250 + 1) as u8).collect()
}

#[test]
fn a_change_writes_the_chunk_that_it_touches_however_long_the_string_is() {
    let (_dir, db) = open();
    for len in [100_000, 1 << 20, 16 << 20] {
        db.set(b"s", &filled(len)).unwrap();
        let middle = len as u64 / 2;
        let setbit = logged(&db, || db.setbit(b"s", middle * 8 + 3, true).unwrap());
        assert!(setbit < CHUNK + FRAME, "SETBIT of {len}: {setbit}");
        let setrange = logged(&db, || db.setrange(b"s", middle as i64, b"other").unwrap());
        assert!(setrange < CHUNK + FRAME, "SETRANGE of {len}: {setrange}");
        let append = logged(&db, || db.append(b"s", &[b'x'; 1000]).unwrap());
        assert!(append < CHUNK + 1000 + 2 * FRAME, "APPEND to {len}: {append}");
        let expire = logged(&db, || db.expire(b"s", 1000, ExpireIf::ALWAYS).unwrap());
        assert!(expire < FRAME, "EXPIRE of {len}: {expire}");
        let persist = logged(&db, || db.persist(b"s").unwrap());
        assert!(persist < FRAME, "PERSIST of {len}: {persist}");
        let del = logged(&db, || db.del(&[b"s"]).unwrap());
        assert!(del < FRAME, "DEL of {len}: {del}");
    }
}

#[test]
fn a_bit_far_away_costs_a_chunk() {
    let (_dir, db) = open();
    let first = logged(&db, || db.setbit(b"b", (1 << 32) - 1, true).unwrap());
    assert!(first < CHUNK + FRAME, "{first}");
    assert_eq!(db.strlen(b"b").unwrap(), 512 << 20);
    assert!(db.engine_stats().memtable_bytes < 1 << 20);
}

#[test]
fn a_question_reads_the_record_and_the_chunks_it_is_about() {
    let (dir, db) = open();
    let value = filled(16 << 20);
    db.set(b"s", &value).unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    // Nothing is in the cache.
    let db = Db::open(dir.path().join("db"), Options::default()).unwrap();
    let [records, chunks] = blocks(&db, || {
        assert_eq!(db.exists(&[b"s"]).unwrap(), 1);
        assert_eq!(db.pttl(b"s").unwrap(), -1);
        assert_eq!(db.kind(b"s").unwrap(), Some(Type::String));
        assert_eq!(db.strlen(b"s").unwrap(), 16 << 20);
        assert_eq!(db.dbsize().unwrap(), 1);
        let keys = db.iter(KeyRange::default()).unwrap();
        assert_eq!(keys.map(|entry| entry.unwrap().key).collect::<Vec<_>>(), [&b"s"[..]]);
    });
    assert!(records <= 4 && chunks == 0, "{records} {chunks}");
    let [_, chunks] = blocks(&db, || db.getbit(b"s", 1 << 26).unwrap());
    assert!(chunks <= 1, "{chunks}");
    let [_, chunks] = blocks(&db, || {
        let range = db.getrange(b"s", 5 << 20, (5 << 20) + 9).unwrap();
        assert_eq!(range, value[5 << 20..(5 << 20) + 10]);
    });
    assert!(chunks <= 1, "{chunks}");
    let [_, chunks] = blocks(&db, || assert_eq!(db.get(b"s").unwrap().unwrap(), value));
    assert!((2000..2100).contains(&chunks), "{chunks} for 2048 chunks");
}

/// The first look after a reopen opened the table that has the record, and read its footer,
/// properties, index, filter and block one by one.
#[test]
fn the_first_question_after_a_reopen_finds_a_small_table_in_memory() {
    let fs = FaultFs::new(Arc::new(MemFs::new()));
    let open = || {
        let options = Options { ttl_cleaner_interval_s: 0, ..Options::default() };
        Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, Arc::new(RealClock)).unwrap()
    };
    let db = open();
    db.set(b"s", &filled(1 << 20)).unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    let questions: [fn(&Db); 4] = [
        |db| assert_eq!(db.exists(&[b"s"]).unwrap(), 1),
        |db| assert_eq!(db.pttl(b"s").unwrap(), -1),
        |db| assert_eq!(db.kind(b"s").unwrap(), Some(Type::String)),
        |db| assert_eq!(db.strlen(b"s").unwrap(), 1 << 20),
    ];
    for question in questions {
        let db = open();
        fs.reset();
        question(&db);
        let calls: Vec<String> = (1..=fs.calls()).map(|call| fs.describe(call)).collect();
        assert!(!calls.iter().any(|call| call.contains(".table")), "{calls:?}");
        db.close().unwrap();
    }
}

/// LCS read both values before it compared their lengths with its limit, and made a row of the table
/// for a string that is compared with none.
#[test]
fn lcs_of_strings_that_are_too_long_reads_none_of_them() {
    let (_dir, db) = open();
    for key in [b"a", b"b"] {
        db.set(key, &filled(8 << 20)).unwrap();
    }
    db.compact().unwrap();
    let [_, chunks] = blocks(&db, || {
        let error = db.lcs(b"a", b"b").unwrap_err();
        assert!(error.message().contains("Insufficient memory"), "{error}");
        assert_eq!(db.lcs(b"a", b"none").unwrap().text, b""[..]);
    });
    assert_eq!(chunks, 0);
}

/// A large value goes to the store in commits of a megabyte, and comes back in one copy.
#[test]
fn a_value_beyond_the_memory_budget_is_written_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { memory_budget: 8 << 20, ..Options::default() };
    let db = Db::open(dir.path().join("db"), options).unwrap();
    let value = filled(40 << 20);
    db.set(b"s", &value).unwrap();
    let stats = db.engine_stats();
    assert!(stats.memtable_bytes + stats.cache_bytes < 8 << 20, "{stats:?}");
    assert!(stats.commits > 40);
    assert!(db.get(b"s").unwrap().unwrap() == value);
    let stats = db.engine_stats();
    assert!(stats.memtable_bytes + stats.cache_bytes < 8 << 20, "{stats:?}");
}
