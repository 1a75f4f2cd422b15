//! Clusters: slots that move, nodes that die, transactions.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lsmkv::{ErrorKind, Options, Remote, Reply};

use crate::node::{Answer, fake_node, fake_node_on};
use crate::quick;
use crate::servers::{Cluster, Software};

/// How often slots move and a primary dies: once, or as often as `make cluster` says.
fn rounds() -> usize {
    std::env::var("LSMKV_CLUSTER_ROUNDS").ok().map_or(1, |text| text.parse().unwrap())
}

/// The longest that a command may take, beyond the time that a fail-over needs.
const LIMIT: Duration = Duration::from_secs(40);

#[test]
fn a_cluster_of_redis_that_changes_runs_no_command_twice() {
    a_cluster_that_changes_runs_no_command_twice(Software::Redis);
}

#[test]
fn a_cluster_of_valkey_that_changes_runs_no_command_twice() {
    a_cluster_that_changes_runs_no_command_twice(Software::Valkey);
}

/// Slots move and a primary dies while counters are counted: none is counted twice, no count that was
/// acknowledged is lost, no command hangs, and after the fail-over all go on.
fn a_cluster_that_changes_runs_no_command_twice(software: Software) {
    let test = format!("remote::failover_{software:?}").to_lowercase();
    for round in 0..rounds() {
        let Some(mut cluster) = Cluster::with_replicas(&test, software, 1) else { return };
        let store = Remote::open(&cluster.address(), &Options::default()).unwrap();
        let mut counters = Counters::new(&store);
        counters.count(20);
        assert_eq!(counters.unknown(), 0, "a cluster at rest lost a reply");
        let primaries = cluster.primaries();
        let moved = AtomicBool::new(false);
        let pairs = std::thread::scope(|scope| {
            let pairs = scope.spawn(|| count_pairs(&store, &moved));
            let moving = scope.spawn(|| cluster.move_slots(primaries[0], primaries[1], 2000));
            counters.count(100);
            moving.join().unwrap();
            moved.store(true, Ordering::Relaxed);
            pairs.join().unwrap()
        });
        println!("{software:?}, round {round}: {pairs} transactions while slots moved");
        assert_eq!(counters.unknown(), 0, "a moved slot lost a reply");
        // What was acknowledged so far is on the replicas; of the rest a cluster promises nothing.
        cluster.wait_until_replicated();
        cluster.nodes[primaries[round % primaries.len()]].kill();
        let begun = Instant::now();
        counters.count(25);
        let unknown = counters.unknown();
        println!("after the death of a primary: {:?}, {unknown} unknown", begun.elapsed());
        counters.check();
    }
}

/// Counters that are counted up one by one.
struct Counters<'a> {
    store: &'a Remote,
    keys: Vec<String>,
    sent: Vec<i64>,
    /// Commands that may or may not have run.
    unknown: Vec<i64>,
}

impl<'a> Counters<'a> {
    fn new(store: &'a Remote) -> Self {
        let keys: Vec<String> = (0..50).map(|n| format!("counter:{n}")).collect();
        let none = vec![0; keys.len()];
        Self { store, keys, sent: none.clone(), unknown: none }
    }

    fn unknown(&self) -> i64 {
        self.unknown.iter().sum()
    }

    fn count(&mut self, rounds: usize) {
        for _ in 0..rounds {
            for (n, key) in self.keys.iter().enumerate() {
                let begun = Instant::now();
                match self.store.command(&[b"INCR", key.as_bytes()]) {
                    Ok(Reply::Int(_)) => self.sent[n] += 1,
                    Ok(other) => panic!("{other:?}"),
                    Err(_) => self.unknown[n] += 1,
                }
                assert!(begun.elapsed() < LIMIT, "{key} took {:?}", begun.elapsed());
            }
        }
    }

    /// Every counter has what was acknowledged, and at most what is unknown beyond it. Afterwards
    /// nothing is unknown.
    fn check(&mut self) {
        for (n, key) in self.keys.iter().enumerate() {
            let reply = self.store.command(&[b"GET", key.as_bytes()]).unwrap();
            let Reply::Bulk(text) = reply else { panic!("{key}: {reply:?}") };
            let found: i64 = String::from_utf8_lossy(&text).parse().unwrap();
            let range = self.sent[n]..=self.sent[n] + self.unknown[n];
            assert!(range.contains(&found), "{key}: {found}, acknowledged {range:?}");
            self.sent[n] = found;
            self.unknown[n] = 0;
        }
    }
}

/// Counts pairs of keys up in transactions until `ended`, and checks that each transaction ran
/// once and whole. Returns how many ran.
fn count_pairs(store: &Remote, ended: &AtomicBool) -> i64 {
    const PAIRS: usize = 40;
    let mut session = store.session().unwrap();
    let mut ran = [0i64; PAIRS];
    while !ended.load(Ordering::Relaxed) {
        for (n, ran) in ran.iter_mut().enumerate() {
            let (one, two) = (format!("{{pair:{n}}}one"), format!("{{pair:{n}}}two"));
            assert_eq!(session.command(&[b"MULTI"]).unwrap(), Reply::OK);
            for key in [&one, &two] {
                session.command(&[b"INCR", key.as_bytes()]).unwrap();
            }
            match session.command(&[b"EXEC"]).unwrap() {
                Reply::Array(replies) => {
                    *ran += 1;
                    assert_eq!(replies, [Reply::Int(*ran), Reply::Int(*ran)], "{one}");
                }
                // The slot moved between two of the commands: nothing ran.
                Reply::Error(text) => {
                    let words = ["EXECABORT", "MOVED", "ASK", "TRYAGAIN"];
                    assert!(words.iter().any(|word| text.starts_with(word)), "{text}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    ran.iter().sum()
}

#[test]
fn a_transaction_on_a_cluster_has_keys_of_one_slot() {
    let Some(cluster) = Cluster::start("remote::transactions") else { return };
    let store = Remote::open(&cluster.address(), &Options::default()).unwrap();
    let mut session = store.session().unwrap();
    let mut run = |line: &str| {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        session.command(&argv)
    };
    let ok = Reply::OK;
    assert_eq!(run("MULTI").unwrap(), ok);
    assert_eq!(run("SET {x}1 v").unwrap(), Reply::Text("QUEUED".into()));
    let error = run("SET {y}1 v").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("hash tag"), "{error}");
    let Reply::Error(text) = run("EXEC").unwrap() else { panic!("EXEC ran") };
    assert!(text.starts_with("EXECABORT"), "{text}");
    assert_eq!(run("EXISTS {x}1").unwrap(), Reply::Int(0));
    assert_eq!(run("WATCH {x}1 {y}1").unwrap_err().kind(), ErrorKind::Unsupported);
    // The refusals left nothing behind.
    assert_eq!(run("MULTI").unwrap(), ok);
    assert_eq!(run("SET {y}1 v").unwrap(), Reply::Text("QUEUED".into()));
    assert_eq!(run("EXEC").unwrap(), Reply::Array(vec![Reply::Text("OK".into())]));
}

/// A transaction that ended with its connection was remembered as refused, and the next one, which had
/// nothing to do with it, was discarded by its EXEC.
#[test]
fn a_transaction_that_lost_its_connection_leaves_the_next_one_alone() {
    let port = fake_node(&[], |words| match words[0].as_str() {
        "MULTI" => Answer::Says("+OK\r\n"),
        "EXEC" => Answer::Says("*1\r\n+OK\r\n"),
        _ if words[1].ends_with("cut") => Answer::Cuts,
        _ => Answer::Says("+QUEUED\r\n"),
    });
    let store = Remote::open(&format!("redis-cluster://127.0.0.1:{port}"), &quick()).unwrap();
    let mut session = store.session().unwrap();
    for queued_before in [0, 1] {
        assert_eq!(session.command(&[b"MULTI"]).unwrap(), Reply::OK);
        for _ in 0..queued_before {
            session.command(&[b"SET", b"{x}1", b"v"]).unwrap();
        }
        assert_eq!(session.command(&[b"SET", b"{x}cut", b"v"]).unwrap_err().kind(), ErrorKind::Io);
        assert!(!session.in_multi());
        assert_eq!(session.command(&[b"MULTI"]).unwrap(), Reply::OK);
        let queued = session.command(&[b"SET", b"{x}1", b"v"]).unwrap();
        assert_eq!(queued, Reply::Text("QUEUED".into()));
        let executed = session.command(&[b"EXEC"]).unwrap();
        assert_eq!(executed, Reply::Array(vec![Reply::Text("OK".into())]));
    }
}

/// Two nodes, of which the second does to MSET and MGET what `answer` says. Returns their address, and
/// the commands that the second got.
fn two_nodes(
    answer: impl Fn(usize) -> Answer + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, two) = (listen(), listen());
    let ports = [&one, &two].map(|it| it.local_addr().unwrap().port());
    // The slots of `b` and `a`.
    let ranges = [(0, 8191, ports[0]), (8192, 16_383, ports[1])];
    fake_node_on(one, &ranges, |words| match words[0].as_str() {
        "MGET" => Answer::Says("*1\r\n$1\r\n1\r\n"),
        _ => Answer::Says("+OK\r\n"),
    });
    let got = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&got);
    fake_node_on(two, &ranges, move |words| {
        let mut seen = seen.lock().unwrap();
        seen.push(words[0].clone());
        answer(seen.len())
    });
    (format!("redis-cluster://127.0.0.1:{}", ports[0]), got)
}

/// A part of a write whose reply is lost is not sent again, and the error says that others may have
/// run. A part that a node refused is sent again, and so is a read.
#[test]
fn the_parts_of_a_command_are_sent_again_only_if_they_cannot_have_run() {
    let mset: [&[u8]; 5] = [b"MSET", b"b", b"1", b"a", b"2"];
    let (address, got) = two_nodes(|_| Answer::Cuts);
    let error = Remote::open(&address, &quick()).unwrap().command(&mset).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("parts of the command"), "{error}");
    assert!(error.message().contains("may or may not have run"), "{error}");
    assert_eq!(*got.lock().unwrap(), ["MSET"]);

    let (address, got) = two_nodes(|number| match number {
        1 => Answer::Says("-TRYAGAIN not now\r\n"),
        _ => Answer::Says("+OK\r\n"),
    });
    assert_eq!(Remote::open(&address, &quick()).unwrap().command(&mset).unwrap(), Reply::OK);
    assert_eq!(*got.lock().unwrap(), ["MSET", "MSET"]);

    let (address, got) = two_nodes(|number| match number {
        1 => Answer::Cuts,
        _ => Answer::Says("*1\r\n$1\r\n2\r\n"),
    });
    let found = Remote::open(&address, &quick()).unwrap().command(&[b"MGET", b"a", b"b"]).unwrap();
    assert_eq!(found, Reply::Array(vec![Reply::Bulk("2".into()), Reply::Bulk("1".into())]));
    assert_eq!(*got.lock().unwrap(), ["MGET", "MGET"]);
}

/// Commands for a node that is gone wait for the one that takes over, also those of one call, and fail
/// when their time is over.
#[test]
fn a_pipeline_to_a_node_that_is_gone_waits_and_ends_in_time() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let one = TcpListener::bind("127.0.0.1:0").unwrap();
    let ranges = [(0, 8191, one.local_addr().unwrap().port()), (8192, 16_383, gone)];
    let port = fake_node_on(one, &ranges, |_| Answer::Says("$1\r\n1\r\n"));
    let store = Remote::open(&format!("redis-cluster://127.0.0.1:{port}"), &quick()).unwrap();
    let get = |key: &'static [u8]| [b"GET".as_slice(), key];
    let begun = Instant::now();
    let error = store.session().unwrap().pipeline(&[get(b"b"), get(b"a")]).unwrap_err();
    assert!(error.message().contains("has not run"), "{error}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(10), "{took:?}");
}

/// A session on a cluster waited on until the store was closed, whatever became of the session.
/// (tests/c/messages.c tells the same of every place.)
#[test]
fn a_close_of_the_store_ends_the_wait_of_a_session_on_a_cluster() {
    let Some(cluster) = Cluster::start("remote::session_wait") else { return };
    let store = Remote::open(&cluster.address(), &quick()).unwrap();
    let mut session = store.session().unwrap();
    let waiting = std::thread::spawn(move || session.command(&[b"BLPOP", b"none", b"0"]));
    std::thread::sleep(Duration::from_millis(700));
    assert!(!waiting.is_finished(), "the wait ended at the limit for silent servers");
    store.close();
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
}
