//! Long replies: they take little more memory than their bytes, and the limits end them.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::resp::Resp;
use crate::support::{Lsmkv, ask, info, read_until_closed, reply_text, until};

const ELEMENT_BYTES: usize = 100;
const ELEMENTS: usize = 600_000;
/// The approximate size of LRANGE of the whole list: each element has a length and line ends.
const REPLY_BYTES: u64 = (ELEMENTS * (ELEMENT_BYTES + 8)) as u64;
/// The memory that a server may take beside pending replies: blocks it reads, a buffer that moves.
const ALLOWANCE: u64 = 64 << 20;

/// A server with a long list whose memory is at rest; also returns its memory.
fn server() -> (Lsmkv, u64) {
    let server = Lsmkv::start(&["--threads", "2", "--option", "block_cache=8388608"]);
    let mut client = server.connect();
    let push = |first: usize| {
        let element = |n: usize| format!("{n:0width$}", width = ELEMENT_BYTES).into_bytes();
        let words = [b"RPUSH".to_vec(), b"list".to_vec()].into_iter();
        words.chain((first..first + 1000).map(element)).collect::<Vec<_>>()
    };
    for first in (0..ELEMENTS).step_by(10_000) {
        let pushes: Vec<_> = (first..first + 10_000).step_by(1000).map(push).collect();
        client.pipeline(&pushes).unwrap();
    }
    assert_eq!(ask(&mut client, "SAVE"), Resp::Status("OK".into()));
    assert_eq!(ask(&mut client, "LLEN list"), Resp::Int(ELEMENTS as i64));
    let now = bytes_at_rest(&server);
    server.reset_peak();
    (server, now)
}

/// The memory of a server once it is at rest. The memory of written data is freed a while later,
/// and would distort a later measurement.
fn bytes_at_rest(server: &Lsmkv) -> u64 {
    const STEADY: u32 = 20;
    let (mut least, mut steady) = (server.resident_bytes(), 0);
    while steady < STEADY {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = server.resident_bytes();
        steady = if now + (1 << 20) < least { 0 } else { steady + 1 };
        least = least.min(now);
    }
    least
}

fn ask_for_all(server: &Lsmkv) -> UnixStream {
    let mut stream = server.stream();
    stream.write_all(b"LRANGE list 0 -1\r\n").unwrap();
    stream
}

/// Waits for the start of the reply: the server sends it when the whole reply is written.
fn reads_head(stream: &mut UnixStream) -> bool {
    let mut head = *b"*600000\r\n";
    stream.read_exact(&mut head).is_ok() && head == *b"*600000\r\n"
}

#[test]
fn replies_that_nobody_takes_cost_their_bytes_and_go_with_their_clients() {
    const CLIENTS: u64 = 6;
    let (server, before) = server();
    let mut witness = server.connect();
    let mut streams: Vec<UnixStream> = (0..CLIENTS).map(|_| ask_for_all(&server)).collect();
    for stream in &mut streams {
        assert_eq!(reply_text(&mut witness, "LINDEX list 7").len(), ELEMENT_BYTES);
        assert!(reads_head(stream));
    }
    // All replies are there at once, but for what the sockets hold. The resident memory cannot tell:
    // free memory that the allocator kept from writing the list, and which counts as memory at rest,
    // is used again for the replies.
    until("the replies are there", || {
        info(&mut witness, "memory", "mem_clients_normal") > CLIENTS * (REPLY_BYTES - (1 << 20))
    });
    assert!(server.resident_bytes() > CLIENTS * (REPLY_BYTES - (1 << 20)), "they are in memory");
    let grown = server.peak_bytes().saturating_sub(before);
    println!("{CLIENTS} replies of {REPLY_BYTES} bytes took {grown} bytes at most");
    assert!(grown < CLIENTS * REPLY_BYTES + ALLOWANCE, "grew by {grown} bytes");
    drop(streams);
    until("memory comes back", || server.resident_bytes() < before + ALLOWANCE / 2);
}

#[test]
fn replies_that_are_taken_leave_nothing() {
    let (server, before) = server();
    let mut client = server.connect();
    for _ in 0..4 {
        let Resp::Array(Some(elements)) = ask(&mut client, "LRANGE list 0 -1") else { panic!() };
        assert_eq!(elements.len(), ELEMENTS);
        // The allocator gives memory back a moment later. Until then the next reply would stand
        // beside this one, and be measured with it.
        until("memory comes back", || server.resident_bytes() < before + ALLOWANCE / 2);
    }
    let grown = server.peak_bytes().saturating_sub(before);
    println!("a reply of {REPLY_BYTES} bytes took {grown} bytes at most");
    assert!(grown < REPLY_BYTES + ALLOWANCE, "grew by {grown} bytes");
}

#[test]
fn a_reply_does_not_stand_behind_those_that_were_taken() {
    let (server, before) = server();
    let mut stream = server.stream();
    stream.write_all(&b"LRANGE list 0 -1\r\n".repeat(4)).unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut left = 4 * (b"*600000\r\n".len() + ELEMENTS * (ELEMENT_BYTES + 8));
    while left > 0 {
        let len = stream.read(&mut buffer).unwrap();
        assert!(len > 0, "the reply ended early");
        left -= len;
    }
    let grown = server.peak_bytes().saturating_sub(before);
    println!("four replies of {REPLY_BYTES} bytes took {grown} bytes at most");
    assert!(grown < REPLY_BYTES + ALLOWANCE, "grew by {grown} bytes");
    until("memory comes back", || server.resident_bytes() < before + ALLOWANCE / 2);
}

/// The buffer of a long reply is kept for the requests behind it. One that never ends must not keep
/// it.
#[test]
fn a_request_that_never_ends_keeps_no_buffer() {
    let (server, _) = server();
    let mut witness = server.connect();
    let mut stream = server.stream();
    stream.write_all(b"LRANGE list 0 -1\r\nGET k").unwrap();
    let mut reply = vec![0; b"*600000\r\n".len() + ELEMENTS * (ELEMENT_BYTES + 8)];
    stream.read_exact(&mut reply).unwrap();
    until("the buffer is freed", || info(&mut witness, "memory", "mem_clients_normal") < 1 << 20);
    stream.write_all(b"\r\n").unwrap();
    let mut nil = [0; 5];
    stream.read_exact(&mut nil).unwrap();
    assert_eq!(nil, *b"$-1\r\n");
}

#[test]
fn a_reply_beyond_the_limit_of_a_client_ends_there() {
    let (server, before) = server();
    let mut witness = server.connect();
    ask(&mut witness, "CONFIG SET client-output-buffer-limit 4mb");
    assert_eq!(read_until_closed(&mut ask_for_all(&server)), "");
    until("it is said", || server.log().contains("exceeds its buffers"));
    let grown = server.peak_bytes().saturating_sub(before);
    assert!(grown < ALLOWANCE / 2, "grew by {grown} bytes");
    // A suppressed reply has no length.
    let mut stream = server.stream();
    stream
        .write_all(b"CLIENT REPLY OFF\r\nLRANGE list 0 -1\r\nCLIENT REPLY ON\r\nQUIT\r\n")
        .unwrap();
    assert_eq!(read_until_closed(&mut stream), "+OK\r\n+OK\r\n");
    let grown = server.peak_bytes().saturating_sub(before);
    assert!(grown < ALLOWANCE / 2, "grew by {grown} bytes");
    // A reply within the limits is complete.
    let Resp::Array(Some(elements)) = ask(&mut witness, "LRANGE list 0 29999") else { panic!() };
    assert_eq!(elements.len(), 30_000);
}

#[test]
fn a_reply_that_brings_all_clients_beyond_their_limit_ends_there() {
    let (server, before) = server();
    let mut witness = server.connect();
    ask(&mut witness, "CONFIG SET maxmemory-clients 150mb");
    let mut streams: Vec<UnixStream> = (0..4).map(|_| ask_for_all(&server)).collect();
    let answered = streams.iter_mut().map(reads_head).filter(|answered| *answered).count();
    assert_eq!(answered, 2);
    assert_eq!(info(&mut witness, "stats", "evicted_clients"), 2);
    assert!(server.log().contains("beyond their limit"));
    let grown = server.peak_bytes().saturating_sub(before);
    assert!(grown < (150 << 20) + ALLOWANCE, "grew by {grown} bytes");
}

#[test]
fn a_transaction_whose_replies_are_too_long_runs_whole_and_takes_no_more() {
    let (server, before) = server();
    let mut witness = server.connect();
    ask(&mut witness, "CONFIG SET client-output-buffer-limit 100mb");
    let mut stream = server.stream();
    let reads = b"LRANGE list 0 -1\r\n".repeat(20);
    stream.write_all(&[b"MULTI\r\n", &reads[..], b"SET k v\r\nEXEC\r\n"].concat()).unwrap();
    let told_first = read_until_closed(&mut stream);
    assert!(!told_first.contains('*'), "a part of the replies was sent");
    assert_eq!(reply_text(&mut witness, "GET k"), "v");
    // While the buffer moves, the old one still exists.
    let grown = server.peak_bytes().saturating_sub(before);
    assert!(grown < 2 * (100 << 20) + ALLOWANCE, "grew by {grown} bytes");
}

/// A reply whose number of elements is known only at its end once got a header although there had
/// been no room for it. That panicked, and the store refused all writes until a restart.
#[test]
fn a_range_that_is_too_long_ends_its_client_and_nothing_else() {
    let server = Lsmkv::start(&[]);
    let mut witness = server.connect();
    let add = |first: usize| {
        let words = [b"ZADD".to_vec(), b"z".to_vec()].into_iter();
        let members = first..(first + 1000).min(7141);
        words.chain(members.flat_map(|n| [b"0".to_vec(), format!("{n:08}").into_bytes()])).collect()
    };
    witness.pipeline(&(0..8).map(|n| add(1000 * n)).collect::<Vec<Vec<_>>>()).unwrap();
    // The members take 99,974 bytes, and their header a few more.
    let range = "ZRANGEBYSCORE z -inf +inf\r\n";
    for limit in (99_900..100_100).step_by(4) {
        ask(&mut witness, &format!("CONFIG SET client-output-buffer-limit {limit}"));
        for request in [range.to_owned(), format!("MULTI\r\n{range}{range}EXEC\r\n")] {
            let mut stream = server.stream();
            stream.write_all(request.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let told = read_until_closed(&mut stream);
            let whole = told.starts_with("*7141\r\n$8\r\n00000000\r\n") && told.len() == 99_981;
            assert!(whole || !told.contains('*'), "{limit}: {} bytes", told.len());
        }
        assert_eq!(reply_text(&mut witness, "SET k v"), "+OK");
    }
}

#[test]
fn who_closes_only_its_own_side_gets_all_of_a_long_reply() {
    let server = Lsmkv::start(&[]);
    let value = vec![b'v'; 900_000];
    let set = vec![b"SET".to_vec(), b"k".to_vec(), value];
    server.connect().pipeline([&set]).unwrap();
    let mut stream = server.stream();
    stream.write_all(b"GET k\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // By now the server has read to the end of the stream, but has not sent everything.
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(read_until_closed(&mut stream).len(), b"$900000\r\n".len() + 900_000 + 2);
}

/// The replies exceed what a client may leave unread, so the rest of the requests runs after the
/// client has shut down its sending side.
#[test]
fn who_closes_its_own_side_has_all_its_commands_run() {
    for threads in ["1", "2"] {
        let server = Lsmkv::start(&["--threads", threads]);
        let set = vec![b"SET".to_vec(), b"k".to_vec(), vec![b'v'; 60_000]];
        server.connect().pipeline([&set]).unwrap();
        let mut stream = server.stream();
        let pair = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";
        stream.write_all(&pair.repeat(200)).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let told_all = read_until_closed(&mut stream);
        assert!(told_all.ends_with(":200\r\n"), "{} bytes", told_all.len());
        assert_eq!(reply_text(&mut server.connect(), "GET n"), "200");
    }
}

#[test]
fn who_takes_a_long_reply_is_not_silent() {
    let (server, _) = server();
    ask(&mut server.connect(), "CONFIG SET timeout 1");
    let mut stream = ask_for_all(&server);
    assert!(reads_head(&mut stream));
    let mut part = vec![0; ELEMENTS * (ELEMENT_BYTES + 8) / 12];
    for _ in 0..12 {
        std::thread::sleep(std::time::Duration::from_millis(250));
        stream.read_exact(&mut part).unwrap();
    }
}
