//! Stories of transactions and snapshots, told by one thread.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::MemFs;
use crate::error::{ErrorKind, Result};
use crate::io::clock::ManualClock;
use crate::options::{Options, SyncMode};
use crate::txn::{Db, Transaction};
use crate::types::testing::{both, unpacked, with_clock};
use crate::types::{ExpireIf, ScanOptions};

fn db() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn text(value: Result<Option<bytes::Bytes>>) -> Option<String> {
    value.unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    result.err().unwrap().kind()
}

/// Commits after `meanwhile`; whether it conflicted.
fn conflicts(db: &Db, inside: impl FnOnce(&Transaction), meanwhile: impl FnOnce(&Db)) -> bool {
    let txn = db.begin().unwrap();
    inside(&txn);
    meanwhile(db);
    match txn.commit() {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
            true
        }
    }
}

#[test]
fn a_transaction_sees_its_read_point_and_its_own_writes_and_others_see_neither() {
    for db in both() {
        db.set(b"a", b"1").unwrap();
        let txn = db.begin().unwrap();
        db.set(b"b", b"later").unwrap();
        assert_eq!(text(txn.get(b"b")), None);
        txn.rpush(b"list", &[b"x", b"y"]).unwrap();
        txn.hset(b"hash", &[(b"f", b"v")]).unwrap();
        assert_eq!(txn.incr(b"a").unwrap(), 2);
        assert_eq!(text(txn.get(b"a")), Some("2".to_owned()));
        assert_eq!(txn.lrange(b"list", 0, -1).unwrap(), ["x", "y"]);
        assert_eq!(txn.keys(b"*").unwrap(), ["a", "hash", "list"]);
        assert_eq!(txn.dbsize().unwrap(), 3);
        assert_eq!(txn.scan(b"", &ScanOptions::default()).unwrap().1.len(), 3);
        assert_eq!(text(db.get(b"a")), Some("1".to_owned()));
        assert_eq!(db.exists(&[b"list", b"hash"]).unwrap(), 0);
        txn.rollback().unwrap();
        assert_eq!(text(db.get(b"a")), Some("1".to_owned()));
        assert_eq!(db.keys(b"*").unwrap(), ["a", "b"]);
    }
}

#[test]
fn after_its_end_a_transaction_and_what_was_made_from_it_are_closed() {
    let db = db();
    type End = fn(&Transaction) -> Result<()>;
    let ends: [End; 4] = [
        Transaction::commit,
        Transaction::rollback,
        |txn| txn.commit_timeout(Duration::from_secs(1)),
        |txn| txn.commit_async().map(drop),
    ];
    for end in ends {
        let txn = db.begin().unwrap();
        let other = txn.select(1).unwrap();
        txn.set(b"k", b"v").unwrap();
        end(&txn).unwrap();
        assert_eq!(kind(txn.get(b"k")), ErrorKind::Closed);
        assert_eq!(kind(other.set(b"k", b"v")), ErrorKind::Closed);
        assert_eq!(kind(txn.commit()), ErrorKind::Closed);
        assert_eq!(kind(txn.rollback()), ErrorKind::Closed);
    }
    let clone = {
        let txn = db.begin().unwrap();
        txn.set(b"dropped", b"v").unwrap();
        Db::clone(&txn)
    };
    assert_eq!(kind(clone.get(b"dropped")), ErrorKind::Closed);
    assert_eq!(db.exists(&[b"dropped"]).unwrap(), 0);
    assert_eq!(db.store().conflicts().counts(), (0, 0));
    assert_eq!(db.engine_stats().snapshots, 0);
}

#[test]
fn what_was_read_or_written_and_changed_meanwhile_is_a_conflict() {
    for db in both() {
        db.set(b"k", b"v").unwrap();
        db.hset(b"h", &[(b"f", b"1"), (b"g", b"1")]).unwrap();
        db.rpush(b"l", &[b"a", b"b", b"c"]).unwrap();
        db.zadd(b"z", &[(1.0, b"m")], crate::types::ZAdd::default()).unwrap();
        let set = |db: &Db| db.set(b"k", b"w").unwrap();
        assert!(conflicts(&db, |txn| drop(txn.get(b"k").unwrap()), set));
        assert!(conflicts(&db, |txn| txn.set(b"k", b"x").unwrap(), set));
        assert!(conflicts(
            &db,
            |txn| {
                txn.exists(&[b"n"]).unwrap();
            },
            |db| {
                db.set(b"n", b"v").unwrap();
                db.del(&[b"n"]).unwrap();
            }
        ));
        // With rows none of these writes the record of its key.
        assert!(conflicts(
            &db,
            |txn| drop(txn.hget(b"h", b"f").unwrap()),
            |db| {
                db.hset(b"h", &[(b"f", b"2")]).unwrap();
            }
        ));
        assert!(conflicts(
            &db,
            |txn| drop(txn.hgetall(b"h").unwrap()),
            |db| {
                db.hset(b"h", &[(b"g", b"2")]).unwrap();
            }
        ));
        assert!(conflicts(
            &db,
            |txn| drop(txn.lindex(b"l", 0).unwrap()),
            |db| {
                db.lset(b"l", 1, b"x").unwrap();
            }
        ));
        assert!(conflicts(
            &db,
            |txn| {
                txn.zscore(b"z", b"m").unwrap();
            },
            |db| {
                db.zadd(b"z", &[(2.0, b"m")], crate::types::ZAdd::default()).unwrap();
            }
        ));
        // A command that failed has seen what it failed for.
        assert!(conflicts(&db, |txn| drop(txn.incr(b"k").unwrap_err()), set));
    }
}

#[test]
fn what_others_do_to_other_keys_or_do_not_change_is_no_conflict() {
    let db = db();
    db.rpush(b"l", &[b"a", b"b"]).unwrap();
    let use_it = |txn: &Transaction| {
        txn.lrange(b"l", 0, -1).unwrap();
        txn.set(b"k", b"v").unwrap();
    };
    assert!(!conflicts(&db, use_it, |db| {
        for n in 0..3000u32 {
            db.set(&n.to_be_bytes(), b"v").unwrap();
            db.select(1).unwrap().set(b"l", b"another database").unwrap();
        }
    }));
    assert!(!conflicts(&db, use_it, |db| {
        db.ltrim(b"l", 0, -1).unwrap();
        db.lrem(b"l", 0, b"absent").unwrap();
        assert!(!db.setnx(b"l", b"v").unwrap());
        assert!(db.incr(b"l").is_err());
    }));
    assert!(!conflicts(&db, use_it, |db| db
        .begin()
        .unwrap()
        .rpush(b"l", &[b"c"])
        .map(drop)
        .unwrap()));
}

#[test]
fn a_command_that_fails_in_a_transaction_leaves_no_trace() {
    for db in both() {
        db.set(b"string", b"v").unwrap();
        let txn = db.begin().unwrap();
        txn.set(b"a", b"1").unwrap();
        let failed = txn.write(&[b"a", b"h"], |tx| {
            tx.set(b"a", b"2")?;
            tx.hset(b"h", &[(b"f", b"v")])?;
            tx.flushall()?;
            tx.set(b"b", b"2")?;
            tx.incr(b"string")?;
            tx.lpush(b"b", &[b"x"])
        });
        assert_eq!(kind(failed), ErrorKind::WrongType);
        assert_eq!(txn.keys(b"*").unwrap(), ["a", "string"]);
        txn.commit().unwrap();
        assert_eq!(db.keys(b"*").unwrap(), ["a", "string"]);
        assert_eq!(text(db.get(b"a")), Some("1".to_owned()));
        assert_eq!(db.engine_stats().reserved, 0);
    }
}

#[test]
fn a_collection_made_deleted_and_made_again_has_only_what_came_last() {
    for options in [Options::default(), unpacked()] {
        let fs = Arc::new(MemFs::untracked());
        let open = || {
            let clock = Arc::new(ManualClock::at(1));
            Db::open_on(fs.clone(), Path::new("/db"), options.clone(), clock).unwrap()
        };
        let db = open();
        db.hset(b"h", &[(b"before", b"0")]).unwrap();
        let txn = db.begin().unwrap();
        for (field, last) in [(b"one", false), (b"two", false), (b"six", true)] {
            txn.hset(b"h", &[(field, b"v")]).unwrap();
            txn.zadd(b"z", &[(1.0, field)], crate::types::ZAdd::default()).unwrap();
            txn.rpush(b"l", &[field]).unwrap();
            txn.sadd(b"s", &[field]).unwrap();
            if !last {
                assert_eq!(txn.del(&[b"h", b"z", b"l", b"s"]).unwrap(), 4);
            }
        }
        let check = |db: &Db| {
            assert_eq!(db.hgetall(b"h").unwrap(), [("six".into(), "v".into())]);
            assert_eq!(db.zcard(b"z").unwrap(), 1);
            assert_eq!(db.lrange(b"l", 0, -1).unwrap(), ["six"]);
            assert_eq!(db.smembers(b"s").unwrap(), ["six"]);
        };
        check(&txn);
        txn.commit().unwrap();
        check(&db);
        db.compact().unwrap();
        check(&db);
        assert_eq!(db.check().unwrap(), [""; 0]);
        db.close().unwrap();
        check(&open());
    }
}

#[test]
fn memory_is_bounded_and_a_transaction_that_is_full_lives_on() {
    let options = Options { txn_max_bytes: 64 << 10, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    let big: Vec<Vec<u8>> = (0..500u32).map(|n| [n.to_be_bytes(); 50].concat()).collect();
    let big: Vec<&[u8]> = big.iter().map(Vec::as_slice).collect();
    db.rpush(b"big", &big).unwrap();
    let txn = db.begin().unwrap();
    txn.set(b"small", b"v").unwrap();
    let error = txn.copy(b"big", b"copy", false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("txn_max_bytes"), "{error:?}");
    assert_eq!(txn.exists(&[b"small", b"copy"]).unwrap(), 1);
    let mut written = 0u32;
    while txn.set(&written.to_be_bytes(), &[0; 100]).is_ok() {
        written += 1;
    }
    assert!((100..400).contains(&written), "{written}");
    txn.rollback().unwrap();
    assert_eq!(db.dbsize().unwrap(), 1);
    let txn = db.begin().unwrap();
    txn.set(b"small", b"v").unwrap();
    txn.commit().unwrap();
}

#[test]
fn databases_are_emptied_and_swapped_inside_a_transaction_and_conflict_with_each_other() {
    let db = db();
    let one = db.select(1).unwrap();
    db.set(b"a", b"0").unwrap();
    one.set(b"b", b"1").unwrap();
    let txn = db.begin().unwrap();
    txn.flushdb().unwrap();
    assert_eq!((txn.dbsize().unwrap(), db.dbsize().unwrap()), (0, 1));
    txn.set(b"c", b"2").unwrap();
    txn.swapdb(0, 1).unwrap();
    assert_eq!(txn.keys(b"*").unwrap(), ["b"]);
    assert_eq!(txn.select(1).unwrap().keys(b"*").unwrap(), ["c"]);
    txn.commit().unwrap();
    assert_eq!(db.keys(b"*").unwrap(), ["b"]);
    assert_eq!(one.keys(b"*").unwrap(), ["c"]);
    // Both would take the same fresh space.
    let (first, second) = (db.begin().unwrap(), db.begin().unwrap());
    first.flushdb().unwrap();
    second.select(1).unwrap().flushdb().unwrap();
    second.select(1).unwrap().set(b"k", b"second").unwrap();
    first.set(b"k", b"first").unwrap();
    first.commit().unwrap();
    assert_eq!(kind(second.commit()), ErrorKind::Conflict);
    assert_eq!(db.keys(b"*").unwrap(), ["k"]);
    assert_eq!(one.keys(b"*").unwrap(), ["c"]);
}

#[test]
fn emptying_or_swapping_a_database_counts_for_keys_that_are_there_before_or_after() {
    let db = db();
    let one = db.select(1).unwrap();
    let flush = |db: &Db| db.flushdb().unwrap();
    let read = |txn: &Transaction| drop(txn.get(b"k").unwrap());
    assert!(!conflicts(&db, read, flush), "never there");
    assert!(!conflicts(&db, read, |_| one.flushdb().unwrap()), "another database");
    db.set(b"k", b"v").unwrap();
    assert!(conflicts(&db, read, flush), "there before");
    one.set(b"k", b"v").unwrap();
    assert!(conflicts(&db, read, |db| db.swapdb(0, 1).unwrap()), "there after");
    db.flushall().unwrap();
    assert!(conflicts(&db, |txn| txn.set(b"k", b"v").unwrap(), flush), "written");
    assert!(!conflicts(&db, read, |db| {
        db.swapdb(0, 1).unwrap();
        db.swapdb(0, 1).unwrap();
    }));
    assert_eq!(db.dbsize().unwrap(), 0);
}

#[test]
fn a_key_that_has_expired_meanwhile_is_a_conflict_and_its_removal_is_none() {
    let (db, clock) = with_clock();
    let expire = |key: &[u8], ms| db.pexpire(key, ms, ExpireIf::ALWAYS).unwrap();
    for clean in [false, true] {
        let late = |_: &Db| {
            clock.advance(20);
            if clean {
                db.clean_expired().unwrap();
            }
        };
        db.set(b"k", b"v").unwrap();
        expire(b"k", 10);
        assert!(conflicts(&db, |txn| assert!(txn.persist(b"k").unwrap()), late));
        assert_eq!(db.exists(&[b"k"]).unwrap(), 0);
        // One that had expired before was missing, and still is.
        db.set(b"k", b"v").unwrap();
        expire(b"k", 10);
        clock.advance(20);
        assert!(!conflicts(
            &db,
            |txn| {
                txn.incr(b"k").unwrap();
            },
            late
        ));
        assert_eq!(text(db.get(b"k")), Some("1".to_owned()));
    }
}

/// A row of a version whose record the cleaner took away would be lost in silence, when the clock
/// is set back before the commit.
#[test]
fn a_clock_that_steps_back_after_an_expiry_hides_no_conflict() {
    let (db, clock) = with_clock();
    db.hset(b"h", &[(b"f", b"1"), (b"g", b"1")]).unwrap();
    db.pexpire(b"h", 10, ExpireIf::ALWAYS).unwrap();
    assert!(conflicts(
        &db,
        |txn| {
            txn.hset(b"h", &[(b"f", b"2")]).unwrap();
        },
        |db| {
            clock.advance(20);
            assert_eq!(db.clean_expired().unwrap(), 1);
            clock.set(1000);
        }
    ));
}

#[test]
fn a_snapshot_keeps_its_read_point_time_and_databases() {
    let (db, clock) = with_clock();
    let one = db.select(1).unwrap();
    db.set(b"k", b"v").unwrap();
    db.pexpire(b"k", 10, ExpireIf::ALWAYS).unwrap();
    one.hset(b"h", &[(b"f", b"v")]).unwrap();
    let then = db.snapshot().unwrap();
    db.swapdb(0, 1).unwrap();
    one.flushdb().unwrap();
    clock.advance(20);
    db.del(&[b"h"]).unwrap();
    db.clean_expired().unwrap();
    db.compact().unwrap();
    for then in [&then, &then.snapshot().unwrap(), &then.select(1).unwrap().select(0).unwrap()] {
        assert_eq!(text(then.get(b"k")), Some("v".to_owned()));
        assert_eq!(then.pttl(b"k").unwrap(), 10);
        assert_eq!(text(then.select(1).unwrap().hget(b"h", b"f")), Some("v".to_owned()));
        assert_eq!(kind(then.set(b"k", b"w")), ErrorKind::ReadOnly);
        assert_eq!(kind(then.flushdb()), ErrorKind::ReadOnly);
        assert_eq!(kind(then.begin()), ErrorKind::Unsupported);
    }
    assert_eq!(db.dbsize().unwrap() + one.dbsize().unwrap(), 0);
}

#[test]
fn handles_of_a_transaction_are_no_ground_for_another() {
    let db = db();
    let txn = db.begin().unwrap();
    assert_eq!(kind(txn.begin()), ErrorKind::Unsupported);
    assert_eq!(kind(txn.snapshot()), ErrorKind::Unsupported);
    db.close().unwrap();
    assert_eq!(kind(txn.get(b"k")), ErrorKind::Closed);
    assert_eq!(kind(db.begin()), ErrorKind::Closed);
    assert_eq!(kind(db.snapshot()), ErrorKind::Closed);
}

#[test]
fn transact_tries_again_until_it_succeeds_or_the_work_fails() {
    let db = db();
    let mut attempts = 0;
    let answer = db.transact(|txn| {
        attempts += 1;
        let answer = txn.incr(b"k")?;
        if attempts < 7 {
            db.incr(b"k")?;
        }
        Ok(answer)
    });
    assert_eq!((answer.unwrap(), attempts), (7, 7));
    let failed = db.transact(|txn| {
        txn.set(b"k", b"x")?;
        txn.incr(b"k")
    });
    assert_eq!(kind(failed), ErrorKind::NotInteger);
    assert_eq!(text(db.get(b"k")), Some("7".to_owned()));
}

#[test]
fn a_commit_that_cannot_have_its_locks_in_time_changes_nothing_and_can_be_tried_again() {
    let db = db();
    let txn = db.begin().unwrap();
    txn.set(b"k", b"v").unwrap();
    let held = db.store().lock_every(None).unwrap();
    assert_eq!(kind(txn.commit_timeout(Duration::from_millis(1))), ErrorKind::Timeout);
    drop(held);
    assert_eq!(db.exists(&[b"k"]).unwrap(), 0);
    txn.commit_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(db.exists(&[b"k"]).unwrap(), 1);
}

#[test]
fn tickets_are_durable_once_waited_for_in_any_mode_and_few_flushes_serve_many() {
    for sync in [SyncMode::Always, SyncMode::Interval, SyncMode::Off] {
        let options = Options { sync, sync_interval_ms: 3_600_000, ..Options::default() };
        let db = Db::open(":memory:", options).unwrap();
        let syncs = || db.engine_stats().syncs;
        let before = syncs();
        let commit = |n: u32| {
            let txn = db.begin().unwrap();
            txn.incr(b"k").unwrap();
            txn.set(&n.to_be_bytes(), b"v").unwrap();
            txn.commit_async().unwrap()
        };
        let tickets: Vec<_> = (0..64).map(commit).collect();
        assert!(!db.wait(tickets[63], Some(Duration::ZERO)).unwrap(), "zero only asks");
        assert!(tickets.is_sorted());
        for ticket in &tickets {
            let same = crate::txn::Ticket::from_number(ticket.number());
            assert!(db.wait(same, None).unwrap());
            assert!(db.wait(same, Some(Duration::ZERO)).unwrap());
        }
        assert!(syncs() - before <= 2, "{} for 64", syncs() - before);
        let nothing = db.begin().unwrap().commit_async().unwrap();
        assert!(db.wait(nothing, Some(Duration::ZERO)).unwrap());
        let strange = crate::txn::Ticket::from_number(u64::MAX);
        assert_eq!(kind(db.wait(strange, None)), ErrorKind::Misuse);
    }
}

#[test]
fn the_sync_mode_of_a_handle_is_that_of_its_writes() {
    let options = Options { sync: SyncMode::Off, sync_interval_ms: 1, ..Options::default() };
    let db = Db::open(":memory:", options).unwrap();
    let syncs = || db.engine_stats().syncs;
    let before = syncs();
    db.set(b"k", b"v").unwrap();
    assert_eq!(syncs(), before);
    let always = db.with_sync(SyncMode::Always);
    always.set(b"k", b"v").unwrap();
    assert_eq!(syncs(), before + 1);
    let txn = always.select(3).unwrap().begin().unwrap();
    txn.set(b"k", b"v").unwrap();
    txn.commit().unwrap();
    assert_eq!(syncs(), before + 2);
    db.with_sync(SyncMode::Interval).set(b"k", b"w").unwrap();
    while syncs() == before + 2 {
        std::thread::yield_now();
    }
}
