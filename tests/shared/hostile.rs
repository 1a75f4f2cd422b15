//! What goes wrong: a holder that is stopped, stale and long sockets, stores that are not shared.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use lsmkv::{Db, ErrorKind, Options, Reply, SharedStore};

use super::worker::{REPLY_MS, Worker, is_root};
use super::{bulk, open, run, until};

/// How long the client of a stopped holder waits.
const LIMIT_MS: u64 = 1000;

#[test]
fn a_holder_that_is_killed_is_followed_by_the_one_that_calls_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Worker::start(dir.path(), &[]);
    assert_eq!(holder.answer().unwrap(), "holds");
    let mut client = Worker::start(dir.path(), &[]);
    assert_eq!(client.answer().unwrap(), "connected");
    client.ask("SET k before");
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    assert!(dir.path().join("SHARED").exists(), "a stale socket");
    assert_eq!(client.ask("GET k"), "before");
    let store = open(dir.path());
    assert_eq!(store.holder(), Some(client.id()));
    assert_eq!(run(&store, "GET k"), bulk("before"));
    assert_eq!(client.ask("close"), "closed");
    assert_eq!(run(&store, "GET k"), bulk("before"));
    assert!(store.is_holder());
}

#[test]
fn a_stopped_holder_means_time_outs_and_then_it_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Worker::start(dir.path(), &[]);
    assert_eq!(holder.answer().unwrap(), "holds");
    let mut client = Worker::start(dir.path(), &[(REPLY_MS, LIMIT_MS.to_string())]);
    assert_eq!(client.answer().unwrap(), "connected");
    until("the first write", || client.ask("SET k v").contains("OK"));
    holder.signal("-STOP");
    // Its threads stop one after the other.
    until("the silence", || client.ask("GET k").starts_with("Timeout"));
    // That was the connection that the client had; nobody accepts a new one.
    for command in ["GET k", "SET k w"] {
        let answer = client.ask(command);
        assert!(answer.starts_with("Timeout"), "{answer}");
        assert!(answer.contains(&format!("process {}", holder.id())), "{answer}");
    }
    // Nobody took over, and one that comes now is told in time.
    let limits = Options { connect_timeout_ms: LIMIT_MS, ..Options::default() };
    assert_eq!(SharedStore::open(dir.path(), &limits).unwrap_err().kind(), ErrorKind::Timeout);
    holder.signal("-CONT");
    until("the holder goes on", || ["v", "w"].contains(&client.ask("GET k").as_str()));
    assert_eq!(holder.ask("STRLEN k"), "Int(1)");
}

#[test]
fn a_store_that_is_open_but_not_shared_is_busy_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let limits = Options { connect_timeout_ms: 200, ..Options::default() };
    let begun = Instant::now();
    let error = SharedStore::open(dir.path(), &limits).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(error.message().contains("shared=on"), "{error}");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    // The other way round, too, where the advice is the option.
    db.close().unwrap();
    let mut holder = Worker::start(dir.path(), &[]);
    assert_eq!(holder.answer().unwrap(), "holds");
    let error = Db::open(dir.path(), Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let who = format!("open in process {}", holder.id());
    assert!(error.message().contains(&who), "{error}");
    assert!(error.message().contains("open it with shared=on"), "{error}");
    assert_eq!(holder.ask("close"), "closed");
    let store = open(dir.path());
    let error = Db::open(dir.path(), Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    // A reader needs no sharing.
    run(&store, "SET k v");
    let beside = Db::open(dir.path(), Options { read_only: true, ..Options::default() }).unwrap();
    assert_eq!(beside.get(b"k").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_path_longer_than_the_address_of_a_socket_works() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&long).unwrap();
    let (first, second) = (open(&long), open(&long));
    run(&first, "SET k v");
    assert_eq!(run(&second, "GET k"), bulk("v"));
    first.close().unwrap();
    assert_eq!(run(&second, "GET k"), bulk("v"));
}

#[test]
fn what_stands_in_the_way_of_the_socket_is_replaced_or_named() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).close().unwrap();
    std::fs::write(dir.path().join("SHARED"), "no socket").unwrap();
    std::fs::write(dir.path().join("SHARED.tmp"), "no socket").unwrap();
    let (first, second) = (open(dir.path()), open(dir.path()));
    run(&second, "SET k v");
    drop((first, second));
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).close().unwrap();
    std::fs::create_dir(dir.path().join("SHARED")).unwrap();
    let error = SharedStore::open(dir.path(), &Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("SHARED"), "{error}");
    // Nothing stays locked.
    Db::open(dir.path(), Options::default()).unwrap().close().unwrap();
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let kind = |path: &std::path::Path, options: &Options| {
        SharedStore::open(path, options).unwrap_err().kind()
    };
    let plain = Options::default;
    assert_eq!(kind(std::path::Path::new(":memory:"), &plain()), ErrorKind::Invalid);
    assert_eq!(kind(dir.path(), &Options { read_only: true, ..plain() }), ErrorKind::Invalid);
    assert_eq!(kind(dir.path(), &Options { error_if_exists: true, ..plain() }), ErrorKind::Invalid);
    let absent = Options { create_if_missing: false, ..plain() };
    assert_eq!(kind(&dir.path().join("none"), &absent), ErrorKind::Invalid);
    let shared = Options { shared: true, ..plain() };
    assert_eq!(Db::open(dir.path(), shared).unwrap_err().kind(), ErrorKind::Invalid);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The superuser may write anywhere, so another user asks for it.
#[test]
fn who_may_not_write_to_the_directory_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    set_mode(scratch.path(), 0o755);
    let dir = scratch.path().join("store");
    open(&dir).close().unwrap();
    set_mode(&dir, 0o555);
    let refused = Worker::start_as_another(&dir, scratch.path()).answer().unwrap();
    set_mode(&dir, 0o755);
    assert!(refused.starts_with("refused"), "{refused}");
    assert!(refused.contains("ermission denied"), "{refused}");
    assert_eq!(run(&open(&dir), "GET k"), Reply::Nil);
}

/// The socket of a holder is for its owner alone.
#[test]
fn who_may_not_use_the_socket_is_told_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    set_mode(scratch.path(), 0o755);
    let dir = scratch.path().join("store");
    let store = open(&dir);
    set_mode(&dir, 0o755);
    set_mode(&dir.join("LOCK"), 0o644);
    if !is_root() {
        // Without another user the owner loses the permission.
        set_mode(&dir.join("SHARED"), 0o000);
    }
    let begun = Instant::now();
    let refused = Worker::start_as_another(&dir, scratch.path()).answer().unwrap();
    assert!(refused.starts_with("refused"), "{refused}");
    assert!(refused.contains("ermission denied") && refused.contains("SHARED"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(run(&store, "GET k"), Reply::Nil);
}
