//! Attacks by scripts and messages.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::attacks::{Size, impatient};
use crate::support::{Lsmkv, reply_text, request, until};

/// Subscribers that read nothing, of whom one comes anew from time to time, and a client that publishes
/// without end.
pub(super) fn silent_subscribers(server: &Lsmkv, size: &Size, stop: &AtomicBool) {
    let subscriber = || {
        let mut stream = impatient(server);
        let _ = stream.write(b"SUBSCRIBE news\r\n");
        stream
    };
    let mut streams: Vec<_> = (0..size.slow_clients / 10).map(|_| subscriber()).collect();
    let mut publisher = impatient(server);
    let request = request(&["PUBLISH", "news", &"x".repeat(1000)]).repeat(100);
    let (mut taken, mut sent) = ([0; 64 << 10], 0);
    for number in 0.. {
        // A part of a request must be followed by its rest.
        sent += publisher.write(&request[sent..]).unwrap_or(0);
        sent %= request.len();
        let _ = publisher.read(&mut taken);
        if number % 100 == 0 {
            let place = number / 100 % streams.len();
            streams[place] = subscriber();
        }
        if stop.load(Relaxed) {
            return;
        }
    }
}

pub(super) fn endless_scripts(server: &Lsmkv, size: &Size, stop: &AtomicBool) {
    run_scripts(server, size, stop, &["while true do end", "for i = 1, 1e12 do local t = {i} end"]);
}

pub(super) fn hungry_scripts(server: &Lsmkv, size: &Size, stop: &AtomicBool) {
    let scripts = [
        "return ('x'):rep(1e10)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
        "local t = {} while true do t[#t + 1] = {} end",
        "while true do pcall(string.rep, 'x', 1e10) end",
    ];
    run_scripts(server, size, stop, &scripts);
}

/// Clients that send one script after another, each with a text of its own, and one that kills what
/// runs.
fn run_scripts(server: &Lsmkv, size: &Size, stop: &AtomicBool, scripts: &[&str]) {
    let mut killer = server.connect();
    let mut kill = || reply_text(&mut killer, "SCRIPT KILL");
    let mut waiting = vec![false; size.slow_clients.min(100)];
    let mut streams: Vec<_> = waiting.iter().map(|_| impatient(server)).collect();
    let (mut taken, mut number) = ([0; 4096], 0);
    for round in 0.. {
        for (stream, waits) in streams.iter_mut().zip(&mut waiting) {
            *waits &= stream.read(&mut taken).is_err();
            if !*waits {
                let text = format!("{} -- {number}", scripts[number % scripts.len()]);
                let _ = stream.write(&request(&["EVAL", &text, "0"]));
                (*waits, number) = (true, number + 1);
            }
        }
        if round % 50 == 0 {
            kill();
        }
        if stop.load(Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(streams);
    until("no script runs", || kill().contains("NOTBUSY"));
}
