//! Strings in chunks: long ones, sparse ones and some with an expiry, through dumps, real servers and
//! their dump files.

use std::fmt::Write as _;

use lsmkv::{Db, Options};

use super::redis::Redis;
use super::support::{Scratch, command, ok};

const MIB: usize = 1 << 20;

/// Bytes that differ from place to place, and that no compression shortens much.
fn varied(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| byte()).collect()
}

/// A store with strings in chunks of 16 bytes, and in those of the default size.
fn fill(dir: &str) {
    let tiny = Options { inline_max_bytes: 16, chunk_bytes: 16, ..Options::default() };
    let db = Db::open(dir, tiny).unwrap();
    db.set(b"tiny chunks", &varied(MIB + 70_000)).unwrap();
    command(&db, &[b"SETBIT", b"tiny sparse", b"40000000", b"1"]);
    command(&db, &[b"SETBIT", b"tiny sparse", b"7", b"1"]);
    db.close().unwrap();
    let db = Db::open(dir, Options::default()).unwrap();
    db.set(b"of 8 MiB", &varied(8 * MIB)).unwrap();
    db.set(b"a part and a byte", &varied(MIB + 1)).unwrap();
    db.set(b"a part", &varied(MIB)).unwrap();
    // A letter lies across the end of a part.
    db.set(b"text", ["x", &"é".repeat(MIB)].concat().as_bytes()).unwrap();
    db.set(b"compressed", &b"abcdefgh".repeat(MIB / 4)).unwrap();
    command(&db, &[b"SETBIT", b"far", b"67108864", b"1"]);
    // Parts of zeros at the beginning and at the end.
    db.setbit(b"zeros", (5 * MIB as u64) * 8, true).unwrap();
    command(&db, &[b"SETBIT", b"zeros", (8 * MIB * 7 + 80).to_string().as_bytes(), b"0"]);
    command(&db, &[b"SETBIT", b"all zeros", (8 * MIB * 3).to_string().as_bytes(), b"0"]);
    for key in [&b"of 8 MiB"[..], b"far", b"tiny chunks"] {
        command(&db, &[b"PEXPIREAT", key, b"4102444800123"]);
    }
    db.select(4).unwrap().set(b"elsewhere", &varied(3 * MIB)).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
}

/// The keys of a store with their expiry and value. A store must be sound.
fn strings(dir: &str) -> Vec<(u32, Vec<u8>, i64, Vec<u8>)> {
    let db = Db::open(dir, Options::default()).unwrap();
    assert_eq!(db.check().unwrap(), [""; 0]);
    let mut found = Vec::new();
    for number in [0, 4] {
        let db = db.select(number).unwrap();
        for key in db.iter(lsmkv::types::KeyRange::default()).unwrap() {
            let key = key.unwrap().key;
            let (expiry, value) = (db.pexpiretime(&key).unwrap(), db.get(&key).unwrap().unwrap());
            found.push((number, key.to_vec(), expiry, value.to_vec()));
        }
    }
    found
}

/// Both are too long to print.
fn assert_equal(dir: &str, expected: &[(u32, Vec<u8>, i64, Vec<u8>)]) {
    let found = strings(dir);
    let shown = |all: &[(u32, Vec<u8>, i64, Vec<u8>)]| {
        let mut text = String::new();
        for (database, key, expiry, value) in all {
            let len = value.len();
            writeln!(text, "{database} {} {expiry}: {len} bytes", key.escape_ascii()).unwrap();
        }
        text
    };
    assert_eq!(shown(&found), shown(expected));
    let differing = found.iter().zip(expected).find(|(found, expected)| found.3 != expected.3);
    let differing = differing.map(|(found, _)| found.1.escape_ascii().to_string());
    assert_eq!(differing, None, "{dir}");
}

/// The length of the longest argument in a dump of commands.
fn longest_word(dump: &[u8]) -> usize {
    let lines = dump.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"$"));
    let lengths = lines.filter_map(|line| std::str::from_utf8(line).ok()?.trim_end().parse().ok());
    lengths.max().unwrap()
}

#[test]
fn long_and_sparse_strings_come_through_dumps_of_either_form() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&store);
    let expected = strings(&store);
    assert_eq!(expected.len(), 11);
    for format in ["resp", "json"] {
        let (file, copy, tiny) = (scratch.arg("file"), scratch.arg(format), scratch.arg("tiny"));
        ok(&["dump", &store, "--format", format, "-o", &file, "--quiet"]);
        if format == "resp" {
            let dumped = std::fs::read(&file).unwrap();
            assert_eq!(longest_word(&dumped), MIB);
            // What is zeros is left out.
            assert!(dumped.len() < 24 * MIB, "{} bytes", dumped.len());
        }
        ok(&["load", &copy, "-i", &file, "--quiet"]);
        assert_equal(&copy, &expected);
        // Into chunks of another size.
        let options = ["--option", "inline_max_bytes=1024", "--option", "chunk_bytes=1024"];
        ok(&[&["load", &tiny, "-i", &file, "--quiet"][..], &options].concat());
        assert_equal(&tiny, &expected);
        std::fs::remove_dir_all(&tiny).unwrap();
    }
}

#[test]
fn long_and_sparse_strings_come_through_real_servers_and_their_dump_files() {
    let scratch = Scratch::new();
    let Some(redis) = Redis::start(&scratch, "a", "tools::long_strings") else { return };
    let store = scratch.arg("store");
    fill(&store);
    let expected = strings(&store);
    let exported = ok(&["export", &store, "--to", &redis.url(), "--quiet"]);
    assert_eq!(exported, "11 keys, 11 values and members\n");
    let imported = scratch.arg("imported");
    ok(&["import", &imported, "--from", &redis.url(), "--quiet"]);
    assert_equal(&imported, &expected);
    for compression in ["yes", "no"] {
        redis.text(&["CONFIG", "SET", "rdbcompression", compression]);
        redis.text(&["SAVE"]);
        let (copy, file) = (scratch.arg(compression), redis.dir.join("dump.rdb"));
        ok(&["import", &copy, "--rdb", file.to_str().unwrap(), "--quiet"]);
        assert_equal(&copy, &expected);
    }
    let dump = ok_bytes(&["dump", &store, "--replace", "--quiet"]);
    redis.feed(&dump, true);
    let again = scratch.arg("again");
    ok(&["import", &again, "--from", &redis.url(), "--quiet"]);
    assert_equal(&again, &expected);
}

/// The output of a run as bytes.
fn ok_bytes(args: &[&str]) -> Vec<u8> {
    let output = super::support::lsmkv(args).output().unwrap();
    assert!(output.status.success());
    output.stdout
}
