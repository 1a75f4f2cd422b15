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

/// Where the keys are when a round begins.
#[derive(Clone, Copy)]
enum Place {
    /// Where the round before left them.
    Memory,
    /// In tables. An INCR puts its key into the memtable, where the next round would find it.
    Tables,
}

/// Compares a command on both kinds of keys, in turn.
fn compare(what: &str, client: &mut Client, command: &[&str], first: u64, place: Place) {
    let (mut bad, mut good) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        for (key, least) in [(colliding as Key, &mut bad), (harmless, &mut good)] {
            if let Place::Tables = place {
                assert!(!ask(client, "SAVE").is_error());
            }
            *least = send(client, command, key, first).min(*least);
        }
    }
    println!("{} {what}: {bad:?} colliding, {good:?} harmless", command[0]);
    assert!(bad <= good * 2, "{} {what}: {bad:?} colliding, {good:?} harmless", command[0]);
}

fn compare_all(what: &str, server: &Lsmkv, place: Place) {
    let mut client = server.connect();
    compare(what, &mut client, &["GET"], 0, place);
    compare(&format!("of absent keys {what}"), &mut client, &["GET"], KEYS, place);
    compare(what, &mut client, &["INCR"], 0, place);
}

/// The bug: among 100,000 such keys the GETs of a client fell from 10,286 a second to 2.
#[test]
fn colliding_keys_cost_a_server_what_harmless_ones_do() {
    let server = Lsmkv::start(&["--threads", "1"]);
    let mut client = server.connect();
    for key in [colliding as Key, harmless] {
        send(&mut client, &["SET", "1"], key, 0);
    }
    compare_all("in memory", &server, Place::Memory);
    // What the server itself keeps by key: the keys that a client watches, and those it tracks.
    compare("by name", &mut client, &["WATCH"], 0, Place::Memory);
    for line in ["UNWATCH", "HELLO 3", "CLIENT TRACKING ON"] {
        assert!(!ask(&mut client, line).is_error(), "{line}");
    }
    compare("of a client that tracks", &mut client, &["GET"], 0, Place::Memory);
    // A clean end writes everything to tables.
    let (_, dir) = server.stop();
    compare_all("in tables", &Lsmkv::start_in(dir, &["--threads", "1"]), Place::Tables);
}
