//! Ctrl-C in every command that can take long: the command ends soon, its exit status says so, and
//! nothing is left that looks complete and is not.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lsmkv::{Db, Options};
use rustix::process::{Pid, Signal, kill_process};

use super::redis::Redis;
use super::support::{Run, Scratch, command, fill, lsmkv, ok};

/// The time in which an interrupted command must end.
const SOON: Duration = Duration::from_secs(2);
/// The time after which a test gives up.
const LONG: Duration = Duration::from_secs(60);

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Starts a command with captured output.
pub(crate) fn start(args: &[&str]) -> Child {
    start_with(args, Stdio::null())
}

fn start_with(args: &[&str], input: Stdio) -> Child {
    let mut command: Command = lsmkv(args);
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until the process catches signals, according to the operating system.
fn catches_signals(child: &mut Child) {
    let status = format!("/proc/{}/status", child.id());
    until("it catches signals", || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        // The last signal that the program registers.
        mask.unwrap_or(0) & 1 << (Signal::TERM.as_raw() - 1) != 0
    });
}

/// Sends SIGINT; returns the output and the exit status.
pub(crate) fn interrupt(mut child: Child) -> Run {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > SOON {
            child.kill().unwrap();
            let run: Run = child.wait_with_output().unwrap().into();
            panic!("it goes on after Ctrl-C: {}{}", run.out, run.err);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().unwrap().into()
}

/// Starts a command and interrupts it once it catches signals; it must report that it was stopped.
fn stopped(args: &[&str]) -> Run {
    let run = interrupted_after(args, Duration::ZERO);
    assert_eq!(run.code, 130, "{args:?}: {}{}", run.out, run.err);
    assert!(run.err.contains("stopped"), "{args:?}: {}", run.err);
    run
}

/// Interrupts a command this long after it catches signals.
fn interrupted_after(args: &[&str], delay: Duration) -> Run {
    let mut child = start(args);
    catches_signals(&mut child);
    std::thread::sleep(delay);
    match child.try_wait().unwrap() {
        Some(_) => child.wait_with_output().unwrap().into(),
        None => interrupt(child),
    }
}

/// A store that takes a while to read: many keys, and one big list.
fn fill_large(dir: &Path) {
    let db = Db::open(dir, Options { table_bytes: 4 << 20, ..Options::default() }).unwrap();
    let mut random = lsmkv::io::splitmix::SplitMix64::new(1);
    let mut value = || -> Vec<u8> {
        std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(2000).collect()
    };
    for n in 0..15_000 {
        db.set(format!("key:{n:06}").as_bytes(), &value()).unwrap();
    }
    for _ in 0..100 {
        let elements: Vec<Vec<u8>> = (0..100).map(|_| value()).collect();
        let words = [&b"RPUSH"[..], b"list"].into_iter().chain(elements.iter().map(Vec::as_slice));
        command(&db, &words.collect::<Vec<_>>());
    }
    db.close().unwrap();
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_reads_or_rewrites_a_whole_store_stops_and_leaves_no_half_result() {
    let scratch = Scratch::new();
    let (store, out) = (scratch.arg("store"), scratch.arg("out"));
    fill_large(&scratch.path("store"));
    let whole_bytes = dump_bytes(&scratch);
    for args in [
        &["check", &store, "--quiet"][..],
        &["dump", &store, "-o", &out, "--quiet"],
        &["dump", &store, "-o", &out, "--format", "json", "--quiet"],
        &["repair", &store, &out, "--quiet"],
        &["checkpoint", &store, &out, "--copy", "--quiet"],
        &["compact", &store, "--quiet"],
    ] {
        let run = stopped(args);
        assert!(!run.out.contains("no problems"), "{args:?} speaks of what it has not seen");
        assert_eq!(names(&scratch.path("")), ["store"], "{args:?} left something");
        // Whenever the interruption comes, the output is complete or absent.
        for delay in [20, 80, 250].map(Duration::from_millis) {
            let run = interrupted_after(args, delay);
            let whole = run.code == 0;
            assert!(whole || run.code == 130, "{args:?}: {}{}", run.out, run.err);
            let made = !matches!(args[0], "check" | "compact");
            let expected = if whole && made { &["out", "store"][..] } else { &["store"] };
            assert_eq!(names(&scratch.path("")), expected, "{args:?} after {delay:?}");
            if whole && made {
                remove_whole(args[0], &scratch, whole_bytes);
            }
        }
    }
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
    let db = Db::open(scratch.path("store"), Options::default()).unwrap();
    assert_eq!(db.llen(b"list").unwrap(), 10_000);
    assert_eq!(db.exists(&[b"key:000000", b"key:014999"]).unwrap(), 2);
}

/// The size of the dump in the form of commands.
fn dump_bytes(scratch: &Scratch) -> u64 {
    let out = scratch.path("whole");
    ok(&["dump", &scratch.arg("store"), "-o", out.to_str().unwrap(), "--quiet"]);
    let bytes = std::fs::metadata(&out).unwrap().len();
    std::fs::remove_file(&out).unwrap();
    bytes
}

/// Checks that output written before the interruption is complete, and removes it.
fn remove_whole(tool: &str, scratch: &Scratch, dump_bytes: u64) {
    let out = scratch.path("out");
    if tool == "dump" {
        // JSON is longer, because the values are not text.
        assert!(std::fs::metadata(&out).unwrap().len() >= dump_bytes);
        return std::fs::remove_file(out).unwrap();
    }
    assert_eq!(ok(&["check", &scratch.arg("out"), "--quiet"]), "no problems\n");
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn a_dump_is_stopped_inside_one_big_key() {
    let scratch = Scratch::new();
    fill_large(&scratch.path("store"));
    let (store, pipe) = (scratch.arg("store"), scratch.arg("pipe"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = start(&["dump", &store, "--prefix", "list", "-o", &pipe, "--quiet"]);
    let mut reader = std::fs::File::open(&pipe).unwrap();
    let mut head = [0; 64];
    reader.read_exact(&mut head).unwrap();
    catches_signals(&mut child);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    // The command notices the interruption only when its output is read.
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!(run.code, 130, "{}", run.err);
    assert!(rest.len() < 15_000_000, "it wrote the key to its end: {} bytes", rest.len());
    assert!(Path::new(&pipe).exists(), "the pipe was replaced");
}

#[test]
fn input_that_does_not_come_is_not_waited_for() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    // Commands are read in large pieces, but JSON line by line: one line has been written.
    let line = b"{\"key\":\"landmark\",\"type\":\"string\",\"value\":\"1\"}\n{\"key\":";
    for (text, landmark) in [(&line[..], true), (b"SET a 1\nSET b ", false)] {
        let mut child = start_with(&["load", &store, "--quiet"], Stdio::piped());
        let mut input = child.stdin.take().unwrap();
        input.write_all(text).unwrap();
        catches_signals(&mut child);
        if landmark {
            until("the line is written", || holds(&scratch.path("store"), b"landmark"));
        }
        let run = interrupt(child);
        assert_eq!(run.code, 130, "{}{}", run.out, run.err);
        drop(input);
        assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
    }
    assert_eq!(ok(&[store.as_str(), "GET", "landmark"]), "\"1\"\n");
    // A dump of Redis from a pipe that stays silent.
    let pipe = scratch.arg("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = start(&["import", &store, "--rdb", &pipe, "--quiet"]);
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all(b"REDIS0011\x00\x01k\x01v").unwrap();
    catches_signals(&mut child);
    let run = interrupt(child);
    assert_eq!(run.code, 130, "{}{}", run.out, run.err);
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
}

/// Whether a file of the store contains these bytes.
fn holds(dir: &Path, wanted: &[u8]) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    let files = entries.flatten().filter_map(|entry| std::fs::read(entry.path()).ok());
    files.into_iter().any(|bytes| bytes.windows(wanted.len()).any(|part| part == wanted))
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for() {
    let scratch = Scratch::new();
    let Some(redis) = Redis::start(&scratch, "a", "tools::interrupt::server") else { return };
    redis.feed(b"SET a 1\nSET b 2\n", false);
    let (store, url) = (scratch.arg("store"), redis.url());
    fill(&scratch.path("store"));
    redis.text(&["CLIENT", "PAUSE", "600000", "ALL"]);
    stopped(&["import", &scratch.arg("new"), "--from", &url, "--quiet"]);
    stopped(&["export", &store, "--to", &url, "--quiet"]);
    // Ctrl-C is the normal end of `watch`.
    let mut watch = start(&["watch", &url]);
    catches_signals(&mut watch);
    assert_eq!(interrupt(watch).code, 0);
    assert_eq!(ok(&["check", &store, "--quiet"]), "no problems\n");
    assert!(!scratch.path("new").exists(), "a store was made for a server that did not answer");
}

#[test]
fn what_would_go_on_for_ever_ends() {
    let scratch = Scratch::new();
    let dir = scratch.arg("bench");
    stopped(&["bench", &dir, "-w", "set,get", "-o", "100000000", "-t", "2"]);
    assert!(!scratch.path("bench").exists(), "the store was left behind");
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    let mut watch = start(&["watch", &store, "--interval", "1000"]);
    catches_signals(&mut watch);
    assert_eq!(interrupt(watch).code, 0, "Ctrl-C is how it is meant to be ended");
}

#[test]
fn links_are_made_to_the_end() {
    let scratch = Scratch::new();
    let (store, out) = (scratch.arg("store"), scratch.arg("out"));
    fill_large(&scratch.path("store"));
    let mut child = start(&["checkpoint", &store, &out]);
    catches_signals(&mut child);
    let run = interrupt(child);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(ok(&["check", &out, "--quiet"]), "no problems\n");
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let scratch = Scratch::new();
    let pipe = scratch.arg("pipe");
    fill_large(&scratch.path("store"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = start(&["dump", &scratch.arg("store"), "-o", &pipe, "--quiet"]);
    // Nobody reads the pipe, so the command waits and cannot notice the first signal.
    let mut reader = std::fs::File::open(&pipe).unwrap();
    reader.read_exact(&mut [0; 64]).unwrap();
    catches_signals(&mut child);
    let pid = Pid::from_child(&child);
    until("it has ended", || {
        // Two signals that arrive together may count as one.
        let _ = kill_process(pid, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
