//! What can be typed after `lsmkv`: a variant for each subcommand, its arguments in its module.

use clap::{Parser, Subcommand};

use crate::failure::Outcome;
use crate::tools::{bench, check, complete, dump, exchange, inspect, repair, upkeep, watch};
use crate::{server, shell};

/// An embedded store of Redis data structures, at the command line.
///
/// Without a subcommand: a shell on the store in DIR, or one COMMAND on it. A directory named like
/// a subcommand is written ./NAME.
#[derive(Debug, Parser)]
#[command(
    name = "lsmkv",
    version,
    about,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    shell: shell::ShellArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves a store to Redis clients
    Serve(server::ServeArgs),
    /// Reads everything: checksums, keys, members; lists what is wrong
    Check(check::CheckArgs),
    /// Makes a new store of what can be read of a damaged one
    Repair(repair::RepairArgs),
    /// What a store holds and has done
    Stats(inspect::InspectionArgs),
    /// The tree of tables as a picture
    Levels(inspect::InspectionArgs),
    /// Writes all keys as commands or as JSON lines
    Dump(dump::DumpArgs),
    /// Reads what dump has written, or a file of commands
    Load(dump::LoadArgs),
    /// Copies keys from a Redis server or from its dump file
    Import(exchange::ImportArgs),
    /// Copies keys to a Redis server
    Export(exchange::ExportArgs),
    /// Deletes what has expired and rewrites all tables
    Compact(upkeep::CompactArgs),
    /// Makes a copy of a store in another directory
    Checkpoint(upkeep::CheckpointArgs),
    /// Measures a new store on this machine
    Bench(bench::BenchArgs),
    /// Shows a store or a server while it works
    Watch(watch::WatchArgs),
    /// Completions of this command line for a shell
    Completions(complete::CompletionsArgs),
    /// The manual page, for man
    #[command(hide = true)]
    Man,
}

impl CommandLine {
    /// Does what was asked.
    pub(crate) fn run(self) -> Outcome {
        let Some(command) = self.command else { return shell::run(&self.shell) };
        match command {
            Command::Serve(args) => server::serve(&args),
            Command::Check(args) => check::check(&args),
            Command::Repair(args) => repair::repair(&args),
            Command::Stats(args) => inspect::stats(&args),
            Command::Levels(args) => inspect::levels(&args),
            Command::Dump(args) => dump::dump(&args),
            Command::Load(args) => dump::load(&args),
            Command::Import(args) => exchange::import(&args),
            Command::Export(args) => exchange::export(&args),
            Command::Compact(args) => upkeep::compact(&args),
            Command::Checkpoint(args) => upkeep::checkpoint(&args),
            Command::Bench(args) => bench::bench(&args),
            Command::Watch(args) => watch::watch(&args),
            Command::Completions(args) => complete::completions(&args),
            Command::Man => complete::manual(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn words_after_a_directory_are_a_command_whatever_they_are() {
        for words in [&["lsmkv", "d", "GET", "check"][..], &["lsmkv", "d", "check"]] {
            let line = CommandLine::try_parse_from(words).unwrap();
            assert!(line.command.is_none(), "{words:?}");
        }
        let line = CommandLine::try_parse_from(["lsmkv", "check", "d"]).unwrap();
        assert!(line.command.is_some());
        let negative = ["lsmkv", "d", "LRANGE", "l", "-1", "--x"];
        assert!(CommandLine::try_parse_from(negative).is_ok());
    }
}
