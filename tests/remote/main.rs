//! Stores of other processes: the programs in tests/c run on `lsmkv serve`, on a redis-server and on
//! a cluster, as they do on a directory; servers that lie, stall or die are errors in time.
#![cfg(feature = "remote")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod servers;
mod toolchain;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lsmkv::{ErrorKind, Options, Remote, Reply};
use tempfile::TempDir;

use servers::{Cluster, Server};
use toolchain::{compiler, library_path, root, run};

/// The programs whose stories make sense on any store.
const PROGRAMS: [&str; 10] = [
    "strings", "values", "hashes", "lists", "sets", "zsets", "keys", "commands", "scripts",
    "messages",
];

fn compile(name: &str, scratch: &Path) -> std::path::PathBuf {
    let program = scratch.join(name);
    let mut command = compiler(false);
    command
        .args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O1", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join(format!("tests/c/{name}.c")))
        .arg("-L")
        .arg(library_path(scratch))
        .args(["-llsmkv", "-lpthread", "-ldl", "-lm"]);
    run(&mut command);
    program
}

/// Runs every program on a store, and returns the stories that were skipped, each with the call
/// that the store does not offer.
fn run_all(address: &str) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let mut skipped = Vec::new();
    let mut failed = String::new();
    for name in PROGRAMS {
        let program = compile(name, scratch.path());
        let output = Command::new(program)
            .arg(scratch.path().join("stores"))
            .env("LD_LIBRARY_PATH", library_path(scratch.path()))
            .env("LSMKV_TEST_STORE", address)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if let Some(story) = line.strip_prefix("skipped ") {
                skipped.push(format!("{name}: {story}: {}", lines[at - 1].trim()));
            }
        }
        if !output.status.success() {
            failed += &format!("{name} on {address}, {}:\n{text}", output.status);
        }
    }
    assert!(failed.is_empty(), "{failed}");
    println!("{} skipped on {address}:\n{}", skipped.len(), skipped.join("\n"));
    skipped
}

/// Stories about what no server offers.
const NO_SERVER: [&str; 10] = [
    "keys: keys_are_scanned_by_the_bytes_of_the_last_one",
    "messages: a_session_that_does_not_wait_is_told_when_to_try_again",
    "messages: a_slow_subscriber_is_cut_off",
    "messages: events_of_keys_are_sent_once_they_are_on",
    "scripts: a_script_that_fails_leaves_nothing",
    "sets: a_set_is_scanned_in_pieces",
    "strings: a_large_value_is_pinned_and_readable_after_close",
    "strings: a_store_in_memory_is_empty_every_time",
    "strings: options_decide_how_a_store_is_opened",
    "strings: upkeep_loses_nothing",
];

/// Stories about what Redis 7.0 does not know yet.
const NOT_IN_REDIS: [&str; 1] = ["hashes: fields_are_taken_and_drawn_by_chance"];

/// Stories with keys of several slots or numbered databases.
const NOT_IN_CLUSTER: [&str; 15] = [
    "commands: a_session_remembers_between_commands",
    "keys: collections_are_sorted",
    "keys: keys_are_renamed_copied_and_moved",
    "lists: elements_move_from_list_to_list",
    "messages: a_session_receives_messages",
    "messages: pops_take_what_is_there_or_end_with_their_time",
    "messages: the_close_of_a_handle_ends_the_pop_that_waits_on_it",
    "sets: members_are_added_asked_for_and_removed",
    "sets: sets_are_combined",
    "values: bits_are_read_set_counted_and_combined",
    "values: parts_of_values_are_read_and_written",
    "values: several_values_in_one_call",
    "zsets: members_are_removed_and_popped",
    "zsets: ranges_are_stored",
    "zsets: sorted_sets_are_combined",
];

fn check_skipped(skipped: &[String], known: &[&[&str]]) {
    let story = |line: &String| line.split(": ").take(2).collect::<Vec<_>>().join(": ");
    let mut found: Vec<String> = skipped.iter().map(story).collect();
    let mut known: Vec<&str> = known.concat();
    found.sort_unstable();
    known.sort_unstable();
    assert_eq!(found, known, "stories that are skipped there");
}

#[test]
fn the_programs_in_c_pass_on_a_server_of_ours() {
    let Some(server) = Server::ours("remote::served") else { return };
    check_skipped(&run_all(&server.address()), &[&NO_SERVER]);
}

#[test]
fn the_programs_in_c_pass_on_a_redis_server() {
    let Some(server) = Server::redis("remote::redis", &[]) else { return };
    check_skipped(&run_all(&server.address()), &[&NO_SERVER, &NOT_IN_REDIS]);
}

#[test]
fn the_programs_in_c_pass_on_a_cluster() {
    let Some(cluster) = Cluster::start("remote::cluster") else { return };
    check_skipped(&run_all(&cluster.address()), &[&NO_SERVER, &NOT_IN_REDIS, &NOT_IN_CLUSTER]);
}

fn quick() -> Options {
    Options { connect_timeout_ms: 400, reply_timeout_ms: 400, ..Options::default() }
}

/// A server that answers the handshake, then each command with the next of these bytes, and then
/// stays silent or closes the connection.
fn liar(answers: &[&[u8]], closes: bool) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let answers: Vec<Vec<u8>> = answers.iter().map(|it| it.to_vec()).collect();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut room = [0; 4096];
            let mut script =
                std::iter::once(b"%1\r\n+proto\r\n:3\r\n".to_vec()).chain(answers.clone());
            let mut left = answers.len() + 1;
            while stream.read(&mut room).is_ok_and(|len| len > 0) {
                stream.write_all(&script.next().unwrap_or_default()).unwrap_or_default();
                if closes && left <= 1 {
                    break;
                }
                left = left.saturating_sub(1);
            }
            if !closes {
                kept.push(stream);
            }
        }
    });
    let address = format!("unix://{}", path.display());
    (dir, address)
}

/// Whatever a server says or does not say, a call ends in time with a status that fits.
#[test]
fn a_server_that_lies_or_is_silent_is_an_error_in_time() {
    let get: &[&[u8]] = &[b"GET", b"k"];
    let cases: &[(&[&[u8]], bool, ErrorKind)] = &[
        (&[], false, ErrorKind::Timeout),
        (&[b""], true, ErrorKind::Io),
        (&[b"nonsense\r\n"], false, ErrorKind::Io),
        (&[b"$5\r\nab"], false, ErrorKind::Timeout),
        (&[b"$5\r\nab"], true, ErrorKind::Io),
        (&[b"$99999999999\r\nab"], false, ErrorKind::Io),
        (&[b"*1000000000\r\n:1\r\n"], false, ErrorKind::Timeout),
        (&[b"$-7\r\n"], false, ErrorKind::Io),
    ];
    for (answers, closes, kind) in cases {
        let (_dir, address) = liar(answers, *closes);
        let store = Remote::open(&address, &quick()).unwrap();
        let begun = Instant::now();
        let error = store.command(get).unwrap_err();
        assert_eq!(error.kind(), *kind, "{answers:?}: {error}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{answers:?}: {:?}", begun.elapsed());
    }
    // A handshake of nonsense, and none at all.
    let (_dir, address) = liar(&[], false);
    let silent = address.replace("socket", "silent");
    let _listener = UnixListener::bind(silent.strip_prefix("unix://").unwrap()).unwrap();
    assert_eq!(Remote::open(&silent, &quick()).unwrap_err().kind(), ErrorKind::Timeout);
}

/// A write whose reply is lost is reported as such and not sent again.
#[test]
fn a_lost_reply_to_a_write_is_no_reason_to_send_it_again() {
    let (_dir, address) = liar(&[b""], true);
    let store = Remote::open(&address, &quick()).unwrap();
    let error = store.command(&[b"INCR", b"n"]).unwrap_err();
    assert!(error.message().contains("may or may not have run"), "{error}");
}

#[test]
fn a_wrong_address_or_password_is_told_at_the_open() {
    let refused = |address: &str, kind: ErrorKind, part: &str| {
        let error = Remote::open(address, &quick()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(part), "{error}");
        assert!(!error.message().contains("secret"), "{error}");
    };
    let dir = tempfile::tempdir().unwrap();
    let missing = format!("unix://{}/none", dir.path().display());
    refused(&missing, ErrorKind::Io, "none");
    // A socket whose server is gone.
    drop(UnixListener::bind(dir.path().join("stale")).unwrap());
    refused(&format!("unix://{}/stale", dir.path().display()), ErrorKind::Io, "refused");
    refused("redis://127.0.0.1:1", ErrorKind::Io, "127.0.0.1:1");
    refused("redis-cluster://127.0.0.1:1", ErrorKind::Io, "127.0.0.1:1");
    refused("redis://no.such.host.invalid", ErrorKind::Io, "no.such.host.invalid");
    refused("redis://u:secret@h:x", ErrorKind::Invalid, "port");

    let Some(server) = Server::redis("remote::password", &["--requirepass", "secret"]) else {
        return;
    };
    refused(&server.address(), ErrorKind::Invalid, "NOAUTH");
    let Some(plain) = Server::redis("remote::password", &[]) else { return };
    refused(&plain.address().replace("unix://", "redis-cluster://"), ErrorKind::Invalid, "");
    refused(&format!("{}?db=99", plain.address()), ErrorKind::Invalid, "99");
}

/// A path beyond what the address of a socket holds is reached all the same.
#[test]
fn a_socket_in_a_deep_directory_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(120));
    std::fs::create_dir(&deep).unwrap();
    let (near, _address) = liar(&[b"$1\r\nv\r\n"], false);
    std::fs::rename(near.path().join("socket"), deep.join("socket")).unwrap();
    let store = Remote::open(&format!("unix://{}/socket", deep.display()), &quick()).unwrap();
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
}

/// An idle connection that the server has closed costs nothing: the next call opens another.
#[test]
fn a_server_that_was_restarted_is_found_again() {
    let Some(mut server) = Server::redis("remote::restart", &[]) else { return };
    let store = Remote::open(&server.address(), &quick()).unwrap();
    store.command(&[b"SET", b"k", b"1"]).unwrap();
    server.kill();
    assert_eq!(store.command(&[b"INCR", b"k"]).unwrap_err().kind(), ErrorKind::Io);
    server.restart();
    assert_eq!(store.command(&[b"INCR", b"k"]).unwrap(), Reply::Int(1));
}

/// Closing the store ends a call that waits at the server.
#[test]
fn a_close_ends_a_wait_at_the_server() {
    let Some(server) = Server::redis("remote::close", &[]) else { return };
    let store = Remote::open(&server.address(), &quick()).unwrap();
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || store.command(&[b"BLPOP", b"none", b"0"]))
    };
    std::thread::sleep(Duration::from_millis(700));
    assert!(!waiting.is_finished(), "the wait ended at the limit for silent servers");
    store.close();
    assert_eq!(waiting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap_err().kind(), ErrorKind::Closed);
}

/// Slots move and a primary dies while counters are counted: none is counted twice, and after the
/// fail-over all go on.
#[test]
fn a_cluster_that_changes_runs_no_command_twice() {
    let Some(mut cluster) = Cluster::with_replicas("remote::failover", 1) else { return };
    let store = Remote::open(&cluster.address(), &Options::default()).unwrap();
    let keys: Vec<String> = (0..50).map(|n| format!("counter:{n}")).collect();
    let mut sent = vec![0i64; keys.len()];
    let mut unknown = vec![0i64; keys.len()];
    let mut count = |rounds: usize, unknown: &mut Vec<i64>| {
        for _ in 0..rounds {
            for (n, key) in keys.iter().enumerate() {
                match store.command(&[b"INCR", key.as_bytes()]) {
                    Ok(Reply::Int(_)) => sent[n] += 1,
                    Ok(other) => panic!("{other:?}"),
                    // It may or may not have run.
                    Err(_) => unknown[n] += 1,
                }
            }
        }
    };
    count(20, &mut unknown);
    assert_eq!(unknown.iter().sum::<i64>(), 0);
    let moved = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pairs = scope.spawn(|| count_pairs(&store, &moved));
        let moving = scope.spawn(|| cluster.move_slots(2000));
        count(100, &mut unknown);
        moving.join().unwrap();
        moved.store(true, Ordering::Relaxed);
        println!("{} transactions while slots moved", pairs.join().unwrap());
    });
    assert_eq!(unknown.iter().sum::<i64>(), 0, "a moved slot lost a reply");
    // Replicas have everything that was acknowledged so far.
    std::thread::sleep(Duration::from_millis(300));
    cluster.nodes[0].kill();
    let begun = Instant::now();
    count(20, &mut unknown);
    println!("after the death of a primary: {:?}, {unknown:?} unknown", begun.elapsed());
    count(5, &mut unknown);
    for (n, key) in keys.iter().enumerate() {
        let reply = store.command(&[b"GET", key.as_bytes()]).unwrap();
        let Reply::Bulk(text) = reply else { panic!("{key}: {reply:?}") };
        let found: i64 = String::from_utf8_lossy(&text).parse().unwrap();
        let range = sent[n]..=sent[n] + unknown[n];
        assert!(range.contains(&found), "{key}: {found}, acknowledged {range:?}");
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
                Reply::Error(text) => assert!(
                    ["EXECABORT", "MOVED", "TRYAGAIN"].iter().any(|word| text.starts_with(word)),
                    "{text}"
                ),
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
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("hash tag"), "{error}");
    let Reply::Error(text) = run("EXEC").unwrap() else { panic!("EXEC ran") };
    assert!(text.starts_with("EXECABORT"), "{text}");
    assert_eq!(run("EXISTS {x}1").unwrap(), Reply::Int(0));
    assert_eq!(run("WATCH {x}1 {y}1").unwrap_err().kind(), ErrorKind::Invalid);
    // The refusals left nothing behind.
    assert_eq!(run("MULTI").unwrap(), ok);
    assert_eq!(run("SET {y}1 v").unwrap(), Reply::Text("QUEUED".into()));
    assert_eq!(run("EXEC").unwrap(), Reply::Array(vec![Reply::Text("OK".into())]));
}

#[test]
fn a_store_that_is_opened_read_only_takes_no_writes() {
    let Some(server) = Server::redis("remote::read-only", &[]) else { return };
    let options = Options { read_only: true, ..Options::default() };
    let store = Remote::open(&server.address(), &options).unwrap();
    let set: [&[u8]; 3] = [b"SET", b"k", b"v"];
    let mut session = store.session().unwrap();
    assert_eq!(store.command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(store.batch().command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(session.command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    session.command(&[b"MULTI"]).unwrap();
    assert_eq!(session.command(&set).unwrap_err().kind(), ErrorKind::ReadOnly);
    session.command(&[b"GET", b"k"]).unwrap();
    assert_eq!(session.command(&[b"EXEC"]).unwrap(), Reply::Array(vec![Reply::Nil]));
}

/// A C program with the usual handler of SIGPIPE survives its server.
#[test]
fn the_death_of_a_server_kills_no_program() {
    let Some(server) = Server::redis("remote::sigpipe", &[]) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut command = Command::new(compile("remote", scratch.path()));
    command
        .arg(scratch.path().join("stores"))
        .env("LD_LIBRARY_PATH", library_path(scratch.path()))
        .env("LSMKV_TEST_STORE", server.address())
        .env("LSMKV_TEST_SERVER_PID", server.pid().to_string());
    run(&mut command);
}
