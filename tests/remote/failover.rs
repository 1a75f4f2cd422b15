//! Clusters that change under load: slots move and a primary dies while commands, transactions and
//! batches count.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use lsmkv::{Error, ErrorKind, Options, Remote, RemoteSession, Reply};

use crate::servers::{Cluster, Software, cli};

/// How often slots move and a primary dies: once, or as often as `make cluster` says.
fn rounds() -> usize {
    std::env::var("LSMKV_CLUSTER_ROUNDS").ok().map_or(1, |text| text.parse().unwrap())
}

/// The longest that a call may take: its time-out, which is the default, and the last attempt.
const LIMIT: Duration = Duration::from_secs(40);

#[test]
fn a_cluster_of_redis_that_changes_runs_no_command_twice() {
    a_cluster_that_changes_runs_no_command_twice(Software::Redis);
}

#[test]
fn a_cluster_of_valkey_that_changes_runs_no_command_twice() {
    a_cluster_that_changes_runs_no_command_twice(Software::Valkey);
}

/// Slots move and a primary is killed while counters are counted: none is counted twice, no count that
/// was acknowledged is lost beyond what the dead primary took with it, none that was on its replica is,
/// no call hangs, and after the fail-over all go on.
fn a_cluster_that_changes_runs_no_command_twice(software: Software) {
    let test = format!("remote::failover_{software:?}").to_lowercase();
    for round in 0..rounds() {
        let Some(mut cluster) = Cluster::with_replicas(&test, software, 1) else { return };
        let store = Remote::open(&cluster.address(), &Options::default()).unwrap();
        let (store, load) = (&store, &Load::new());
        std::thread::scope(|scope| {
            let _end = EndOfLoad(load);
            for counters in &load.threads {
                scope.spawn(move || load.count(store, counters));
            }
            load.wait_until_all_ran(10);
            let primaries = cluster.primaries();
            cluster.move_slots(primaries[0], primaries[1], 2000);
            load.wait_until_all_ran(10);
            assert_eq!(load.unknown(), 0, "a moved slot lost a reply");
            let dying = primaries[round % primaries.len()];
            load.note_replicated(&cluster, dying);
            load.wait_until_all_ran(2);
            let begun = Instant::now();
            cluster.nodes[dying].kill();
            load.primary_is_dead.store(true, Ordering::SeqCst);
            load.wait_until_all_ran(10);
            println!("{software:?}, round {round}: all went on after {:?}", begun.elapsed());
        });
        load.check(store);
    }
}

/// How a counter is counted up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Command,
    Transaction,
    Batch,
}

/// Counters, and what is known about them.
struct Load {
    /// Those that each thread counts up.
    threads: Vec<Vec<Counter>>,
    ended: AtomicBool,
    primary_is_dead: AtomicBool,
}

/// Two keys of one slot that are counted up together; by commands only the first one.
struct Counter {
    way: Way,
    keys: [String; 2],
    count: Mutex<Count>,
}

/// What a counter may be.
#[derive(Debug, Default)]
struct Count {
    least: i64,
    most: i64,
    /// The replica of its primary has it.
    replicated: i64,
    /// Whether its primary may take with it what the replica has not.
    may_fall: bool,
    /// The calls that may or may not have run.
    unknown: usize,
    /// The calls that ran since the counters were last waited for.
    ran: usize,
    /// The longest call.
    longest: Duration,
}

/// What became of one count.
enum Outcome {
    Ran(i64),
    NothingRan,
    Unknown,
}

/// Ends the load, also when the test fails.
struct EndOfLoad<'a>(&'a Load);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
    }
}

impl Load {
    fn new() -> Self {
        use Way::{Batch, Command, Transaction};
        let ways = [Command, Command, Command, Command, Transaction, Transaction, Batch, Batch];
        let thread = |(thread, way): (usize, Way)| {
            let counter = |number: usize| {
                let key = |which: &str| format!("{{counter:{thread}:{number}}}{which}");
                Counter { way, keys: [key("one"), key("two")], count: Mutex::default() }
            };
            (0..8).map(counter).collect::<Vec<_>>()
        };
        let threads = ways.into_iter().enumerate().map(thread).collect();
        Self { threads, ended: AtomicBool::new(false), primary_is_dead: AtomicBool::new(false) }
    }

    fn counters(&self) -> impl Iterator<Item = &Counter> {
        self.threads.iter().flatten()
    }

    /// Counts until the end.
    fn count(&self, store: &Remote, counters: &[Counter]) {
        let mut session = store.session().unwrap();
        let mut turns = counters.iter().cycle();
        while !self.ended.load(Ordering::SeqCst) {
            let counter = turns.next().unwrap();
            let after_death = self.primary_is_dead.load(Ordering::SeqCst);
            let begun = Instant::now();
            let outcome = counter.increment(store, &mut session);
            counter.note(&outcome, begun.elapsed(), after_death);
        }
    }

    /// Waits until every counter was counted up so many times more.
    fn wait_until_all_ran(&self, times: usize) {
        self.counters().for_each(|counter| counter.count().ran = 0);
        let begun = Instant::now();
        for counter in self.counters() {
            while counter.count().ran < times {
                assert!(begun.elapsed() < 2 * LIMIT, "{:?}: {:?}", counter.keys, counter.count());
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Notes what is on the replicas, and which counters a node may take with it.
    fn note_replicated(&self, cluster: &Cluster, dying: usize) {
        for counter in self.counters() {
            let mut count = counter.count();
            count.replicated = count.least;
        }
        cluster.wait_until_replicated();
        let mut there = 0;
        for counter in self.counters() {
            let found = cli(&cluster.nodes[dying], &["EXISTS", &counter.keys[0]]);
            counter.count().may_fall = found.trim() == "1";
            there += usize::from(found.trim() == "1");
        }
        assert!(there > 0, "the node that is to die has no counter");
    }

    fn unknown(&self) -> usize {
        self.counters().map(|counter| counter.count().unknown).sum()
    }

    /// Every counter is what it may be, and only what was on its way to the dead primary is unknown.
    fn check(&self, store: &Remote) {
        for counter in self.counters() {
            let value = counter.read(store);
            let count = counter.count();
            assert!((count.least..=count.most).contains(&value), "{:?}: {value}", *count);
        }
        // Each connection to the dead node lost one reply at most, and there is one for each thread. A
        // thread may meet two, since they do not end at the same moment.
        let (unknown, most) = (self.unknown(), self.threads.len());
        assert!(unknown <= most, "one death lost {unknown} replies on {most} connections");
        let longest = self.counters().map(|counter| counter.count().longest).max().unwrap();
        println!("{} unknown; the longest call took {longest:?}", self.unknown());
    }
}

impl Counter {
    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap()
    }

    fn increment(&self, store: &Remote, session: &mut RemoteSession) -> Outcome {
        match self.way {
            Way::Command => match store.command(&[b"INCR", self.keys[0].as_bytes()]) {
                Ok(Reply::Int(value)) => Outcome::Ran(value),
                Ok(other) => panic!("{other:?}"),
                Err(error) => unknown(&error),
            },
            Way::Transaction => self.transact(session),
            Way::Batch => {
                let mut batch = store.batch();
                for key in &self.keys {
                    batch.command(&[b"INCR", key.as_bytes()]).unwrap();
                }
                match batch.commit() {
                    Ok(()) => Outcome::Ran(self.read(store)),
                    Err(error) => unknown(&error),
                }
            }
        }
    }

    fn transact(&self, session: &mut RemoteSession) -> Outcome {
        assert_eq!(session.command(&[b"MULTI"]).unwrap(), Reply::OK);
        for key in &self.keys {
            if let Err(error) = session.command(&[b"INCR", key.as_bytes()]) {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                assert!(error.message().contains("nothing of it ran"), "{error}");
                return Outcome::NothingRan;
            }
        }
        match session.command(&[b"EXEC"]) {
            Ok(Reply::Array(replies)) => {
                let [Reply::Int(one), Reply::Int(two)] = replies[..] else { panic!("{replies:?}") };
                assert_eq!(one, two, "half a transaction ran");
                Outcome::Ran(one)
            }
            // The slot moved, or its primary died, between two of the commands.
            Ok(Reply::Error(text)) => {
                let words = ["EXECABORT", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"];
                assert!(words.iter().any(|word| text.starts_with(word)), "{text}");
                Outcome::NothingRan
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) if error.message().contains("nothing of it ran") => Outcome::NothingRan,
            Err(error) => unknown(&error),
        }
    }

    /// The value that both keys have, or the first one if the other is not used.
    fn read(&self, store: &Remote) -> i64 {
        let [one, two] = &self.keys;
        let reply = store.command(&[b"MGET", one.as_bytes(), two.as_bytes()]).unwrap();
        let Reply::Array(values) = reply else { panic!("{reply:?}") };
        if self.way != Way::Command {
            assert_eq!(values[0], values[1], "{:?}: half of it ran", self.keys);
        }
        let Reply::Bulk(text) = &values[0] else { panic!("{values:?}") };
        String::from_utf8_lossy(text).parse().unwrap()
    }

    /// Notes a call that was begun before or after the death of the primary.
    fn note(&self, outcome: &Outcome, took: Duration, after_death: bool) {
        let mut count = self.count();
        assert!(took < LIMIT, "{:?} took {took:?}", self.keys);
        count.longest = count.longest.max(took);
        match outcome {
            Outcome::NothingRan => {}
            Outcome::Unknown => {
                assert!(count.may_fall, "{:?}: a reply of a living node was lost", self.keys);
                count.unknown += 1;
                count.most += 1;
            }
            Outcome::Ran(value) => {
                let least = match (count.may_fall, self.way) {
                    (false, _) => count.least + 1,
                    (true, Way::Command | Way::Transaction) => count.replicated + 1,
                    // Its value was read later: the primary may have died between the two.
                    (true, Way::Batch) => count.replicated,
                };
                let range = least..=count.most + 1;
                assert!(range.contains(value), "{:?}: {value}, {:?}", self.keys, *count);
                (count.least, count.most) = (*value, *value);
                count.may_fall &= !after_death;
                count.ran += 1;
            }
        }
    }
}

/// The outcome of a write whose reply was lost, as docs/SCALING.md tells it. Nothing else may fail.
fn unknown(error: &Error) -> Outcome {
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.message().contains("may or may not have run"), "{error}");
    Outcome::Unknown
}
