//! A client that does nothing wrong, and what it waits.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Lsmkv, request};

/// The time between a reply and the next command.
const PACE: Duration = Duration::from_micros(500);

/// Waits in microseconds, sorted.
pub(super) struct Waits(Vec<u64>);

impl Waits {
    pub(super) fn percentile(&self, percent: f64) -> u64 {
        let last = self.0.len() - 1;
        self.0[(last as f64 * percent / 100.0).round() as usize]
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// Connects the client.
pub(super) fn harmless(server: &Lsmkv) -> UnixStream {
    let mut stream = server.stream();
    stream.set_nonblocking(true).unwrap();
    assert_eq!(ask_and_spin(&mut stream, b"CLIENT NO-EVICT on\r\n", 5), b"+OK\r\n");
    stream
}

/// What one GET or SET at a time waits for its reply, until `is_over`.
pub(super) fn waits(stream: &mut UnixStream, is_over: impl Fn() -> bool) -> Waits {
    before_everybody();
    let commands: [(&[&str], &[u8]); 2] =
        [(&["SET", "harmless", "v"], b"+OK\r\n"), (&["GET", "harmless"], b"$1\r\nv\r\n")];
    let mut waits = Vec::new();
    loop {
        for (words, expected) in commands {
            let asked = Instant::now();
            assert_eq!(ask_and_spin(stream, &request(words), expected.len()), expected);
            waits.push(asked.elapsed().as_micros() as u64);
            std::thread::sleep(PACE);
        }
        if is_over() {
            break;
        }
    }
    waits.sort_unstable();
    Waits(waits)
}

/// Sends a request and reads so many bytes of a reply, without giving the processor away.
fn ask_and_spin(stream: &mut UnixStream, request: &[u8], reply: usize) -> Vec<u8> {
    stream.write_all(request).unwrap();
    let (mut bytes, mut filled) = (vec![0; reply], 0);
    while filled < reply {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => panic!("the server has closed the connection"),
            Ok(len) => filled += len,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    bytes
}

/// This thread runs before all others of its processor, if the machine allows that. Otherwise what
/// others do is in the figures, which then are too large.
fn before_everybody() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let mut chrt = Command::new("chrt");
    chrt.args(["--fifo", "--pid", "50"]).arg(thread.file_name().unwrap());
    if !chrt.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("without real-time priority:");
    }
}

/// This thread, and those that it starts, run after the others.
pub(super) fn behind_everybody() {
    rustix::process::nice(19).unwrap();
}
