//! The expected replies are those of redis-server 7.0.15.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::encoding::meta::{Body, Header, encode_collection};
use crate::engine::MemFs;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn open_at(now_ms: u64) -> (Db, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(now_ms));
    let fs = Arc::new(MemFs::untracked());
    let db = Db::open_on(fs, Path::new("/db"), Options::default(), clock.clone()).unwrap();
    (db, clock)
}

/// A key of another type that expires then.
fn put_list(db: &Db, key: &[u8], expire_ms: u64) {
    let body = Body::Span { version: 1, head: 5, tail: 6 };
    let record = encode_collection(Header { kind: Type::List, expire_ms }, &body);
    db.write(&[key], |tx| tx.put_record(key, record)).unwrap();
}

fn expiry(db: &Db, key: &[u8]) -> Option<u64> {
    db.read(|tx| Ok(tx.record(key)?.map(|record| record.header.expire_ms))).unwrap()
}

/// A reply as text; its type belongs to the layer above.
fn run(db: &Db, line: &str) -> String {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    format!("{:?}", db.command(&words).unwrap())
}

fn int(number: i64) -> String {
    format!("Int({number})")
}

fn bulk(text: &str) -> String {
    format!("Bulk(b{text:?})")
}

fn error(text: &str) -> String {
    format!("Error({text:?})")
}

const OK: &str = "Status(\"OK\")";
const NIL: &str = "Nil";
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";

#[test]
fn options_of_set_that_exclude_each_other_are_a_syntax_error() {
    let db = open();
    for options in [
        "NX XX",
        "EX 10 PX 10",
        "KEEPTTL EX 10",
        "EX 10 KEEPTTL",
        "EX",
        "PERSIST",
        "FOO",
        "EX abc FOO",
        "EX 0 NX XX",
        "EX 10 EXAT 10",
    ] {
        let reply = run(&db, &format!("SET k v {options}"));
        assert_eq!(reply, error("ERR syntax error"), "{options}");
    }
    assert_eq!(run(&db, "EXISTS k"), int(0));
    for options in ["NX nx", "EX 10 ex 20", "KEEPTTL KEEPTTL XX", "GET GET"] {
        assert!(!run(&db, &format!("SET k v {options}")).starts_with("Error"), "{options}");
    }
}

#[test]
fn an_expiry_must_be_positive_and_fit() {
    let db = open();
    let invalid = error("ERR invalid expire time in 'set' command");
    for options in [
        "EX 0",
        "PX -1",
        "EXAT 0",
        "PXAT -5",
        "EX 9223372036854775807",
        "EX 9223372036854775",
        "PX 9223372036854775807",
        "EXAT 9223372036854775807",
        "XX EX 0",
    ] {
        assert_eq!(run(&db, &format!("SET k v {options}")), invalid, "{options}");
    }
    assert_eq!(run(&db, "SET k v EX abc"), error(NOT_AN_INTEGER));
    assert_eq!(run(&db, "SET k v PXAT 9223372036854775807"), OK);
    assert_eq!(expiry(&db, b"k"), Some(i64::MAX.cast_unsigned()));
    for command in ["setex", "psetex"] {
        let invalid = format!("ERR invalid expire time in '{command}' command");
        assert_eq!(run(&db, &format!("{command} k 0 v")), error(&invalid));
    }
}

#[test]
fn set_forgets_an_expiry_and_keepttl_keeps_it() {
    let (db, clock) = open_at(1_000);
    run(&db, "SET k v EX 10");
    assert_eq!(expiry(&db, b"k"), Some(11_000));
    run(&db, "SET k w KEEPTTL");
    assert_eq!((db.get(b"k").unwrap().unwrap(), expiry(&db, b"k")), ("w".into(), Some(11_000)));
    run(&db, "SET k w");
    assert_eq!(expiry(&db, b"k"), Some(0));
    db.psetex(b"k", 5, b"v").unwrap();
    clock.advance(5);
    assert_eq!(db.get(b"k").unwrap(), None);
    run(&db, "SET k w KEEPTTL");
    assert_eq!(expiry(&db, b"k"), Some(0), "a recreated key inherits nothing");
    db.setex(b"k", 2, b"v").unwrap();
    assert_eq!(expiry(&db, b"k"), Some(3_005));
}

#[test]
fn an_expiry_in_the_past_removes_the_key() {
    let (db, _) = open_at(1_000_000);
    db.set(b"k", b"v").unwrap();
    assert_eq!(run(&db, "SET k w EXAT 1 GET"), bulk("v"));
    assert_eq!(run(&db, "EXISTS k"), int(0));
    assert_eq!(run(&db, "SET k w PXAT 1000000"), OK);
    assert_eq!(run(&db, "EXISTS k"), int(0));
    db.set(b"k", b"v").unwrap();
    assert_eq!(run(&db, "GETEX k PXAT 1"), bulk("v"));
    assert_eq!(run(&db, "EXISTS k"), int(0));
}

#[test]
fn set_writes_only_under_its_condition() {
    let db = open();
    assert_eq!(run(&db, "SET k a XX"), NIL);
    assert_eq!(run(&db, "SET k a NX"), OK);
    assert_eq!(run(&db, "SET k b NX"), NIL);
    assert_eq!(run(&db, "SET k b NX GET"), bulk("a"));
    assert_eq!(run(&db, "SET k c XX GET"), bulk("a"));
    assert_eq!(run(&db, "SET l a GET"), NIL);
    assert_eq!(run(&db, "GET k"), bulk("c"));
    assert!(!db.setnx(b"k", b"d").unwrap());
    put_list(&db, b"list", 0);
    assert_eq!(run(&db, "SET list v GET"), error(WRONG_TYPE));
    assert_eq!(run(&db, "SET list v NX"), NIL);
    assert_eq!(run(&db, "SET list v XX"), OK);
    assert_eq!(run(&db, "GET list"), bulk("v"));
}

#[test]
fn an_expired_key_of_another_type_is_missing_and_not_of_the_wrong_type() {
    let (db, clock) = open_at(100);
    put_list(&db, b"k", 200);
    assert_eq!(run(&db, "GET k"), error(WRONG_TYPE));
    assert_eq!(run(&db, "INCR k"), error(WRONG_TYPE));
    clock.set(200);
    assert_eq!(run(&db, "GET k"), NIL);
    assert_eq!(run(&db, "INCR k"), int(1));
    assert_eq!(expiry(&db, b"k"), Some(0));
}

#[test]
fn getex_checks_words_then_the_key_then_numbers() {
    let (db, _) = open_at(1_000);
    assert_eq!(run(&db, "GETEX none EX abc"), NIL);
    assert_eq!(run(&db, "GETEX none FOO"), error("ERR syntax error"));
    put_list(&db, b"list", 0);
    assert_eq!(run(&db, "GETEX list EX abc"), error(WRONG_TYPE));
    db.set(b"k", b"v").unwrap();
    assert_eq!(run(&db, "GETEX k EX 0"), error("ERR invalid expire time in 'getex' command"));
    assert_eq!(run(&db, "GETEX k EX abc"), error(NOT_AN_INTEGER));
    for options in ["PERSIST EX 10", "EX 10 PERSIST", "KEEPTTL", "NX", "EX 1 PX 1"] {
        assert_eq!(run(&db, &format!("GETEX k {options}")), error("ERR syntax error"), "{options}");
    }
    assert_eq!(run(&db, "GETEX k PX 50"), bulk("v"));
    assert_eq!(expiry(&db, b"k"), Some(1_050));
    assert_eq!(run(&db, "GETEX k"), bulk("v"));
    assert_eq!(expiry(&db, b"k"), Some(1_050));
    assert_eq!(run(&db, "GETEX k PERSIST"), bulk("v"));
    assert_eq!(expiry(&db, b"k"), Some(0));
}

#[test]
fn taking_and_swapping_values() {
    let db = open();
    db.set_with(
        b"k",
        b"a",
        SetOptions { expiry: SetExpiry::At(Expiry::Seconds(100)), ..SetOptions::default() },
    )
    .unwrap();
    assert_eq!(db.getset(b"k", b"b").unwrap(), Some("a".into()));
    assert_eq!(expiry(&db, b"k"), Some(0));
    assert_eq!(db.getdel(b"k").unwrap(), Some("b".into()));
    assert_eq!(db.getdel(b"k").unwrap(), None);
    put_list(&db, b"list", 0);
    assert_eq!(run(&db, "GETSET list v"), error(WRONG_TYPE));
    assert_eq!(run(&db, "GETDEL list"), error(WRONG_TYPE));
    assert_eq!(run(&db, "EXISTS list"), int(1));
}

#[test]
fn many_keys_are_set_at_once_or_not_at_all() {
    let db = open();
    assert_eq!(run(&db, "MSET a 1 b 2 a 3"), OK);
    assert!(!db.msetnx(&[(b"z", b"1"), (b"a", b"2")]).unwrap());
    assert!(db.msetnx(&[(b"z", b"1"), (b"z", b"2")]).unwrap());
    put_list(&db, b"list", 0);
    let values = db.mget(&[b"a", b"list", b"none", b"z", b"b"]).unwrap();
    assert_eq!(values, [Some("3".into()), None, None, Some("2".into()), Some("2".into())]);
    for (line, name) in [("MSET a", "mset"), ("MSET a 1 b", "mset"), ("MSETNX a 1 b", "msetnx")] {
        let text = format!("ERR wrong number of arguments for '{name}' command");
        assert_eq!(run(&db, line), error(&text), "{line}");
    }
}

#[test]
fn counters_are_exact_to_the_ends_of_their_range() {
    let db = open();
    let overflow = error("ERR increment or decrement would overflow");
    assert_eq!(db.incrby(b"k", i64::MAX).unwrap(), i64::MAX);
    assert_eq!(run(&db, "INCR k"), overflow);
    assert_eq!(db.decrby(b"k", i64::MAX).unwrap(), 0);
    assert_eq!(run(&db, "DECRBY k -9223372036854775808"), error("ERR decrement would overflow"));
    assert_eq!(db.incrby(b"k", i64::MIN).unwrap(), i64::MIN);
    assert_eq!(run(&db, "DECR k"), overflow);
    assert_eq!(db.get(b"k").unwrap(), Some("-9223372036854775808".into()));
    for value in ["", " 1", "1 ", "01", "+1", "1.0", "9223372036854775808"] {
        db.set(b"k", value.as_bytes()).unwrap();
        assert_eq!(run(&db, "INCR k"), error(NOT_AN_INTEGER), "{value:?}");
        assert_eq!(db.get(b"k").unwrap(), Some(value.into()));
    }
    put_list(&db, b"list", 0);
    assert_eq!(run(&db, "INCRBY list abc"), error(NOT_AN_INTEGER));
    assert_eq!(run(&db, "INCRBYFLOAT list abc"), error(WRONG_TYPE));
}

#[test]
fn changing_a_value_keeps_its_expiry() {
    let (db, clock) = open_at(1_000);
    db.setex(b"k", 10, b"5").unwrap();
    db.incr(b"k").unwrap();
    assert_eq!(db.incrbyfloat(b"k", b"1.5").unwrap(), "7.5");
    db.append(b"k", b"x").unwrap();
    db.setrange(b"k", 0, b"y").unwrap();
    db.setbit(b"k", 0, true).unwrap();
    assert_eq!(expiry(&db, b"k"), Some(11_000));
    clock.set(11_000);
    assert_eq!(db.append(b"k", b"x").unwrap(), 1);
    assert_eq!(expiry(&db, b"k"), Some(0));
}

#[test]
fn float_increments_refuse_what_is_not_finite() {
    let db = open();
    assert_eq!(run(&db, "INCRBYFLOAT k 0.1"), bulk("0.1"));
    assert_eq!(run(&db, "INCRBYFLOAT k 0.2"), bulk("0.3"));
    let text = "ERR increment would produce NaN or Infinity";
    assert_eq!(run(&db, "INCRBYFLOAT k inf"), error(text));
    assert_eq!(run(&db, "INCRBYFLOAT k x"), error("ERR value is not a valid float"));
    assert_eq!(run(&db, "GET k"), bulk("0.3"));
}

#[test]
fn indexes_of_parts_are_clamped() {
    let db = open();
    db.set(b"k", b"hello").unwrap();
    for (start, end, part) in [
        (-3, -1, "llo"),
        (-1, -3, ""),
        (-100, 2, "hel"),
        (2, 100, "llo"),
        (-100, -200, ""),
        (-100, -99, "h"),
        (5, 5, ""),
        (0, i64::MAX, "hello"),
        (i64::MIN, i64::MAX, "hello"),
        (i64::MAX, i64::MIN, ""),
    ] {
        assert_eq!(db.getrange(b"k", start, end).unwrap(), part, "{start} {end}");
        assert_eq!(db.substr(b"k", start, end).unwrap(), part, "{start} {end}");
    }
    assert_eq!(db.getrange(b"none", 0, -1).unwrap(), "");
}

#[test]
fn writing_beyond_the_end_fills_with_zeros_up_to_the_limit() {
    let db = open();
    assert_eq!(db.setrange(b"k", 2, b"ab").unwrap(), 4);
    assert_eq!(db.setrange(b"k", 1, b"c").unwrap(), 4);
    assert_eq!(db.get(b"k").unwrap(), Some(b"\0cab"[..].into()));
    assert_eq!(db.setrange(b"k", 100, b"").unwrap(), 4);
    assert_eq!(db.setrange(b"none", 100, b"").unwrap(), 0);
    assert_eq!(run(&db, "EXISTS none"), int(0));
    let too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    for offset in ["536870912", "9223372036854775807"] {
        assert_eq!(run(&db, &format!("SETRANGE k {offset} a")), error(too_long));
    }
    assert_eq!(run(&db, "SETRANGE k -1 a"), error("ERR offset is out of range"));
    put_list(&db, b"list", 0);
    assert_eq!(run(&db, "SETRANGE list -1 a"), error("ERR offset is out of range"));
    assert_eq!(run(&db, "SETRANGE list 536870912 a"), error(WRONG_TYPE));
}

#[test]
fn appending_respects_the_stores_limit() {
    let options = Options { max_value_bytes: 1024, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    assert_eq!(db.append(b"k", &[b'a'; 1024]).unwrap(), 1024);
    let too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(run(&db, "APPEND k b"), error(too_long));
    assert_eq!(db.append(b"k", b"").unwrap(), 1024);
    assert_eq!(db.append(b"empty", b"").unwrap(), 0);
    assert_eq!(run(&db, "EXISTS empty"), int(1));
}

#[test]
fn lcs_finds_the_subsequence_the_reference_finds() {
    let db = open();
    db.mset(&[(b"a", b"ohmytext"), (b"b", b"mynewtext")]).unwrap();
    let common = db.lcs(b"a", b"b").unwrap();
    assert_eq!(common.text, "mytext");
    let stretch = |a, b, len| LcsMatch { a, b, len };
    assert_eq!(common.matches, [stretch(4, 5, 4), stretch(2, 0, 2)]);
    assert_eq!(db.lcs(b"a", b"none").unwrap(), Lcs::default());
    assert_eq!(run(&db, "LCS a b LEN"), int(6));
    let found = "Array([Array([Int(4), Int(7)]), Array([Int(5), Int(8)]), Int(4)])";
    assert_eq!(
        run(&db, "LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN"),
        format!("Map([(Bulk(b\"matches\"), Array([{found}])), (Bulk(b\"len\"), Int(6))])")
    );
}

#[test]
fn lcs_refuses_other_types_two_kinds_of_answer_and_endless_work() {
    let db = open();
    put_list(&db, b"list", 0);
    let text = "ERR The specified keys must contain string values";
    assert_eq!(run(&db, "LCS a list FOO"), error(text));
    let text = "ERR If you want both the length and indexes, please just use IDX.";
    assert_eq!(run(&db, "LCS a b LEN IDX"), error(text));
    assert_eq!(run(&db, "LCS a b MINMATCHLEN"), error("ERR syntax error"));
    assert_eq!(run(&db, "LCS a b MINMATCHLEN x"), error(NOT_AN_INTEGER));
    db.set(b"a", &[b'a'; 12_000]).unwrap();
    let text = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
    assert_eq!(run(&db, "LCS a a"), error(text));
}

#[test]
fn every_change_is_there_after_reopening() {
    let fs = Arc::new(MemFs::untracked());
    let clock = Arc::new(ManualClock::at(1_000));
    let open = || {
        let (fs, clock) = (fs.clone(), clock.clone());
        Db::open_on(fs, Path::new("/db"), Options::default(), clock).unwrap()
    };
    let db = open();
    for line in [
        "SET a 5 PX 100",
        "INCRBY a 3",
        "SETRANGE b 2 x",
        "INCRBYFLOAT c 1.5",
        "SET d v",
        "GETDEL d",
        "SET e v PX 100",
        "GETEX e PERSIST",
        "APPEND f xy",
        "BITOP NOT g f",
    ] {
        assert!(!run(&db, line).starts_with("Error"), "{line}");
    }
    db.close().unwrap();
    let db = open();
    let values = db.mget(&[b"a", b"b", b"c", b"d", b"e", b"f", b"g"]).unwrap();
    let some = |text: &'static [u8]| Some(Bytes::from_static(text));
    let expected = [
        some(b"8"),
        some(b"\0\0x"),
        some(b"1.5"),
        None,
        some(b"v"),
        some(b"xy"),
        some(b"\x87\x86"),
    ];
    assert_eq!(values, expected);
    assert_eq!((expiry(&db, b"a"), expiry(&db, b"e")), (Some(1_100), Some(0)));
}
