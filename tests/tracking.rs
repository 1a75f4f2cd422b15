//! CLIENT TRACKING on sessions of the library: a session that may have cached a key learns of each
//! change of it, through whichever handle of the process it comes. cli/tests/server/tracking.rs
//! compares what is told with a real Redis.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]

#[path = "support/sessions.rs"]
mod sessions;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lsmkv::{Db, Options, Reply, Session};
use sessions::{received, run, text};

const NOTHING: [&str; 0] = [];

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

/// A session that tracks.
fn tracking(db: &Db, options: &str) -> Session {
    let mut session = db.session();
    run(&mut session, "HELLO 3");
    assert_eq!(run(&mut session, &format!("CLIENT TRACKING ON{options}")), Reply::OK);
    session
}

/// Runs a command by name on a handle.
fn command(db: &Db, line: &str) -> Reply {
    let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    db.command(&argv).unwrap()
}

fn transaction(db: &Db) {
    let transaction = db.begin().unwrap();
    transaction.set(b"k", b"t").unwrap();
    transaction.commit().unwrap();
}

fn batch(db: &Db) {
    let mut batch = db.batch();
    batch.put(b"k", b"b").unwrap();
    batch.commit().unwrap();
}

fn exec(db: &Db) {
    let mut other = db.session();
    for line in ["MULTI", "SET k m", "EXEC"] {
        run(&mut other, line);
    }
}

type Way = (&'static str, fn(&Db));

/// Ways to change the key `k`, each through another handle or kind of call.
const WAYS: [Way; 14] = [
    ("SET", |db| db.set(b"k", b"1").unwrap()),
    ("APPEND", |db| drop(db.append(b"k", b"1"))),
    ("MSET", |db| db.mset(&[(&b"k"[..], &b"1"[..]), (b"l", b"2")]).unwrap()),
    ("DEL", |db| drop(db.del(&[b"k"]))),
    ("LPUSH", |db| {
        db.del(&[b"k"]).unwrap();
        db.lpush(b"k", &[&b"m"[..]]).unwrap();
    }),
    ("RENAME to it", |db| {
        db.set(b"from", b"1").unwrap();
        db.rename(b"from", b"k").unwrap();
    }),
    ("by name", |db| drop(command(db, "SET k v EX 100"))),
    ("a pipeline", |db| {
        drop(db.pipeline(&[vec![&b"INCR"[..], b"n"], vec![b"DEL", b"k"]]).unwrap());
    }),
    ("another session", |db| drop(run(&mut db.session(), "SET k s"))),
    ("EXEC of another session", exec),
    ("a handle of another database", |db| {
        command(&db.select(1).unwrap(), "SET m 1");
        assert_eq!(command(&db.select(1).unwrap(), "MOVE m 0"), Reply::Int(1));
        command(db, "RENAME m k");
    }),
    ("another sync mode", |db| {
        db.with_sync(lsmkv::SyncMode::Off).set(b"k", b"o").unwrap();
    }),
    ("a transaction", transaction),
    ("a batch", batch),
];

#[test]
fn a_change_through_any_handle_is_told_once_to_those_who_read_the_key() {
    let db = open();
    let (mut session, mut second) = (tracking(&db, ""), tracking(&db, ""));
    let mut other = tracking(&db, "");
    for (way, change) in WAYS {
        db.set(b"k", b"0").unwrap();
        for reader in [&mut session, &mut second] {
            run(reader, "GET k");
            assert_eq!(received(reader), NOTHING, "{way}: before the change");
        }
        run(&mut other, "GET unread");
        change(&db);
        assert_eq!(received(&mut session), ["invalidate k"], "{way}");
        assert_eq!(received(&mut second), ["invalidate k"], "{way}");
        change(&db);
        assert_eq!(received(&mut session), NOTHING, "{way}: not read again");
        assert_eq!(received(&mut other), NOTHING, "{way}: a key that was not read");
        db.del(&[b"k"]).unwrap();
    }
}

#[cfg(feature = "scripting")]
#[test]
fn changes_of_scripts_and_functions_are_told() {
    let db = open();
    let mut session = tracking(&db, "");
    let library = "#!lua name=l\nredis.register_function('put', function(keys) \
                   return redis.call('SET', keys[1], 'f') end)";
    db.function_load(library, false).unwrap();
    let put = "return redis.call('SET', 'k', 's')";
    let ways: [(&str, &dyn Fn()); 3] = [
        ("a script that declares its key", &|| drop(db.eval(put, &[b"k"], &[]).unwrap())),
        ("one that does not", &|| drop(db.eval(put, &[], &[]).unwrap())),
        ("a function", &|| drop(db.fcall("put", &[b"k"], &[]).unwrap())),
    ];
    for (way, change) in ways {
        run(&mut session, "GET k");
        run(&mut session, "GET l");
        change();
        assert_eq!(received(&mut session), ["invalidate k"], "{way}");
    }
    // What fails changes nothing.
    run(&mut session, "GET k");
    db.eval("redis.call('SET', 'k', 'x') error('no')", &[b"k"], &[]).unwrap_err();
    assert_eq!(received(&mut session), NOTHING);
    // Of a script that the session itself runs, the keys that it declares count as read.
    let get = b"redis.call('GET', 'hidden') return redis.call('GET', KEYS[1])";
    session.command(&[b"EVAL", get, b"1", b"declared"]).unwrap();
    db.set(b"hidden", b"1").unwrap();
    assert_eq!(received(&mut session), NOTHING);
    db.set(b"declared", b"1").unwrap();
    assert_eq!(received(&mut session), ["invalidate declared"]);
}

#[test]
fn nothing_is_told_of_what_is_not_committed() {
    let db = open();
    let mut session = tracking(&db, "");
    run(&mut session, "GET k");
    let open_one = db.begin().unwrap();
    open_one.set(b"k", b"1").unwrap();
    assert_eq!(received(&mut session), NOTHING);
    open_one.rollback().unwrap();
    let mut failing = db.batch();
    failing.put(b"k", b"v").unwrap();
    failing.command(&[b"INCR", b"k"]).unwrap();
    failing.commit().unwrap_err();
    command(&db, "SET k v XX");
    db.del(&[b"k"]).unwrap();
    assert_eq!(received(&mut session), NOTHING);
    transaction(&db);
    assert_eq!(received(&mut session), ["invalidate k"]);
}

#[test]
fn every_read_by_name_counts_and_no_typed_one() {
    let db = open();
    let mut session = tracking(&db, "");
    for (line, keys) in [
        ("GET k", &["k"][..]),
        ("MGET k l", &["k", "l"]),
        ("HGETALL k", &["k"]),
        ("EXISTS k l", &["k", "l"]),
        ("ZRANGE k 0 -1", &["k"]),
        ("DBSIZE", &[]),
        ("KEYS *", &[]),
    ] {
        run(&mut session, line);
        for key in ["k", "l", "m"] {
            db.set(key.as_bytes(), b"1").unwrap();
            db.del(&[key.as_bytes()]).unwrap();
        }
        let told: Vec<String> = keys.iter().map(|key| format!("invalidate {key}")).collect();
        assert_eq!(received(&mut session), told, "{line}");
    }
    for line in ["MULTI", "GET a", "GET b", "EXEC"] {
        run(&mut session, line);
    }
    db.set(b"a", b"1").unwrap();
    assert_eq!(received(&mut session), ["invalidate a"]);
    // The handle of the session is no session.
    session.db().get(b"typed").unwrap();
    db.set(b"typed", b"1").unwrap();
    assert_eq!(received(&mut session), NOTHING);
    db.flushall().unwrap();
    assert_eq!(received(&mut session), ["invalidate nil"]);
}

#[test]
fn a_key_that_expires_is_told_without_a_read() {
    let db = open();
    let mut session = tracking(&db, "");
    command(&db, "SET k v PX 30");
    assert_eq!(text(&run(&mut session, "GET k")), "v");
    let deadline = Instant::now() + Duration::from_secs(20);
    let told = session.wait(Some(deadline)).unwrap();
    assert_eq!(told.as_ref().map(text).as_deref(), Some("invalidate k"));
    assert_eq!(command(&db, "EXISTS k"), Reply::Int(0));
}

#[test]
fn optin_and_optout_choose_what_is_tracked() {
    let db = open();
    for (options, choice, chosen_is_told) in
        [(" OPTIN", "CLIENT CACHING YES", true), (" OPTOUT", "CLIENT CACHING NO", false)]
    {
        let mut session = tracking(&db, options);
        run(&mut session, "GET plain");
        assert_eq!(run(&mut session, choice), Reply::OK);
        run(&mut session, "GET chosen");
        run(&mut session, "GET after");
        for key in ["plain", "chosen", "after"] {
            db.set(key.as_bytes(), b"1").unwrap();
        }
        let told: &[&str] = match chosen_is_told {
            true => &["invalidate chosen"],
            false => &["invalidate plain", "invalidate after"],
        };
        assert_eq!(received(&mut session), told, "{options}");
    }
}

#[test]
fn broadcasts_go_to_all_with_the_prefix_whether_or_not_they_read() {
    let db = open();
    let mut all = tracking(&db, " BCAST");
    let mut some = tracking(&db, " BCAST PREFIX user: PREFIX item:");
    db.set(b"user:1", b"a").unwrap();
    db.set(b"other", b"a").unwrap();
    run(&mut some, "GET other");
    db.set(b"other", b"b").unwrap();
    batch(&db);
    db.mset(&[(&b"item:1"[..], &b"1"[..]), (b"user:2", b"2"), (b"x", b"3")]).unwrap();
    let mut told = received(&mut some);
    assert_eq!(told.remove(0), "invalidate user:1");
    told.sort();
    assert_eq!(told, ["invalidate item:1", "invalidate user:2"]);
    let everything = received(&mut all);
    assert_eq!(
        everything[..4],
        ["user:1", "other", "other", "k"].map(|key| format!("invalidate {key}"))
    );
    assert_eq!(everything.len(), 5, "{everything:?}");
    assert_eq!(db.tracking_counts().keys, 0);
    run(&mut some, "CLIENT TRACKING OFF");
    db.set(b"user:1", b"b").unwrap();
    assert_eq!(received(&mut some), NOTHING);
}

#[test]
fn with_noloop_a_session_is_told_of_the_changes_of_others_alone() {
    let db = open();
    for options in [" NOLOOP", " BCAST NOLOOP"] {
        let mut session = tracking(&db, options);
        run(&mut session, "GET k");
        run(&mut session, "SET k own");
        for line in ["MULTI", "SET k own", "EXEC"] {
            run(&mut session, line);
        }
        run(&mut session, "GET k");
        assert_eq!(received(&mut session), NOTHING, "{options}");
        db.set(b"k", b"other").unwrap();
        assert_eq!(received(&mut session), ["invalidate k"], "{options}");
    }
    let mut session = tracking(&db, "");
    run(&mut session, "GET k");
    run(&mut session, "SET k own");
    assert_eq!(received(&mut session), ["invalidate k"]);
}

/// A session begins with version 2 of the protocol, which has no such messages.
#[test]
fn a_session_of_version_2_is_told_through_the_one_that_it_redirects_to() {
    let db = open();
    let mut receiver = db.session();
    run(&mut receiver, "SUBSCRIBE __redis__:invalidate");
    let mut session = db.session();
    let redirects = format!("CLIENT TRACKING ON REDIRECT {}", receiver.id());
    assert_eq!(run(&mut session, &redirects), Reply::OK);
    run(&mut session, "GET k");
    db.set(b"k", b"1").unwrap();
    assert_eq!(received(&mut session), NOTHING);
    assert_eq!(received(&mut receiver), ["message __redis__:invalidate k"]);
    assert_eq!(db.tracking_counts().clients, 1);
    drop(session);
    assert_eq!((db.tracking_counts().clients, db.tracking_counts().keys), (0, 0));
}

/// What caches rely on, while typed calls and transactions of other threads change the keys.
#[test]
fn a_cache_beside_writers_is_never_stale() {
    const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
    let db = open();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..5000usize {
                let (key, value) = (KEYS[n % 4].as_bytes(), n.to_string());
                if n % 3 == 0 {
                    let transaction = db.begin().unwrap();
                    transaction.set(key, value.as_bytes()).unwrap();
                    transaction.commit().unwrap();
                } else {
                    db.set(key, value.as_bytes()).unwrap();
                }
            }
            over.store(true, Ordering::SeqCst);
        });
        let mut session = tracking(&db, "");
        let mut cache: HashMap<String, Reply> = HashMap::new();
        let mut told = 0;
        let mut forget = |session: &mut Session, cache: &mut HashMap<String, Reply>| {
            for message in received(session) {
                told += 1;
                cache.remove(message.strip_prefix("invalidate ").unwrap());
            }
        };
        while !over.load(Ordering::SeqCst) {
            for key in KEYS {
                let reply = run(&mut session, &format!("GET {key}"));
                cache.insert(key.to_owned(), reply);
                forget(&mut session, &mut cache);
            }
        }
        writer.join().unwrap();
        forget(&mut session, &mut cache);
        for (key, cached) in &cache {
            assert_eq!(cached, &command(&db, &format!("GET {key}")), "{key} is stale");
        }
        assert!(told > 0, "no change met a cached key");
    });
}
