//! When a count holds and when it does not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use crate::engine::MemFs;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;
use crate::types::testing::with_clock;
use crate::types::{ExpireIf, ZAdd};

/// Blocks of records that were read from files so far.
fn block_reads(db: &Db) -> u64 {
    db.engine_stats().trees[0].block_reads
}

#[test]
fn a_size_is_counted_again_only_when_it_may_have_changed() {
    let (db, clock) = with_clock();
    for n in 0..2000 {
        db.set(format!("key:{n}").as_bytes(), b"v").unwrap();
    }
    let large = vec![b'v'; 2000];
    db.hset(b"h", &[(b"f", b"v"), (b"g", &large)]).unwrap();
    db.pexpire(b"key:7", 500, ExpireIf::ALWAYS).unwrap();
    db.flush().unwrap();
    let count = |db: &Db| {
        let before = block_reads(db);
        (db.dbsize().unwrap(), block_reads(db) > before)
    };
    assert_eq!(count(&db), (2001, true));
    assert_eq!(count(&db), (2001, false));
    db.hset(b"h", &[(b"f", b"w")]).unwrap();
    assert_eq!(count(&db), (2001, false), "no record was written");
    db.set(b"new", b"v").unwrap();
    assert_eq!(count(&db), (2002, true));
    clock.advance(499);
    assert_eq!(count(&db), (2002, false));
    clock.advance(1);
    assert_eq!(count(&db), (2001, true), "one has expired");
    clock.set(1000);
    assert_eq!(count(&db), (2002, true), "the clock went back");
    let other = db.select(1).unwrap();
    assert_eq!(other.dbsize().unwrap(), 0);
    db.swapdb(0, 1).unwrap();
    assert_eq!((db.dbsize().unwrap(), other.dbsize().unwrap()), (0, 2002));
    other.flushdb().unwrap();
    assert_eq!((db.dbsize().unwrap(), other.dbsize().unwrap()), (0, 0));
    db.write(&[b"k"], |tx| {
        assert_eq!(tx.dbsize()?, 0);
        tx.set(b"k", b"v")?;
        assert_eq!(tx.dbsize()?, 1, "its own write");
        Ok(())
    })
    .unwrap();
    assert_eq!(db.dbsize().unwrap(), 1);
}

/// What changes the keys, and by how much their number.
type Change = (fn(&Db), i64);

/// HINCRBY on a small hash writes its record every time: DBSIZE walked over all keys under
/// ordinary traffic.
#[test]
fn a_size_holds_while_records_are_only_replaced() {
    let (db, clock) = with_clock();
    for n in 0..2000 {
        db.set(format!("key:{n}").as_bytes(), b"v").unwrap();
    }
    db.hset(b"h", &[(b"f", b"1"), (b"g", b"1")]).unwrap();
    db.pexpire(b"h", 500, ExpireIf::ALWAYS).unwrap();
    db.zadd(b"z", &[(1.0, b"m")], ZAdd::default()).unwrap();
    db.rpush(b"l", &[b"x"]).unwrap();
    db.set(b"n", b"1").unwrap();
    db.flush().unwrap();
    let is_counted = |expected: i64| {
        let before = block_reads(&db);
        assert_eq!(db.dbsize().unwrap(), expected);
        block_reads(&db) > before
    };
    let mut expected = 2004;
    assert!(is_counted(expected));
    let replacing: [fn(&Db); 7] = [
        |db| assert!(db.hincrby(b"h", b"f", 1).is_ok()),
        |db| assert!(db.hdel(b"h", &[b"g"]).is_ok()),
        |db| assert!(db.zadd(b"z", &[(2.0, b"m"), (3.0, b"o")], ZAdd::default()).is_ok()),
        |db| assert!(db.rpush(b"l", &[b"y"]).is_ok()),
        |db| assert!(db.incr(b"n").is_ok() && db.append(b"n", b"0").is_ok()),
        // It gets rows.
        |db| assert!(db.hset(b"h", &[(b"long", &[b'v'; 2000])]).is_ok()),
        |db| {
            let txn = db.begin().unwrap();
            txn.hset(b"h", &[(b"f", b"7")]).unwrap();
            // What is taken back has made no key.
            txn.write(&[b"new"], |tx| tx.set(b"new", b"v").and_then(|()| tx.swapdb(0, 99)))
                .unwrap_err();
            txn.commit().unwrap();
        },
    ];
    for (n, replace) in replacing.iter().enumerate() {
        replace(&db);
        assert!(!is_counted(expected), "{n}");
    }
    let changing: [Change; 9] = [
        (|db| assert!(db.hset(b"h2", &[(b"f", b"v")]).is_ok()), 1),
        (|db| assert!(db.hdel(b"h2", &[b"f"]).is_ok()), -1),
        (|db| assert!(db.persist(b"h").is_ok()), 0),
        (|db| assert!(db.pexpire(b"h", 500, ExpireIf::ALWAYS).is_ok()), 0),
        (|db| assert!(db.rename(b"z", b"y").is_ok()), 0),
        (|db| assert!(db.lpop_many(b"l", 2).is_ok()), -1),
        (|db| assert!(db.incr(b"fresh").is_ok()), 1),
        (|db| assert!(db.copy(b"n", b"m", false).is_ok()), 1),
        (
            |db| {
                let txn = db.begin().unwrap();
                txn.del(&[b"n"]).unwrap();
                txn.hset(b"n", &[(b"f", b"v")]).unwrap();
                txn.hset(b"n", &[(b"g", b"v")]).unwrap();
                txn.commit().unwrap();
            },
            0,
        ),
    ];
    for (n, (change, by)) in changing.iter().enumerate() {
        change(&db);
        expected += by;
        assert!(is_counted(expected), "{n}");
    }
    db.hincrby(b"h", b"f", 1).unwrap();
    clock.advance(500);
    assert!(is_counted(expected - 1), "the hash has expired");
    assert_eq!(db.hincrby(b"h", b"f", 1).unwrap(), 1);
    assert!(is_counted(expected), "it came again, in the place of an expired record");
}

#[derive(Clone, Debug)]
enum Step {
    Hash(u8, u8),
    Remove(u8, u8),
    Increment(u8),
    Push(u8),
    Pop(u8),
    Delete(u8),
    Expire(u8, i64),
    Persist(u8),
    Rename(u8, u8),
    Flush,
    Swap,
    Clock(u64),
    Clean,
    Compact,
    /// These as one transaction, which is given up if the number says so.
    Together(Vec<Step>, bool),
}

fn small_step() -> impl Strategy<Value = Step> {
    let key = 0..4u8;
    prop_oneof![
        8 => (key.clone(), 0..5u8).prop_map(|(k, m)| Step::Hash(k, m)),
        4 => (key.clone(), 0..5u8).prop_map(|(k, m)| Step::Remove(k, m)),
        3 => key.clone().prop_map(Step::Increment),
        3 => key.clone().prop_map(Step::Push),
        3 => key.clone().prop_map(Step::Pop),
        1 => key.clone().prop_map(Step::Delete),
        2 => (key.clone(), -1..30i64).prop_map(|(k, ms)| Step::Expire(k, ms)),
        1 => key.clone().prop_map(Step::Persist),
        1 => (key.clone(), key).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => Just(Step::Flush),
        1 => Just(Step::Swap),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => small_step(),
        2 => (prop::collection::vec(small_step(), 1..5), any::<bool>())
            .prop_map(|(steps, given_up)| Step::Together(steps, given_up)),
        // Also backward.
        2 => (990..1060u64).prop_map(Step::Clock),
        1 => Just(Step::Clean),
        1 => Just(Step::Compact),
    ]
}

/// Commands may find keys of another type, or none.
fn take(db: &Db, step: &Step) {
    let name = |kind: u8, key: &u8| [kind, *key];
    let number = |n: &u8| [b'f', *n];
    match step {
        Step::Hash(key, field) => {
            drop(db.hset(&name(b'h', key), &[(&number(field), b"v")]));
            drop(db.sadd(&name(b's', key), &[&number(field)]));
        }
        Step::Remove(key, field) => {
            drop(db.hdel(&name(b'h', key), &[&number(field)]));
            drop(db.srem(&name(b's', key), &[&number(field)]));
        }
        Step::Increment(key) => drop(db.incr(&name(b'n', key))),
        Step::Push(key) => drop(db.rpush(&name(b'l', key), &[b"x"])),
        Step::Pop(key) => drop(db.lpop(&name(b'l', key))),
        Step::Delete(key) => drop(db.del(&[&name(b'h', key), &name(b'n', key)])),
        Step::Expire(key, ms) => [b'h', b'n', b'l']
            .iter()
            .for_each(|kind| drop(db.pexpire(&name(*kind, key), *ms, ExpireIf::ALWAYS))),
        Step::Persist(key) => drop(db.persist(&name(b'h', key))),
        Step::Rename(from, to) => drop(db.rename(&name(b'h', from), &name(b'n', to))),
        Step::Flush => db.flushdb().unwrap(),
        Step::Swap => db.swapdb(0, 1).unwrap(),
        Step::Clock(_) | Step::Clean | Step::Compact | Step::Together(..) => {}
    }
}

fn listed(db: &Db) -> i64 {
    db.keys(b"*").unwrap().len() as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_size_is_the_number_of_keys_that_are_listed_whatever_happens(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let clock = Arc::new(ManualClock::at(1000));
        let packing = Options { packed_max_members: 3, ..Options::default() };
        let options = Options { ttl_cleaner_interval_s: 0, ..packing };
        let fs = Arc::new(MemFs::untracked());
        let db = Db::open_on(fs, Path::new("/db"), options, clock.clone()).unwrap();
        let mut snapshots = Vec::new();
        for (n, step) in steps.iter().enumerate() {
            match step {
                Step::Clock(now) => clock.set(*now),
                Step::Clean => drop(db.clean_expired().unwrap()),
                Step::Compact => db.compact().unwrap(),
                Step::Together(steps, given_up) => {
                    let txn = db.begin().unwrap();
                    for step in steps {
                        take(&txn, step);
                        prop_assert_eq!(txn.dbsize().unwrap(), listed(&txn));
                    }
                    match given_up {
                        true => txn.rollback().unwrap(),
                        false => txn.commit().unwrap(),
                    }
                }
                step => take(&db, step),
            }
            if n % 7 == 0 {
                snapshots.push(db.snapshot().unwrap());
            }
            for db in [&db, &db.select(1).unwrap()].into_iter().chain(&snapshots) {
                prop_assert_eq!(db.dbsize().unwrap(), listed(db), "after {}", n);
            }
        }
    }
}

/// Each read point has the count of its own keys, also while some writers add and remove keys and
/// others only replace records.
#[test]
fn counts_are_those_of_their_read_point_under_writers_of_both_kinds() {
    let db = Db::open(":memory:", Options::default()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2u8 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                // Bounded, so that a failure below is not waited for.
                for n in 0u32..200_000 {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    db.hincrby(&[writer], b"f", 1).unwrap();
                    if n.is_multiple_of(5) {
                        let key = [writer, (n / 5 % 64) as u8];
                        match n.is_multiple_of(2) {
                            true => db.set(&key, b"v").unwrap(),
                            false => assert!(db.del(&[&key]).is_ok()),
                        }
                    }
                }
            });
        }
        for _ in 0..2000 {
            // A count that is kept, and a snapshot for which it may or may not hold.
            db.dbsize().unwrap();
            let snapshot = db.snapshot().unwrap();
            assert_eq!(snapshot.dbsize().unwrap(), listed(&snapshot));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(db.dbsize().unwrap(), listed(&db));
}

/// A reader at an earlier read point must not get the count of a later one, nor leave its own for
/// it.
#[test]
fn a_count_is_that_of_the_read_point() {
    let db = Db::open(":memory:", Options::default()).unwrap();
    db.set(b"a", b"v").unwrap();
    db.read(|tx| {
        db.set(b"b", b"v")?;
        assert_eq!(db.dbsize()?, 2);
        assert_eq!(tx.dbsize()?, 1);
        assert_eq!((db.dbsize()?, tx.dbsize()?), (2, 1));
        Ok(())
    })
    .unwrap();
}

#[test]
fn sizes_never_go_back_under_writers() {
    let db = Db::open(":memory:", Options::default()).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..3000u32 {
                db.set(&n.to_be_bytes(), b"v").unwrap();
                if n % 64 == 0 {
                    assert!(db.dbsize().unwrap() > i64::from(n), "its own write");
                }
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            let size = db.dbsize().unwrap();
            assert!(size >= last, "{size} after {last}");
            last = size;
        }
    });
    assert_eq!(db.dbsize().unwrap(), 3000);
    assert_eq!(db.check().unwrap(), [""; 0]);
}
