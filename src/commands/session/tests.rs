//! Properties of a session that replies do not show. tests/differential compares the replies with a
//! real Redis.

mod conversions;
mod server_answers;

use super::*;
use crate::error::ErrorKind;
use crate::options::Options;
use crate::types::ExpireIf;
use crate::types::testing::with_clock;

fn say(session: &mut Session, line: &str) -> Reply {
    let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    session.command(&argv).unwrap()
}

fn db() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

#[test]
fn a_watched_key_that_expires_is_changed_and_its_removal_is_not() {
    let (db, clock) = with_clock();
    let mut session = db.session();
    for clean in [false, true] {
        let mut exec_after = |ms: u64| {
            say(&mut session, "WATCH k");
            clock.advance(ms);
            if clean {
                db.clean_expired().unwrap();
            }
            say(&mut session, "MULTI");
            say(&mut session, "EXEC")
        };
        db.set(b"k", b"v").unwrap();
        db.pexpire(b"k", 10, ExpireIf::ALWAYS).unwrap();
        assert_eq!(exec_after(9), Reply::Array(Vec::new()));
        assert_eq!(exec_after(1), Reply::NilArray, "expired since it was watched");
        db.set(b"k", b"v").unwrap();
        db.pexpire(b"k", 10, ExpireIf::ALWAYS).unwrap();
        clock.advance(20);
        assert_eq!(exec_after(1), Reply::Array(Vec::new()), "expired before it was watched");
    }
}

#[test]
fn a_server_asks_what_is_queued_and_makes_exec_fail_without_a_command() {
    let db = db();
    let mut session = db.session();
    session.mark_dirty();
    say(&mut session, "MULTI");
    for (line, queued) in [("SET k v", 1), ("PING", 2), ("WATCH k", 2), ("NOSUCH", 2), ("GET", 2)] {
        say(&mut session, line);
        assert_eq!(session.queued_commands(), queued, "{line}");
    }
    say(&mut session, "DISCARD");
    assert_eq!(session.queued_commands(), 0);

    say(&mut session, "MULTI");
    say(&mut session, "SET k v");
    session.mark_dirty();
    assert!(
        matches!(say(&mut session, "EXEC"), Reply::Error(text) if text.starts_with("EXECABORT"))
    );
    assert_eq!(db.get(b"k").unwrap(), None);
    assert_eq!(say(&mut session, "SET k v"), Reply::OK, "the next transaction begins anew");
}

/// A queue of one growing buffer took up to three times its bytes, and closing its client paused
/// everybody else.
#[test]
fn a_long_transaction_takes_little_memory_is_freed_in_pieces_and_runs_whole() {
    const COMMANDS: usize = 100_000;
    let db = db();
    let mut session = db.session();
    say(&mut session, "MULTI");
    for n in 0..COMMANDS {
        say(&mut session, &format!("RPUSH list {n:06}"));
    }
    // A command of its own size in the middle of small ones.
    let large = vec![b'v'; 1 << 20];
    assert_eq!(session.command(&[b"SET", b"large", &large]).unwrap(), Reply::Status("QUEUED"));
    say(&mut session, "RPUSH list last");
    let arguments = COMMANDS * "RPUSHlist000000".len() + large.len();
    let bookkeeping = COMMANDS * (3 + 3) * size_of::<usize>();
    let held = session.held_bytes();
    assert!(held < (arguments + bookkeeping) * 3 / 2, "{held} bytes");
    assert_eq!(session.queued_commands(), COMMANDS + 2);

    let Reply::Array(replies) = say(&mut session, "EXEC") else { panic!("no array") };
    assert_eq!(replies.len(), COMMANDS + 2);
    assert_eq!(replies[COMMANDS - 1], Reply::Int(COMMANDS as i64));
    assert_eq!(db.get(b"large").unwrap().unwrap(), large);
    assert_eq!(db.lindex(b"list", 54_321).unwrap().unwrap(), b"054321"[..]);
    assert_eq!(db.lindex(b"list", -1).unwrap().unwrap(), b"last"[..]);

    assert!(session.abandon_queue().is_none());
    say(&mut session, "WATCH k");
    say(&mut session, "MULTI");
    (0..COMMANDS).for_each(|_| drop(say(&mut session, "SET k v")));
    let mut abandoned = session.abandon_queue().unwrap();
    assert!(!session.in_multi());
    assert_eq!(db.store().conflicts().counts(), (0, 0), "nothing is watched any more");
    let mut pieces = 1;
    while abandoned.free_some(64 << 10) {
        pieces += 1;
    }
    assert!(pieces > 50, "freed in {pieces} pieces");
    assert_eq!(db.get(b"k").unwrap(), None);
}

#[test]
fn what_was_watched_is_forgotten_in_every_way_a_connection_forgets() {
    let db = db();
    let mut session = db.session();
    for end in ["UNWATCH", "RESET", "MULTI;EXEC", "MULTI;DISCARD", "MULTI;NOSUCH;EXEC"] {
        say(&mut session, "WATCH k");
        assert_eq!(db.store().conflicts().counts().0, 1);
        end.split(';').for_each(|line| drop(say(&mut session, line)));
        assert_eq!(db.store().conflicts().counts(), (0, 0), "{end}");
    }
    say(&mut session, "WATCH k");
    drop(session);
    assert_eq!(db.store().conflicts().counts(), (0, 0));
}

#[test]
fn commands_of_a_connection_are_misuse_elsewhere() {
    let db = db();
    for (_, row) in CONNECTION {
        let error = db.command(&[row.name.to_ascii_lowercase().as_bytes()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("session"), "{error:?}");
        assert!(find_command(row.name.as_bytes()).is_none(), "{} is in both tables", row.name);
    }
    assert_eq!(db.session().command(&[]).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_session_on_a_snapshot_reads_and_one_on_a_transaction_is_part_of_it() {
    let db = db();
    db.set(b"k", b"1").unwrap();
    let mut past = db.snapshot().unwrap().session();
    db.set(b"k", b"2").unwrap();
    let value = |text: &'static str| Reply::Bulk(text.into());
    ["WATCH k", "MULTI", "GET k"].iter().for_each(|line| drop(say(&mut past, line)));
    assert_eq!(say(&mut past, "EXEC"), Reply::Array(vec![value("1")]));
    ["MULTI", "SET k 3"].iter().for_each(|line| drop(say(&mut past, line)));
    assert_eq!(past.command(&[b"EXEC"]).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(say(&mut past, "GET k"), value("1"));

    let txn = db.begin().unwrap();
    let mut inside = txn.session();
    ["MULTI", "INCR k", "LPUSH k x", "GET k"].iter().for_each(|line| drop(say(&mut inside, line)));
    let Reply::Array(replies) = say(&mut inside, "EXEC") else { panic!() };
    assert_eq!((&replies[0], &replies[2]), (&Reply::Int(3), &value("3")));
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"2"[..]));
    txn.commit().unwrap();
    assert_eq!(db.get(b"k").unwrap().as_deref(), Some(&b"3"[..]));
}

/// EXEC locks its keys, so other writers cannot make it fail.
#[test]
fn exec_without_watch_loses_nothing_and_never_fails() {
    let db = db();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = db.session();
                for n in 0..200 {
                    ["MULTI", "INCR a", "INCR b", "GET a", "GET b"]
                        .iter()
                        .for_each(|line| drop(say(&mut session, line)));
                    let Reply::Array(replies) = say(&mut session, "EXEC") else { panic!("{n}") };
                    assert_eq!(replies[2], replies[3]);
                    db.incr(b"c").unwrap();
                }
            });
        }
    });
    for (key, value) in [(b"a", b"800"), (b"b", b"800"), (b"c", b"800")] {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
    }
}

#[test]
fn with_watch_every_update_is_applied_or_refused() {
    let db = db();
    let applied: i64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut session = db.session();
                    let mut applied = 0;
                    for _ in 0..200 {
                        say(&mut session, "WATCH k");
                        let seen = match say(&mut session, "GET k") {
                            Reply::Bulk(seen) => String::from_utf8_lossy(&seen).parse().unwrap(),
                            _ => 0i64,
                        };
                        say(&mut session, "MULTI");
                        say(&mut session, &format!("SET k {}", seen + 1));
                        applied += i64::from(say(&mut session, "EXEC") != Reply::NilArray);
                    }
                    applied
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(applied >= 200);
    assert_eq!(db.incrby(b"k", 0).unwrap(), applied);
}
