//! Acknowledged writes survive a kill of the server, and the store opens again quickly.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::resp::{Client, Command, Resp};
use crate::support::{Lsmkv, ask, info, number, reply_text};

const WRITERS: usize = 6;
const PIPELINE: usize = 8;

fn words(line: &str) -> Command {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Pushes numbers in order, pipelined, until the server dies; returns the number of acknowledged
/// pushes.
fn push_until_death(client: &mut Client, writer: usize, from: usize, over: &AtomicBool) -> usize {
    let mut acknowledged = from;
    while !over.load(Ordering::Relaxed) {
        let commands: Vec<_> = (0..PIPELINE)
            .map(|n| words(&format!("RPUSH list{writer} {}", acknowledged + n)))
            .collect();
        match client.pipeline(&commands) {
            Ok(replies) => {
                assert_eq!(replies.last(), Some(&Resp::Int((acknowledged + PIPELINE) as i64)));
                acknowledged += PIPELINE;
            }
            Err(_) => break,
        }
    }
    acknowledged
}

#[test]
fn what_was_acknowledged_survives_a_kill_under_load() {
    let mut dir = tempfile::tempdir().unwrap();
    let mut lengths = [0; WRITERS];
    for kill in 0..number("LSMKV_SERVER_KILLS", 3) {
        let server = Lsmkv::start_in(dir, &["--sync", "always"]);
        let over = AtomicBool::new(false);
        let (acknowledged, left) = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (mut client, over) = (server.connect(), &over);
                    let from = lengths[writer];
                    scope.spawn(move || push_until_death(&mut client, writer, from, over))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(300 + 70 * kill));
            let left = server.kill();
            over.store(true, Ordering::Relaxed);
            let counts = writers.into_iter().map(|writer| writer.join().unwrap());
            (counts.collect::<Vec<usize>>(), left)
        });
        assert!(acknowledged.iter().sum::<usize>() > lengths.iter().sum(), "nothing was written");
        let server = Lsmkv::start_in(left, &["--sync", "always"]);
        let mut client = server.connect();
        for (writer, acknowledged) in acknowledged.iter().enumerate() {
            let list = ask(&mut client, &format!("LRANGE list{writer} 0 -1"));
            let items = list.items();
            assert!(items.len() >= *acknowledged, "{} of {acknowledged}", items.len());
            for (n, item) in items.iter().enumerate() {
                assert_eq!(item.bytes(), Some(n.to_string().as_bytes()));
            }
            lengths[writer] = items.len();
        }
        dir = server.stop().1;
    }
}

#[test]
fn a_pipeline_waits_for_few_flushes_of_the_device() {
    let server = Lsmkv::start(&["--sync", "always", "--option", "sync_interval_ms=3600000"]);
    let mut client = server.connect();
    let before = info(&mut client, "lsmkv", "syncs");
    let commands: Vec<_> = (0..1000).map(|n| words(&format!("SET k{n} v"))).collect();
    assert!(client.pipeline(&commands).unwrap().iter().all(|reply| !reply.is_error()));
    let syncs = info(&mut client, "lsmkv", "syncs") - before;
    assert!((1..=100).contains(&syncs), "{syncs} flushes for 1000 writes");
    let before = info(&mut client, "lsmkv", "syncs");
    assert_eq!(reply_text(&mut client, "GET k1"), "v");
    assert_eq!(info(&mut client, "lsmkv", "syncs"), before, "a read waits for nothing");
    ask(&mut client, "CONFIG SET appendfsync everysec");
    assert!(client.pipeline(&commands).unwrap().iter().all(|reply| !reply.is_error()));
    assert_eq!(info(&mut client, "lsmkv", "syncs"), before);
}

#[test]
fn a_stop_under_load_loses_nothing_and_ends_well() {
    let server = Lsmkv::start(&[]);
    let over = AtomicBool::new(false);
    let (acknowledged, dir) = std::thread::scope(|scope| {
        let (mut client, over) = (server.connect(), &over);
        let writer = scope.spawn(move || push_until_death(&mut client, 0, 0, over));
        std::thread::sleep(Duration::from_millis(300));
        let (status, dir) = server.stop();
        assert!(status.success(), "{status}");
        (writer.join().unwrap(), dir)
    });
    assert!(acknowledged > 0);
    let server = Lsmkv::start_in(dir, &[]);
    let length = ask(&mut server.connect(), "LLEN list0");
    assert!(matches!(length, Resp::Int(length) if length as usize >= acknowledged), "{length:?}");
}

#[test]
fn a_store_is_served_soon_after_a_kill() {
    let megabytes = number("LSMKV_RESTART_MB", 64);
    let server = Lsmkv::start(&[]);
    let mut client = server.connect();
    let value = "v".repeat(10_000);
    for chunk in 0..megabytes {
        let commands: Vec<_> =
            (0..100).map(|n| words(&format!("SET key{chunk}:{n} {value}"))).collect();
        assert!(client.pipeline(&commands).unwrap().iter().all(|reply| !reply.is_error()));
    }
    let dir = server.kill();
    let begun = Instant::now();
    let server = Lsmkv::start_in(dir, &[]);
    assert_eq!(reply_text(&mut server.connect(), "GET key0:0").len(), value.len());
    let taken = begun.elapsed();
    println!("{megabytes} MB were served again after {taken:?}");
    // A build with assertions gets more time, because other tests run beside it.
    let limit = if cfg!(debug_assertions) { 15 } else { 1 };
    assert!(taken < Duration::from_secs(limit), "{taken:?}");
}
