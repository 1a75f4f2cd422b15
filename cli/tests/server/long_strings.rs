//! GET of a long string: the reply goes out part by part, whatever else happens.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::resp::Resp;
use crate::support::{Lsmkv, ask, read_until_closed, until};

const BYTES: usize = 256 << 20;
const PIECE: usize = 4 << 20;
/// What a server takes beside its memory at rest: its cache, its memtables, two parts of the reply.
const ALLOWANCE: u64 = 48 << 20;

/// A server with a string of [`BYTES`], all of whose pieces differ.
fn server() -> Lsmkv {
    let server = Lsmkv::start(&["--threads", "2", "--option", "memory_budget=33554432"]);
    let mut client = server.connect();
    for number in 0..BYTES / PIECE {
        let words = [b"APPEND".to_vec(), b"long".to_vec(), piece(number)];
        client.pipeline(&[words.to_vec()]).unwrap();
    }
    assert_eq!(ask(&mut client, "STRLEN long"), Resp::Int(BYTES as i64));
    assert_eq!(ask(&mut client, "SAVE"), Resp::Status("OK".into()));
    server
}

fn piece(number: usize) -> Vec<u8> {
    vec![u8::try_from(number % 250).unwrap() + 1; PIECE]
}

/// Reads the reply to GET, and checks it piece by piece.
fn read_long(stream: &mut UnixStream) {
    let mut head = format!("${BYTES}\r\n").into_bytes();
    let expected = head.clone();
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head, expected);
    let mut part = vec![0; PIECE];
    for number in 0..BYTES / PIECE {
        stream.read_exact(&mut part).unwrap();
        assert!(part == piece(number), "piece {number}");
    }
    let mut end = [0; 2];
    stream.read_exact(&mut end).unwrap();
    assert_eq!(end, *b"\r\n");
}

/// The reply took its own size in memory.
#[test]
fn a_long_string_is_sent_in_bounded_memory() {
    let server = server();
    until("memory is at rest", || server.resident_bytes() < ALLOWANCE);
    server.reset_peak();
    let mut streams: Vec<UnixStream> = (0..3).map(|_| server.stream()).collect();
    for stream in &mut streams {
        stream.write_all(b"GET long\r\n").unwrap();
    }
    streams.iter_mut().for_each(read_long);
    let peak = server.peak_bytes();
    println!("three replies of {BYTES} bytes: {peak} bytes at most");
    assert!(peak < 2 * ALLOWANCE, "{peak} bytes");
}

#[test]
fn a_long_reply_is_what_the_string_was_and_later_replies_wait() {
    let server = server();
    let (mut other, mut stream) = (server.connect(), server.stream());
    // Some of these are batched, some run alone.
    stream
        .write_all(b"SET a 1\r\nGET a\r\nGET long\r\nGET a\r\nPING\r\nGET long\r\nGET b\r\n")
        .unwrap();
    let mut before = [0; 5 + 7];
    stream.read_exact(&mut before).unwrap();
    assert_eq!(before, *b"+OK\r\n$1\r\n1\r\n");
    assert_eq!(ask(&mut other, "SETRANGE long 200000000 other"), Resp::Int(BYTES as i64));
    assert_eq!(ask(&mut other, "PING"), Resp::Status("PONG".into()));
    assert_eq!(ask(&mut other, "SET b 2"), Resp::Status("OK".into()));
    read_long(&mut stream);
    let mut between = [0; 7 + 7];
    stream.read_exact(&mut between).unwrap();
    assert_eq!(between, *b"$1\r\n1\r\n+PONG\r\n");
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    let mut rest = vec![0; BYTES];
    stream.read_exact(&mut rest).unwrap();
    assert_eq!(rest[200_000_000..][..5], *b"other");
    let mut last = [0; 2 + 7];
    stream.read_exact(&mut last).unwrap();
    assert_eq!(last, *b"\r\n$1\r\n2\r\n");
}

#[test]
fn a_long_string_in_a_transaction_or_to_one_that_leaves_does_no_harm() {
    let server = server();
    let mut client = server.connect();
    let mut gone = server.stream();
    gone.write_all(b"GET long\r\n").unwrap();
    gone.read_exact(&mut [0; 1000]).unwrap();
    drop(gone);
    let mut stream = server.stream();
    stream
        .write_all(b"MULTI\r\nGET long\r\nEXEC\r\nCLIENT REPLY SKIP\r\nGET long\r\nPING\r\n")
        .unwrap();
    let mut head = [0; 5 + 9 + 4];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head, *b"+OK\r\n+QUEUED\r\n*1\r\n");
    read_long(&mut stream);
    let mut pong = [0; 7];
    stream.read_exact(&mut pong).unwrap();
    assert_eq!(pong, *b"+PONG\r\n");
    // One that closes its own side gets all of it.
    let mut half = server.stream();
    half.write_all(b"GET long\r\n").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    read_long(&mut half);
    assert_eq!(read_until_closed(&mut half), "");
    assert_eq!(ask(&mut client, "PING"), Resp::Status("PONG".into()));
}
