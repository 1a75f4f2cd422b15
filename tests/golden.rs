//! Stores of every released format, as files of the repository: each opens, holds what was written
//! to it, and goes on as a store of this build.
//!
//! `LSMKV_MAKE_GOLDEN=DIR cargo test --test golden make` writes the stores of this build to `DIR`.
//! A store in tests/testdata/stores never changes: a new format gets new directories.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

use std::path::{Path, PathBuf};

use lsmkv::{Compression, Db, Options, Reply};

#[path = "golden/today.rs"]
mod today;

/// The stores, and whether they were closed. The others are what a killed process leaves.
/// Those of format 2 are from before rows were counted.
const STORES: &[(&str, bool)] = &[
    ("format-1-killed", false),
    ("format-1-closed", true),
    ("format-2-killed", false),
    ("format-2-closed", true),
];

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/stores").join(name)
}

/// Small tables and log segments, so that a small store has several of each.
fn options() -> Options {
    Options {
        write_buffer: 64 << 10,
        table_bytes: 16 << 10,
        log_segment_bytes: 16 << 10,
        memory_budget: 4 << 20,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    }
}

fn run(db: &Db, command: &str) -> Reply {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let reply = db.command(&words).unwrap();
    assert!(!matches!(reply, Reply::Error(_)), "{command}: {reply:?}");
    reply
}

/// A reply as text: strings as they are, collections in brackets.
fn ask(db: &Db, command: &str) -> String {
    fn text(reply: &Reply) -> String {
        match reply {
            Reply::Nil => "nil".into(),
            Reply::Int(n) => n.to_string(),
            Reply::Double(x) => x.to_string(),
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Status(status) => status.to_string(),
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
                format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" "))
            }
            other => format!("{other:?}"),
        }
    }
    text(&run(db, command))
}

/// The parts in which a store is written: the first is compacted, the second flushed.
const FIRST: u32 = 0;
const SECOND: u32 = 1;
/// The last part is only in the log, unless the store was closed.
const LAST: u32 = 2;

/// The numbers of the strings that a part writes.
fn strings(part: u32) -> std::ops::Range<u32> {
    part * 200..part * 200 + 300
}

fn write(db: &Db, part: u32) {
    for i in strings(part) {
        run(db, &format!("SET string:{i} part-{part}-{}", "x".repeat(i as usize % 40)));
    }
    // Every third string is deleted by the part after the one that wrote it.
    for i in (0..part * 200).filter(|i| i % 3 == 0) {
        run(db, &format!("DEL string:{i}"));
    }
    run(db, &format!("SET far:{part} kept PXAT {}", 4_102_444_800_000u64 + u64::from(part)));
    run(db, &format!("SET near:{part} gone PX 1"));
    // Small collections are in their records, large ones in rows.
    for (name, count) in [("small", 10), ("large", 400)] {
        for i in (0..count).filter(|i| i % 3 == part) {
            run(db, &format!("HSET {name}:hash field:{i} value:{i}:{part}"));
            run(db, &format!("SADD {name}:set member:{i}"));
            run(db, &format!("ZADD {name}:zset {} member:{i}", f64::from(i) / 2.0 - 30.0));
            run(db, &format!("RPUSH {name}:list element:{part}:{i}"));
        }
    }
    if part > FIRST {
        run(db, "LPOP large:list 20");
        run(db, "HDEL large:hash field:0 field:3 field:6");
        run(db, "ZADD large:zset -inf member:1");
        run(db, "SREM large:set member:0");
    }
    run(db, &format!("SETBIT bits {} 1", part * 1000 + 7));
    run(db, "INCRBYFLOAT float 0.1");
    let other = db.select(5).unwrap();
    run(&other, &format!("SET only-here {part}"));
    // Rows of a deleted collection, of a database emptied, and of one collection over another.
    for i in 0..300 {
        run(db, &format!("HSET replaced:{} field:{i} {part}", part % 2));
        run(&db.select(9).unwrap(), &format!("SADD emptied {i}"));
    }
    run(db, &format!("DEL replaced:{}", part % 2));
    run(&db.select(9).unwrap(), "FLUSHDB");
}

fn check(db: &Db) {
    for i in 0..strings(LAST).end {
        let part = (i / 200).min(LAST);
        let deleted = i < LAST * 200 && i % 3 == 0;
        let value = format!("part-{part}-{}", "x".repeat(i as usize % 40));
        let expected = if deleted { "nil" } else { &value };
        assert_eq!(ask(db, &format!("GET string:{i}")), expected, "string:{i}");
    }
    for part in [FIRST, SECOND, LAST] {
        let expires = 4_102_444_800_000u64 + u64::from(part);
        assert_eq!(ask(db, &format!("PEXPIRETIME far:{part}")), expires.to_string());
        assert_eq!(ask(db, &format!("EXISTS near:{part}")), "0");
        assert_eq!(ask(db, &format!("EXISTS replaced:{part}")), "0");
    }
    for (name, count) in [("small", 10u32), ("large", 400)] {
        let gone = |i: u32| name == "large" && [0, 3, 6].contains(&i);
        for i in 0..count {
            let field = format!("value:{i}:{}", i % 3);
            let expected = if gone(i) { "nil" } else { &field };
            assert_eq!(ask(db, &format!("HGET {name}:hash field:{i}")), expected);
            let lowest = name == "large" && i == 1;
            let score =
                if lowest { "-inf".into() } else { (f64::from(i) / 2.0 - 30.0).to_string() };
            assert_eq!(ask(db, &format!("ZSCORE {name}:zset member:{i}")), score);
            let member = i64::from(!(name == "large" && i == 0));
            assert_eq!(ask(db, &format!("SISMEMBER {name}:set member:{i}")), member.to_string());
        }
        let hash = (0..count).filter(|&i| !gone(i)).count();
        assert_eq!(ask(db, &format!("HLEN {name}:hash")), hash.to_string());
        assert_eq!(ask(db, &format!("ZCARD {name}:zset")), count.to_string());
        let set = count - u32::from(name == "large");
        assert_eq!(ask(db, &format!("SCARD {name}:set")), set.to_string());
        let pushed = (0..3).flat_map(|part| {
            (0..count).filter(move |i| i % 3 == part).map(move |i| format!("element:{part}:{i}"))
        });
        let popped = if name == "large" { 40 } else { 0 };
        let elements: Vec<_> = pushed.skip(popped).collect();
        let expected = format!("[{}]", elements.join(" "));
        assert_eq!(ask(db, &format!("LRANGE {name}:list 0 -1")), expected);
    }
    assert_eq!(ask(db, "ZRANGE large:zset 0 2"), "[member:1 member:0 member:2]");
    check_ranks(db);
    assert_eq!(ask(db, "BITCOUNT bits"), "3");
    assert_eq!(ask(db, "GET float"), "0.3");
    assert_eq!(ask(&db.select(5).unwrap(), "GET only-here"), LAST.to_string());
    assert_eq!(ask(&db.select(9).unwrap(), "DBSIZE"), "0");
    let strings = (0..strings(LAST).end).filter(|i| *i >= LAST * 200 || i % 3 != 0).count();
    // The strings, those that expire late, eight collections, bits and float.
    assert_eq!(ask(db, "DBSIZE"), (strings + 3 + 8 + 2).to_string());
    assert_eq!(db.check().unwrap(), [""; 0]);
}

/// Positions in the large sorted set and hash, and every member drawn at random.
fn check_ranks(db: &Db) {
    // Member 1 is the first, and the others follow in the order of their numbers.
    let order: Vec<u32> = [1, 0].into_iter().chain(2..400).collect();
    for (rank, i) in order.iter().enumerate() {
        assert_eq!(ask(db, &format!("ZRANK large:zset member:{i}")), rank.to_string());
    }
    assert_eq!(ask(db, "ZREVRANK large:zset member:0"), "398");
    for first in (0..398).step_by(7) {
        let members = [order[first], order[first + 1]].map(|i| format!("member:{i}"));
        let expected = format!("[{}]", members.join(" "));
        assert_eq!(ask(db, &format!("ZRANGE large:zset {first} {}", first + 1)), expected);
        let by_score = format!("ZRANGE large:zset -inf +inf BYSCORE LIMIT {first} 2");
        assert_eq!(ask(db, &by_score), expected);
        // Scores are half the number less 30.
        let above = format!("ZCOUNT large:zset ({} +inf", f64::from(order[first]) / 2.0 - 30.0);
        let expected = if first == 0 { 398 } else { 399 - first };
        assert_eq!(ask(db, &above), expected.to_string(), "{above}");
    }
    for command in ["ZRANDMEMBER large:zset", "SRANDMEMBER large:set", "HRANDFIELD large:hash"] {
        let drawn = ask(db, &format!("{command} 100"));
        let drawn: std::collections::HashSet<_> = drawn.split(' ').collect();
        assert_eq!(drawn.len(), 100, "{command}");
    }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn stores_of_every_format_open_hold_what_was_written_and_go_on() {
    for &(name, _) in STORES {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join(name);
        copy_files(&directory(name), &dir);
        let read_only = Options { read_only: true, ..options() };
        check(&Db::open(&dir, read_only).unwrap());
        check(&Db::open(&dir, options()).unwrap());
        let db = Db::open(&dir, options()).unwrap();
        check(&db);
        run(&db, "ZADD large:zset 7 member:7");
        run(&db, "ZADD large:zset -26.5 member:7");
        run(&db, "SET string:1 other");
        run(&db, &format!("SET string:1 part-0-{}", "x"));
        // Rows that this build has written are counted, those beside them are not.
        for key in ["large:zset", "small:hash"] {
            run(&db, &format!("RENAME {key} renamed"));
            run(&db, &format!("RENAME renamed {key}"));
        }
        check(&db);
        db.flush().unwrap();
        db.close().unwrap();
        let db = Db::open(&dir, options()).unwrap();
        check(&db);
        // A compaction rewrites the others.
        db.compact().unwrap();
        check(&db);
        db.close().unwrap();
        check(&Db::open(&dir, options()).unwrap());
    }
}

/// What a store of this build looks like on disk is still what the golden stores were.
#[test]
fn make_golden_stores() {
    let scratch = tempfile::tempdir().unwrap();
    for &(name, closed) in STORES {
        let compression = if closed { Compression::Lz4 } else { Compression::None };
        let dir = scratch.path().join(name);
        let db = Db::open(&dir, Options { compression, ..options() }).unwrap();
        write(&db, FIRST);
        db.compact().unwrap();
        write(&db, SECOND);
        db.flush().unwrap();
        write(&db, LAST);
        db.sync().unwrap();
        check(&db);
        if closed {
            db.close().unwrap();
        }
        if let Some(target) = std::env::var_os("LSMKV_MAKE_GOLDEN") {
            copy_files(&dir, &Path::new(&target).join(name));
        }
    }
}

/// A store of format 2 from before strings had chunks: its large strings are in their records.
const WHOLE_STRINGS: &str = "format-2-whole-strings";

/// The bytes of a large string, which compress well and differ from place to place.
fn large(len: usize) -> Vec<u8> {
    (0..len).map(|at| if at % 64 == 0 { (at / 64 % 251) as u8 } else { b'a' }).collect()
}

/// The length of the bitmap `large:bits`.
const BITMAP_BYTES: usize = 300_000;

fn write_whole_strings(db: &Db) {
    for len in [65_536, 65_537, 200_000] {
        db.set(format!("large:{len}").as_bytes(), &large(len)).unwrap();
    }
    db.setbit(b"large:bits", 7, true).unwrap();
    db.setbit(b"large:bits", BITMAP_BYTES as u64 * 8 - 1, true).unwrap();
    run(db, "PEXPIREAT large:200000 4102444800000");
}

fn check_whole_strings(db: &Db) {
    for len in [65_536, 65_537, 200_000] {
        let key = format!("large:{len}").into_bytes();
        assert_eq!(db.strlen(&key).unwrap(), len as i64);
        assert!(db.get(&key).unwrap().unwrap() == large(len), "{len}");
        assert_eq!(db.getrange(&key, 64, 130).unwrap(), large(len)[64..=130]);
    }
    assert_eq!(ask(db, "PEXPIRETIME large:200000"), "4102444800000");
    assert_eq!(ask(db, "STRLEN large:bits"), BITMAP_BYTES.to_string());
    assert_eq!(ask(db, "BITCOUNT large:bits"), "2");
    assert_eq!(ask(db, "BITPOS large:bits 1 1"), (BITMAP_BYTES * 8 - 1).to_string());
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn large_strings_in_their_records_answer_alike_and_change_as_others_do() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join(WHOLE_STRINGS);
    copy_files(&directory(WHOLE_STRINGS), &dir);
    check_whole_strings(&Db::open(&dir, Options { read_only: true, ..options() }).unwrap());
    let db = Db::open(&dir, options()).unwrap();
    check_whole_strings(&db);
    // Each change goes back, so that every reader finds what was written first.
    db.setbit(b"large:bits", 1_000_000, true).unwrap();
    db.setbit(b"large:bits", 1_000_000, false).unwrap();
    db.setrange(b"large:200000", 100_000, b"other").unwrap();
    db.setrange(b"large:200000", 100_000, &large(200_000)[100_000..100_005]).unwrap();
    db.rename(b"large:65537", b"renamed").unwrap();
    db.rename(b"renamed", b"large:65537").unwrap();
    check_whole_strings(&db);
    db.compact().unwrap();
    check_whole_strings(&db);
    db.close().unwrap();
    check_whole_strings(&Db::open(&dir, options()).unwrap());
    let fresh = Db::open(":memory:", options()).unwrap();
    write_whole_strings(&fresh);
    check_whole_strings(&fresh);
}
