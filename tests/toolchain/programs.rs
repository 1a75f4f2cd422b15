//! Programs that tests run, and a record of what had to be skipped because one is missing.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs::OpenOptions;
use std::io::Write;
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
