//! The expected replies are those of redis-server 7.0.15.

use super::*;
use crate::options::Options;
use crate::txn::Db;

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

/// A reply as text; its type belongs to the layer above.
fn run(db: &Db, line: &str) -> String {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    format!("{:?}", db.command(&words).unwrap())
}

fn int(number: i64) -> String {
    format!("Int({number})")
}

fn error(text: &str) -> String {
    format!("Error({text:?})")
}

fn ints(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|number| int(*number)).collect();
    format!("Array([{}])", numbers.join(", "))
}

const BAD_OFFSET: &str = "ERR bit offset is not an integer or out of range";

#[test]
fn bit_0_is_the_highest_of_the_first_byte() {
    let db = open();
    assert!(!db.setbit(b"k", 7, true).unwrap());
    assert_eq!(db.get(b"k").unwrap(), Some(b"\x01"[..].into()));
    assert!(!db.setbit(b"k", 17, true).unwrap());
    assert_eq!(db.get(b"k").unwrap(), Some(b"\x01\0\x40"[..].into()));
    assert!(db.setbit(b"k", 17, false).unwrap());
    assert!(db.getbit(b"k", 7).unwrap() && !db.getbit(b"k", 6).unwrap());
    assert!(!db.getbit(b"k", 4_294_967_295).unwrap());
    assert!(!db.setbit(b"new", 9, false).unwrap());
    assert_eq!(db.strlen(b"new").unwrap(), 2);
}

#[test]
fn offsets_end_where_the_longest_string_does() {
    let db = open();
    for offset in ["-1", "abc", "4294967296", "01", "#1"] {
        assert_eq!(run(&db, &format!("GETBIT k {offset}")), error(BAD_OFFSET), "{offset}");
        assert_eq!(run(&db, &format!("SETBIT k {offset} 1")), error(BAD_OFFSET), "{offset}");
    }
    for bit in ["2", "-1", "01", "abc"] {
        let text = "ERR bit is not an integer or out of range";
        assert_eq!(run(&db, &format!("SETBIT k 1 {bit}")), error(text), "{bit}");
    }
    let options = Options { max_value_bytes: 1024, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    assert_eq!(run(&db, "SETBIT k 8191 1"), int(0));
    assert_eq!(run(&db, "SETBIT k 8192 1"), error(BAD_OFFSET));
}

#[test]
fn bits_are_counted_in_bytes_or_bits() {
    let db = open();
    db.set(b"k", b"foobar").unwrap();
    for (range, count) in [
        ("", 26),
        (" 0 0", 4),
        (" 1 1 BYTE", 6),
        (" 0 -1 bit", 26),
        (" 5 30 BIT", 17),
        (" 1 1 BIT", 1),
        (" -1 -2", 0),
        (" -100 -200 FOO", 0),
        (" -200 -100", 4),
        (" 100 200", 0),
        (" 0 9223372036854775807", 26),
    ] {
        assert_eq!(run(&db, &format!("BITCOUNT k{range}")), int(count), "{range}");
    }
    for range in ["0", "0 -1 FOO", "0 -1 BYTE x"] {
        assert_eq!(run(&db, &format!("BITCOUNT k {range}")), error("ERR syntax error"), "{range}");
        assert_eq!(run(&db, &format!("BITCOUNT none {range}")), int(0), "{range}");
    }
}

#[test]
fn counting_agrees_with_testing_every_bit() {
    let value: Vec<u8> = (0u32..40).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let set = |at: usize| value[at / 8] >> (7 - at % 8) & 1 == 1;
    for start in 0..320usize {
        for end in start..320 {
            let expected = (start..=end).filter(|at| set(*at)).count();
            let range = BitRange { start: start as i64, end: end as i64, unit: BitUnit::Bit };
            assert_eq!(count(&value, Some(range)), expected as i64, "{start} {end}");
            for bit in [false, true] {
                let expected = (start..=end).find(|at| set(*at) == bit).map(|at| at as i64);
                let range =
                    BitSearch { start: range.start, end: Some(range.end), unit: BitUnit::Bit };
                assert_eq!(position(&value, bit, range), expected, "{start} {end} {bit}");
            }
        }
    }
}

#[test]
fn clear_bits_follow_a_string_unless_the_range_has_an_end() {
    let db = open();
    db.mset(&[(b"ff", b"\xff\xff\xff"), (b"m", b"\0\xff\xf0"), (b"e", b"")]).unwrap();
    for (line, position) in [
        ("ff 0", 24),
        ("ff 0 1", 24),
        ("ff 0 0 -1", -1),
        ("ff 0 0 -1 BIT", -1),
        ("ff 0 5", -1),
        ("ff 1 5", -1),
        ("e 0", -1),
        ("none 0", 0),
        ("none 1 a", -1),
        ("m 1", 8),
        ("m 1 2", 16),
        ("m 1 7 9 BIT", 8),
        ("m 0 9 20 BIT", 20),
        ("m 0 9 19 BIT", -1),
        ("m 0 -100 -200", 0),
    ] {
        assert_eq!(run(&db, &format!("BITPOS {line}")), int(position), "{line}");
    }
    let text = "ERR The bit argument must be 1 or 0.";
    assert_eq!(run(&db, "BITPOS none 2"), error(text));
    assert_eq!(run(&db, "BITPOS m 1 0 x FOO"), error("ERR syntax error"));
    assert_eq!(run(&db, "BITPOS m 1 0 1 BIT x"), error("ERR syntax error"));
}

#[test]
fn strings_are_combined_as_if_equally_long() {
    let db = open();
    db.mset(&[(b"k", b"foobar"), (b"ff", b"\xff\xff\xff"), (b"e", b"")]).unwrap();
    assert_eq!(db.bitop(BitOp::And, b"d", &[b"k", b"ff"]).unwrap(), 6);
    assert_eq!(db.get(b"d").unwrap(), Some(b"foo\0\0\0"[..].into()));
    assert_eq!(db.bitop(BitOp::Or, b"d", &[b"none", b"k"]).unwrap(), 6);
    assert_eq!(db.get(b"d").unwrap(), Some("foobar".into()));
    assert_eq!(db.bitop(BitOp::Xor, b"d", &[b"ff", b"k", b"ff"]).unwrap(), 6);
    assert_eq!(db.get(b"d").unwrap(), Some("foobar".into()));
    assert_eq!(db.bitop(BitOp::Not, b"ff", &[b"ff"]).unwrap(), 3);
    assert_eq!(db.get(b"ff").unwrap(), Some(b"\0\0\0"[..].into()));
    let text = "ERR BITOP NOT must be called with a single source key.";
    assert_eq!(run(&db, "BITOP NOT d k ff"), error(text));
    assert_eq!(run(&db, "BITOP FOO d k"), error("ERR syntax error"));
    assert_eq!(db.bitop(BitOp::Or, b"d", &[b"none", b"e"]).unwrap(), 0);
    assert_eq!(run(&db, "EXISTS d"), int(0));
}

#[test]
fn fields_overflow_as_told() {
    let db = open();
    let nothing = "Array([Nil])".to_owned();
    for (ops, reply) in [
        ("SET u8 0 255 GET u8 0 GET u4 #1", ints(&[0, 255, 15])),
        ("SET u8 0 256 GET u8 0", ints(&[255, 0])),
        ("SET u8 0 -1 GET u8 0 GET i8 0", ints(&[0, 255, -1])),
        ("SET i8 0 200 GET i8 0", ints(&[-1, -56])),
        ("OVERFLOW SAT SET i8 0 200 GET i8 0", ints(&[-56, 127])),
        ("OVERFLOW FAIL SET i8 0 200", nothing.clone()),
        ("OVERFLOW SAT SET u8 0 -1 GET u8 0", ints(&[127, 255])),
        ("INCRBY u2 100 5 OVERFLOW SAT INCRBY u2 100 5", ints(&[1, 3])),
        ("OVERFLOW FAIL INCRBY u2 100 -4", nothing),
        ("INCRBY u2 100 -5", ints(&[2])),
        ("INCRBY i64 200 9223372036854775807", ints(&[i64::MAX])),
        ("INCRBY i64 200 1", ints(&[i64::MIN])),
        ("OVERFLOW SAT INCRBY i64 200 -1", ints(&[i64::MIN])),
        ("INCRBY u63 301 -1 INCRBY u63 301 2", ints(&[i64::MAX, 1])),
        // The reference takes what is far too small for too large.
        ("OVERFLOW SAT SET i5 0 -9223372036854775808 GET i5 0", ints(&[-1, 15])),
        ("OVERFLOW SAT SET i5 0 -9223372036854775792 GET i5 0", ints(&[15, -16])),
    ] {
        assert_eq!(run(&db, &format!("BITFIELD k {ops}")), reply, "{ops}");
    }
}

#[test]
fn a_field_is_read_back_at_every_offset_and_its_neighbours_stay() {
    let db = open();
    for bits in [1, 2, 7, 8, 9, 33, 63, 64] {
        for offset in 0..20 {
            db.set(b"k", &[0xa5; 12]).unwrap();
            let all = |at: u64| (at..96).map(|bit| db.getbit(b"k", bit).unwrap()).collect();
            let (end, field) = (offset + u64::from(bits), FieldType::signed(bits).unwrap());
            let after: Vec<bool> = all(end);
            let op = |action| BitfieldOp { field, offset, action, overflow: Overflow::Wrap };
            let number = if offset % 2 == 0 { -1 } else { 0 };
            let ops = [op(FieldAction::Set(number)), op(FieldAction::Get)];
            assert_eq!(db.bitfield(b"k", &ops).unwrap()[1], Some(number), "{bits} {offset}");
            assert_eq!(all(end), after, "{bits} {offset}");
            let before = (0..offset)
                .all(|bit| db.getbit(b"k", bit).unwrap() == (0xa5u8 >> (7 - bit % 8) & 1 == 1));
            assert!(before, "{bits} {offset}");
        }
    }
}

#[test]
fn fields_are_checked_before_anything_is_written() {
    let db = open();
    for kind in ["u64", "i65", "u0", "x8", "U8", "u08", "u", ""] {
        assert_eq!(run(&db, &format!("BITFIELD k GET {kind} 0")), error(bad_type().message()));
    }
    for offset in ["-1", "abc", "##1", "#-1", "01", "4294967296", "#536870912"] {
        let reply = run(&db, &format!("BITFIELD k GET u8 {offset}"));
        assert_eq!(reply, error(BAD_OFFSET), "{offset}");
    }
    for ops in ["OVERFLOW", "GET u8", "SET u8 0", "FOO u8 0", "SET u8 0 1 FOO"] {
        let reply = run(&db, &format!("BITFIELD k {ops}"));
        assert_eq!(reply, error("ERR syntax error"), "{ops}");
    }
    let text = "ERR Invalid OVERFLOW type specified";
    assert_eq!(run(&db, "BITFIELD k OVERFLOW FOO GET u8 0"), error(text));
    let text = "ERR BITFIELD_RO only supports the GET subcommand";
    assert_eq!(run(&db, "BITFIELD_RO k SET u8 0 1"), error(text));
    assert_eq!(run(&db, "BITFIELD_RO k OVERFLOW SAT GET u8 0"), ints(&[0]));
    assert_eq!(run(&db, "BITFIELD k"), ints(&[]));
    assert_eq!(run(&db, "EXISTS k"), int(0));
    // A write that fails for overflow still makes the string long enough.
    run(&db, "BITFIELD k OVERFLOW FAIL SET u8 100 1000");
    assert_eq!(run(&db, "STRLEN k"), int(14));
}
