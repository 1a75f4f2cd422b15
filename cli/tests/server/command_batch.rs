//! Batched commands of many clients: each client gets its replies in its order, and all commands
//! share one commit.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::support::{self, Lsmkv, ask, info};

/// A request as clients send it.
fn request(line: &str) -> Vec<u8> {
    support::request(&line.split(' ').collect::<Vec<_>>())
}

/// Sends everything while the server is stopped, so that it finds all requests in one round.
fn at_once(server: &Lsmkv, clients: &mut [(UnixStream, Vec<u8>)]) {
    server.while_stopped(|| {
        clients.iter_mut().for_each(|(stream, bytes)| stream.write_all(bytes).unwrap());
    });
}

fn expect(stream: &mut UnixStream, expected: &str) {
    let mut got = vec![0; expected.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), expected);
}

#[test]
fn small_writes_of_many_clients_are_one_commit() {
    let server = Lsmkv::start(&["--threads", "1"]);
    let mut witness = server.connect();
    let lines = ["INCR all", "SET k v", "HSET h f v", "LPUSH l x", "GET k", "SADD s m"];
    let bytes: Vec<u8> = lines.iter().flat_map(|line| request(line)).collect();
    let mut clients: Vec<_> = (0..20).map(|_| (server.stream(), bytes.clone())).collect();
    for (stream, _) in &mut clients {
        stream.write_all(&request("PING")).unwrap();
        expect(stream, "+PONG\r\n");
    }
    let before = info(&mut witness, "lsmkv", "commits");
    at_once(&server, &mut clients);
    // The clients get their turns in the order of their connects.
    for (n, (stream, _)) in clients.iter_mut().enumerate() {
        let new = u32::from(n == 0);
        let expected =
            format!(":{}\r\n+OK\r\n:{new}\r\n:{}\r\n$1\r\nv\r\n:{new}\r\n", n + 1, n + 1);
        expect(stream, &expected);
    }
    assert_eq!(info(&mut witness, "lsmkv", "commits"), before + 1);
}

#[test]
fn what_cannot_join_runs_in_the_order_of_its_client_in_its_database() {
    for threads in ["1", "2"] {
        let server = Lsmkv::start(&["--threads", threads]);
        let mut clients: Vec<_> = (0..24).map(|n| (server.stream(), story(n).0)).collect();
        at_once(&server, &mut clients);
        for (n, (stream, _)) in (0..).zip(&mut clients) {
            expect(stream, &story(n).1);
        }
        let mut witness = server.connect();
        for database in 0..4 {
            ask(&mut witness, &format!("SELECT {database}"));
            assert_eq!(info(&mut witness, "stats", "total_error_replies"), 24);
            assert_eq!(ask(&mut witness, "GET all").bytes(), Some(&b"120"[..]));
        }
    }
}

/// Sends in one thread and reads in another: the exchange exceeds the socket buffers.
fn exchange(stream: &UnixStream, bytes: Vec<u8>, expected: &str) {
    let mut sender = stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        sender.write_all(&bytes).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut told = String::new();
    (&mut &*stream).read_to_string(&mut told).unwrap();
    sending.join().unwrap();
    assert!(told == expected, "{} bytes of replies, not {}", told.len(), expected.len());
}

#[test]
fn a_pipeline_of_any_length_is_answered_whole_beside_others() {
    for threads in ["1", "2"] {
        let server = Lsmkv::start(&["--threads", threads]);
        std::thread::scope(|scope| {
            for n in 0..3 {
                let stream = server.stream();
                scope.spawn(move || {
                    let (mut bytes, mut told) = (Vec::new(), String::new());
                    for count in 1..=60_000 {
                        bytes.extend(request(&format!("INCR counter{n}")));
                        told += &format!(":{count}\r\n");
                        if count % 1000 == 0 {
                            bytes.extend(request("PING"));
                            told += "+PONG\r\n";
                        }
                    }
                    exchange(&stream, bytes, &told);
                });
            }
        });
    }
}

#[test]
fn who_sends_its_last_gets_all_replies() {
    let server = Lsmkv::start(&["--threads", "1"]);
    for _ in 0..50 {
        let bytes = ["SET k v", "PING", "INCR n", "GET k", "ECHO x"].map(request).concat();
        let stream = server.stream();
        (&mut &stream).write_all(&bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut told = String::new();
        (&mut &stream).read_to_string(&mut told).unwrap();
        assert!(told.starts_with("+OK\r\n+PONG\r\n:") && told.ends_with("$1\r\nx\r\n"), "{told}");
    }
}

#[test]
fn a_password_counts_for_what_was_sent_behind_it() {
    let server = Lsmkv::start(&["--requirepass", "p"]);
    let many: Vec<String> = (0..20).map(|n| format!("k{n} v")).collect();
    for (line, reply) in [
        (format!("MSET {}", many.join(" ")), "+OK\r\n"),
        (format!("SET k {}", "v".repeat(20_000)), "+OK\r\n"),
    ] {
        let mut stream = server.stream();
        stream.write_all(&[request("AUTH p"), request(&line)].concat()).unwrap();
        expect(&mut stream, &format!("+OK\r\n{reply}"));
    }
}

/// The requests of a client and the expected replies: batched commands between others, and an
/// incomplete request at the end.
fn story(n: u32) -> (Vec<u8>, String) {
    let (mut sent, mut told) = (Vec::new(), String::new());
    let mut say = |line: &str, reply: &str| {
        sent.extend(request(line));
        told += reply;
    };
    say(&format!("SELECT {}", n % 4), "+OK\r\n");
    for round in 1..=10 {
        say(&format!("RPUSH l{n} a b"), &format!(":{}\r\n", round * 2));
        say(&format!("LRANGE l{n} -2 -1"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
        say(&format!("INCRBY c{n} 5"), &format!(":{}\r\n", round * 5));
        say("MULTI", "+OK\r\n");
        say(&format!("INCR c{n}x"), "+QUEUED\r\n");
        say(&format!("GET c{n}"), "+QUEUED\r\n");
        let text = (round * 5).to_string();
        say("EXEC", &format!("*2\r\n:{round}\r\n${}\r\n{text}\r\n", text.len()));
        say("ECHO x", "$1\r\nx\r\n");
        say(&format!("GET c{n}x"), &format!("${}\r\n{round}\r\n", round.to_string().len()));
    }
    say("CLIENT REPLY OFF", "");
    for _ in 0..20 {
        say("INCR all", "");
    }
    say("CLIENT REPLY ON", "+OK\r\n");
    say(
        &format!("INCR l{n}"),
        "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
    );
    sent.extend(b"*2\r\n$4\r\nINCR\r\n$3\r\nal");
    (sent, told)
}

/// A few bytes may write a large value: once, 64 of these commands took more than a gigabyte.
#[test]
fn large_values_of_small_commands_are_committed_one_after_the_other() {
    let server = Lsmkv::start(&["--threads", "1", "--option", "write_buffer=8MiB"]);
    let mut witness = server.connect();
    let bytes: Vec<u8> =
        (0..64).flat_map(|n| request(&format!("SETRANGE k{n} 7999999 x"))).collect();
    server.reset_peak();
    let before = server.resident_bytes();
    let mut clients = [(server.stream(), bytes)];
    at_once(&server, &mut clients);
    expect(&mut clients[0].0, &":8000000\r\n".repeat(64));
    let grown = server.peak_bytes().saturating_sub(before);
    println!("64 values of 8 MB took {grown} bytes at most");
    assert!(grown < 200 << 20, "grew by {grown} bytes");
    assert_eq!(ask(&mut witness, "STRLEN k63"), crate::resp::Resp::Int(8_000_000));
}
