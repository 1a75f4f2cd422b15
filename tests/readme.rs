//! The README is true: its programs compile and run as they stand, and its commands are the ones
//! CI runs.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod toolchain;

use std::fs;
use std::path::Path;
use std::process::Command;

use toolchain::{available, built, compiler, library_path, root, run, skip, text_of};

/// The code blocks of one language.
fn blocks(language: &str) -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let opening = format!("```{language}\n");
    let found: Vec<_> = readme
        .split(&opening)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect();
    assert!(!found.is_empty(), "the README has no {language} block");
    found
}

fn compiled_and_run(source: &Path, cpp: bool, scratch: &Path) -> String {
    let program = scratch.join("program");
    let mut compile = compiler(cpp);
    compile
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(root().join("bindings/cpp"))
        .arg("-L")
        .arg(library_path(scratch))
        .arg("-llsmkv");
    run(&mut compile);
    text_of(
        Command::new(program).current_dir(scratch).env("LD_LIBRARY_PATH", library_path(scratch)),
    )
}

#[test]
fn the_c_program_prints_what_it_stored() {
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("readme.c");
    fs::write(&source, blocks("c").concat()).unwrap();
    assert_eq!(compiled_and_run(&source, false, scratch.path()), "hello\n");
    assert!(scratch.path().join("store-c").is_dir());
}

#[test]
fn the_cpp_program_prints_what_it_stored() {
    if !available("g++") {
        return skip("readme::cpp", "there is no g++");
    }
    let scratch = tempfile::tempdir().unwrap();
    let source = scratch.path().join("readme.cpp");
    fs::write(&source, blocks("cpp").concat()).unwrap();
    assert_eq!(compiled_and_run(&source, true, scratch.path()), "hello\n");
}

#[test]
fn the_python_program_prints_what_it_stored() {
    if !available("python3") {
        return skip("readme::python", "there is no python3");
    }
    let scratch = tempfile::tempdir().unwrap();
    let printed = text_of(
        Command::new("python3")
            .args(["-B", "-c", &blocks("python").concat()])
            .current_dir(scratch.path())
            .env("PYTHONPATH", root().join("bindings/python"))
            .env("LSMKV_LIBRARY", built("liblsmkv.so")),
    );
    assert_eq!(printed, "hello\n");
}

#[test]
fn the_commands_are_the_ones_ci_runs() {
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let commands = blocks("sh").concat();
    assert!(commands.contains("make demo") && commands.contains("make test"));
    for command in commands.lines() {
        assert!(ci.lines().any(|line| line == command), ".ci/run does not run `{command}`");
    }
}

#[test]
fn files_the_readme_points_to_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let links = readme.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| !link.starts_with("https://")) {
        assert!(root().join(link).exists(), "{link}");
    }
}
