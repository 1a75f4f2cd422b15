//! Iterators on snapshots and inside transactions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::ManualClock;
use lsmkv::types::{KeyRange, Member, MemberRange};
use lsmkv::{Db, Options};

fn keys(db: &Db, reverse: bool) -> Vec<String> {
    let range = KeyRange { reverse, ..KeyRange::default() };
    let mut keys: Vec<_> = db
        .iter(range)
        .unwrap()
        .map(|entry| String::from_utf8(entry.unwrap().key.to_vec()).unwrap())
        .collect();
    if reverse {
        keys.reverse();
    }
    keys
}

fn fields(db: &Db) -> usize {
    db.members(b"h", MemberRange::default()).unwrap().map(Result::unwrap).count()
}

#[test]
fn an_iterator_on_a_snapshot_shows_its_read_point_however_much_later_it_is_made() {
    let clock = Arc::new(ManualClock::at(1000));
    let fs = Arc::new(MemFs::untracked());
    let db = Db::open_on(fs, Path::new("/db"), Options::default(), clock.clone()).unwrap();
    db.set(b"a", b"v").unwrap();
    db.psetex(b"b", 500, b"v").unwrap();
    db.hset(b"h", &[(b"f", b"v"), (b"g", b"v")]).unwrap();
    let past = db.snapshot().unwrap();
    clock.advance(1000);
    db.flushdb().unwrap();
    db.set(b"c", b"v").unwrap();
    db.compact().unwrap();
    for reverse in [false, true] {
        assert_eq!(keys(&past, reverse), ["a", "b", "h"]);
        assert_eq!(keys(&db, reverse), ["c"]);
    }
    let mut late = past.iter(KeyRange::default()).unwrap();
    let mut members = past.members(b"h", MemberRange::default()).unwrap();
    drop(past);
    db.compact().unwrap();
    assert_eq!(late.next_chunk(9, usize::MAX).unwrap().len(), 3, "it needs no snapshot any more");
    assert_eq!(members.next_chunk(9, usize::MAX).unwrap().len(), 2);
    assert_eq!(db.engine_stats().snapshots, 0);
}

#[test]
fn an_iterator_in_a_transaction_shows_what_that_has_written_so_far() {
    let db = Db::open(":memory:", Options::default()).unwrap();
    for key in [b"a", b"c", b"e"] {
        db.set(key, b"old").unwrap();
    }
    db.hset(b"h", &[(b"f", b"v")]).unwrap();
    let txn = db.begin().unwrap();
    txn.set(b"b", b"new").unwrap();
    txn.del(&[b"c"]).unwrap();
    txn.hset(b"h", &[(b"a", b"v"), (b"z", b"v")]).unwrap();
    txn.rpush(b"l", &[b"1", b"2"]).unwrap();
    db.set(b"d", b"of another").unwrap();
    for reverse in [false, true] {
        assert_eq!(keys(&txn, reverse), ["a", "b", "e", "h", "l"]);
        assert_eq!(keys(&db, reverse), ["a", "c", "d", "e", "h"]);
    }
    assert_eq!((fields(&txn), fields(&db)), (3, 1));
    let held = txn.members(b"l", MemberRange { reverse: true, ..MemberRange::default() }).unwrap();
    txn.rpush(b"l", &[b"3"]).unwrap();
    txn.commit().unwrap();
    let second = Member::Element { index: 1, element: "2".into() };
    assert_eq!(held.map(Result::unwrap).next().unwrap(), second);
    assert_eq!(keys(&db, false), ["a", "b", "d", "e", "h", "l"]);
}
