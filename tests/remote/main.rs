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

mod cluster;
mod failover;
mod hostile;
mod node;
mod places;
#[path = "../servers/mod.rs"]
mod servers;
mod suites;
#[path = "../toolchain/mod.rs"]
mod toolchain;

use std::time::Duration;

use lsmkv::{ErrorKind, Options, Remote, Reply};

use servers::Server;

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
