use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::MemFs;
use crate::error::ErrorKind;
use crate::io::clock::RealClock;
use crate::options::Options;
use crate::txn::Db;
use crate::types::Type;
use crate::types::testing::{both, unpacked};

fn add(db: &Db, key: &[u8], members: &[&str]) -> i64 {
    db.sadd(key, &members.iter().map(|member| member.as_bytes()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_member_named_twice_counts_once() {
    for db in both() {
        assert_eq!(add(&db, b"s", &["a", "b", "a"]), 2);
        assert_eq!(add(&db, b"s", &["b", "c"]), 1);
        assert_eq!(db.scard(b"s").unwrap(), 3);
        assert_eq!(db.srem(b"s", &[b"a", b"a", b"x"]).unwrap(), 1);
        assert_eq!(db.smembers(b"s").unwrap(), ["b", "c"]);
        assert_eq!(db.srem(b"s", &[b"b", b"c"]).unwrap(), 2);
        assert_eq!(db.exists(&[b"s"]).unwrap(), 0);
    }
}

#[test]
fn set_and_member_never_run_into_each_other() {
    for db in both() {
        add(&db, b"a", &["b:c"]);
        add(&db, b"a:b", &["c"]);
        assert!(!db.sismember(b"a:b", b"b:c").unwrap());
        assert_eq!(db.smismember(b"a", &[b"b:c", b"c"]).unwrap(), [true, false]);
    }
}

#[test]
fn a_moved_member_is_in_one_place() {
    for db in both() {
        add(&db, b"from", &["a", "b"]);
        add(&db, b"to", &["b"]);
        assert!(db.smove(b"from", b"to", b"a").unwrap());
        assert!(db.smove(b"from", b"to", b"b").unwrap(), "also when it is there already");
        assert_eq!(db.exists(&[b"from"]).unwrap(), 0);
        assert_eq!(db.scard(b"to").unwrap(), 2);
        assert!(!db.smove(b"to", b"new", b"x").unwrap());
        assert_eq!(db.exists(&[b"new"]).unwrap(), 0);
        assert!(db.smove(b"to", b"to", b"a").unwrap());
        assert!(!db.smove(b"to", b"to", b"x").unwrap());
        assert_eq!(db.scard(b"to").unwrap(), 2);
        assert!(db.smove(b"to", b"new", b"a").unwrap());
        assert_eq!(db.smembers(b"new").unwrap(), ["a"]);
    }
}

#[test]
fn a_missing_source_wins_over_a_destination_of_another_type() {
    for db in both() {
        db.set(b"string", b"v").unwrap();
        assert!(!db.smove(b"missing", b"string", b"a").unwrap());
        add(&db, b"s", &["a"]);
        let error = db.smove(b"s", b"string", b"not a member").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongType);
    }
}

#[test]
fn what_is_popped_is_gone_and_nothing_else() {
    let db = Db::open(":memory:", unpacked()).unwrap();
    let all: BTreeSet<Bytes> = (0..5000).map(|n| Bytes::from(format!("m{n}"))).collect();
    db.sadd(b"s", &all.iter().map(|m| &m[..]).collect::<Vec<_>>()).unwrap();
    let mut popped = BTreeSet::new();
    for count in [0, 1, 7, 700, 3000] {
        let some = db.spop_count(b"s", count).unwrap();
        assert_eq!(some.len() as u64, count);
        popped.extend(some);
    }
    popped.extend(db.spop(b"s").unwrap());
    assert_eq!(popped.len(), 3709);
    let left: BTreeSet<Bytes> = db.smembers(b"s").unwrap().into_iter().collect();
    assert_eq!(db.scard(b"s").unwrap(), 1291);
    assert!(popped.is_disjoint(&left));
    assert_eq!(popped.union(&left).cloned().collect::<BTreeSet<_>>(), all);
    assert_eq!(db.spop_count(b"s", u64::MAX).unwrap().len(), 1291);
    assert_eq!(db.exists(&[b"s"]).unwrap(), 0);
    assert_eq!(db.spop(b"s").unwrap(), None);
}

#[test]
fn algebra_agrees_with_sets_in_memory_for_small_and_large_partners() {
    for db in both() {
        // `few` beside `many` is looked up, the others are merged.
        let numbers = |step: usize, count: usize| -> BTreeSet<Bytes> {
            (0..count).map(|n| Bytes::from(format!("{:04}", n * step))).collect()
        };
        let sets = [(b"few", numbers(97, 9)), (b"two", numbers(2, 400)), (b"six", numbers(3, 900))];
        for (key, members) in &sets {
            db.sadd(&key[..], &members.iter().map(|m| &m[..]).collect::<Vec<_>>()).unwrap();
        }
        for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0], [1, 1, 1]] {
            let keys = order.map(|at| &sets[at].0[..]);
            let [a, b, c] = order.map(|at| &sets[at].1);
            let inter: Vec<_> =
                a.iter().filter(|m| b.contains(*m) && c.contains(*m)).cloned().collect();
            let diff: Vec<_> =
                a.iter().filter(|m| !b.contains(*m) && !c.contains(*m)).cloned().collect();
            let union: BTreeSet<_> = a.iter().chain(b).chain(c).cloned().collect();
            assert_eq!(db.sinter(&keys).unwrap(), inter);
            assert_eq!(db.sdiff(&keys).unwrap(), diff);
            assert_eq!(db.sunion(&keys).unwrap(), Vec::from_iter(union));
            assert_eq!(db.sintercard(&keys, 0).unwrap(), inter.len() as i64);
            assert_eq!(db.sintercard(&keys, 2).unwrap(), inter.len().min(2) as i64);
        }
    }
}

#[test]
fn missing_sets_are_empty_but_other_types_are_errors_wherever_they_stand() {
    for db in both() {
        add(&db, b"s", &["a"]);
        db.set(b"string", b"v").unwrap();
        assert!(db.sinter(&[b"s", b"missing"]).unwrap().is_empty());
        assert!(db.sdiff(&[b"missing", b"s"]).unwrap().is_empty());
        assert_eq!(db.sunion(&[b"missing", b"s"]).unwrap(), ["a"]);
        for keys in [[&b"missing"[..], b"string"], [b"string", b"missing"]] {
            assert_eq!(db.sinter(&keys).unwrap_err().kind(), ErrorKind::WrongType);
            assert_eq!(db.sdiff(&keys).unwrap_err().kind(), ErrorKind::WrongType);
            assert_eq!(db.sunion(&keys).unwrap_err().kind(), ErrorKind::WrongType);
            assert_eq!(db.sintercard(&keys, 0).unwrap_err().kind(), ErrorKind::WrongType);
        }
    }
}

#[test]
fn a_stored_result_replaces_whatever_was_there() {
    for db in both() {
        add(&db, b"a", &["1", "2"]);
        add(&db, b"b", &["2", "3"]);
        db.set(b"d", b"a string").unwrap();
        assert_eq!(db.sunionstore(b"d", &[b"a", b"b"]).unwrap(), 3);
        assert_eq!(db.kind(b"d").unwrap(), Some(Type::Set));
        assert_eq!(db.sinterstore(b"a", &[b"a", b"b"]).unwrap(), 1, "a source as destination");
        assert_eq!(db.smembers(b"a").unwrap(), ["2"]);
        assert_eq!(db.sdiffstore(b"d", &[b"a", b"b"]).unwrap(), 0);
        assert_eq!(db.exists(&[b"d"]).unwrap(), 0, "an empty result is no key");
        db.set(b"d", b"a string").unwrap();
        assert!(db.sunionstore(b"d", &[b"b", b"d"]).is_err());
        assert_eq!(db.kind(b"d").unwrap(), Some(Type::String), "a failure changes nothing");
    }
}

#[test]
fn sets_survive_a_reopen_and_a_compaction() {
    for options in [Options::default(), unpacked()] {
        let fs = Arc::new(MemFs::untracked());
        let open = || {
            let clock = Arc::new(RealClock);
            Db::open_on(fs.clone(), Path::new("/db"), options.clone(), clock).unwrap()
        };
        let db = open();
        add(&db, b"s", &["a", "b", "c"]);
        db.flush().unwrap();
        db.srem(b"s", &[b"b"]).unwrap();
        db.compact().unwrap();
        add(&db, b"s", &["\0", ""]);
        db.close().unwrap();
        let db = open();
        assert_eq!(db.smembers(b"s").unwrap(), ["", "\0", "a", "c"]);
        assert_eq!(db.scard(b"s").unwrap(), 4);
        assert_eq!(add(&db, b"s", &["b"]), 1);
    }
}
