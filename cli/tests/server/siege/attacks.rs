//! The attacks by connections and commands, and the list of all.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::programs::{endless_scripts, hungry_scripts, silent_subscribers};
use crate::support::{Lsmkv, reply_text};

/// How large the attacks are: small in every run of the tests, large if `LSMKV_SIEGE` is `long`.
pub(super) struct Size {
    pub(super) seconds: u64,
    connections: usize,
    pipeline_bytes: usize,
    pub(super) slow_clients: usize,
}

impl Size {
    pub(super) fn is_long(&self) -> bool {
        self.seconds > 1
    }

    pub(super) fn of_this_run() -> Self {
        match std::env::var("LSMKV_SIEGE").as_deref() {
            Ok("long") => {
                Self { seconds: 4, connections: 10_000, pipeline_bytes: 1 << 30, slow_clients: 500 }
            }
            _ => {
                Self { seconds: 1, connections: 1_500, pipeline_bytes: 64 << 20, slow_clients: 60 }
            }
        }
    }
}

/// An attack: runs until it is told to stop, or until it is over. `LSMKV_ATTACK` selects those whose
/// names contain it.
pub(super) type Attack = fn(&Lsmkv, &Size, &AtomicBool);

const ATTACKS: [(&str, Attack); 13] = [
    ("connections that say nothing", silent_connections),
    ("connections that come and go", connection_storm),
    ("requests byte by byte", slow_writers),
    ("replies that nobody takes", slow_readers),
    ("a pipeline without end", endless_pipeline),
    ("deep nesting and absurd counts", absurd_requests),
    ("random bytes", random_bytes),
    ("connections closed in the middle", half_requests),
    ("transactions without EXEC", endless_transactions),
    ("a million channels", endless_subscriptions),
    ("subscribers that never read", silent_subscribers),
    ("scripts without end", endless_scripts),
    ("scripts that take all memory", hungry_scripts),
];

pub(super) fn chosen_attacks() -> impl Iterator<Item = (&'static str, Attack)> {
    let only = std::env::var("LSMKV_ATTACK").unwrap_or_default();
    ATTACKS.into_iter().filter(move |(name, _)| name.contains(&only))
}

pub(super) fn runs_scripts(attack: &str) -> bool {
    attack.starts_with("scripts")
}

fn rest_until(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection whose calls fail at once instead of waiting.
pub(super) fn impatient(server: &Lsmkv) -> UnixStream {
    let stream = server.stream();
    stream.set_nonblocking(true).unwrap();
    stream
}

fn silent_connections(server: &Lsmkv, size: &Size, stop: &AtomicBool) {
    let mut streams = Vec::new();
    while streams.len() < size.connections && !stop.load(Relaxed) {
        streams.push(impatient(server));
    }
    rest_until(stop);
}

fn connection_storm(server: &Lsmkv, _: &Size, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let streams: Vec<_> = (0..50).map(|_| impatient(server)).collect();
        streams.iter().step_by(2).for_each(|mut stream| drop(stream.write_all(b"PING\r\n")));
    }
}

fn slow_writers(server: &Lsmkv, size: &Size, stop: &AtomicBool) {
    let streams: Vec<_> = (0..size.slow_clients).map(|_| impatient(server)).collect();
    let request = b"*3\r\n$3\r\nSET\r\n$4\r\nslow\r\n$100000\r\n";
    for byte in request.iter().chain(std::iter::repeat(&b'v')) {
        for mut stream in &streams {
            let _ = stream.write(&[*byte]);
        }
        std::thread::sleep(Duration::from_millis(1));
        if stop.load(Relaxed) {
            return;
        }
    }
}

fn slow_readers(server: &Lsmkv, size: &Size, stop: &AtomicBool) {
    let streams: Vec<_> = (0..size.slow_clients).map(|_| impatient(server)).collect();
    let request = b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(100);
    streams.iter().for_each(|mut stream| drop(stream.write(&request)));
    let mut taken = [0; 512];
    while !stop.load(Relaxed) {
        streams.iter().for_each(|mut stream| drop(stream.read(&mut taken)));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn endless_pipeline(server: &Lsmkv, size: &Size, _: &AtomicBool) {
    let stream = server.stream();
    let mut replies = stream.try_clone().unwrap();
    let request = b"*3\r\n$3\r\nSET\r\n$8\r\npipeline\r\n$1\r\nv\r\n".repeat(1000);
    let rounds = size.pipeline_bytes / request.len();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut taken = vec![0; 64 << 10];
            let mut left = rounds * 1000 * b"+OK\r\n".len();
            while left > 0 {
                left -= replies.read(&mut taken).unwrap();
            }
        });
        (0..rounds).for_each(|_| (&stream).write_all(&request).unwrap());
    });
}

fn absurd_requests(server: &Lsmkv, _: &Size, stop: &AtomicBool) {
    let nested = b"*1\r\n".repeat(100_000);
    let requests: [&[u8]; 5] = [
        &nested,
        b"*1048576\r\n$536870912\r\n",
        b"*2147483647\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$-5\r\n",
        b"SETRANGE k 536870912 x\r\nSRANDMEMBER s -9223372036854775808\r\nLRANGE l 0 -1\r\n",
    ];
    while !stop.load(Relaxed) {
        requests.iter().for_each(|request| drop(server.stream().write(request)));
    }
}

fn random_bytes(server: &Lsmkv, _: &Size, stop: &AtomicBool) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // Half of them look like a request at first.
    let heads: [&[u8]; 4] = [b"", b"*3\r\n", b"*2\r\n$3\r\nGET\r\n", b"*1\r\n$4\r\n"];
    while !stop.load(Relaxed) {
        let mut bytes = heads[next() as usize % heads.len()].to_vec();
        bytes.extend((0..next() % 4096).map(|_| next() as u8));
        let mut stream = impatient(server);
        let _ = stream.write(&bytes);
    }
}

fn half_requests(server: &Lsmkv, _: &Size, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        for cut in 1..40 {
            let request = b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$20\r\nvvvvvvvvvvvvvvvvvvvv\r\n";
            let mut stream = impatient(server);
            let _ = stream.write(&request[..cut]);
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    }
}

fn endless_transactions(server: &Lsmkv, size: &Size, stop: &AtomicBool) {
    let mut client = server.connect();
    let streams: Vec<_> = (0..size.slow_clients).map(|_| impatient(server)).collect();
    streams.iter().for_each(|mut stream| drop(stream.write(b"MULTI\r\n")));
    let request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n".repeat(500);
    let mut taken = [0; 64 << 10];
    while !stop.load(Relaxed) {
        for mut stream in &streams {
            let _ = stream.write(&request);
            let _ = stream.read(&mut taken);
        }
    }
    assert_eq!(reply_text(&mut client, "GET k"), "(nil)");
}

/// A client that subscribes to channel after channel, and begins anew when it is closed.
fn endless_subscriptions(server: &Lsmkv, _: &Size, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let mut stream = server.stream();
        for chunk in 0..1000 {
            let names: String = (0..1000).map(|n| format!(" channel:{chunk}:{n}")).collect();
            let _ = stream.write_all(format!("SUBSCRIBE{names}\r\nPING end\r\n").as_bytes());
            if stop.load(Relaxed) || !reads_until_end(&mut stream) {
                break;
            }
        }
    }
}

/// Reads until the reply to `PING end`; false if the server has closed the connection.
fn reads_until_end(stream: &mut UnixStream) -> bool {
    let (mut taken, mut last) = ([0; 64 << 10], Vec::new());
    while !last.ends_with(b"end\r\n") {
        let Ok(count @ 1..) = stream.read(&mut taken) else { return false };
        last.extend(&taken[..count]);
        last.drain(..last.len().saturating_sub(16));
    }
    true
}
