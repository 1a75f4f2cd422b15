//! `lsmkv` at the command line. Every subcommand is a module; this file only starts one.

mod allocator;
mod command_line;
mod failure;
#[cfg(test)]
mod fuzzing;
mod rdb;
mod serve;
mod shell;
mod store;
mod tools;
mod transfer;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

/// The exit status of a program stopped by Ctrl-C, as shells report it.
const STOPPED: u8 = 130;

fn main() -> ExitCode {
    match command_line::CommandLine::parse().run() {
        Ok(code) => code,
        Err(failure) => {
            // If standard error is closed too, nothing is left to do.
            let _ = writeln!(std::io::stderr(), "lsmkv: {failure}");
            if transfer::Interrupt::stopped_the_program() {
                return ExitCode::from(STOPPED);
            }
            failure.exit_code()
        }
    }
}
