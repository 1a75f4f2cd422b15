//! Attacks at length, each beside a client that does nothing wrong: what it waits for its replies,
//! with and without the attack, and what memory the server takes.
//!
//! Attackers run only where nobody else wants to, as if they were on other machines: with two cores, what
//! they compute themselves would be measured instead of the server.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

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
/// The time between two commands of the harmless client.
const PACE: Duration = Duration::from_micros(500);

/// How large the attacks are: small in every run of the tests, large if `LSMKV_SIEGE` is `long`.
struct Size {
    seconds: u64,
    connections: usize,
    pipeline_bytes: usize,
    slow_clients: usize,
}

impl Size {
    fn is_long(&self) -> bool {
        self.seconds > 1
    }

    fn of_this_run() -> Self {
        match std::env::var("LSMKV_SIEGE").as_deref() {
            Ok("long") => {
                Self { seconds: 15, connections: 9_900, pipeline_bytes: 1 << 30, slow_clients: 500 }
            }
            _ => {
                Self { seconds: 1, connections: 1_500, pipeline_bytes: 64 << 20, slow_clients: 60 }
            }
        }
    }
}

/// An attack: runs until it is told to stop, or until it is over. `LSMKV_ATTACK` selects those whose
/// names contain it.
type Attack = fn(&Lsmkv, &Size, &AtomicBool);

const ATTACKS: [(&str, Attack); 9] = [
    ("connections that say nothing", silent_connections),
    ("connections that come and go", connection_storm),
    ("requests byte by byte", slow_writers),
    ("replies that nobody takes", slow_readers),
    ("a pipeline without end", endless_pipeline),
    ("deep nesting and absurd counts", absurd_requests),
    ("random bytes", random_bytes),
    ("connections closed in the middle", half_requests),
    ("transactions without EXEC", endless_transactions),
];

#[test]
fn an_attack_harms_nobody_else() {
    allow_many_files();
    let size = Size::of_this_run();
    let server = Lsmkv::start(&["--threads", "1", "--option", "memory_budget=67108864"]);
    for (name, attack) in chosen_attacks() {
        besiege("", &server, name, be_idle, attack, &size);
        let peak = server.peak_bytes();
        assert!(peak < BUDGET + CLIENTS + BESIDE, "{name}: {peak} bytes");
    }
}

/// What part of the delay is the machine's: a real redis-server under the same attacks, in turn with
/// ours. The attackers have a processor of their own: what delays the client is the server's work for
/// them. The short form has one attack.
#[test]
fn an_attack_harms_others_no_more_than_on_redis() {
    allow_many_files();
    let size = Size::of_this_run();
    let ours = Lsmkv::start(&["--threads", "1", "--option", "memory_budget=67108864"]);
    let redis = Lsmkv::start_redis();
    for server in [&ours, &redis] {
        server.run_on(0);
    }
    bind_thread(0);
    let count = if size.is_long() { ATTACKS.len() } else { 1 };
    for (name, attack) in chosen_attacks().take(count) {
        let elsewhere = || bind_thread(1);
        besiege("lsmkv: ", &ours, name, elsewhere, attack, &size);
        besiege("redis-server: ", &redis, name, elsewhere, attack, &size);
    }
}

fn chosen_attacks() -> impl Iterator<Item = (&'static str, Attack)> {
    let only = std::env::var("LSMKV_ATTACK").unwrap_or_default();
    ATTACKS.into_iter().filter(move |(name, _)| name.contains(&only))
}

/// Attacks a server, and prints what a harmless client waits before and meanwhile. `place` says where
/// the thread of the attackers runs.
fn besiege(who: &str, server: &Lsmkv, name: &str, place: fn(), attack: Attack, size: &Size) {
    let mut client = server.connect();
    ask(&mut client, &format!("CONFIG SET maxmemory-clients {CLIENTS}"));
    let value = vec![b"SET".to_vec(), b"big".to_vec(), vec![b'v'; 1 << 20]];
    client.pipeline([&value]).unwrap();
    let quiet = latencies(server, size.seconds, || false);
    server.reset_peak();
    let stop = AtomicBool::new(false);
    let under_attack = std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            place();
            attack(server, size, &stop);
        });
        let least = Instant::now() + Duration::from_secs(size.seconds);
        let under_attack =
            latencies(server, 300, || Instant::now() > least || attacker.is_finished());
        let counted = info(&mut client, "memory", "mem_clients_normal");
        assert!(counted <= CLIENTS + CLIENTS / 4, "{name}: clients have {counted} bytes");
        stop.store(true, Relaxed);
        under_attack
    });
    println!(
        "{who}{name}: p50 {} -> {} us, p99 {} -> {} us, longest {} us, {} MiB",
        quiet.percentile(50.0),
        under_attack.percentile(50.0),
        quiet.percentile(99.0),
        under_attack.percentile(99.0),
        under_attack.percentile(100.0),
        server.peak_bytes() >> 20
    );
    assert_eq!(ask(&mut client, "STRLEN big"), Resp::Int(1 << 20));
    until("the attackers are gone", || info(&mut client, "clients", "connected_clients") == 1);
}

#[test]
fn many_long_pipelines_delay_a_short_command_by_one_turn() {
    const PIPELINES: usize = 50;
    // More than a turn of 64 KiB has of these requests of 26 bytes.
    const TURN: i64 = 2600;
    let server = Lsmkv::start(&["--threads", "1"]);
    let mut client = server.connect();
    let requests = b"*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n".repeat(2000);
    let mut streams: Vec<_> = (0..PIPELINES).map(|_| server.stream()).collect();
    let count = |client: &mut crate::resp::Client| match ask(client, "GET count") {
        Resp::Bulk(Some(digits)) => String::from_utf8(digits).unwrap().parse::<i64>().unwrap(),
        _ => 0,
    };
    // The server learns who sends long pipelines.
    streams.iter_mut().for_each(|stream| stream.write_all(&requests).unwrap());
    let all = (PIPELINES * 2000) as i64;
    until("the first pipelines ran", || count(&mut client) == all);
    let mut late = server.stream();
    server.while_stopped(|| {
        streams.iter_mut().for_each(|stream| stream.write_all(&requests).unwrap());
        late.write_all(b"GET count\r\n").unwrap();
    });
    let reply = crate::resp::read(&mut std::io::BufReader::new(late)).unwrap();
    let Resp::Bulk(Some(digits)) = reply else { panic!("{reply:?}") };
    let ran_before = String::from_utf8(digits).unwrap().parse::<i64>().unwrap() - all;
    assert!(ran_before <= 2 * TURN, "{ran_before} commands of others ran before");
}

/// What a client waits for its replies, in microseconds: one GET or SET at a time, `PACE` apart,
/// until `is_over` or for `seconds`.
fn latencies(server: &Lsmkv, seconds: u64, is_over: impl Fn() -> bool) -> Latencies {
    let mut client = server.connect();
    let mut waits = Vec::new();
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end && !is_over() {
        for line in ["SET harmless v", "GET harmless"] {
            let asked = Instant::now();
            assert!(!ask(&mut client, line).is_error());
            waits.push(asked.elapsed().as_micros() as u64);
            std::thread::sleep(PACE);
        }
    }
    waits.sort_unstable();
    Latencies(waits)
}

/// Waits, sorted.
struct Latencies(Vec<u64>);

impl Latencies {
    fn percentile(&self, percent: f64) -> u64 {
        let last = self.0.len() - 1;
        self.0[(last as f64 * percent / 100.0).round() as usize]
    }
}

/// Lets this thread and those it starts run only where nobody else wants to. A low priority would
/// not do: a thread that wakes up waits for the slice of one that runs, milliseconds.
fn be_idle() {
    rustix::process::nice(19).unwrap();
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let id = thread.file_name().unwrap();
    // Without the program it is less exact.
    let _ = std::process::Command::new("chrt").args(["--idle", "--pid", "0"]).arg(id).status();
}

fn rest_until(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection whose calls fail at once instead of waiting.
fn impatient(server: &Lsmkv) -> UnixStream {
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
