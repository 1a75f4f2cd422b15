//! Attacks at length, each beside a client that does nothing wrong: what it waits for its replies,
//! with and without the attack, and what memory the server takes.
//!
//! With two processors, what attackers compute themselves must not be measured instead of the server. So
//! the server has one processor for itself. The harmless client shares the other one with the
//! attackers, but goes first, and keeps it from its request to its reply: nothing that attackers do
//! there is in its waits.
//!
//! - this file: the sieges;
//! - `attacks`, `programs`: what attackers do;
//! - `waits`: the harmless client;
//! - `turns`: whom the server serves first, counted instead of timed.

mod attacks;
mod programs;
mod turns;
mod waits;

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use attacks::{Attack, Size, chosen_attacks, runs_scripts};
use waits::{Waits, behind_everybody, harmless, waits};

use crate::resp::Resp;
use crate::support::{Lsmkv, allow_many_files, ask, bind_thread, info, reply_text, until};

/// The store's memory budget.
const BUDGET: u64 = 64 << 20;
/// The memory of all clients, `maxmemory-clients`. The server's own count stays within it, but for
/// what one round adds.
const CLIENTS: u64 = 64 << 20;
/// What the process may take beside both: itself, connections, and memory on its way back to the
/// system. Transactions that nobody ends once took 260 MiB in all.
const BESIDE: u64 = 64 << 20;

/// What scripts may take beside all that: one has `script_max_memory`, and 64 have 2 MiB each.
const SCRIPTS: u64 = (64 + 128) << 20;

fn start() -> Lsmkv {
    let options = ["memory_budget=67108864", "--option", "script_max_memory=67108864"];
    besieged(Lsmkv::start(&[&["--threads", "1", "--option"][..], &options].concat()))
}

/// Fails if our server has taken more memory in an attack than it may.
fn check_memory(server: &Lsmkv, name: &str) {
    let peak = server.peak_bytes();
    let most = BUDGET + CLIENTS + BESIDE + if runs_scripts(name) { SCRIPTS } else { 0 };
    assert!(peak < most, "{name}: {peak} bytes");
}

#[test]
fn an_attack_harms_nobody_else() {
    let size = Size::of_this_run();
    let server = start();
    for (name, attack) in chosen_attacks() {
        besiege("lsmkv", &server, name, attack, &size);
        check_memory(&server, name);
    }
}

/// What is the machine's part: a real redis-server under the same attacks, in turn with ours. The short
/// form has one attack.
#[test]
fn an_attack_harms_others_no_more_than_on_redis() {
    let size = Size::of_this_run();
    let ours = start();
    let redis = besieged(Lsmkv::start_redis());
    let count = if size.is_long() { usize::MAX } else { 1 };
    for (name, attack) in chosen_attacks().take(count) {
        besiege("lsmkv", &ours, name, attack, &size);
        check_memory(&ours, name);
        // There a script keeps everybody waiting, and nothing limits its memory.
        if !runs_scripts(name) {
            besiege("redis-server", &redis, name, attack, &size);
        }
    }
}

/// A server alone on a processor, and this thread and those that it starts on the other one.
fn besieged(server: Lsmkv) -> Lsmkv {
    allow_many_files();
    // The harmless client and the one that asks for figures come after 10,000 others.
    let set = reply_text(&mut server.connect(), "CONFIG SET maxclients 11000");
    assert_eq!(set, "+OK");
    server.run_on(0);
    bind_thread(1);
    server
}

/// Attacks a server, and prints what a harmless client waits before and meanwhile. Before, the processor
/// of the attackers is as busy.
fn besiege(who: &str, server: &Lsmkv, name: &str, attack: Attack, size: &Size) {
    let mut client = server.connect();
    // Redis closes whom it pleases of many clients that say nothing.
    assert_eq!(reply_text(&mut client, "CLIENT NO-EVICT on"), "+OK");
    ask(&mut client, &format!("CONFIG SET maxmemory-clients {CLIENTS}"));
    let value = vec![b"SET".to_vec(), b"big".to_vec(), vec![b'v'; 1 << 20]];
    client.pipeline([&value]).unwrap();
    let seconds = Duration::from_secs(size.seconds);
    let mut harmless = harmless(server);
    let before = waits_beside(
        &mut harmless,
        seconds,
        |stop| {
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
        },
        || (),
    );
    server.reset_peak();
    let mut counted = 0;
    let during = waits_beside(
        &mut harmless,
        seconds,
        |stop| attack(server, size, stop),
        || {
            counted = info(&mut client, "memory", "mem_clients_normal");
        },
    );
    println!(
        "{name}, {who}: p50 {} -> {} us, p99 {} -> {} us, longest {} us of {}, {} MiB",
        before.percentile(50.0),
        during.percentile(50.0),
        before.percentile(99.0),
        during.percentile(99.0),
        during.percentile(100.0),
        during.count(),
        server.peak_bytes() >> 20
    );
    assert!(counted <= CLIENTS + CLIENTS / 4, "{name}: clients have {counted} bytes");
    assert_eq!(ask(&mut client, "STRLEN big"), Resp::Int(1 << 20));
    drop(harmless);
    until("the attackers are gone", || info(&mut client, "clients", "connected_clients") == 1);
}

/// What the harmless client waits beside `others`, which another thread runs: for `time`, or until they are
/// done. Calls `at_the_end` before the others stop.
fn waits_beside(
    harmless: &mut UnixStream,
    time: Duration,
    others: impl Fn(&AtomicBool) + Sync,
    at_the_end: impl FnOnce(),
) -> Waits {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            behind_everybody();
            others(&stop);
        });
        let end = Instant::now() + time;
        let measured =
            scope.spawn(move || waits(harmless, || Instant::now() > end || others.is_finished()));
        let _stop = StopAtTheEnd(&stop);
        let measured = measured.join().unwrap();
        at_the_end();
        measured
    })
}

/// Stops attackers also when something fails meanwhile.
struct StopAtTheEnd<'a>(&'a AtomicBool);

impl Drop for StopAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
