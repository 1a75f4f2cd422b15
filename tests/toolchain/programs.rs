//! Programs that tests run, and a record of what had to be skipped because one is missing.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Whether a program can be started at all.
pub(crate) fn available(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success())
}

/// Notes that a part of the tests did not run, and why, for the sum at the end of `make test`.
pub(crate) fn skip(what: &str, reason: &str) {
    println!("SKIPPED {what}: {reason}");
    if let Some(path) = std::env::var_os("LSMKV_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{what}: {reason}").unwrap();
    }
}

/// Runs a command; its output, or a panic that shows everything it said.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    output
}

/// [`run`], for what it printed.
pub(crate) fn text_of(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}

/// A file that cargo built beside this test: `liblsmkv.so` or `liblsmkv.a`. Found from the
/// test's own place, so any target directory and profile will do.
pub(crate) fn built(name: &str) -> PathBuf {
    find_built(name).unwrap_or_else(|| panic!("cargo has built no {name}"))
}

/// A file that cargo built beside this test, if it is there. The program `lsmkv` is there when cargo
/// tests its package too.
pub(crate) fn find_built(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    [deps, deps.parent().unwrap()].map(|dir| dir.join(name)).into_iter().find(|path| path.exists())
}
