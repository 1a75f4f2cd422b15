//! The memory of the whole server process under a long load and while it is idle afterwards.
//!
//! `LSMKV_SERVE_COMMANDS` sets the number of commands, `LSMKV_SERVE_IDLE` the idle seconds,
//! `LSMKV_SERVE_BUDGET` the budget in MiB.

use std::io::{BufReader, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::resp;
use crate::support::{Lsmkv, ask, number, request};

const CLIENTS: u64 = 4;
/// The commands that are sent before their replies are taken.
const PIPELINE: u64 = 200;

/// A small generator: the same commands in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// A command of one of ten kinds.
fn command(random: &mut Random) -> Vec<u8> {
    let id = random.below(2_000_000);
    let small = random.below(20_000);
    let value = "v".repeat(20 + random.below(200) as usize);
    let number = random.below(1_000_000).to_string();
    let words: Vec<String> = match random.below(10) {
        0 => vec!["SET".into(), format!("string:{id}"), value],
        1 => vec!["GET".into(), format!("string:{id}")],
        2 => vec!["INCR".into(), format!("number:{id}")],
        3 => vec!["HSET".into(), format!("hash:{small}"), number, value],
        4 => vec!["LPUSH".into(), format!("list:{small}"), value],
        5 => vec!["RPOP".into(), format!("list:{small}")],
        6 => vec!["SADD".into(), format!("set:{small}"), number],
        7 => vec!["ZADD".into(), format!("ranking:{small}"), number, value],
        8 => vec!["SETEX".into(), format!("short:{id}"), "20".into(), value],
        _ => vec!["DEL".into(), format!("string:{id}")],
    };
    request(&words)
}

/// Sends `commands` commands over one connection.
fn load(server: &Lsmkv, seed: u64, commands: u64, done: &AtomicU64) {
    let mut random = Random(seed);
    let mut stream = server.stream();
    let mut replies = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..commands / PIPELINE {
        let batch: Vec<u8> = (0..PIPELINE).flat_map(|_| command(&mut random)).collect();
        stream.write_all(&batch).unwrap();
        for _ in 0..PIPELINE {
            assert!(!resp::read(&mut replies).unwrap().is_error());
        }
        done.fetch_add(PIPELINE, Relaxed);
    }
}

/// What a server may take beside its budget: 1.3 times a budget of 128 MiB. The program itself takes
/// 20 MiB.
const BESIDE_THE_BUDGET: u64 = 38 << 20;

/// The bug: under a budget of 128 MiB a server took up to 233 MiB, and 204 MB after idle minutes: the
/// kernel filled what the allocator had given back with huge pages. Then it took 183 MiB: merges kept the
/// memtables of their beginning. Under load, what merges read and write and what the allocator holds back
/// come on top of the budget.
#[test]
fn memory_is_bounded_under_load_and_near_the_budget_while_idle() {
    let budget = number("LSMKV_SERVE_BUDGET", 64) << 20;
    let commands = number("LSMKV_SERVE_COMMANDS", 400_000);
    let idle = Duration::from_secs(number("LSMKV_SERVE_IDLE", 2));
    let server = Lsmkv::start(&["--option", &format!("memory_budget={budget}")]);
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let started = Instant::now();
    let (most, most_when_idle) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&server, started, &done, &over));
        std::thread::scope(|scope| {
            for client in 1..=CLIENTS {
                let (server, done) = (&server, &done);
                let seed = client.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                scope.spawn(move || load(server, seed, commands / CLIENTS, done));
            }
        });
        println!("{commands} commands in {:?}, then idle", started.elapsed());
        let most_when_idle = most_during(&server, idle);
        over.store(true, Relaxed);
        (watcher.join().unwrap(), most_when_idle)
    });
    println!(
        "most: {} MiB, while idle {} MiB, of a budget of {} MiB",
        most >> 20,
        most_when_idle >> 20,
        budget >> 20
    );
    let idle_limit = budget + BESIDE_THE_BUDGET;
    let limit = idle_limit.min(budget / 2 * 3);
    assert!(most <= limit, "{most} bytes under a budget of {budget}, {limit} are allowed");
    assert!(
        most_when_idle <= idle_limit,
        "{most_when_idle} bytes while idle, {idle_limit} are allowed"
    );
    assert!(!ask(&mut server.connect(), "PING").is_error());
}

/// The most memory that the server has at one of many moments of this time.
fn most_during(server: &Lsmkv, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let mut most = 0;
    while Instant::now() < end {
        most = most.max(server.resident_bytes());
        std::thread::sleep(Duration::from_millis(20));
    }
    most
}

/// Prints the server's memory now and then; returns its peak.
fn watch(server: &Lsmkv, started: Instant, done: &AtomicU64, over: &AtomicBool) -> u64 {
    let mut next = Duration::ZERO;
    while !over.load(Relaxed) {
        if started.elapsed() >= next {
            next = started.elapsed() + Duration::from_secs(10);
            println!(
                "{:4} s, {:9} commands: {} MiB, peak {} MiB",
                started.elapsed().as_secs(),
                done.load(Relaxed),
                server.resident_bytes() >> 20,
                server.peak_bytes() >> 20
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    server.peak_bytes()
}
