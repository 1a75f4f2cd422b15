//! What is easily got wrong: ends, bounds, expiry, one list as source and destination.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::{InsertPosition, Search, Side};
use crate::encoding::meta::with_expiry;
use crate::engine::MemFs;
use crate::error::ErrorKind;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn filled(elements: &[&str]) -> Db {
    let db = open();
    let elements: Vec<&[u8]> = elements.iter().map(|element| element.as_bytes()).collect();
    db.rpush(b"l", &elements).unwrap();
    db
}

fn text(elements: &[Bytes]) -> String {
    let elements: Vec<_> = elements.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect();
    elements.join(" ")
}

fn all(db: &Db, key: &[u8]) -> String {
    text(&db.lrange(key, 0, -1).unwrap())
}

fn expire_at(db: &Db, key: &[u8], ms: u64) {
    let change = |bytes: &[u8]| with_expiry(bytes, ms).unwrap();
    db.write(&[key], |tx| {
        let record = tx.record(key)?.unwrap();
        tx.put_record(key, change(&record.bytes))
    })
    .unwrap();
}

#[test]
fn pushes_at_both_ends_keep_their_order() {
    let db = open();
    assert_eq!(db.rpush(b"l", &[b"c", b"d"]).unwrap(), 2);
    assert_eq!(db.lpush(b"l", &[b"b", b"a"]).unwrap(), 4);
    assert_eq!(all(&db, b"l"), "a b c d");
    assert_eq!(db.lpop(b"l").unwrap().unwrap(), "a");
    assert_eq!(db.rpop(b"l").unwrap().unwrap(), "d");
    assert_eq!(db.lpush(b"l", &[b"x"]).unwrap(), 3);
    assert_eq!(db.rpush(b"l", &[b"y"]).unwrap(), 4);
    assert_eq!(all(&db, b"l"), "x b c y", "an index used again shows the new element");
}

#[test]
fn a_push_that_needs_a_list_makes_none() {
    let db = open();
    assert_eq!(db.lpushx(b"l", &[b"a"]).unwrap(), 0);
    assert_eq!(db.rpushx(b"l", &[b"a"]).unwrap(), 0);
    assert_eq!(db.exists(&[b"l"]).unwrap(), 0);
    db.rpush(b"l", &[b"a"]).unwrap();
    assert_eq!(db.lpushx(b"l", &[b"b", b"c"]).unwrap(), 3);
    assert_eq!(db.rpushx(b"l", &[b"d"]).unwrap(), 4);
    assert_eq!(all(&db, b"l"), "c b a d");
}

#[test]
fn a_list_without_elements_does_not_exist() {
    let db = filled(&["a", "b"]);
    db.lpop(b"l").unwrap();
    db.rpop(b"l").unwrap();
    assert_eq!(db.exists(&[b"l"]).unwrap(), 0);
    for empty in [
        |db: &Db| drop(db.rpop_many(b"l", 9).unwrap()),
        |db: &Db| db.ltrim(b"l", 1, 0).unwrap(),
        |db: &Db| assert_eq!(db.lrem(b"l", 0, b"a").unwrap(), 2),
        |db: &Db| drop(db.lmpop(&[b"none", b"l"], Side::Left, 9).unwrap()),
    ] {
        db.rpush(b"l", &[b"a", b"a"]).unwrap();
        empty(&db);
        assert_eq!(db.exists(&[b"l"]).unwrap(), 0);
    }
}

#[test]
fn a_deleted_list_starts_anew() {
    let db = filled(&["old", "old", "old"]);
    db.del(&[b"l"]).unwrap();
    assert_eq!(db.lrange(b"l", 0, -1).unwrap().len(), 0);
    assert_eq!(db.rpush(b"l", &[b"new"]).unwrap(), 1);
    assert_eq!(all(&db, b"l"), "new");
    assert_eq!(db.lindex(b"l", 1).unwrap(), None);
}

#[test]
fn an_expired_list_is_missing_and_a_push_starts_anew_without_expiry() {
    let clock = Arc::new(ManualClock::at(1000));
    let fs = Arc::new(MemFs::new());
    let db = Db::open_on(fs, Path::new("/db"), Options::default(), clock.clone()).unwrap();
    db.rpush(b"l", &[b"a", b"b"]).unwrap();
    expire_at(&db, b"l", 2000);
    db.rpush(b"l", &[b"c"]).unwrap();
    clock.set(2000);
    assert_eq!(db.llen(b"l").unwrap(), 0, "a push keeps the expiry");
    assert_eq!(db.lpop_many(b"l", 1).unwrap(), None);
    assert_eq!(db.lset(b"l", 0, b"x").unwrap_err().kind(), ErrorKind::NoSuchKey);
    assert_eq!(db.rpush(b"l", &[b"d"]).unwrap(), 1);
    clock.set(9000);
    assert_eq!(all(&db, b"l"), "d");
}

#[test]
fn the_last_element_moved_within_its_list_keeps_the_expiry() {
    let clock = Arc::new(ManualClock::at(1000));
    let fs = Arc::new(MemFs::new());
    let db = Db::open_on(fs, Path::new("/db"), Options::default(), clock.clone()).unwrap();
    db.rpush(b"l", &[b"a"]).unwrap();
    expire_at(&db, b"l", 2000);
    assert_eq!(db.rpoplpush(b"l", b"l").unwrap().unwrap(), "a");
    assert_eq!(all(&db, b"l"), "a");
    assert_eq!(db.lmove(b"l", b"m", Side::Left, Side::Left).unwrap().unwrap(), "a");
    clock.set(2000);
    assert_eq!(all(&db, b"m"), "a", "another list has its own expiry");
}

#[test]
fn an_expired_string_is_no_wrong_type() {
    let clock = Arc::new(ManualClock::at(1000));
    let fs = Arc::new(MemFs::new());
    let db = Db::open_on(fs, Path::new("/db"), Options::default(), clock.clone()).unwrap();
    db.set(b"l", b"v").unwrap();
    expire_at(&db, b"l", 2000);
    assert_eq!(db.lpush(b"l", &[b"a"]).unwrap_err().kind(), ErrorKind::WrongType);
    clock.set(2000);
    assert_eq!(db.lpush(b"l", &[b"a"]).unwrap(), 1);
}

#[test]
fn indexes_count_from_both_ends_and_end_there() {
    let db = filled(&["a", "b", "c"]);
    for (index, element) in [(0, "a"), (2, "c"), (-1, "c"), (-3, "a")] {
        assert_eq!(db.lindex(b"l", index).unwrap().unwrap(), element);
    }
    for index in [3, -4, i64::MAX, i64::MIN] {
        assert_eq!(db.lindex(b"l", index).unwrap(), None);
        assert_eq!(db.lset(b"l", index, b"x").unwrap_err().message(), "ERR index out of range");
    }
    db.lset(b"l", -3, b"x").unwrap();
    assert_eq!(all(&db, b"l"), "x b c");
}

#[test]
fn ranges_are_clamped_and_a_trim_leaves_what_the_range_shows() {
    for (start, stop, expected) in [
        (0, -1, "a b c d"),
        (1, 2, "b c"),
        (-3, -2, "b c"),
        (-100, 1, "a b"),
        (2, 100, "c d"),
        (i64::MIN, i64::MAX, "a b c d"),
        (3, 3, "d"),
        (4, 9, ""),
        (2, 1, ""),
        (0, -100, ""),
        (i64::MAX, i64::MIN, ""),
    ] {
        let db = filled(&["a", "b", "c", "d"]);
        assert_eq!(text(&db.lrange(b"l", start, stop).unwrap()), expected, "{start} {stop}");
        db.ltrim(b"l", start, stop).unwrap();
        assert_eq!(all(&db, b"l"), expected, "{start} {stop}");
    }
}

#[test]
fn a_pop_of_many_takes_the_outermost_first() {
    let db = filled(&["a", "b", "c", "d", "e"]);
    assert_eq!(db.lpop_many(b"l", 0).unwrap().unwrap().len(), 0);
    assert_eq!(text(&db.lpop_many(b"l", 2).unwrap().unwrap()), "a b");
    assert_eq!(text(&db.rpop_many(b"l", 2).unwrap().unwrap()), "e d");
    assert_eq!(text(&db.rpop_many(b"l", u64::MAX).unwrap().unwrap()), "c");
    assert_eq!(db.lpop_many(b"l", 0).unwrap(), None);
}

#[test]
fn an_element_is_inserted_beside_the_first_match() {
    let db = filled(&["a", "b", "c", "b"]);
    assert_eq!(db.linsert(b"l", InsertPosition::Before, b"b", b"1").unwrap(), 5);
    assert_eq!(db.linsert(b"l", InsertPosition::After, b"c", b"2").unwrap(), 6);
    assert_eq!(db.linsert(b"l", InsertPosition::Before, b"a", b"0").unwrap(), 7);
    assert_eq!(all(&db, b"l"), "0 a 1 b c 2 b");
    assert_eq!(db.linsert(b"l", InsertPosition::After, b"z", b"9").unwrap(), -1);
    assert_eq!(db.linsert(b"none", InsertPosition::After, b"a", b"9").unwrap(), 0);
    db.rpush(b"l", &[b"end"]).unwrap();
    assert_eq!(db.linsert(b"l", InsertPosition::After, b"end", b"last").unwrap(), 9);
    assert_eq!(all(&db, b"l"), "0 a 1 b c 2 b end last");
}

#[test]
fn elements_are_removed_from_the_side_the_count_says() {
    for (count, removed, left) in [
        (0, 3, "b c b"),
        (2, 2, "b c b a"),
        (-2, 2, "a b c b"),
        (-1, 1, "a b a c b"),
        (i64::MIN, 3, "b c b"),
        (i64::MAX, 3, "b c b"),
    ] {
        let db = filled(&["a", "b", "a", "c", "b", "a"]);
        assert_eq!(db.lrem(b"l", count, b"a").unwrap(), removed);
        assert_eq!(all(&db, b"l"), left, "{count}");
        assert_eq!(db.lrem(b"l", 0, b"z").unwrap(), 0);
    }
}

#[test]
fn a_search_finds_what_rank_count_and_length_say() {
    let db = filled(&["a", "b", "c", "d", "a", "b", "c", "a"]);
    for (rank, count, maxlen, expected) in [
        (1, 1, 0, &[0][..]),
        (1, 0, 0, &[0, 4, 7]),
        (2, 0, 0, &[4, 7]),
        (4, 0, 0, &[]),
        (-1, 0, 0, &[7, 4, 0]),
        (-2, 1, 0, &[4]),
        (1, 0, 4, &[0]),
        (1, 0, 5, &[0, 4]),
        (-1, 0, 4, &[7, 4]),
        (2, 1, 4, &[]),
        (i64::MIN, 1, 0, &[7, 4, 0]),
        (-i64::MAX, 0, 0, &[]),
    ] {
        let search = Search { rank, count, maxlen };
        assert_eq!(db.lpos(b"l", b"a", search).unwrap(), expected, "{search:?}");
    }
    let nothing = Search { rank: 0, ..Search::default() };
    assert_eq!(db.lpos(b"l", b"a", nothing).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn an_element_moves_within_a_list_and_to_another() {
    let db = filled(&["a", "b", "c"]);
    let step = |from, to| text(&[db.lmove(b"l", b"l", from, to).unwrap().unwrap()]);
    assert_eq!((step(Side::Left, Side::Right), all(&db, b"l")), ("a".into(), "b c a".into()));
    assert_eq!((step(Side::Right, Side::Left), all(&db, b"l")), ("a".into(), "a b c".into()));
    assert_eq!((step(Side::Left, Side::Left), all(&db, b"l")), ("a".into(), "a b c".into()));
    assert_eq!((step(Side::Right, Side::Right), all(&db, b"l")), ("c".into(), "a b c".into()));
    for (from, to) in [(Side::Left, Side::Right), (Side::Right, Side::Left)] {
        db.lmove(b"l", b"m", from, to).unwrap();
    }
    db.rpoplpush(b"l", b"m").unwrap();
    assert_eq!((all(&db, b"m"), db.exists(&[b"l"]).unwrap()), ("b c a".into(), 0));
    assert_eq!(db.lmove(b"l", b"m", Side::Left, Side::Left).unwrap(), None);
    db.set(b"s", b"v").unwrap();
    assert_eq!(db.rpoplpush(b"l", b"s").unwrap(), None, "no source: the destination is not asked");
    assert_eq!(db.rpoplpush(b"m", b"s").unwrap_err().kind(), ErrorKind::WrongType);
    assert_eq!(all(&db, b"m"), "b c a", "what fails changes nothing");
}

#[test]
fn elements_of_any_bytes_come_back_as_they_are() {
    let db = open();
    let big = vec![7u8; 100_000];
    let elements: [&[u8]; 4] = [b"", b"\0\xff\n", &big, b"x"];
    db.rpush(b"\0k", &elements).unwrap();
    assert_eq!(db.lrange(b"\0k", 0, -1).unwrap(), elements);
    assert_eq!(db.lpos(b"\0k", b"", Search::default()).unwrap(), [0]);
}

#[test]
fn an_element_that_is_too_long_is_refused_and_nothing_is_pushed() {
    let options = Options { max_value_bytes: 2000, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    let long = vec![0; 2001];
    assert_eq!(db.rpush(b"l", &[b"a", &long]).unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(db.exists(&[b"l"]).unwrap(), 0);
    db.rpush(b"l", &[b"a"]).unwrap();
    assert_eq!(db.lset(b"l", 0, &long).unwrap_err().kind(), ErrorKind::TooLarge);
    let inserted = db.linsert(b"l", InsertPosition::Before, b"a", &long);
    assert_eq!(inserted.unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(all(&db, b"l"), "a");
}
