//! What a client of the holder can do, and how it goes on when the holder closes. Two handles of one
//! process stand for two processes: the second one finds the lock taken and connects.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::time::Duration;

use lsmkv::{Commands, Db, ErrorKind, Options, Reply, SessionCommands};

use super::{bulk, open, run};

#[test]
fn the_first_holds_the_store_and_the_others_see_what_it_sees() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    assert!(first.is_holder() && !second.is_holder());
    assert_eq!(second.holder(), Some(std::process::id()));
    run(&first, "SET a 1");
    assert_eq!(run(&second, "GET a"), bulk("1"));
    run(&second, "RPUSH l x y z");
    assert_eq!(run(&first, "LLEN l"), Reply::Int(3));
    assert!(matches!(run(&second, "INCR l"), Reply::Error(text) if text.starts_with("WRONGTYPE")));
    assert!(matches!(run(&second, "NOSUCH"), Reply::Error(text) if text.contains("unknown")));
    // Another database, on both sides.
    let (other, same) = (second.select(3).unwrap(), first.select(3).unwrap());
    run(&other, "SET a three");
    assert_eq!(run(&same, "GET a"), bulk("three"));
    assert_eq!(run(&second, "GET a"), bulk("1"));
    assert_eq!(second.select(99).unwrap_err().kind(), ErrorKind::OutOfRange);
    assert_eq!(first.select(99).unwrap_err().kind(), ErrorKind::OutOfRange);
}

#[test]
fn typed_calls_run_at_the_holder_and_in_its_views_and_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    for store in [&first, &second] {
        assert_eq!(store.hset(b"h", &[(b"f", b"v")]).unwrap(), i64::from(store.is_holder()));
        assert_eq!(store.hgetall(b"h").unwrap(), [("f".into(), "v".into())]);
        store.set(b"n", b"1").unwrap();
        assert_eq!(store.lpush(b"n", &[b"x"]).unwrap_err().kind(), ErrorKind::WrongType);
        let (snapshot, transaction) = (store.snapshot().unwrap(), store.begin().unwrap());
        assert_eq!(transaction.incr(b"n").unwrap(), 2);
        transaction.commit().unwrap();
        assert_eq!(snapshot.get(b"n").unwrap(), Some("1".into()));
        assert_eq!(snapshot.incr(b"n").unwrap_err().kind(), ErrorKind::ReadOnly);
        let mut session = store.session();
        assert_eq!(session.rpush(b"l", &[b"a", b"b"]).unwrap(), 2);
        let soon = Some(Duration::from_millis(1));
        assert_eq!(session.blpop(&[b"l"], soon).unwrap(), Some(("l".into(), "a".into())));
        assert_eq!(session.brpop(&[b"l"], soon).unwrap(), Some(("l".into(), "b".into())));
        assert_eq!(session.brpop(&[b"l"], soon).unwrap(), None);
    }
}

#[test]
fn the_socket_is_for_its_owner_and_goes_with_the_holder() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let socket = dir.path().join("SHARED");
    let data = std::fs::symlink_metadata(&socket).unwrap();
    assert!(data.file_type().is_socket());
    assert_eq!(data.permissions().mode() & 0o777, 0o600);
    store.close().unwrap();
    assert!(!socket.exists());
    assert!(!dir.path().join("SHARED.tmp").exists());
    // A plain open is possible again, and leaves no socket.
    let db = Db::open(dir.path(), Options::default()).unwrap();
    assert!(!socket.exists());
    db.close().unwrap();
}

#[test]
fn when_the_holder_closes_the_next_call_of_another_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, third) = (open(dir.path()), open(dir.path()), open(dir.path()));
    let views = [second.select(1).unwrap(), third.select(1).unwrap()];
    run(&views[0], "SET k one");
    run(&second, "SET k zero");
    first.close().unwrap();
    assert_eq!(run(&views[1], "GET k"), bulk("one"));
    assert!(third.is_holder(), "the call of its view took over");
    assert_eq!(run(&second, "GET k"), bulk("zero"));
    assert!(!second.is_holder());
    run(&second, "SET k again");
    third.close().unwrap();
    assert_eq!(run(&second, "GET k"), bulk("again"));
    assert_eq!(run(&views[0], "GET k"), bulk("one"));
    assert!(second.is_holder());
    assert_eq!(third.command(&[b"GET", b"k"]).unwrap_err().kind(), ErrorKind::Closed);
    second.close().unwrap();
}

#[test]
fn batches_are_all_or_nothing_wherever_they_run() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    run(&first, "SET s text");
    for store in [&first, &second] {
        run(store, "DEL n m");
        let mut batch = store.batch();
        batch.command(&[b"SET", b"n", b"1"]).unwrap();
        batch.command(&[b"INCR", b"s"]).unwrap();
        let error = batch.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotInteger, "{error}");
        assert!(error.message().contains("operation 2 of 2, INCR"), "{error}");
        assert_eq!(run(store, "EXISTS n"), Reply::Int(0));
        assert_eq!(batch.commit().unwrap_err().kind(), ErrorKind::Misuse);
        batch.clear();
        batch.command(&[b"APPEND", b"n", b"second"]).unwrap();
        batch.priority(1);
        batch.command(&[b"APPEND", b"n", b"first-"]).unwrap();
        batch.commit().unwrap();
        assert_eq!(run(store, "GET n"), bulk("first-second"));
        assert_eq!(batch.command(&[b"DEL", b"n"]).unwrap_err().kind(), ErrorKind::Misuse);
        batch.clear();
        assert_eq!(batch.command(&[b"GET", b"n"]).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(batch.command(&[b"NOSUCH"]).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(batch.command(&[b"SET", b"n"]).unwrap_err().kind(), ErrorKind::Syntax);
    }
    // One that was stored before the holder closed runs at the next.
    let mut batch = second.batch();
    batch.command(&[b"SET", b"m", b"moved"]).unwrap();
    first.close().unwrap();
    batch.commit().unwrap();
    assert_eq!(run(&second, "GET m"), bulk("moved"));
}

#[test]
fn sessions_keep_their_database_across_holders_and_report_lost_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    let mut plain = second.session();
    let mut queued = second.session();
    let mut watching = second.session();
    plain.command(&[b"SELECT", b"5"]).unwrap();
    plain.command(&[b"SET", b"k", b"five"]).unwrap();
    queued.command(&[b"MULTI"]).unwrap();
    queued.command(&[b"SET", b"never", b"1"]).unwrap();
    watching.command(&[b"WATCH", b"k"]).unwrap();
    assert!(queued.in_multi());
    first.close().unwrap();
    assert_eq!(plain.command(&[b"GET", b"k"]).unwrap(), bulk("five"));
    for session in [&mut queued, &mut watching] {
        let error = session.command(&[b"PING"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.message().contains("begin it again"), "{error}");
        assert!(!session.in_multi());
        assert_eq!(session.command(&[b"PING"]).unwrap(), Reply::Status("PONG"));
    }
    assert_eq!(run(&second, "EXISTS never"), Reply::Int(0));
    assert!(second.is_holder());
    // On the new holder they work as before.
    queued.command(&[b"MULTI"]).unwrap();
    queued.command(&[b"INCR", b"n"]).unwrap();
    assert_eq!(queued.command(&[b"EXEC"]).unwrap(), Reply::Array(vec![Reply::Int(1)]));
}

#[test]
fn messages_and_blocking_pops_cross_processes_and_a_lost_subscription_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    let mut listener = second.session();
    listener.command(&[b"SUBSCRIBE", b"news"]).unwrap();
    assert_eq!(run(&first, "PUBLISH news hello"), Reply::Int(1));
    let message = listener.wait(None).unwrap().unwrap();
    assert_eq!(message, Reply::Push(vec![bulk("message"), bulk("news"), bulk("hello")]));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(&second, "BLPOP queue 60"));
        run(&first, "RPUSH queue element");
        let popped = waiting.join().unwrap();
        assert_eq!(popped, Reply::Array(vec![bulk("queue"), bulk("element")]));
    });
    // A message arrives in the holder's own session too.
    let mut local = first.session();
    local.command(&[b"SUBSCRIBE", b"news"]).unwrap();
    run(&second, "PUBLISH news again");
    assert!(local.wait(None).unwrap().is_some());
    assert!(listener.wait(None).unwrap().is_some());
    first.close().unwrap();
    let error = listener.wait(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("begin it again"), "{error}");
    listener.command(&[b"SUBSCRIBE", b"news"]).unwrap();
    run(&second, "PUBLISH news third");
    assert!(listener.wait(None).unwrap().is_some());
}

#[test]
fn closing_a_client_ends_its_waits() {
    let dir = tempfile::tempdir().unwrap();
    let (_first, second) = (open(dir.path()), open(dir.path()));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| second.command(&[b"BLPOP", b"queue", b"0"]));
        // Most runs find it waiting; one that was not yet is refused.
        std::thread::sleep(std::time::Duration::from_millis(50));
        second.close().unwrap();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn private_commands_are_unknown_to_other_servers_and_a_shared_store_is_not_shut_down() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    assert!(matches!(run(&second, "SHUTDOWN"), Reply::Error(text) if text.contains("shared")));
    assert_eq!(run(&second, "DBSIZE"), Reply::Int(0));
    drop((first, second));
    let db = Db::open(":memory:", Options::default()).unwrap();
    let server = lsmkv::Server::start(&db, "tcp:127.0.0.1:0", &Options::default()).unwrap();
    let remote = lsmkv::Remote::open(&server.addresses()[0], &Options::default()).unwrap();
    let reply = remote.command(&[b"LSMKV.SHARED", b"HELLO"]).unwrap();
    assert!(matches!(reply, Reply::Error(text) if text.contains("unknown command")));
}
