//! `make demo`: the same story in C, C++ and Python.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod toolchain;

use std::path::Path;
use std::process::Command;

use toolchain::{available, built, compiler, library_path, root, run, skip, text_of};

const STORY: &str = "  a string:      hello, expires in 3600 s
  a hash:        name alice, visits 2
  a list:        took first, left second third
  a leaderboard: bob 17.5 alice 12
  a transaction: savings 95, checking 5
  a snapshot:    savings were 100
  opened again:  board checking greeting queue savings user:1
";

fn compiled(source: &str, cpp: bool, scratch: &Path) -> Command {
    let program = scratch.join("program");
    let mut compile = compiler(cpp);
    compile.args(if cpp { ["-std=c++17", "-Wall"] } else { ["-std=c99", "-Wall"] });
    compile.args(["-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(&program);
    compile.arg(root().join(source)).arg("-I").arg(root().join("include"));
    compile.arg("-I").arg(root().join("bindings/cpp"));
    run(compile.arg("-L").arg(library_path(scratch)).arg("-llsmkv"));
    Command::new(program)
}

/// Everything but the first line, which names the language; twice, as a second run finds the store
/// of the first.
fn tells_the_story(mut program: Command, language: &str, scratch: &Path) {
    program.arg(scratch.join("store")).env("LD_LIBRARY_PATH", library_path(scratch));
    for _ in 0..2 {
        let printed = text_of(&mut program);
        let (title, story) = printed.split_once('\n').unwrap();
        assert!(title.contains(&format!(" from {language}, ")), "{title}");
        assert_eq!(story, STORY);
    }
}

#[test]
fn the_story_is_told_in_c() {
    let scratch = tempfile::tempdir().unwrap();
    let program = compiled("bindings/c/quickstart.c", false, scratch.path());
    tells_the_story(program, "C", scratch.path());
}

#[test]
fn the_story_is_told_in_cpp() {
    if !available("g++") {
        return skip("demo::cpp", "there is no g++");
    }
    let scratch = tempfile::tempdir().unwrap();
    let program = compiled("bindings/cpp/quickstart.cpp", true, scratch.path());
    tells_the_story(program, "C++", scratch.path());
}

#[test]
fn the_story_is_told_in_python() {
    if !available("python3") {
        return skip("demo::python", "there is no python3");
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut program = Command::new("python3");
    program.arg("-B").arg(root().join("bindings/python/quickstart.py"));
    program.env("PYTHONPATH", root().join("bindings/python"));
    program.env("LSMKV_LIBRARY", built("liblsmkv.so"));
    tells_the_story(program, "Python", scratch.path());
}
