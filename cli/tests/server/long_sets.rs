//! SET of a long value: it goes to the store as it arrives, and nobody sees it before it is whole.
//!
//! The bug: the whole request was in memory, twice while its buffer grew.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;

use crate::messages::Listener;
use crate::resp::Resp;
use crate::server::Server;
use crate::support::{
    LSMKV, Lsmkv, ask, info, number, read_until_closed, reply_text, until, words,
};

/// A value that is long enough to be written as it arrives.
const LONG: usize = 3 << 20;
const PIECE: usize = 1 << 20;
const OK: &str = "+OK\r\n";

fn piece(number: usize) -> Vec<u8> {
    (0..PIECE).map(|at| (at % 251) as u8 ^ (number % 250) as u8).collect()
}

fn value(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 3 % 251) as u8 + 1).collect()
}

/// A request up to its value, which has this length; `after` words follow it.
fn head(before: &str, len: usize, after: usize) -> Vec<u8> {
    let before = words(before);
    let mut bytes = format!("*{}\r\n", before.len() + 1 + after).into_bytes();
    for word in before {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes.extend(format!("${len}\r\n").bytes());
    bytes
}

/// A request with a value in it.
fn request(before: &str, value: &[u8], after: &str) -> Vec<u8> {
    let after = words(after);
    let mut bytes = head(before, value.len(), after.len());
    bytes.extend_from_slice(value);
    bytes.extend(b"\r\n");
    for word in after {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

fn expect(stream: &mut UnixStream, reply: &str) {
    let mut bytes = vec![0; reply.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), reply);
}

/// Sends the request of `SET k` and the first half of its value.
fn begin(server: &Lsmkv, value: &[u8]) -> UnixStream {
    begin_on(server.stream(), server, value)
}

fn begin_on(mut stream: UnixStream, server: &Lsmkv, value: &[u8]) -> UnixStream {
    stream.write_all(&head("SET k", value.len(), 0)).unwrap();
    stream.write_all(&value[..value.len() / 2]).unwrap();
    let mut other = server.connect();
    until("the value arrives", || info(&mut other, "lsmkv", "versions_being_built") > 0);
    stream
}

fn end(stream: &mut UnixStream, value: &[u8]) {
    stream.write_all(&value[value.len() / 2..]).unwrap();
    stream.write_all(b"\r\n").unwrap();
}

fn holds(server: &Lsmkv, key: &str, value: &[u8]) -> bool {
    let mut client = server.connect();
    ask(&mut client, &format!("GET {key}")).bytes() == Some(value)
}

fn being_built(server: &Lsmkv) -> u64 {
    info(&mut server.connect(), "lsmkv", "versions_being_built")
}

#[test]
fn a_long_value_is_set_in_bounded_memory() {
    let megabytes = number("LSMKV_LONG_SET_MB", 96) as usize;
    let budget = if megabytes > 96 { 64 << 20 } else { 16 << 20 };
    let option = format!("memory_budget={budget}");
    let server = Lsmkv::start(&["--option", &option]);
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "PING"), Resp::Status("PONG".into()));
    let at_rest = server.resident_bytes();
    server.reset_peak();
    let mut stream = server.stream();
    stream.write_all(&head("SET k", megabytes * PIECE, 2)).unwrap();
    let pieces: Vec<Vec<u8>> = (0..250.min(megabytes)).map(piece).collect();
    for number in 0..megabytes {
        stream.write_all(&pieces[number % 250]).unwrap();
    }
    stream.write_all(b"\r\n$2\r\nEX\r\n$3\r\n100\r\n").unwrap();
    expect(&mut stream, OK);
    let peak = server.peak_bytes();
    println!("SET of {megabytes} MiB: {peak} bytes at most, {at_rest} at rest, {budget} of budget");
    assert!(peak < at_rest + budget + (24 << 20), "{peak} bytes");
    assert_eq!(ask(&mut client, "STRLEN k"), Resp::Int((megabytes * PIECE) as i64));
    for number in 0..megabytes {
        let (from, to) = (number * PIECE, (number + 1) * PIECE - 1);
        let read = ask(&mut client, &format!("GETRANGE k {from} {to}"));
        assert!(read.bytes() == Some(&pieces[number % 250][..]), "piece {number}");
    }
    assert_eq!(being_built(&server), 0);
}

/// What is there before, the words before the value and those after it.
const CASES: &[(&str, &str, &str)] = &[
    ("DEL k", "SET k", ""),
    ("SET k old", "SET k", ""),
    ("DEL k", "SET k", "NX"),
    ("SET k old", "SET k", "NX"),
    ("DEL k", "SET k", "XX"),
    ("SET k old EX 500", "SET k", "XX"),
    ("SET k old", "SET k", "GET"),
    ("DEL k", "SET k", "GET"),
    ("SET k old", "SET k", "NX GET"),
    ("DEL k", "SET k", "NX GET EX 100"),
    ("LPUSH k x", "SET k", "GET"),
    ("LPUSH k x", "SET k", ""),
    ("SET k old EX 500", "SET k", "KEEPTTL"),
    ("SET k old EX 500", "SET k", "EX 100"),
    ("SET k old", "SET k", "PX 100000"),
    ("SET k old", "SET k", "EXAT 99999999999"),
    ("SET k old", "SET k", "PXAT 99999999999999"),
    ("SET k old", "SET k", "EXAT 1"),
    ("SET k old", "SET k", "EX 0"),
    ("SET k old", "SET k", "EX -5"),
    ("SET k old", "SET k", "EX x"),
    ("SET k old", "SET k", "EX 9223372036854775807"),
    ("SET k old", "SET k", "NX XX"),
    ("SET k old", "SET k", "EX"),
    ("SET k old", "SET k", "EX 1 KEEPTTL"),
    ("SET k old", "SET k", "nonsense"),
    ("SET k old", "SET k", "GET GET GET GET GET GET GET GET GET GET XX"),
    ("SET k old", "set k", "xx get px 100000"),
    ("SET k old", "SETEX k 100", ""),
    ("SET k old", "SETEX k 0", ""),
    ("SET k old", "SETEX k x", ""),
    ("SET k old", "SETEX k 100", "more"),
    ("SET k old", "PSETEX k 100000", ""),
    ("SET k old", "PSETEX k -1", ""),
    ("SET k old", "SETNX k", ""),
    ("DEL k", "SETNX k", ""),
    ("SET k old", "GETSET k", ""),
    ("DEL k", "GETSET k", ""),
    ("LPUSH k x", "GETSET k", ""),
    ("SET k old", "SETNX k", "more"),
    ("SET k old", "APPEND k", ""),
    ("SET k old", "MSET k", ""),
    ("SET k old", "SET", ""),
    ("SET k old", "NOSUCH k", ""),
];

#[test]
fn replies_and_values_are_those_of_redis() {
    let Some(redis) = Server::start("server::long_sets") else { return };
    let ours = Lsmkv::start(&[]);
    let value = value(LONG / 2 + 77);
    for case in CASES {
        let (setup, before, after) = case;
        let request = request(before, &value, after);
        let outcomes = [(ours.connect(), ours.stream()), (redis.connect(), redis.stream())].map(
            |(mut client, mut stream)| {
                ask(&mut client, "FLUSHALL");
                ask(&mut client, setup);
                stream.write_all(&request).unwrap();
                let mut stream = Listener::new(stream, 2);
                let reply = format!("{:?}", stream.read());
                let shown: Vec<String> =
                    ["TTL k", "TYPE k", "STRLEN k", "DBSIZE", "GETRANGE k 1 9"]
                        .iter()
                        .map(|line| format!("{:?}", ask(&mut client, line)))
                        .collect();
                (reply, shown, ask(&mut client, "GET k"))
            },
        );
        let [ours, redis] = outcomes;
        assert_eq!((&ours.0, &ours.1), (&redis.0, &redis.1), "{case:?}");
        assert!(ours.2 == redis.2, "{case:?}: another value");
    }
    assert_eq!(being_built(&ours), 0);
}

#[test]
fn a_client_that_leaves_or_is_wrong_leaves_what_was_there() {
    let server = Lsmkv::start(&[]);
    let (mut client, value) = (server.connect(), value(LONG));
    ask(&mut client, "SET k old");
    let gone = || until("it is given up", || being_built(&server) == 0);
    drop(begin(&server, &value));
    gone();
    // One that closes its own side alone.
    let mut half = begin(&server, &value);
    half.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_until_closed(&mut half), "");
    gone();
    let mut killed = begin(&server, &value);
    ask(&mut client, "CLIENT KILL TYPE normal SKIPME yes");
    assert_eq!(read_until_closed(&mut killed), "");
    gone();
    let mut wrong = server.stream();
    wrong.write_all(&head("SET k", LONG, 1)).unwrap();
    wrong.write_all(&value).unwrap();
    wrong.write_all(b"\r\n:1\r\n").unwrap();
    let refused = "-ERR Protocol error: expected '$', got ':'\r\n";
    assert_eq!(read_until_closed(&mut wrong), refused);
    gone();
    assert_eq!(reply_text(&mut client, "GET k"), "old");
    // The value of one that may not send so much is not taken.
    ask(&mut client, "CONFIG SET client-query-buffer-limit 2mb");
    let mut much = server.stream();
    much.write_all(&head("SET k", LONG, 0)).unwrap();
    let _ = much.write_all(&value);
    assert_eq!(read_until_closed(&mut much), "");
    assert_eq!(reply_text(&mut client, "GET k"), "old");
}

#[test]
fn databases_may_be_emptied_or_swapped_while_the_value_arrives() {
    let server = Lsmkv::start(&["--threads", "2"]);
    let (mut client, value) = (server.connect(), value(LONG));
    for (line, key_of_other) in [
        ("FLUSHALL", "$-1"),
        ("FLUSHDB", "$-1"),
        ("SWAPDB 0 1", "old"),
        ("SELECT 0", "$-1"),
        ("DEL k", "$-1"),
    ] {
        ask(&mut client, "FLUSHALL");
        ask(&mut client, "SET k old");
        let mut stream = begin(&server, &value);
        ask(&mut client, line);
        ask(&mut client, "SAVE");
        end(&mut stream, &value);
        expect(&mut stream, OK);
        assert!(holds(&server, "k", &value), "{line}");
        ask(&mut client, "SELECT 1");
        let other = match ask(&mut client, "GET k") {
            Resp::Bulk(None) => "$-1".to_owned(),
            found => String::from_utf8_lossy(found.bytes().unwrap()).into_owned(),
        };
        assert_eq!(other, key_of_other, "{line}");
        ask(&mut client, "SELECT 0");
    }
}

#[test]
fn requests_before_and_after_run_in_their_order_however_they_are_cut() {
    let server = Lsmkv::start(&[]);
    let value = value(LONG);
    let small = "SET a 1\r\nINCR a\r\nGET a\r\n";
    let mut bytes = small.as_bytes().to_vec();
    bytes.extend(request("SET k", &value, ""));
    bytes.extend(b"STRLEN k\r\nSET a 5\r\nMULTI\r\n");
    bytes.extend(request("SET k", &value[..LONG - 1], "XX"));
    bytes.extend(b"EXEC\r\nSTRLEN k\r\n");
    bytes.extend(request("SET k", &value[..LONG - 2], "NX"));
    bytes.extend(request("SET k", &value[..LONG - 3], "EX 100"));
    bytes.extend(b"STRLEN k\r\nCLIENT REPLY SKIP\r\n");
    bytes.extend(request("SET k", &value, ""));
    bytes.extend(b"GET a\r\nSELECT 2\r\n");
    bytes.extend(request("SET k", &value[..LONG - 4], ""));
    bytes.extend(b"STRLEN k\r\nPING\r\n");
    let replies = format!(
        "+OK\r\n:2\r\n$1\r\n2\r\n+OK\r\n:{LONG}\r\n+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n:{}\r\n$-1\r\n\
         +OK\r\n:{}\r\n$1\r\n5\r\n+OK\r\n+OK\r\n:{}\r\n+PONG\r\n",
        LONG - 1,
        LONG - 3,
        LONG - 4
    );
    for part in [usize::MAX, 100_001, 1461] {
        let mut stream = server.stream();
        for bytes in bytes.chunks(part.min(bytes.len())) {
            stream.write_all(bytes).unwrap();
        }
        expect(&mut stream, &replies);
    }
    assert!(holds(&server, "k", &value));
    assert_eq!(being_built(&server), 0);
}

#[test]
fn a_header_and_options_may_come_byte_by_byte() {
    let server = Lsmkv::start(&[]);
    let (mut client, value) = (server.connect(), value(LONG));
    let mut stream = server.stream();
    let slowly = |stream: &mut UnixStream, bytes: &[u8]| {
        for byte in bytes {
            stream.write_all(&[*byte]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    slowly(&mut stream, &head("SET k", LONG, 2));
    slowly(&mut stream, &value[..20]);
    stream.write_all(&value[20..LONG - 20]).unwrap();
    slowly(&mut stream, &value[LONG - 20..]);
    slowly(&mut stream, b"\r\n$2\r\nEX\r\n$3\r\n100\r\n");
    expect(&mut stream, OK);
    assert!(holds(&server, "k", &value));
    assert_eq!(ask(&mut client, "TTL k"), Resp::Int(100));
}

/// A stalled client keeps its rows and some memory, and delays nobody.
#[test]
fn clients_that_stall_hold_up_nobody_and_little_memory() {
    let server = Lsmkv::start(&["--option", "memory_budget=16777216"]);
    let (mut client, value) = (server.connect(), value(LONG));
    ask(&mut client, "SET k old");
    let mut stalled: Vec<UnixStream> = (0..100)
        .map(|number| {
            let mut stream = server.stream();
            stream.write_all(&head(&format!("SET k{number}"), LONG, 0)).unwrap();
            stream.write_all(&value[..LONG / 4]).unwrap();
            stream
        })
        .collect();
    until("all have begun", || being_built(&server) == 100);
    until("all has arrived", || {
        info(&mut client, "stats", "total_net_input_bytes") >= 100 * LONG as u64 / 4
    });
    let resident = server.resident_bytes();
    assert!(resident < 96 << 20, "{resident} bytes for what came of 300 MB");
    for number in 0..2000 {
        assert_eq!(ask(&mut client, &format!("SET small{number} v")), Resp::Status("OK".into()));
    }
    assert_eq!(ask(&mut client, "SAVE"), Resp::Status("OK".into()));
    assert_eq!(reply_text(&mut client, "GET k"), "old");
    assert_eq!(ask(&mut client, "DBSIZE"), Resp::Int(2001));
    for stream in stalled.iter_mut().take(3) {
        stream.write_all(&value[LONG / 4..]).unwrap();
        stream.write_all(b"\r\n").unwrap();
        expect(stream, OK);
    }
    assert!(holds(&server, "k2", &value));
    assert_eq!(being_built(&server), 97);
    let (status, dir) = server.stop();
    assert!(status.success(), "{status}");
    let server = Lsmkv::start_in(dir, &[]);
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "DBSIZE"), Resp::Int(2004));
    assert!(holds(&server, "k1", &value));
}

#[test]
fn a_server_that_is_killed_in_the_middle_has_what_was_there() {
    let server = Lsmkv::start(&[]);
    let (mut client, value) = (server.connect(), value(LONG));
    ask(&mut client, "SET k old");
    let stream = begin(&server, &value);
    ask(&mut client, "SAVE");
    let dir = server.kill();
    drop(stream);
    let store = dir.path().join("store");
    let check = Command::new(LSMKV).arg("check").arg(&store).arg("--quiet").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&check.stdout), "no problems\n", "{check:?}");
    let server = Lsmkv::start_in(dir, &[]);
    assert!(holds(&server, "k", b"old"));
    assert_eq!(being_built(&server), 0);
}

/// Others learn of the value when it is there, and not before.
#[test]
fn watches_events_tracking_and_monitors_see_one_command() {
    let server = Lsmkv::start(&["--threads", "2"]);
    let (mut client, value) = (server.connect(), value(LONG));
    ask(&mut client, "CONFIG SET notify-keyspace-events KEA");
    ask(&mut client, "SET k old");
    let mut events = Listener::new(server.stream(), 2);
    drop(events.ask("SUBSCRIBE __keyspace@0__:k"));
    let mut tracker = Listener::new(server.stream(), 3);
    drop(tracker.ask("CLIENT TRACKING ON"));
    drop(tracker.ask("GET k"));
    let mut watcher = server.connect();
    ask(&mut watcher, "WATCH k");
    let mut stream = begin(&server, &value);
    ask(&mut watcher, "MULTI");
    assert_eq!(ask(&mut watcher, "EXEC"), Resp::Array(Some(Vec::new())));
    ask(&mut watcher, "WATCH k");
    let mut monitor = Listener::new(server.stream(), 2);
    drop(monitor.ask("MONITOR"));
    end(&mut stream, &value);
    expect(&mut stream, OK);
    assert!(format!("{:?}", events.read()).contains("\"set\""));
    assert!(format!("{:?}", tracker.read()).contains("invalidate"));
    ask(&mut watcher, "MULTI");
    assert_eq!(ask(&mut watcher, "EXEC"), Resp::Array(None));
    // Whoever monitors when the command runs sees its words.
    loop {
        let Resp::Status(line) = monitor.read() else { panic!("no line") };
        if line.contains("\"SET\" \"k\"") {
            assert!(line.len() > LONG, "{} bytes", line.len());
            break;
        }
    }
    assert!(holds(&server, "k", &value));
}

/// The bug: who was made the target of another's tracking meanwhile had an empty value set.
#[test]
fn a_client_that_becomes_a_target_of_tracking_meanwhile_sets_its_value() {
    let server = Lsmkv::start(&[]);
    let value = value(LONG);
    let mut stream = server.stream();
    stream.write_all(b"CLIENT ID\r\n").unwrap();
    let mut id = String::new();
    while !id.ends_with('\n') {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        id.push(char::from(byte[0]));
    }
    let mut stream = begin_on(stream, &server, &value);
    let mut other = server.connect();
    let redirect = format!("CLIENT TRACKING ON REDIRECT {}", id.trim().trim_start_matches(':'));
    assert_eq!(reply_text(&mut other, &redirect), "+OK");
    end(&mut stream, &value);
    expect(&mut stream, OK);
    assert!(holds(&server, "k", &value));
}
