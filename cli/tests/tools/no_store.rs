//! A mistyped name: what only reads a store never creates one, and says what to do.
//!
//! The bug: `lsmkv typo GET a` made a store, and a tool left LOCK in any directory it was given.

use std::path::Path;

use super::support::{Scratch, ok, run, run_with_input};

/// The names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A missing directory, an empty one, and one of somebody else, in that order.
fn wrong_directories(scratch: &Scratch) -> [String; 3] {
    std::fs::create_dir_all(scratch.path("empty")).unwrap();
    std::fs::create_dir_all(scratch.path("etc")).unwrap();
    std::fs::write(scratch.path("etc/passwd"), "root").unwrap();
    ["missing", "empty", "etc"].map(|name| scratch.arg(name))
}

fn nothing_was_left(scratch: &Scratch, what: &str) {
    assert_eq!(names(&scratch.path("")), ["empty", "etc"], "{what}");
    assert_eq!(names(&scratch.path("empty")), [""; 0], "{what}");
    assert_eq!(names(&scratch.path("etc")), ["passwd"], "{what}");
}

#[test]
fn a_command_that_reads_and_every_tool_fail_and_leave_nothing() {
    let scratch = Scratch::new();
    let dirs = wrong_directories(&scratch);
    let copy = scratch.arg("copy");
    for (index, dir) in dirs.iter().enumerate() {
        for args in [
            &[dir, "GET", "a"][..],
            &[dir, "DBSIZE"],
            &[dir, "--read-only", "GET", "a"],
            &[dir, "--read-only", "SET", "a", "b"],
            &[dir, "SET", "a"],
            &[dir, "WATCH", "a"],
            &[dir, ".stats"],
            &[dir, ".check"],
            &["check", dir],
            &["check", dir, "--live"],
            &["stats", dir],
            &["levels", dir],
            &["watch", dir, "--count", "1"],
            &["dump", dir],
            &["compact", dir],
            &["checkpoint", dir, &copy],
            &["checkpoint", dir, &copy, "--copy"],
            &["export", dir, "--to", "redis://127.0.0.1:1"],
            &["repair", dir, &copy],
        ] {
            let run = run(args);
            assert_eq!(run.code, 1, "{args:?}: {}{}", run.out, run.err);
            let told = format!("{}{}", run.out, run.err);
            // A command with a wrong number of arguments is told that first.
            let arity = args.last().is_some_and(|word| *word == "a") && args.len() == 3;
            let arity = arity && told.contains("wrong number of arguments");
            assert!(arity || told.contains(dir.as_str()), "{args:?}: {told}");
            if index < 2 && !arity && args[0] != "repair" {
                assert!(told.contains("there is no store"), "{args:?}: {told}");
                assert!(told.contains("SET"), "{args:?} names no way out: {told}");
            }
            nothing_was_left(&scratch, &format!("{args:?}"));
        }
    }
}

#[test]
fn a_shell_that_only_reads_creates_nothing() {
    let scratch = Scratch::new();
    let [missing, empty, etc] = wrong_directories(&scratch);
    for dir in [&missing, &empty] {
        let script = b"PING\nGET a\nSELECT 3\nDBSIZE\n.stats\n.help GET\nNOPE\n";
        let run = run_with_input(&[dir.as_str()], script);
        assert_eq!(run.code, 1);
        assert!(run.out.starts_with("PONG\n(error) ERR "), "{}", run.out);
        assert_eq!(run.out.matches("there is no store").count(), 3, "{}", run.out);
        assert!(run.out.contains(dir.as_str()) && run.out.contains("first write"), "{}", run.out);
        nothing_was_left(&scratch, dir);
    }
    let foreign = run_with_input(&[etc.as_str()], b"SET a b\n");
    assert_eq!(foreign.code, 1);
    assert!(foreign.err.contains("passwd"), "{}", foreign.err);
    nothing_was_left(&scratch, &etc);
}

#[test]
fn the_first_write_creates_the_store_and_the_session_goes_on() {
    let scratch = Scratch::new();
    let store = scratch.arg("one");
    assert_eq!(ok(&[&store, "SET", "a", "1"]), "OK\n");
    assert_eq!(ok(&[&store, "GET", "a"]), "\"1\"\n");

    let store = scratch.arg("piped");
    let run = run_with_input(&[store.as_str()], b"SELECT 3\nMULTI\nGET a\nSET a 1\nEXEC\nGET a\n");
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert_eq!(run.out, "OK\nOK\nQUEUED\nQUEUED\n1) (nil)\n2) OK\n\"1\"\n");
    assert_eq!(ok(&[store.as_str(), "-n", "3", "GET", "a"]), "\"1\"\n");

    let store = scratch.arg("watched");
    let run = run_with_input(&[store.as_str()], b"WATCH a\nMULTI\nINCR a\nEXEC\n");
    assert_eq!(run.out, "OK\nOK\nQUEUED\n1) (integer) 1\n", "{}", run.err);

    let store = scratch.arg("read");
    std::fs::write(scratch.path("commands"), "SET from file\n").unwrap();
    let script = format!(".read {}\n.read {}\n", scratch.arg("none"), scratch.arg("commands"));
    let run = run_with_input(&[store.as_str()], script.as_bytes());
    assert!(run.out.ends_with("1 commands, 0 errors\n"), "{}{}", run.out, run.err);
    assert_eq!(ok(&[store.as_str(), "GET", "from"]), "\"file\"\n");
    assert_eq!(ok(&[":memory:", "GET", "a"]), "(nil)\n");
}
