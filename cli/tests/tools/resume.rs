//! Copies that Ctrl-C or a kill ends, and that resume at their position.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Child;

use super::interrupt::{interrupt, start, until};
use super::redis::Redis;
use super::support::{Run, Scratch, contents, ok, run};
use super::tunnel::Tunnel;

/// The number of strings in the source: several thousand, because a copy saves its position every
/// thousand keys.
const STRINGS: usize = 8000;

/// Strings, and in each of two databases a collection of each type that takes several parts.
fn many_keys() -> String {
    let mut text = String::new();
    for database in [0, 7] {
        let _ = writeln!(text, "SELECT {database}");
        for n in 0..STRINGS / 2 {
            let _ = writeln!(text, "SET key:{database}:{n} value-{n}");
        }
        for from in (0..2000).step_by(100) {
            let numbers = || from..from + 100;
            let plain: String = numbers().map(|n| format!(" member{n}")).collect();
            let pairs: String = numbers().map(|n| format!(" {n} member{n}")).collect();
            let _ = writeln!(text, "RPUSH list{plain}\nSADD set{plain}");
            let _ = writeln!(text, "ZADD zset{pairs}\nHSET hash{pairs}");
        }
        let _ = writeln!(
            text,
            "PEXPIREAT list 4102444800123\nPEXPIREAT key:{database}:5 4102444800456"
        );
    }
    text
}

/// The number of keys: the strings, and four collections in each database.
const KEYS: u64 = STRINGS as u64 + 8;

/// The saved position of a copy, if there is one.
fn noted(state: &Path) -> Option<String> {
    let text = std::fs::read_to_string(state).ok()?;
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    let place = &state["place"];
    (!place.is_null()).then(|| format!("{} {place}", state["database"]))
}

/// Starts a copy and waits until it is past the position of an earlier one.
fn further(args: &[&str], state: &Path) -> Child {
    let before = noted(state);
    let child = start(args);
    until("it notes how far it is", || noted(state).is_some_and(|now| Some(now) != before));
    child
}

/// Kills a copy in the middle.
fn killed(args: &[&str], state: &Path) {
    let mut child = further(args, state);
    child.kill().unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), None, "it had ended before it was killed");
    assert!(state.exists());
}

/// Interrupts a copy by Ctrl-C; it must say that it resumes.
fn stopped(args: &[&str], state: &Path) {
    let run: Run = interrupt(further(args, state));
    assert_eq!(run.code, 130, "{}{}", run.out, run.err);
    assert!(run.err.contains("stopped after") && run.err.contains("goes on"), "{}", run.err);
    assert!(state.exists());
}

/// The number of keys that a successful copy reports.
fn keys(out: &str) -> u64 {
    out.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn an_import_that_was_killed_and_interrupted_goes_on_and_has_every_key() {
    let scratch = Scratch::new();
    let test = "tools::resume::import";
    let Some(source) = Redis::start(&scratch, "a", test) else { return };
    let Some(target) = Redis::start(&scratch, "b", test) else { return };
    source.feed(many_keys().as_bytes(), true);
    let (store, url, state) = (scratch.arg("store"), source.url(), scratch.path("store.import"));
    let import = ["import", &store, "--from", &url, "--quiet"];
    killed(&import, &state);
    stopped(&import, &state);
    killed(&import, &state);
    let out = ok(&import);
    // Three times, at least a thousand keys less a page were already copied.
    assert!((1..=KEYS - 1500).contains(&keys(&out)), "{out}");
    assert!(!state.exists());
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
    ok(&["export", &store, "--to", &target.url(), "--quiet"]);
    let (first, second) = (source.digest(), target.digest());
    assert_eq!(first.1, second.1);
    assert_eq!(first.0, second.0);
}

#[test]
fn an_export_that_was_killed_and_interrupted_goes_on_and_has_every_key() {
    let scratch = Scratch::new();
    let test = "tools::resume::export";
    let Some(source) = Redis::start(&scratch, "a", test) else { return };
    let Some(target) = Redis::start(&scratch, "b", test) else { return };
    source.feed(many_keys().as_bytes(), true);
    let (store, url, state) = (scratch.arg("store"), target.url(), scratch.path("store.export"));
    let out = ok(&["import", &store, "--from", &source.url(), "--quiet"]);
    assert_eq!(keys(&out), KEYS);
    let export = ["export", &store, "--to", &url, "--quiet"];
    killed(&export, &state);
    stopped(&export, &state);
    killed(&export, &state);
    let out = ok(&export);
    assert!((1..=KEYS - 3000).contains(&keys(&out)), "{out}");
    assert!(!state.exists());
    let (first, second) = (source.digest(), target.digest());
    assert_eq!(first.1, second.1);
    assert_eq!(first.0, second.0);
}

#[test]
fn places_that_mean_nothing_any_more_are_not_gone_on_from() {
    let scratch = Scratch::new();
    let test = "tools::resume::anew";
    let Some(redis) = Redis::start(&scratch, "a", test) else { return };
    redis.feed(many_keys().as_bytes(), true);
    let (store, url, state) = (scratch.arg("store"), redis.url(), scratch.path("store.import"));
    let import = ["import", &store, "--from", &url, "--quiet"];
    killed(&import, &state);
    // A restarted server has its keys in another order.
    let Some(redis) = redis.restart(test) else { return };
    let again = run(&import);
    assert_eq!((again.code, keys(&again.out)), (0, KEYS), "{}", again.err);
    assert!(again.err.contains("started anew"), "{}", again.err);
    // A store that is gone must be copied from the beginning.
    let expected = contents(&store);
    killed(&["import", &store, "--from", &url, "--quiet"], &state);
    std::fs::remove_dir_all(&store).unwrap();
    let again = run(&import);
    assert_eq!((again.code, keys(&again.out)), (0, KEYS), "{}", again.err);
    assert!(again.err.contains("a new one"), "{}", again.err);
    assert_eq!(contents(&store), expected);
    // So must a target that has lost its data.
    let Some(target) = Redis::start(&scratch, "b", test) else { return };
    let (to, state) = (target.url(), scratch.path("store.export"));
    let export = ["export", &store, "--to", &to, "--quiet"];
    killed(&export, &state);
    target.text(&["FLUSHALL"]);
    let Some(target) = target.restart(test) else { return };
    let again = run(&export);
    assert_eq!((again.code, keys(&again.out)), (0, KEYS), "{}", again.err);
    assert_eq!(target.digest(), redis.digest());
    // A copy of another part of the store is another copy.
    killed(&export, &state);
    let other = run(&["export", &store, "--to", &to, "--db", "7", "--quiet"]);
    assert_eq!(other.code, 1);
    assert!(other.err.contains("finish that one"), "{}", other.err);
}

#[test]
fn what_a_killed_export_had_sent_does_not_come_between_what_the_next_one_sends() {
    let scratch = Scratch::new();
    let test = "tools::resume::between";
    let Some(source) = Redis::start(&scratch, "a", test) else { return };
    let Some(target) = Redis::start(&scratch, "b", test) else { return };
    source.feed(many_keys().as_bytes(), true);
    let (store, entrance) = (scratch.arg("store"), scratch.path("tunnel"));
    ok(&["import", &store, "--from", &source.url(), "--quiet"]);
    // The first of four parts of a list, and some of the second.
    let tunnel = Tunnel::open(&entrance, target.socket.clone(), 10_000);
    let url = format!("unix://{}", entrance.display());
    let export = ["export", &store, "--to", &url, "--db", "0", "--prefix", "list", "--quiet"];
    let mut child = start(&export);
    until("it has sent more than is delivered", || tunnel.held() > 15_000);
    child.kill().unwrap();
    child.wait().unwrap();
    ok(&export);
    tunnel.release();
    let length = ["LLEN", "list"];
    assert_eq!(target.text(&length), source.text(&length));
    let elements = ["LRANGE", "list", "0", "-1"];
    assert_eq!(target.text(&elements), source.text(&elements));
}

#[test]
fn a_server_that_ends_no_connections_is_exported_to_with_a_warning() {
    let scratch = Scratch::new();
    let test = "tools::resume::forbidden";
    let Some(source) = Redis::start(&scratch, "a", test) else { return };
    source.feed(many_keys().as_bytes(), true);
    let (store, url, state) = (scratch.arg("store"), source.url(), scratch.path("store.export"));
    ok(&["import", &store, "--from", &url, "--quiet"]);
    let export = ["export", &store, "--to", &url, "--quiet"];
    for forbidden in ["-client|kill", "-client|id"] {
        assert_eq!(source.text(&["ACL", "SETUSER", "default", forbidden]), "OK");
        killed(&export, &state);
        let again = run(&export);
        assert_eq!(again.code, 0, "{}", again.err);
        assert!(again.err.contains("does not end the connection"), "{}", again.err);
    }
}
