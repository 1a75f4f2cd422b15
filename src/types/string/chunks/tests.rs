//! Strings in chunks: which rows there are, what is read of them, and what is noticed when some are
//! lost.

use super::*;
use crate::encoding::keys::after_prefix;
use crate::error::ErrorKind;
use crate::options::Options;
use crate::txn::Db;
use crate::types::testing::opener;
use crate::types::{BitOp, ExpireIf, Type};

/// A store with the usual options.
fn usual() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn tiny() -> Options {
    Options { inline_max_bytes: 32, chunk_bytes: 16, ..Options::default() }
}

/// The string at `key`, if it is in chunks.
fn chunked(db: &Db, key: &[u8]) -> Option<Chunks> {
    db.read(|tx| match tx.string(key)? {
        Some(StringValue::Chunked(string)) => Ok(Some(string.chunks)),
        _ => Ok(None),
    })
    .unwrap()
}

fn rows(db: &Db, key: &[u8]) -> u64 {
    chunked(db, key).unwrap().rows
}

/// Removes the rows of a string and leaves its record.
fn lose_rows(db: &Db, key: &[u8], indexes: impl Iterator<Item = u64>) {
    let chunks = chunked(db, key).unwrap();
    db.write(&[key], |tx| {
        let string = ChunkedString::new(tx.space(), key, chunks);
        for index in indexes {
            tx.remove_row(DATA, &string.row_key(index));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_string_longer_than_the_limit_has_a_row_for_each_8_kib() {
    let db = usual();
    db.set(b"s", &vec![b'x'; 64 << 10]).unwrap();
    assert_eq!(chunked(&db, b"s"), None);
    db.append(b"s", b"y").unwrap();
    let chunks = chunked(&db, b"s").unwrap();
    assert_eq!((chunks.len, chunks.rows, chunks.shift), ((64 << 10) + 1, 9, 13));
    db.set(b"s", &vec![b'x'; 100_000]).unwrap();
    let other = chunked(&db, b"s").unwrap();
    assert!(other.version > chunks.version && other.rows == 13);
    db.set(b"s", b"short").unwrap();
    assert_eq!(chunked(&db, b"s"), None);
}

#[test]
fn a_bitmap_has_rows_only_where_bits_were_set() {
    let db = usual();
    assert!(!db.setbit(b"b", (1 << 32) - 1, true).unwrap());
    assert_eq!((rows(&db, b"b"), db.strlen(b"b").unwrap()), (1, 512 << 20));
    db.setbit(b"b", 7, true).unwrap();
    assert_eq!(rows(&db, b"b"), 2);
    // A clear bit in a hole needs none.
    db.setbit(b"b", 1 << 20, false).unwrap();
    assert_eq!(rows(&db, b"b"), 2);
    assert_eq!(db.bitcount(b"b", None).unwrap(), 2);
    assert_eq!(db.bitpos(b"b", true, crate::types::BitSearch::default()).unwrap(), Some(7));
    assert_eq!(db.getrange(b"b", -2, -1).unwrap(), &[0, 1][..]);
    assert!(db.copy(b"b", b"copy", false).unwrap());
    assert_eq!(rows(&db, b"copy"), 2);
    assert_eq!(db.bitop(BitOp::Xor, b"x", &[b"b", b"copy"]).unwrap(), 512 << 20);
    assert_eq!((rows(&db, b"x"), db.bitcount(b"x", None).unwrap()), (0, 0));
    assert_eq!(db.check().unwrap(), [""; 0]);
}

/// Commands that need no more than the record: they answer although every row is lost.
#[test]
fn what_needs_only_the_record_reads_no_chunk() {
    let db = Db::open(":memory:", tiny()).unwrap();
    db.set(b"s", &[b'1'; 1000]).unwrap();
    lose_rows(&db, b"s", 0..63);
    assert_eq!(db.strlen(b"s").unwrap(), 1000);
    assert_eq!(db.exists(&[b"s"]).unwrap(), 1);
    assert_eq!(db.kind(b"s").unwrap(), Some(Type::String));
    assert!(db.expire(b"s", 1000, ExpireIf::ALWAYS).unwrap());
    assert!(db.pttl(b"s").unwrap() > 0 && db.persist(b"s").unwrap());
    assert_eq!(db.object_encoding(b"s").unwrap(), Some("raw"));
    assert_eq!(db.incr(b"s").unwrap_err().kind(), ErrorKind::NotInteger);
    assert_eq!(db.get(b"s").unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(db.del(&[b"s"]).unwrap(), 1);
    assert_eq!(db.get(b"s").unwrap(), None);
}

#[test]
fn a_lost_chunk_is_noticed_by_who_reads_all_of_them() {
    let db = Db::open(":memory:", tiny()).unwrap();
    db.set(b"s", &[b'x'; 100]).unwrap();
    lose_rows(&db, b"s", 3..4);
    let mut left = vec![b'x'; 100];
    left[48..64].fill(0);
    let remains = db
        .read(|tx| match tx.string(b"s")? {
            Some(StringValue::Chunked(string)) => string.read_remains(tx),
            other => panic!("{other:?}"),
        })
        .unwrap();
    assert_eq!(remains, (left.into(), 1));
    let error = db.get(b"s").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("6 of its 7 chunks"), "{error}");
    assert_eq!(
        db.check().unwrap(),
        ["database 0, key \"s\": its 100 bytes are in 7 chunks, it has 6 of them"]
    );
}

#[test]
fn rows_that_do_not_fit_are_damage_and_no_panic() {
    let db = Db::open(":memory:", tiny()).unwrap();
    for (row, len, found) in [(0, 17, true), (6, 5, true), (9, 1, false), (u64::MAX, 1, false)] {
        db.set(b"s", &[b'x'; 100]).unwrap();
        let chunks = chunked(&db, b"s").unwrap();
        db.write(&[b"s"], |tx| {
            let string = ChunkedString::new(tx.space(), b"s", chunks);
            tx.put_row(DATA, &string.row_key(row), vec![1; len]);
            Ok(())
        })
        .unwrap();
        assert!(!db.check().unwrap().is_empty(), "{row} {len}");
        assert_eq!(db.get(b"s").is_err(), found, "{row} {len}");
        db.bitcount(b"s", None).ok();
        db.append(b"s", b"more").ok();
    }
}

/// The options may change between two opens: strings are read as they are, and take the form of
/// the options when they are written as a whole.
#[test]
fn both_forms_are_read_and_changed_under_any_options() {
    let open = opener();
    let value: Vec<u8> = (0..1000u32).map(|n| (n % 251) as u8).collect();
    let db = open(Options::default());
    db.set(b"whole", &value).unwrap();
    db.close().unwrap();
    let db = open(tiny());
    assert_eq!(db.get(b"whole").unwrap().unwrap(), value);
    assert_eq!(chunked(&db, b"whole"), None);
    assert!(db.copy(b"whole", b"chunked", false).unwrap());
    assert_eq!(chunked(&db, b"chunked").unwrap().rows, 63);
    db.setbit(b"whole", 0, false).unwrap();
    assert_eq!(chunked(&db, b"whole"), None, "nothing has changed");
    db.setrange(b"whole", 999, &value[999..]).unwrap();
    assert_eq!(chunked(&db, b"whole").unwrap().rows, 63);
    db.close().unwrap();
    let db = open(Options::default());
    assert_eq!(db.get(b"chunked").unwrap().unwrap(), value);
    db.append(b"chunked", b"!").unwrap();
    assert_eq!(chunked(&db, b"chunked").unwrap().shift, 4);
    db.rename(b"chunked", b"whole again").unwrap();
    assert_eq!(chunked(&db, b"whole again"), None);
    assert_eq!(db.get(b"whole again").unwrap().unwrap(), [&value[..], b"!"].concat());
    assert_eq!(db.get(b"whole").unwrap().unwrap(), value);
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn a_short_number_in_chunks_counts_and_becomes_whole() {
    let open = opener();
    let db = open(Options { inline_max_bytes: 16, chunk_bytes: 16, ..Options::default() });
    db.set(b"n", b"1000000000000000001").unwrap();
    db.set(b"f", b"1.00000000000000000000").unwrap();
    assert_eq!((rows(&db, b"n"), rows(&db, b"f")), (2, 2));
    assert_eq!(db.object_encoding(b"n").unwrap(), Some("int"));
    assert_eq!(db.incr(b"n").unwrap(), 1_000_000_000_000_000_002);
    assert_eq!(db.incrbyfloat(b"f", b"0.5").unwrap(), &b"1.5"[..]);
    assert_eq!(db.get(b"n").unwrap().unwrap(), &b"1000000000000000002"[..]);
    assert_eq!((chunked(&db, b"n"), chunked(&db, b"f")), (None, None));
}

#[test]
fn a_transaction_takes_a_large_string_unless_it_has_emptied_a_database() {
    let options = Options { txn_max_bytes: 1 << 20, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    let value = vec![b'x'; 5 << 20];
    let txn = db.begin().unwrap();
    txn.set(b"s", &value).unwrap();
    txn.append(b"s", b"end").unwrap();
    assert_eq!(txn.getrange(b"s", -4, -1).unwrap(), &b"xend"[..]);
    assert_eq!(db.strlen(b"s").unwrap(), 0);
    txn.commit().unwrap();
    assert_eq!(db.strlen(b"s").unwrap(), (5 << 20) + 3);
    let txn = db.begin().unwrap();
    txn.flushdb().unwrap();
    assert_eq!(txn.set(b"s", &value).unwrap_err().kind(), ErrorKind::TooLarge);
    txn.set(b"s", &value[..100_000]).unwrap();
    txn.commit().unwrap();
    assert_eq!(db.get(b"s").unwrap().unwrap(), value[..100_000]);
    // What is appended to a string that others can see is not written before the commit.
    let txn = db.begin().unwrap();
    assert_eq!(txn.append(b"s", &value).unwrap_err().kind(), ErrorKind::TooLarge);
    drop(txn);
    assert_eq!(db.append(b"s", &value).unwrap(), 100_000 + (5 << 20));
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn the_limit_is_one_of_the_length_and_not_of_rows() {
    let options = Options { max_value_bytes: 1000, ..tiny() };
    let db = Db::open(":memory:", options).unwrap();
    db.set(b"s", &[b'x'; 1000]).unwrap();
    assert_eq!(db.set(b"s", &[b'x'; 1001]).unwrap_err().kind(), ErrorKind::TooLarge);
    for (error, what) in [
        (db.append(b"s", b"y").unwrap_err(), "append"),
        (db.setrange(b"s", 999, b"yy").unwrap_err(), "setrange"),
        (db.setbit(b"s", 8000, true).unwrap_err(), "setbit"),
    ] {
        assert_eq!(error.kind(), ErrorKind::OutOfRange, "{what}");
    }
    assert_eq!(db.get(b"s").unwrap().unwrap(), [b'x'; 1000][..]);
}

#[test]
fn a_walk_with_values_sees_what_its_transaction_has_written() {
    let db = Db::open(":memory:", tiny()).unwrap();
    db.set(b"s", &[b'x'; 100]).unwrap();
    let txn = db.begin().unwrap();
    txn.setrange(b"s", 50, b"other").unwrap();
    let range = crate::types::KeyRange { values: true, ..Default::default() };
    let mut walk = txn.iter(range).unwrap();
    txn.setrange(b"s", 10, b"later").unwrap();
    db.set(b"t", &[b'z'; 100]).unwrap();
    db.compact().unwrap();
    let entry = walk.next().unwrap().unwrap();
    let mut expected = vec![b'x'; 100];
    expected[50..55].copy_from_slice(b"other");
    assert_eq!((&entry.key[..], entry.value.unwrap()), (&b"s"[..], expected.into()));
    assert_eq!(walk.next().unwrap(), None);
}

#[test]
fn the_rows_of_a_version_end_where_its_prefix_does() {
    let db = Db::open(":memory:", tiny()).unwrap();
    db.set(b"s", &[b'x'; 100]).unwrap();
    let chunks = chunked(&db, b"s").unwrap();
    let found = db
        .read(|tx| {
            let string = ChunkedString::new(tx.space(), b"s", chunks);
            let end = after_prefix(string.prefix());
            let mut walk = tx.rows(DATA, string.prefix(), end.as_deref(), false)?;
            let mut found = Vec::new();
            while walk.advance()? {
                found.push((walk.key()[string.prefix().len()..].to_vec(), walk.value().len()));
            }
            Ok(found)
        })
        .unwrap();
    let row = |n: u64| (n.to_be_bytes().to_vec(), if n < 6 { 16 } else { 4 });
    let expected: Vec<_> = (0..7).map(row).collect();
    assert_eq!(found, expected);
}
