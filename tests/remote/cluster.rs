//! Clusters: transactions, commands of several parts, nodes that are gone.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lsmkv::{ErrorKind, Options, Remote, Reply};

use crate::node::{Answer, fake_node, fake_node_on};
use crate::quick;
use crate::servers::Cluster;

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

/// A store on two nodes: that of the slot of `b` answers, that of `a` is gone.
fn store_with_a_node_that_is_gone() -> Remote {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let one = TcpListener::bind("127.0.0.1:0").unwrap();
    let ranges = [(0, 8191, one.local_addr().unwrap().port()), (8192, 16_383, gone)];
    let port = fake_node_on(one, &ranges, |_| Answer::Says("$1\r\n1\r\n"));
    Remote::open(&format!("redis-cluster://127.0.0.1:{port}"), &quick()).unwrap()
}

/// Runs what waits for a node that takes over, which none does.
fn waits_and_ends_in_time<T: std::fmt::Debug>(run: impl FnOnce() -> lsmkv::Result<T>) {
    let begun = Instant::now();
    let error = run().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("has not run"), "{error}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(10), "{took:?}");
}

/// Commands for a node that is gone wait for the one that takes over, also those of one call, and fail
/// when their time is over.
#[test]
fn a_pipeline_to_a_node_that_is_gone_waits_and_ends_in_time() {
    let store = store_with_a_node_that_is_gone();
    let get = |key: &'static [u8]| [b"GET".as_slice(), key];
    waits_and_ends_in_time(|| store.session().unwrap().pipeline(&[get(b"b"), get(b"a")]));
}

/// A transaction, a batch and a subscription failed at once where commands waited.
#[test]
fn what_belongs_together_waits_for_the_node_that_takes_over_too() {
    let store = store_with_a_node_that_is_gone();
    let mut session = store.session().unwrap();
    session.command(&[b"MULTI"]).unwrap();
    waits_and_ends_in_time(|| session.command(&[b"SET", b"a", b"v"]));
    assert!(!session.in_multi());
    waits_and_ends_in_time(|| session.command(&[b"WATCH", b"a"]));
    waits_and_ends_in_time(|| store.session().unwrap().command(&[b"SSUBSCRIBE", b"a"]));
    let mut batch = store.batch();
    batch.command(&[b"SET", b"a", b"v"]).unwrap();
    waits_and_ends_in_time(|| batch.commit());
    // A close ends the wait.
    let options = Options { reply_timeout_ms: 60_000, ..quick() };
    let slow = Remote::open(&store.address(), &options).unwrap();
    let mut session = slow.session().unwrap();
    session.command(&[b"MULTI"]).unwrap();
    let waiting = std::thread::spawn(move || session.command(&[b"SET", b"a", b"v"]));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!waiting.is_finished());
    slow.close();
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

/// A batch that a node refused is sent again. One whose EXEC has no reply is not: that it may have run
/// was not said.
#[test]
fn a_batch_is_sent_again_only_if_it_cannot_have_run() {
    let commit = |port: u16| {
        let store = Remote::open(&format!("redis-cluster://127.0.0.1:{port}"), &quick()).unwrap();
        let mut batch = store.batch();
        batch.command(&[b"SET", b"k", b"v"]).unwrap();
        batch.commit()
    };
    for refused in ["SET", "EXEC"] {
        let begun = AtomicUsize::new(0);
        let port = fake_node(&[], move |words| {
            let name = words[0].as_str();
            begun.fetch_add(usize::from(name == "MULTI"), Ordering::SeqCst);
            let first = begun.load(Ordering::SeqCst) == 1;
            match name {
                "SET" | "EXEC" if first && name == refused => Answer::Says("-TRYAGAIN later\r\n"),
                "EXEC" if first && refused == "SET" => Answer::Says("-EXECABORT because\r\n"),
                "EXEC" => Answer::Says("*1\r\n+OK\r\n"),
                "SET" => Answer::Says("+QUEUED\r\n"),
                _ => Answer::Says("+OK\r\n"),
            }
        });
        commit(port).unwrap();
    }
    let times = Arc::<AtomicUsize>::default();
    let seen = Arc::clone(&times);
    let port = fake_node(&[], move |words| match words[0].as_str() {
        "EXEC" => {
            seen.fetch_add(1, Ordering::SeqCst);
            Answer::Cuts
        }
        "SET" => Answer::Says("+QUEUED\r\n"),
        _ => Answer::Says("+OK\r\n"),
    });
    let error = commit(port).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("may or may not have run"), "{error}");
    assert_eq!(times.load(Ordering::SeqCst), 1);
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
