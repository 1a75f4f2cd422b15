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
use std::process::Command;

use toolchain::{available, built, compiler, find_built, library_path, root, run, skip, text_of};

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

/// A directory with the programs under the names the README gives them.
fn saved() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("hello.c"), blocks("c").concat()).unwrap();
    fs::write(scratch.path().join("hello.cpp"), blocks("cpp").concat()).unwrap();
    scratch
}

fn compiled_and_run(source: &str, cpp: bool) -> String {
    let scratch = saved();
    let program = scratch.path().join("program");
    let mut compile = compiler(cpp);
    compile
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(scratch.path().join(source))
        .arg("-I")
        .arg(root().join("include"))
        .arg("-I")
        .arg(root().join("bindings/cpp"))
        .arg("-L")
        .arg(library_path(scratch.path()))
        .arg("-llsmkv");
    run(&mut compile);
    let libraries = library_path(scratch.path());
    text_of(Command::new(program).current_dir(scratch.path()).env("LD_LIBRARY_PATH", libraries))
}

#[test]
fn the_c_program_prints_what_it_stored() {
    assert_eq!(compiled_and_run("hello.c", false), "alice\n");
}

#[test]
fn the_cpp_program_prints_what_it_stored() {
    if !available("g++") {
        return skip("readme::cpp", "there is no g++");
    }
    assert_eq!(compiled_and_run("hello.cpp", true), "alice\nfirst\nsecond\nfirst\n");
}

/// Options with which `make` installs what cargo has built for the tests, and compiles nothing. The
/// program is there unless this test is run without those of its package: then make builds it.
fn as_built() -> String {
    let library = |name: &str| built(name).display().to_string();
    let (shared, archive) = (library("liblsmkv.so"), library("liblsmkv.a"));
    let libraries = format!("-o all SHARED='{shared}' STATIC='{archive}'");
    match find_built("lsmkv") {
        Some(program) => format!("{libraries} -o cli PROGRAM='{}'", program.display()),
        None => libraries,
    }
}

/// As they stand, in one shell, but `make` installs what this test is built with.
#[test]
fn the_commands_to_install_and_to_build_a_program_work() {
    for tool in ["g++", "pkg-config", "make"] {
        if !available(tool) {
            return skip("readme::install", &format!("there is no {tool}"));
        }
    }
    let scratch = saved();
    let make = format!(
        "make() {{ command make -s -C '{}' {} \"$@\" >&2; }}\n",
        root().display(),
        as_built(),
    );
    let mut shell = Command::new("bash");
    shell.args(["-euc", &(make + &blocks("bash").concat())]);
    shell.current_dir(scratch.path()).env("HOME", scratch.path());
    assert_eq!(text_of(&mut shell), "alice\nalice\nfirst\nsecond\nfirst\n");
    assert!(scratch.path().join(".local/lib/liblsmkv.so.0").exists());
    let version = text_of(Command::new(scratch.path().join(".local/bin/lsmkv")).arg("--version"));
    assert_eq!(version.trim_end(), format!("lsmkv {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_lines_for_cmake_are_those_that_are_tested() {
    let tested = fs::read_to_string(root().join("tests/installed/CMakeLists.txt")).unwrap();
    for line in blocks("cmake").concat().lines() {
        assert!(tested.contains(&line.replace("(app ", "(in_c ")), "{line}");
    }
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
    // A lambda of C++ looks like a link.
    let prose: String = readme.split("```").step_by(2).collect();
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| !link.starts_with("https://")) {
        assert!(root().join(link).exists(), "{link}");
    }
}
