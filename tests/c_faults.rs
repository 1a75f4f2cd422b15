//! Defects and a device that stands still, as a program in C sees them: tests/c/faults.c, linked
//! with the library and the switches of tests/c/faulty.rs. Also under valgrind and with sanitizers.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod toolchain;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use toolchain::{available, built, compiler, root, run, skip};

/// The library that cargo built for this test, and the switches: compiles one small file, once.
static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libfaulty.a");
    let test = std::env::current_exe().unwrap();
    let dependencies = test.parent().unwrap().display();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "staticlib", "-D", "warnings"]);
    rustc.arg("-L").arg(format!("dependency={dependencies}"));
    rustc.arg("--extern").arg(format!("lsmkv={}", built("liblsmkv.rlib").display()));
    run(rustc.arg("-o").arg(&library).arg(root().join("tests/c/faulty.rs")));
    library
});

fn program(scratch: &Path, flags: &[&str]) -> PathBuf {
    let program = scratch.join("program");
    let mut command = compiler(false);
    command.args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O1"]);
    command.args(["-g", "-o"]).arg(&program).args(flags).arg("-I").arg(root().join("include"));
    command.arg(root().join("tests/c/faults.c")).arg(&*LIBRARY);
    run(command.args(["-lpthread", "-ldl", "-lm"]));
    program
}

/// Runs the program; what it said on the standard error.
fn said(mut command: Command, scratch: &Path) -> String {
    let output = run(command.arg(scratch.join("stores")).env_remove("RUST_BACKTRACE"));
    print!("{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// The standard library reports a panic on the standard error unless the host has a hook of its
/// own. That report is all there is: the library has no hook, and no text, of its own.
#[test]
fn a_panic_is_a_status_in_c_and_closing_wakes_those_who_wait() {
    let scratch = tempfile::tempdir().unwrap();
    let said = said(Command::new(program(scratch.path(), &[])), scratch.path());
    let mut panics = 0;
    for line in said.lines().filter(|line| !line.is_empty()) {
        let reported = line.starts_with("thread '") && line.contains(" panicked at ");
        panics += usize::from(reported);
        let rest = ["injected into a ", "note: run with `RUST_BACKTRACE=1`"];
        assert!(reported || rest.iter().any(|text| line.starts_with(text)), "{line}\n{said}");
    }
    assert!(panics >= 6, "{said}");
}

#[test]
fn the_sanitizers_find_nothing_after_a_panic_or_a_wait_cut_short() {
    let scratch = tempfile::tempdir().unwrap();
    let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover"];
    said(Command::new(program(scratch.path(), &flags)), scratch.path());
}

#[test]
fn valgrind_finds_nothing_after_a_panic_or_a_wait_cut_short() {
    if !available("valgrind") {
        return skip("c_faults::valgrind", "there is no valgrind");
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--error-exitcode=99", "--leak-check=full"]);
    valgrind.arg("--errors-for-leak-kinds=definite,possible");
    let suppressions = root().join("tests/testdata/valgrind.supp");
    valgrind.arg(format!("--suppressions={}", suppressions.display()));
    valgrind.arg(program(scratch.path(), &[]));
    said(valgrind, scratch.path());
}
