//! Whom the server serves first, told by what has happened to the others when the reply is written.
//!
//! The server stands still while the others send, and while a harmless client then asks. So everything
//! is there at once, and the harmless request is the last.

use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::resp::{self, Resp};
use crate::support::{Lsmkv, ask, info, until};

/// How many others there are.
const CROWD: usize = 200;
/// How many of them may be served first: a few for each turn of the event loop, whatever it takes.
const BEFORE: u64 = 20;

fn start() -> Lsmkv {
    Lsmkv::start(&["--threads", "1"])
}

/// A client that the server knows.
fn known(server: &Lsmkv) -> UnixStream {
    let mut stream = server.stream();
    stream.write_all(b"PING\r\n").unwrap();
    assert_eq!(reply_of(&stream), Resp::Status("PONG".into()));
    stream
}

fn reply_of(stream: &UnixStream) -> Resp {
    resp::read(&mut BufReader::new(stream)).unwrap()
}

/// A field of the reply to an INFO that has been sent.
fn answered(stream: &UnixStream, field: &str) -> u64 {
    let (Resp::Bulk(Some(text)) | Resp::Verbatim(text)) = reply_of(stream) else {
        panic!("INFO has another reply")
    };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap_or_else(|| panic!("no {field} in\n{text}")).parse().unwrap()
}

#[test]
fn many_long_pipelines_delay_a_short_command_by_one_turn() {
    const PIPELINES: usize = 50;
    // More than a turn of 64 KiB has of these requests of 26 bytes.
    const TURN: i64 = 2600;
    let server = start();
    let mut client = server.connect();
    let requests = b"*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n".repeat(2000);
    let mut streams: Vec<_> = (0..PIPELINES).map(|_| server.stream()).collect();
    let count = |client: &mut resp::Client| match ask(client, "GET count") {
        Resp::Bulk(Some(digits)) => String::from_utf8(digits).unwrap().parse::<i64>().unwrap(),
        _ => 0,
    };
    // The server learns who sends long pipelines.
    streams.iter_mut().for_each(|stream| stream.write_all(&requests).unwrap());
    let all = (PIPELINES * 2000) as i64;
    until("the first pipelines ran", || count(&mut client) == all);
    let mut late = server.stream();
    server.while_stopped(|| {
        streams.iter_mut().for_each(|stream| stream.write_all(&requests).unwrap());
        late.write_all(b"GET count\r\n").unwrap();
    });
    let Resp::Bulk(Some(digits)) = reply_of(&late) else { panic!("GET has another reply") };
    let ran_before = String::from_utf8(digits).unwrap().parse::<i64>().unwrap() - all;
    assert!(ran_before <= 2 * TURN, "{ran_before} commands of others ran before");
}

/// The bug: whoever left was closed before anybody else was served, and a close is costly.
#[test]
fn a_crowd_that_leaves_is_closed_after_a_command_has_its_reply() {
    let server = start();
    let crowd: Vec<_> = (0..CROWD).map(|_| known(&server)).collect();
    let mut late = known(&server);
    server.while_stopped(|| {
        drop(crowd);
        late.write_all(b"INFO clients\r\n").unwrap();
    });
    let left = CROWD as u64 + 1 - answered(&late, "connected_clients");
    assert!(left <= BEFORE, "{left} of {CROWD} were closed before");
    let mut client = server.connect();
    until("all are closed", || info(&mut client, "clients", "connected_clients") == 2);
}

/// The bug: a byte of a request that never ends had its turn like a request.
#[test]
fn parts_of_requests_are_received_after_a_command_has_its_reply() {
    let server = start();
    let mut crowd: Vec<_> = (0..CROWD).map(|_| known(&server)).collect();
    let (mut late, mut client) = (known(&server), server.connect());
    let head = b"*3\r\n$3\r\nSET\r\n$4\r\nslow\r\n$1000000\r\n";
    let received = |client: &mut resp::Client| info(client, "stats", "total_net_input_bytes");
    let before = received(&mut client);
    crowd.iter_mut().for_each(|stream| stream.write_all(head).unwrap());
    // The server learns who sends parts.
    let heads = (CROWD * head.len()) as u64;
    until("the heads are there", || received(&mut client) >= before + heads);
    let before = received(&mut client);
    server.while_stopped(|| {
        crowd.iter_mut().for_each(|stream| stream.write_all(&[b'v'; 500]).unwrap());
        late.write_all(b"INFO stats\r\n").unwrap();
    });
    let parts = (answered(&late, "total_net_input_bytes") - before) / 500;
    assert!(parts <= BEFORE, "{parts} of {CROWD} parts were received before");
}

/// The kernel frees the sockets of those that come and go in bursts, and whoever asks waits for them.
#[test]
fn connections_beside_a_client_that_was_there_are_accepted_at_a_pace() {
    // What comes at once, and twice what the server accepts in a second.
    const MOST: u64 = 2_000 + 20_000;
    let server = start();
    let mut client = server.connect();
    let ping_for = |client: &mut resp::Client, seconds| {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(seconds) {
            assert_eq!(ask(client, "PING"), Resp::Status("PONG".into()));
            std::thread::sleep(Duration::from_millis(1));
        }
        begin.elapsed()
    };
    ping_for(&mut client, 1);
    let received = |client: &mut resp::Client| info(client, "stats", "total_connections_received");
    let (begin, stop) = (received(&mut client), AtomicBool::new(false));
    let (accepted, time) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                drop(server.stream());
            }
        });
        let time = ping_for(&mut client, 1);
        let accepted = received(&mut client) - begin;
        stop.store(true, Relaxed);
        (accepted, time.as_secs_f64())
    });
    assert!(accepted > 0 && accepted < (MOST as f64 * time) as u64, "{accepted} in {time} s");
    // Those that wait are accepted as soon as nobody else is served.
    let mut late = known(&server);
    late.write_all(b"PING\r\n").unwrap();
    assert_eq!(reply_of(&late), Resp::Status("PONG".into()));
}

#[test]
fn new_connections_are_accepted_after_a_command_has_its_reply() {
    let server = start();
    let mut late = known(&server);
    let mut client = server.connect();
    let before = info(&mut client, "stats", "total_connections_received");
    let mut crowd = Vec::new();
    server.while_stopped(|| {
        // As many as a socket of the smallest queue lets wait.
        for _ in 0..CROWD / 2 {
            let mut stream = UnixStream::connect(server.socket()).unwrap();
            stream.write_all(b"\x00\xff$-5\r\n").unwrap();
            crowd.push(stream);
        }
        late.write_all(b"INFO stats\r\n").unwrap();
    });
    let accepted = answered(&late, "total_connections_received") - before;
    assert!(accepted <= BEFORE, "{accepted} of {} were accepted before", CROWD / 2);
}
