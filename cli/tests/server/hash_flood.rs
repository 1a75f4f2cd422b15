//! Keys chosen so that an unseeded hash maps them all to one value, over the socket: they cost the
//! server what other keys cost.

use std::time::{Duration, Instant};

use crate::flood_keys::{colliding, harmless};
use crate::resp::Client;
use crate::support::{Lsmkv, ask};

const KEYS: u64 = 20_000;
/// The commands that are sent together.
const TOGETHER: usize = 500;
/// The least time of several rounds counts.
const ROUNDS: usize = 5;

type Key = fn(u64) -> Vec<u8>;

/// Sends a command for each of the keys from `first` on.
fn send(client: &mut Client, command: &[&str], key: Key, first: u64) -> Duration {
    let with = |i: u64| {
        let mut words: Vec<Vec<u8>> = command.iter().map(|word| word.as_bytes().to_vec()).collect();
        words.insert(1, key(first + i));
        words
    };
    let requests: Vec<Vec<Vec<u8>>> = (0..KEYS).map(with).collect();
    let started = Instant::now();
    for together in requests.chunks(TOGETHER) {
        let replies = client.pipeline(together).unwrap();
        assert!(replies.iter().all(|reply| !reply.is_error()));
    }
    started.elapsed()
}

/// Compares a command on both kinds of keys, in turn.
fn compare(place: &str, client: &mut Client, command: &[&str], first: u64) {
    let (mut bad, mut good) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        bad = bad.min(send(client, command, colliding, first));
        good = good.min(send(client, command, harmless, first));
    }
    println!("{} {place}: {bad:?} colliding, {good:?} harmless", command[0]);
    assert!(bad <= good * 2, "{} {place}: {bad:?} colliding, {good:?} harmless", command[0]);
}

fn compare_all(place: &str, server: &Lsmkv) {
    let mut client = server.connect();
    compare(place, &mut client, &["GET"], 0);
    compare(&format!("of absent keys {place}"), &mut client, &["GET"], KEYS);
    compare(place, &mut client, &["INCR"], 0);
}

/// The bug: among 100,000 such keys the GETs of a client fell from 10,286 a second to 2.
#[test]
fn colliding_keys_cost_a_server_what_harmless_ones_do() {
    let server = Lsmkv::start(&["--threads", "1"]);
    let mut client = server.connect();
    for key in [colliding as Key, harmless] {
        send(&mut client, &["SET", "1"], key, 0);
    }
    compare_all("in memory", &server);
    // What the server itself keeps by key: the keys that a client watches, and those it tracks.
    compare("by name", &mut client, &["WATCH"], 0);
    for line in ["UNWATCH", "HELLO 3", "CLIENT TRACKING ON"] {
        assert!(!ask(&mut client, line).is_error(), "{line}");
    }
    compare("of a client that tracks", &mut client, &["GET"], 0);
    // A clean end writes everything to tables.
    let (_, dir) = server.stop();
    compare_all("in tables", &Lsmkv::start_in(dir, &["--threads", "1"]));
}
