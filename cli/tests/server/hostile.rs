//! Hostile and broken clients: they harm only themselves, and memory stays bounded.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use crate::resp::Resp;
use crate::support::{Lsmkv, ask, info, read_until_closed, reply_text, request, until};

/// The memory by which a server may grow under attack.
const ALLOWANCE: u64 = 64 << 20;

#[test]
fn what_is_no_request_ends_its_connection_and_nothing_else() {
    // With one thread, the witness notices whoever keeps it busy.
    let server = Lsmkv::start(&["--threads", "1"]);
    let mut witness = server.connect();
    ask(&mut witness, "SET k v");
    let before = server.resident_bytes();
    let nested = b"*1\r\n".repeat(1_000_000);
    for (bytes, answer) in [
        (&b"*1\r\n$2147483648\r\n"[..], "-ERR Protocol error: invalid bulk length\r\n"),
        (b"*2147483647\r\n$1\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*-9999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (&nested, "-ERR Protocol error: expected '$', got '*'\r\n"),
        (&[b'x'; 200_000], "-ERR Protocol error: too big inline request\r\n"),
        (b"*1\r\n+OK\r\n", "-ERR Protocol error: expected '$', got '+'\r\n"),
        (b"get 'k\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
        (b"PING\r\n*1\r\n$a\r\n", "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n"),
    ] {
        let mut stream = server.stream();
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(bytes);
        let told = read_until_closed(&mut stream);
        assert!(told == answer || told.is_empty(), "{told:?} instead of {answer:?}");
        assert_eq!(crate::support::reply_text(&mut witness, "GET k"), "v");
    }
    // Random bytes are a request for an unknown command, or none.
    let mut stream = server.stream();
    let garbage: Vec<u8> =
        (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let _ = stream.write_all(&garbage);
    drop(stream);
    assert_eq!(reply_text(&mut witness, "GET k"), "v");
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < ALLOWANCE, "grew by {grown} bytes");
}

#[test]
fn a_length_that_is_only_claimed_takes_no_memory() {
    let server = Lsmkv::start(&[]);
    let before = server.resident_bytes();
    let mut streams = Vec::new();
    for _ in 0..100 {
        let mut stream = server.stream();
        stream.write_all(b"*1000000\r\n$536870912\r\nabc").unwrap();
        streams.push(stream);
    }
    assert_eq!(reply_text(&mut server.connect(), "PING"), "+PONG");
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < ALLOWANCE, "grew by {grown} bytes");
}

#[test]
fn a_pipeline_of_large_replies_is_answered_whole_and_in_order() {
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let value = |n: u32| vec![b'a' + u8::try_from(n % 26).unwrap(); 100_000 + n as usize];
    let command = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    let key = |n: u32| format!("k{n}").into_bytes();
    let sets: Vec<_> = (0..50).map(|n| command(&[b"SET", &key(n), &value(n)])).collect();
    client.pipeline(&sets).unwrap();
    // Far more than a client may leave unread, with a counter that reveals a command that ran
    // twice.
    let asked =
        (0..300).flat_map(|n| [command(&[b"GET", &key(n % 50)]), command(&[b"INCR", b"c"])]);
    let replies = client.pipeline(&asked.collect::<Vec<_>>()).unwrap();
    let expected =
        (0..300u32).flat_map(|n| [Resp::Bulk(Some(value(n % 50))), Resp::Int(i64::from(n) + 1)]);
    assert!(replies.into_iter().eq(expected));
    assert_eq!(info(&mut client, "stats", "total_commands_processed"), 50 + 600);
}

#[test]
fn who_does_not_read_waits_alone() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    let value = vec![b"SET".to_vec(), b"big".to_vec(), vec![b'v'; 1 << 20]];
    witness.pipeline([&value]).unwrap();
    let before = server.resident_bytes();
    let mut stream = server.stream();
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    let request = b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(1000);
    loop {
        match stream.write(&request) {
            Ok(len) => sent += len,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(e) => panic!("{e}"),
        }
        assert!(sent < 100 << 20, "the server reads on although nobody takes its replies");
    }
    assert_eq!(reply_text(&mut witness, "PING"), "+PONG");
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < ALLOWANCE, "grew by {grown} bytes for {} replies", sent / 22);
    // The client gets its replies once it reads.
    let mut reader = std::io::BufReader::new(stream);
    for _ in 0..50 {
        let reply = crate::resp::read(&mut reader).unwrap();
        assert_eq!(reply.bytes().map(<[u8]>::len), Some(1 << 20));
    }
}

#[test]
fn buffers_have_limits() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    ask(&mut witness, "CONFIG SET client-query-buffer-limit 1mb client-output-buffer-limit 4mb");
    let mut stream = server.stream();
    let _ = stream.write_all(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$8000000\r\n");
    let _ = stream.write_all(&vec![b'v'; 8_000_000]);
    assert_eq!(read_until_closed(&mut stream), "");
    assert_eq!(ask(&mut witness, "EXISTS k"), Resp::Int(0));
    for n in 0..6 {
        let element = "x".repeat(1_000_000 - n);
        ask(&mut witness, &format!("RPUSH list {element}"));
    }
    let mut stream = server.stream();
    stream.write_all(b"LRANGE list 0 -1\r\n").unwrap();
    assert_eq!(read_until_closed(&mut stream), "");
    assert_eq!(reply_text(&mut witness, "PING"), "+PONG");
}

#[test]
fn all_buffers_together_have_a_limit() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    ask(&mut witness, "CONFIG SET maxmemory-clients 8mb");
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = server.stream();
        // The value of SET would go to the store as it arrives.
        let _ = stream.write_all(b"*3\r\n$6\r\nAPPEND\r\n$1\r\nk\r\n$8000000\r\n");
        let _ = stream.write_all(&vec![b'v'; 3_000_000]);
        streams.push(stream);
    }
    until("the largest are closed", || info(&mut witness, "stats", "evicted_clients") >= 4);
    until("the rest fits", || info(&mut witness, "memory", "mem_clients_normal") <= 8 << 20);
    assert!(info(&mut witness, "clients", "connected_clients") >= 2);
}

#[test]
fn replies_of_small_commands_that_are_not_taken_count_as_well() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    witness.pipeline([&vec![b"SET".to_vec(), b"k".to_vec(), vec![b'v'; 800_000]]]).unwrap();
    ask(&mut witness, "CONFIG SET maxmemory-clients 4mb");
    let get = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(2);
    let clients: Vec<_> = (0..16)
        .map(|_| {
            let mut stream = server.stream();
            stream.write_all(&get).unwrap();
            stream
        })
        .collect();
    until("some are closed", || info(&mut witness, "stats", "evicted_clients") >= 8);
    until("the rest fits", || info(&mut witness, "memory", "mem_clients_normal") <= 4 << 20);
    drop(clients);
}

#[test]
fn silent_clients_are_closed_when_asked_but_not_those_that_wait() {
    let server = Lsmkv::start(&["--timeout", "1"]);
    let mut idle = server.stream();
    let mut waiting = server.connect();
    let waiter = std::thread::spawn(move || reply_text(&mut waiting, "BLPOP k 3"));
    assert_eq!(read_until_closed(&mut idle), "");
    assert_eq!(waiter.join().unwrap(), "(nil array)");
}

#[test]
fn there_is_a_last_client() {
    let server = Lsmkv::start(&["--maxclients", "3"]);
    let mut first = server.connect();
    // The connection that checked whether the server is up may still be counted.
    until("it is alone", || info(&mut first, "clients", "connected_clients") == 1);
    let mut clients = vec![first, server.connect(), server.connect()];
    clients.iter_mut().for_each(|client| assert_eq!(reply_text(client, "PING"), "+PONG"));
    let mut one_more = server.stream();
    assert_eq!(read_until_closed(&mut one_more), "-ERR max number of clients reached\r\n");
    drop(clients.pop());
    let mut witness = clients.pop().unwrap();
    until("a place is free", || info(&mut witness, "clients", "connected_clients") == 2);
    assert_eq!(reply_text(&mut server.connect(), "PING"), "+PONG");
}

#[test]
fn a_transaction_without_end_is_memory_too() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    ask(&mut witness, "CONFIG SET maxmemory-clients 8mb");
    let mut stream = server.stream();
    let _ = stream.write_all(b"MULTI\r\n");
    let request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n".repeat(200_000);
    let _ = stream.write_all(&request);
    until("it is closed", || info(&mut witness, "stats", "evicted_clients") == 1);
    assert_eq!(ask(&mut witness, "EXISTS k"), Resp::Int(0));
}

#[test]
fn whatever_a_client_has_the_server_remember_counts() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    ask(&mut witness, "CONFIG SET maxmemory-clients 8mb");
    let long = |n: usize| format!("{n}{}", "x".repeat(100_000));
    let line = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let each = |name: &str| (0..100).map(|n| [line(name), vec![long(n)]].concat()).collect();
    let queued: Vec<_> = std::iter::once(line("MULTI")).chain(each("CONFIG GET")).collect();
    let keys: Vec<_> = (0..100).map(long).collect();
    let waits = [line("BLPOP"), keys, line("0")].concat();
    for (closed, requests) in (1..).zip([queued, each("WATCH"), vec![waits]]) {
        let mut stream = server.stream();
        // The server may close the connection before all requests are sent.
        requests.iter().for_each(|words| drop(stream.write_all(&request(words))));
        until("it is closed", || info(&mut witness, "stats", "evicted_clients") == closed);
    }
    assert_eq!(reply_text(&mut witness, "PING"), "+PONG");
}

#[test]
fn what_a_browser_sends_runs_nothing() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    ask(&mut witness, "SET k v");
    for head in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nhost: localhost\r\n"] {
        let mut stream = server.stream();
        let _ = stream.write_all(format!("{head}Accept: *\r\n\r\nFLUSHALL\r\n").as_bytes());
        assert!(!read_until_closed(&mut stream).contains("OK"));
        assert_eq!(reply_text(&mut witness, "GET k"), "v");
    }
    assert!(server.log().contains("speaks HTTP"));
}

#[test]
fn a_crowd_that_comes_at_once_is_counted_before_it_is_handed_out() {
    let server = Lsmkv::start(&["--maxclients", "5", "--threads", "3"]);
    let mut witness = server.connect();
    until("it is alone", || info(&mut witness, "clients", "connected_clients") == 1);
    let mut crowd = Vec::new();
    server.while_stopped(|| crowd.extend((0..30).map(|_| server.stream())));
    let is_refused = |stream: &mut std::os::unix::net::UnixStream| {
        let _ = stream.write_all(b"PING\r\n");
        let mut first = [0];
        stream.read_exact(&mut first).is_ok() && first == *b"-"
    };
    let refused = crowd.iter_mut().map(is_refused).filter(|refused| *refused);
    assert_eq!(refused.count(), 26);
}
