//! Runs one workload on lsmkv and its peers, on one machine: throughput of each as a ratio to
//! RocksDB, against targets.
//!
//! `compare` (the default) starts one child process per peer and repeat, in turn, so that no
//! peer's memory, allocator or threads touch another's; the child prints its measurements as JSON
//! lines. `commands` does the same for Redis commands. `big` loads a large store under a memory
//! budget and checks what it costs. `types` deletes large and small collections and draws members
//! at random. `commits` shows how durable writes share flushes.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is this program's job")]

mod args;
mod commands;
mod event;
mod keys;
mod measure;
mod peers;
mod plan;
mod report;
mod rows;
mod runner;
mod scratch;
mod session;
mod values;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

/// Failures here end the program, so a message is all anyone needs of them.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

fn main() -> ExitCode {
    let args = Args::parse();
    let outcome = match &args.command {
        None => compare(&args),
        Some(Command::Big(big)) => workload::big::command(big),
        Some(Command::Commands(commands)) => commands::command(commands),
        Some(Command::CommandsChild { task }) => commands::session::command(task).map(|()| true),
        Some(Command::Commits(commits)) => workload::commits::command(commits),
        Some(Command::Types(types)) => workload::types::command(types),
        Some(Command::Child { task }) => session::command(task).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("lsmkv-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every peer that is built in finished all its repeats.
fn compare(args: &Args) -> Result<bool> {
    let plan = args.compare.plan();
    let samples = runner::run(&args.compare, &plan)?;
    let summary = report::summary::Summary::new(&plan, args.compare.repeats, &samples);
    print!("{}", report::table::render(&summary));
    if !args.compare.no_write {
        let (json, chart) = (report::json::render(&summary)?, report::svg::render(&summary));
        let files = [("json", json), ("svg", chart)];
        let written = report::write(&args.compare.out, &args.compare.name(), &files)?;
        println!("\nwritten: {}", written.join(", "));
    }
    Ok(summary.failures.is_empty())
}
