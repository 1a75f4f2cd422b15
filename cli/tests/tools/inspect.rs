//! Inspection of stores, also while another process writes to them; maintenance; the small tools.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::redis::Redis;
use super::support::{Scratch, contents, fill, lsmkv, ok, run};

/// A shell that has the store open and writes until `stop` is set.
fn writer(store: &str, ready: &AtomicBool, stop: &AtomicBool) -> u64 {
    let mut child: Child = lsmkv(&[
        store,
        "--raw",
        "--option",
        "write_buffer=64KiB",
        "--option",
        "memory_budget=2MiB",
    ])
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut input: ChildStdin = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut count = 0;
    let mut line = String::new();
    while !stop.load(Ordering::Relaxed) {
        writeln!(input, "SET key:{} {}", count % 5000, "v".repeat(200)).unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "OK\n", "the writer was disturbed");
        count += 1;
        ready.store(true, Ordering::Relaxed);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    count
}

/// Ends the writer even if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_store_in_use_can_be_inspected_and_is_not_disturbed() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    let (ready, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| writer(&store, &ready, &stop));
        while !ready.load(Ordering::Relaxed) {
            assert!(!writing.is_finished(), "the writer died");
            std::thread::yield_now();
        }
        let stopper = Stop(&stop);
        assert!(ok(&["levels", &store]).contains("meta"), "a busy store is read beside its writer");
        for _ in 0..5 {
            assert!(ok(&["stats", &store, "--live"]).contains("table_bytes"));
            assert!(ok(&["levels", &store, "--live"]).contains("meta"));
            assert_eq!(ok(&["check", &store, "--live", "--quiet"]), "no problems\n");
        }
        let seen = ok(&["watch", &store, "--count", "2", "--interval", "0.2"]);
        assert!(seen.contains("tables came"), "{seen}");
        drop(stopper);
        assert!(writing.join().unwrap() > 0);
    });
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
}

#[test]
fn levels_and_stats_are_pictures_for_people_and_json_for_programs() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    let picture = ok(&["levels", &store]);
    assert!(picture.contains("█") && picture.contains("score"), "{picture}");
    assert!(!picture.contains('\x1b'), "colours without a terminal");
    for tool in ["levels", "stats"] {
        let json = ok(&[tool, &store, "--json"]);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert!(value.as_object().unwrap().len() > 2, "{json}");
    }
    assert_eq!(run(&["stats", &scratch.arg("nothing")]).code, 1);
    assert!(!scratch.path("nothing").exists(), "inspect created a store");
}

#[test]
fn compaction_and_copies_keep_what_is_there() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    let expected = contents(&store);
    assert!(ok(&["compact", &store]).contains("before"));
    let (linked, copied) = (scratch.arg("linked"), scratch.arg("copied"));
    ok(&["checkpoint", &store, &linked]);
    ok(&["checkpoint", &store, &copied, "--copy", "--quiet"]);
    assert_eq!(run(&["checkpoint", &store, &linked]).code, 1, "it wrote over a store");
    for dir in [&store, &linked, &copied] {
        assert_eq!(contents(dir), expected, "{dir}");
        assert_eq!(ok(&["check", dir, "--quiet"]), "no problems\n");
    }
}

#[test]
fn the_benchmark_measures_every_workload_and_removes_its_store() {
    let scratch = Scratch::new();
    let dir = scratch.arg("bench");
    let out = ok(&["bench", &dir, "--operations", "300", "--threads", "2", "--keys", "50"]);
    for name in ["set", "get", "mixed", "incr", "hset", "sadd", "zadd", "queue", "expire"] {
        assert!(out.lines().any(|line| line.starts_with(name)), "{out}");
    }
    assert!(!scratch.path("bench").exists());
    let json = ok(&["bench", &dir, "-w", "set,get", "-o", "100", "--json", "--keep"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    for line in &lines {
        let figure = |name: &str| line[name].as_f64().unwrap();
        assert!(figure("ops_per_s") > 0.0 && figure("p50_us") > 0.0, "{line}");
        assert!(
            figure("p50_us") <= figure("p999_us") && figure("p999_us") <= figure("max_us") * 1.01
        );
    }
    assert_eq!(run(&["bench", &dir]).code, 2, "it measured in a store that was there");
}

#[test]
fn completions_and_the_manual_name_every_subcommand() {
    let names = ["serve", "check", "repair", "stats", "levels", "dump", "load", "import", "export"];
    for page in [
        ok(&["completions", "bash"]),
        ok(&["completions", "zsh"]),
        ok(&["completions", "fish"]),
        ok(&["man"]),
    ] {
        assert!(names.iter().all(|name| page.contains(name)), "{page}");
    }
}

#[test]
fn a_server_can_be_watched() {
    let scratch = Scratch::new();
    let Some(redis) = Redis::start(&scratch, "a", "tools::inspect::watch") else { return };
    let seen = ok(&["watch", &redis.url(), "--count", "2", "--interval", "0.1"]);
    assert!(seen.contains("operations/s") && seen.contains("round trip"), "{seen}");
    assert_eq!(run(&["watch", &scratch.arg("nowhere")]).code, 1, "there is no store");
    assert_eq!(run(&["watch", &scratch.arg("nowhere:port")]).code, 2, "nor is this an address");
}
