//! The command line of `lsmkv`: one variant per subcommand, whose arguments are in its module.

use clap::{Parser, Subcommand};

use crate::failure::Outcome;
use crate::tools::{
    bench, check, completions, dump, import_export, inspect, maintenance, repair, watch,
};
use crate::{allocator, serve, shell};

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
    /// Serve a store to Redis clients
    Serve(serve::ServeArgs),
    /// Read everything (checksums, keys, members) and list what is wrong
    Check(check::CheckArgs),
    /// Build a new store from the readable parts of a damaged one
    Repair(repair::RepairArgs),
    /// Print the statistics of a store
    Stats(inspect::InspectArgs),
    /// Draw the levels of the tree of tables
    Levels(inspect::InspectArgs),
    /// Write all keys as commands or as JSON lines
    Dump(dump::DumpArgs),
    /// Read the output of dump, or a file of commands
    Load(dump::LoadArgs),
    /// Copy keys from a Redis server or from its dump file
    Import(import_export::ImportArgs),
    /// Copy keys to a Redis server
    Export(import_export::ExportArgs),
    /// Delete expired keys and rewrite all tables
    Compact(maintenance::CompactArgs),
    /// Copy a store to another directory
    Checkpoint(maintenance::CheckpointArgs),
    /// Measure a new store on this machine
    Bench(bench::BenchArgs),
    /// Show a store or a server while it works
    Watch(watch::WatchArgs),
    /// Print shell completions for this command line
    Completions(completions::CompletionsArgs),
    /// Print the manual page, for man
    #[command(hide = true)]
    Man,
}

impl CommandLine {
    /// Runs the subcommand, or the shell.
    pub(crate) fn run(self) -> Outcome {
        let Some(command) = self.command else { return shell::run(&self.shell) };
        match command {
            Command::Serve(args) => {
                allocator::avoid_huge_pages();
                serve::serve(&args)
            }
            Command::Check(args) => check::check(&args),
            Command::Repair(args) => repair::repair(&args),
            Command::Stats(args) => inspect::stats(&args),
            Command::Levels(args) => inspect::levels(&args),
            Command::Dump(args) => dump::dump(&args),
            Command::Load(args) => dump::load(&args),
            Command::Import(args) => import_export::import(&args),
            Command::Export(args) => import_export::export(&args),
            Command::Compact(args) => maintenance::compact(&args),
            Command::Checkpoint(args) => maintenance::checkpoint(&args),
            Command::Bench(args) => bench::bench(&args),
            Command::Watch(args) => watch::watch(&args),
            Command::Completions(args) => completions::completions(&args),
            Command::Man => completions::manual(),
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
