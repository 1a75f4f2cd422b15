//! Stores of other processes: the programs of every binding run on a shared store, on `lsmkv serve`, on a
//! redis-server and on a cluster, as they do on a directory; servers that lie, stall or die are errors in time.
#![cfg(all(feature = "remote", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod calls;
mod cluster;
mod failover;
mod features;
mod hostile;
mod node;
mod places;
#[path = "../servers/mod.rs"]
mod servers;
mod suites;
#[path = "../toolchain/mod.rs"]
mod toolchain;

use std::time::Duration;

use lsmkv::{Commands, ErrorKind, Options, Remote, Reply, SessionCommands};

use servers::{Cluster, Server};

/// Options with short limits.
fn quick() -> Options {
    Options { connect_timeout_ms: 400, reply_timeout_ms: 400, ..Options::default() }
}

/// An idle connection that the server has closed costs nothing: the next call opens another.
#[test]
fn a_server_that_was_restarted_is_found_again() {
    let Some(mut server) = Server::redis("remote::restart", &[]) else { return };
    let store = Remote::open(&server.address(), &quick()).unwrap();
    store.command(&[b"SET", b"k", b"1"]).unwrap();
    server.kill();
    assert_eq!(store.command(&[b"INCR", b"k"]).unwrap_err().kind(), ErrorKind::Io);
    server.restart();
    assert_eq!(store.command(&[b"INCR", b"k"]).unwrap(), Reply::Int(1));
}

/// Closing the store ends a call that waits at the server.
#[test]
fn a_close_ends_a_wait_at_the_server() {
    let Some(server) = Server::redis("remote::close", &[]) else { return };
    let store = Remote::open(&server.address(), &quick()).unwrap();
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || store.command(&[b"BLPOP", b"none", b"0"]))
    };
    std::thread::sleep(Duration::from_millis(700));
    assert!(!waiting.is_finished(), "the wait ended at the limit for silent servers");
    store.close();
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_store_that_is_opened_read_only_takes_no_writes() {
    let Some(server) = Server::redis("remote::read-only", &[]) else { return };
    let options = Options { read_only: true, ..Options::default() };
    let store = Remote::open(&server.address(), &options).unwrap();
    let set: [&[u8]; 3] = [b"SET", b"k", b"v"];
    let mut session = store.session().unwrap();
    assert_eq!(store.command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(store.batch().command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(session.command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    session.command(&[b"MULTI"]).unwrap();
    assert_eq!(session.command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    session.command(&[b"GET", b"k"]).unwrap();
    assert_eq!(session.command(&[b"EXEC"]).unwrap(), Reply::Array(vec![Reply::Nil]));
}

/// Replies of every kind that typed calls have. The keys are of one slot.
fn typed_calls(address: &str) {
    let store = Remote::open(address, &Options::default()).unwrap();
    let commands: &dyn Commands = &store;
    commands.mset(&[(b"{t}a", b"1"), (b"{t}b", b"2")]).unwrap();
    let keys: [&[u8]; 2] = [b"{t}a", b"{t}none"];
    assert_eq!(commands.mget(&keys).unwrap(), [Some("1".into()), None]);
    assert_eq!(commands.incrbyfloat(b"{t}a", 0.5).unwrap(), 1.5);
    assert_eq!(commands.hset(b"{t}h", &[(b"f", b"v")]).unwrap(), 1);
    assert_eq!(commands.hgetall(b"{t}h").unwrap(), [("f".into(), "v".into())]);
    assert!(
        commands.zadd(b"{t}z", 1.5, b"m").unwrap() && commands.zadd(b"{t}z", 2.0, b"n").unwrap()
    );
    assert_eq!(commands.zmscore(b"{t}z", &[b"m", b"none"]).unwrap(), [Some(1.5), None]);
    assert_eq!(commands.zpopmin_count(b"{t}z", 1).unwrap(), [("m".into(), 1.5)]);
    assert_eq!(commands.sadd(b"{t}s", &[b"x"]).unwrap(), 1);
    assert_eq!(commands.smismember(b"{t}s", &[b"x", b"y"]).unwrap(), [true, false]);
    let sha = commands.script_load(b"return redis.call('GET', KEYS[1])").unwrap();
    assert_eq!(commands.script_exists(&[&sha]).unwrap(), [true]);
    let found = commands.evalsha(sha.as_bytes(), &[b"{t}b"], &[]).unwrap();
    assert_eq!(found, Reply::Bulk("2".into()));
    assert_eq!(commands.incr(b"{t}h").unwrap_err().kind(), ErrorKind::WrongType);
    let mut session = store.session().unwrap();
    assert_eq!(session.rpush(b"{t}l", &[b"a", b"b"]).unwrap(), 2);
    let soon = Some(Duration::from_millis(1));
    assert_eq!(session.brpop(&[b"{t}l"], soon).unwrap(), Some(("{t}l".into(), "b".into())));
    assert_eq!(session.blpop(&[b"{t}l"], soon).unwrap(), Some(("{t}l".into(), "a".into())));
    assert_eq!(session.blpop(&[b"{t}l"], soon).unwrap(), None);
    let popped = session.bzpopmax(&[b"{t}z"], soon).unwrap();
    assert_eq!(popped, Some(("{t}z".into(), "n".into(), 2.0)));
    session.command(&[b"MULTI"]).unwrap();
    assert_eq!(session.get(b"{t}a").unwrap_err().kind(), ErrorKind::Misuse);
}

#[test]
fn typed_calls_return_the_same_on_every_server() {
    if let Some(server) = Server::ours("remote::typed_served") {
        typed_calls(&server.address());
    }
    if let Some(server) = Server::redis("remote::typed_redis", &[]) {
        typed_calls(&server.address());
    }
    if let Some(cluster) = Cluster::start("remote::typed_cluster") {
        typed_calls(&cluster.address());
    }
}
