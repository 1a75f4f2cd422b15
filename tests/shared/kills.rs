//! The holder is killed again and again while all processes read and write. Nothing that was
//! acknowledged is lost, no write is half seen, and one of the others takes over at once: half a second
//! after the death, and the time of its recovery, its call is answered.
//!
//! `LSMKV_SHARED_PROCESSES` sets the number of processes, `LSMKV_SHARED_KILLS` how often the holder is
//! killed, `LSMKV_SHARED_COMMANDS` how many commands run at least, `LSMKV_SHARED_KILL_MS` the time
//! between kills (`make shared-kill`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lsmkv::{ErrorKind, Reply, SharedStore};

use super::worker::{FIRST, WRITER, Worker, say};
use super::{bulk, open, run, until};

const KEYS: u64 = 50;
const PAIRS: u64 = 20;
/// The longest take-over, without the recovery of the store.
const TAKE_OVER_MS: u64 = 500;
/// What any call may take beside a take-over: each write waits for the device, and may find it busy.
const BUSY_MS: u64 = 2000;

fn number_from_env(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// What a worker does: each round writes a key of its own, counts, writes a pair of keys that all
/// workers write, and reads such a pair. A line tells each acknowledged or lost round.
pub(crate) fn write_until_told(store: &SharedStore, worker: u64, first: u64) {
    let told = std::thread::spawn(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
    });
    let mut longest = Duration::ZERO;
    let mut held = store.is_holder();
    if let Some(opened_in) = store.opened_in() {
        say(&format!("recovered {}", opened_in.as_millis()));
    }
    let mut call = |words: &[&str]| {
        let argv: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let begun = Instant::now();
        let reply = store.command(&argv);
        // At the end a holder closes the store, which takes its own time.
        if begun.elapsed() > longest && !told.is_finished() {
            longest = begun.elapsed();
            // It may be killed before its end.
            say(&format!("longest {}", longest.as_millis()));
        }
        if let (false, false, Some(opened_in)) = (told.is_finished(), held, store.opened_in()) {
            held = true;
            say(&format!("recovered {}", opened_in.as_millis()));
            say(&format!("took {}", begun.elapsed().as_millis()));
        }
        match reply {
            Ok(Reply::Error(text)) => panic!("{words:?}: {text}"),
            Ok(reply) => Some(reply),
            Err(error) => {
                // The only thing that may happen to a caller, and only to a write.
                assert_eq!(error.kind(), ErrorKind::Io, "{words:?}: {error}");
                assert!(error.message().contains("may or may not have run"), "{words:?}: {error}");
                assert_ne!(words[0], "MGET", "reads are repeated");
                None
            }
        }
    };
    let (own, count) = (format!("own:{worker}"), format!("count:{worker}"));
    for n in first.. {
        if told.is_finished() {
            break;
        }
        let (key, value) = (format!("{own}:{}", n % KEYS), n.to_string());
        let set = call(&["SET", &key, &value]);
        say(&format!("{} {n}", if set.is_some() { "set" } else { "lost" }));
        match call(&["INCR", &count]) {
            Some(Reply::Int(now)) => say(&format!("counted {now}")),
            Some(other) => panic!("{other:?}"),
            None => say("uncounted"),
        }
        let pair = n.wrapping_mul(7) % PAIRS;
        let (left, right) = (format!("left:{pair}"), format!("right:{pair}"));
        let value = format!("{worker}-{n}");
        call(&["MSET", &left, &value, &right, &value]);
        let pair = n.wrapping_mul(11) % PAIRS;
        let seen = call(&["MGET", &format!("left:{pair}"), &format!("right:{pair}")]);
        let Some(Reply::Array(both)) = seen else { panic!("{seen:?}") };
        assert_eq!(both[0], both[1], "half of a write was seen");
    }
    store.close().unwrap();
    say("done");
}

/// What is known about the writes of one worker, over all its lives.
#[derive(Default)]
struct Writes {
    /// For each key the last acknowledged value, and those after it that may have been written.
    possible: BTreeMap<u64, Vec<u64>>,
    next: u64,
    last_count: i64,
    uncounted: i64,
    acknowledged: u64,
    longest_ms: u64,
    /// The last one that the worker told about, and the longest.
    recovery_ms: u64,
    longest_recovery_ms: u64,
    take_overs: TakeOvers,
    done: bool,
}

/// How long take-overs took: the longest recovery, and the longest call of a process that took over
/// without its recovery.
#[derive(Clone, Copy, Default)]
struct TakeOvers {
    count: u64,
    recovery_ms: u64,
    rest_ms: u64,
}

impl TakeOvers {
    fn add(&mut self, call_ms: u64, recovery_ms: u64) {
        let rest_ms = call_ms.saturating_sub(recovery_ms);
        *self = self.with(&Self { count: 1, recovery_ms, rest_ms });
    }

    fn with(&self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            recovery_ms: self.recovery_ms.max(other.recovery_ms),
            rest_ms: self.rest_ms.max(other.rest_ms),
        }
    }
}

impl Writes {
    /// Reads what a worker says until it ends or is killed.
    fn follow(&mut self, output: BufReader<ChildStdout>, progress: &AtomicU64) {
        self.done = false;
        for line in output.lines() {
            let line = line.unwrap();
            let Some(words) = line.strip_prefix("> ") else {
                assert!(!line.contains("panicked"), "{line}");
                continue;
            };
            let (what, number) = words.split_once(' ').unwrap_or((words, "0"));
            let number = number.parse::<u64>().unwrap_or(0);
            match what {
                "set" => {
                    self.possible.insert(number % KEYS, vec![number]);
                    self.next = number + 1;
                    self.acknowledged += 1;
                }
                "lost" => {
                    self.possible.entry(number % KEYS).or_default().push(number);
                    self.next = number + 1;
                }
                "counted" => {
                    let now = i64::try_from(number).unwrap();
                    let most = self.last_count + self.uncounted + 1;
                    assert!(self.last_count < now && now <= most, "{now} of {most}");
                    (self.last_count, self.uncounted) = (now, 0);
                    self.acknowledged += 1;
                }
                "uncounted" => self.uncounted += 1,
                "longest" => self.longest_ms = self.longest_ms.max(number),
                "recovered" => {
                    self.recovery_ms = number;
                    self.longest_recovery_ms = self.longest_recovery_ms.max(number);
                }
                "took" => self.take_overs.add(number, self.recovery_ms),
                "done" => self.done = true,
                "holds" | "connected" => {}
                other => panic!("a worker says {other}: {line}"),
            }
            if ["set", "lost", "counted", "uncounted"].contains(&what) {
                progress.fetch_add(1, Ordering::Relaxed);
            }
        }
        if !self.done {
            // Killed: the round that it was in may have written.
            self.possible.entry(self.next % KEYS).or_default().push(self.next);
            self.next += 1;
            self.uncounted += 1;
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_holders_are_killed() {
    let processes = number_from_env("LSMKV_SHARED_PROCESSES", 4);
    let kills = number_from_env("LSMKV_SHARED_KILLS", 6);
    let commands = number_from_env("LSMKV_SHARED_COMMANDS", 2000);
    let pause = Duration::from_millis(number_from_env("LSMKV_SHARED_KILL_MS", 0));
    let dir = tempfile::tempdir().unwrap();
    let progress = Arc::new(AtomicU64::new(0));
    let start = |number: u64, first: u64| {
        Worker::start(dir.path(), &[(WRITER, number.to_string()), (FIRST, first.to_string())])
    };
    let mut writes: Vec<Writes> = (0..processes).map(|_| Writes::default()).collect();
    let mut workers: Vec<Worker> = (0..processes).map(|number| start(number, 0)).collect();
    let follow = |worker: &mut Worker, mut writes: Writes| {
        let (output, progress) = (worker.take_output(), Arc::clone(&progress));
        std::thread::spawn(move || {
            writes.follow(output, &progress);
            writes
        })
    };
    let mut readers: Vec<_> = workers
        .iter_mut()
        .zip(writes.drain(..))
        .map(|(worker, writes)| follow(worker, writes))
        .collect();
    let mut killed = 0;
    // Each line stands for two commands: after a set comes a count, after that a pair and a read.
    let enough = |killed: u64| killed >= kills && progress.load(Ordering::Relaxed) * 2 >= commands;
    while !enough(killed) {
        let before = progress.load(Ordering::Relaxed);
        std::thread::sleep(pause);
        until("progress", || progress.load(Ordering::Relaxed) >= before + 40 * processes);
        let lock = std::fs::read_to_string(dir.path().join("LOCK")).unwrap_or_default();
        let holder = lock.trim_end().parse::<u32>().ok();
        let Some(at) = workers.iter().position(|worker| Some(worker.id()) == holder) else {
            continue;
        };
        workers[at].process.kill().unwrap();
        workers[at].process.wait().unwrap();
        let number = u64::try_from(at).unwrap();
        let known = readers.remove(at).join().unwrap();
        workers[at] = start(number, known.next);
        readers.insert(at, follow(&mut workers[at], known));
        killed += 1;
    }
    workers.iter_mut().for_each(Worker::end_input);
    let writes: Vec<Writes> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    check(&open(dir.path()), &writes);
    let longest = writes.iter().map(|writes| writes.longest_ms).max().unwrap();
    let acknowledged: u64 = writes.iter().map(|writes| writes.acknowledged).sum();
    let of_all = writes.iter().map(|writes| writes.take_overs);
    let take_overs = of_all.fold(TakeOvers::default(), |all, one| all.with(&one));
    let recovery = writes.iter().map(|writes| writes.longest_recovery_ms).max().unwrap();
    println!(
        "{killed} kills, {acknowledged} writes acknowledged, longest call {longest} ms; {} take-overs, \
         longest recovery {} ms, longest take-over without its recovery {} ms",
        take_overs.count, take_overs.recovery_ms, take_overs.rest_ms
    );
    assert!(take_overs.count > 0, "no process that ran took over");
    let most = TAKE_OVER_MS + recovery + BUSY_MS;
    assert!(longest <= most, "a call took {longest} ms, the longest recovery {recovery} ms");
    assert!(take_overs.rest_ms <= TAKE_OVER_MS, "{} ms", take_overs.rest_ms);
}

/// Compares the store with what the workers were told.
fn check(store: &SharedStore, writes: &[Writes]) {
    for (worker, writes) in writes.iter().enumerate() {
        assert!(writes.done, "worker {worker} did not end well");
        for (key, possible) in &writes.possible {
            let stored = run(store, &format!("GET own:{worker}:{key}"));
            let fits = |value: &u64| stored == bulk(&value.to_string());
            let may_be_missing = possible.first().is_none_or(|first| *first < KEYS);
            assert!(
                possible.iter().any(fits) || (may_be_missing && stored == Reply::Nil),
                "worker {worker}, key {key}: {stored:?} of {possible:?}"
            );
        }
        let counted = match run(store, &format!("GET count:{worker}")) {
            Reply::Bulk(bytes) => String::from_utf8_lossy(&bytes).parse::<i64>().unwrap(),
            other => panic!("{other:?}"),
        };
        let (least, most) = (writes.last_count, writes.last_count + writes.uncounted);
        assert!((least..=most).contains(&counted), "{counted}: {least} to {most}");
    }
    for pair in 0..PAIRS {
        let both = run(store, &format!("MGET left:{pair} right:{pair}"));
        let Reply::Array(both) = both else { panic!("{both:?}") };
        assert_eq!(both[0], both[1]);
    }
}
