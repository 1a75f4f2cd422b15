//! Where Redis puts invalidation messages and lsmkv does not: the differences that the comparison in
//! `tracking` allows, each shown on a real Redis.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::messages::{Listener, shown};
use crate::resp::Resp;
use crate::server::Server;
use crate::support::{Lsmkv, ask, request, words};

/// Sends commands in one write.
fn send_at_once(stream: &mut UnixStream, lines: &[&str]) {
    let bytes: Vec<u8> = lines.iter().flat_map(|line| request(&words(line))).collect();
    stream.write_all(&bytes).unwrap();
}

/// Runs commands that come in one write; what a client in BCAST mode is told.
fn told_of(stream: &dyn Fn() -> UnixStream, lines: &[&str]) -> String {
    let mut client = Listener::new(stream(), 3);
    assert_eq!(client.ask("CLIENT TRACKING ON BCAST"), Resp::Status("OK".into()));
    let mut writer = stream();
    send_at_once(&mut writer, lines);
    send_at_once(&mut writer, &["ECHO end"]);
    let mut replies = Vec::new();
    while !replies.ends_with(b"end\r\n") {
        let mut bytes = [0; 4096];
        let read = writer.read(&mut bytes).unwrap();
        assert!(read > 0, "closed");
        replies.extend(&bytes[..read]);
    }
    shown(&client.drained())
}

#[test]
fn redis_joins_the_changes_of_one_turn_of_its_loop_and_lsmkv_those_of_one_commit() {
    let Some(redis) = Server::start("server::tracking_order") else { return };
    let ours = Lsmkv::start(&[]);
    let (ours, theirs) = (|| ours.stream(), || redis.stream());
    // Each is a commit of its own.
    let writes = ["MSET a 1", "MSET b 1", "MSET a 2"];
    assert_eq!(told_of(&theirs, &writes), "invalidate [\"a\", \"b\"]");
    assert_eq!(
        told_of(&ours, &writes),
        "invalidate [\"a\"], invalidate [\"b\"], invalidate [\"a\"]"
    );
    // A key that expires in the turn that has changed it: without the cleaner its second change is the
    // next read, in the same turn or in another one.
    ask(&mut redis.connect(), "DEBUG SET-ACTIVE-EXPIRE 0");
    let expires = ["SET a 1 PX 1", "DEBUG SLEEP 0.01", "GET a"];
    assert_eq!(told_of(&theirs, &expires), "invalidate [\"a\"]");
    assert_eq!(told_of(&ours, &expires), "invalidate [\"a\"], invalidate [\"a\"]");
}

/// Sends commands at once; the first bytes that come back, as many as `expected` has.
fn first_bytes(stream: &mut UnixStream, lines: &[&str], expected: &str) -> String {
    send_at_once(stream, lines);
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Checks what a client gets for commands whose change another client redirects to it.
fn check_bytes(stream: &dyn Fn() -> UnixStream, lines: &[&str], expected: &str) {
    let mut target = Listener::new(stream(), 3);
    let Resp::Int(id) = target.ask("CLIENT ID") else { panic!("no number") };
    target.ask("DEL z");
    target.ask("ZADD z 1 m");
    let mut tracker = Listener::new(stream(), 3);
    let tracks = tracker.ask(&format!("CLIENT TRACKING ON REDIRECT {id}"));
    assert_eq!(tracks, Resp::Status("OK".into()));
    tracker.ask("EXISTS z");
    let expected = expected.replace(' ', "\r\n");
    assert_eq!(first_bytes(&mut target.writer, lines, &expected), expected, "{lines:?}");
}

#[test]
fn redis_puts_a_redirected_message_into_a_reply_and_lsmkv_after_it() {
    let Some(redis) = Server::start("server::tracking_order") else { return };
    let ours = Lsmkv::start(&[]);
    let (ours, theirs) = (|| ours.stream(), || redis.stream());
    let message = ">2 $10 invalidate *1 $1 z ";
    for (lines, before, after) in [
        // Written in parts, the change after the first one.
        (&["ZPOPMIN z"][..], "*2 ", "$1 m ,1 "),
        (&["MULTI", "DEL z", "EXEC"], "+OK +QUEUED *1 ", ":1 "),
        // Written whole, after the change.
        (&["DEL z"], "", ":1 "),
    ] {
        check_bytes(&theirs, lines, &format!("{before}{message}{after}"));
        check_bytes(&ours, lines, &format!("{before}{after}{message}"));
    }
}
