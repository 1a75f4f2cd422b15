//! The server's own commands: about connections, the server, the catalogue.

mod client;
mod command;
mod config;
mod connection;
mod debug;
mod info;
mod keyspace;
mod persistence;
mod upkeep;

pub(crate) use keyspace::Keyspace;

use super::client::Client;
use super::shared::Server;
use crate::resp::Writer;

/// A command that runs.
pub(crate) struct Call<'a, 'w> {
    pub(crate) server: &'a Server,
    pub(crate) client: &'a mut Client,
    /// With the name.
    pub(crate) argv: &'a [&'a [u8]],
    pub(crate) out: &'a mut Writer<'w>,
    /// Whether it runs at EXEC, where nothing may wait.
    pub(crate) in_transaction: bool,
}

impl<'a> Call<'a, '_> {
    /// An argument; empty if there is none.
    pub(crate) fn arg(&self, at: usize) -> &'a [u8] {
        self.argv.get(at).copied().unwrap_or_default()
    }

    /// An argument in capitals, as text.
    pub(crate) fn word(&self, at: usize) -> String {
        String::from_utf8_lossy(self.arg(at)).to_ascii_uppercase()
    }

    /// An argument as a number.
    pub(crate) fn number(&self, at: usize) -> Option<i64> {
        std::str::from_utf8(self.arg(at)).ok()?.parse().ok()
    }

    /// Those from `at` on.
    pub(crate) fn rest(&self, at: usize) -> &'a [&'a [u8]] {
        self.argv.get(at..).unwrap_or_default()
    }

    /// The reply to a second word that the command does not have.
    pub(crate) fn unknown_subcommand(&mut self) {
        let name = String::from_utf8_lossy(self.arg(0)).to_ascii_uppercase();
        let word = String::from_utf8_lossy(self.arg(1)).into_owned();
        self.out.error(&format!("ERR unknown subcommand '{word}'. Try {name} HELP."));
    }

    /// The reply to a wrong number of arguments after a second word.
    pub(crate) fn wrong_number(&mut self) {
        let lower = |at| String::from_utf8_lossy(self.arg(at)).to_ascii_lowercase();
        let name = format!("{}|{}", lower(0), lower(1));
        self.out.error(&format!("ERR wrong number of arguments for '{name}' command"));
    }
}

/// A row of the table.
#[derive(Clone, Copy)]
pub(crate) struct OwnCommand {
    pub(crate) name: &'static str,
    pub(crate) arity: isize,
    pub(crate) syntax: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) run: fn(&mut Call<'_, '_>),
    /// Runs even between MULTI and EXEC.
    pub(crate) never_queued: bool,
    /// Runs before the client has authenticated.
    pub(crate) before_auth: bool,
}

type Run = fn(&mut Call<'_, '_>);

const fn row(
    name: &'static str,
    arity: isize,
    syntax: &'static str,
    doc: &'static str,
    run: Run,
) -> OwnCommand {
    OwnCommand { name, arity, syntax, doc, run, never_queued: false, before_auth: false }
}

/// What a client may do before it has authenticated.
const fn open(row: OwnCommand) -> OwnCommand {
    OwnCommand { before_auth: true, ..row }
}

/// What is never queued.
const fn at_once(row: OwnCommand) -> OwnCommand {
    OwnCommand { never_queued: true, ..row }
}

/// All of them.
pub(crate) const OWN: &[OwnCommand] = &[
    open(row("AUTH", -2, "[username] password", "Authenticates the connection.", connection::auth)),
    row("BGSAVE", -1, "[SCHEDULE]", "Flushes to tables in the background.", persistence::bgsave),
    row(
        "CLIENT",
        -2,
        "ID | GETNAME | SETNAME name | INFO | LIST | KILL … | UNBLOCK id | NO-EVICT ON | OFF | \
         REPLY ON | OFF | SKIP | SETINFO attribute value",
        "Asks for and changes connections.",
        client::client,
    ),
    row("CLUSTER", -2, "subcommand …", "Refused: there is no cluster.", upkeep::no_cluster),
    row(
        "COMMAND",
        -1,
        "[COUNT | DOCS [name …] | INFO [name …] | LIST [FILTERBY PATTERN pattern] | GETKEYS name \
         …]",
        "Asks for commands.",
        command::command,
    ),
    row(
        "CONFIG",
        -2,
        "GET pattern [pattern …] | SET name value [name value …] | RESETSTAT | REWRITE",
        "Asks for and changes settings.",
        config::config,
    ),
    row(
        "DEBUG",
        -2,
        "SLEEP seconds | OBJECT key | JMAP | SET-ACTIVE-EXPIRE 0 | 1",
        "For test suites.",
        debug::debug,
    ),
    open(row(
        "HELLO",
        -1,
        "[version [AUTH username password] [SETNAME name]]",
        "Chooses the version of the protocol.",
        connection::hello,
    )),
    row("INFO", -1, "[section …]", "What the server holds and has done.", info::info),
    row("LASTSAVE", 1, "", "When data was last flushed to tables.", persistence::lastsave),
    row("LOLWUT", -1, "[VERSION version]", "The version.", upkeep::lolwut),
    at_once(open(row("QUIT", -1, "", "Closes the connection.", connection::quit))),
    row("READONLY", 1, "", "Refused: there is no cluster.", upkeep::no_cluster),
    row("READWRITE", 1, "", "Refused: there is no cluster.", upkeep::no_cluster),
    at_once(open(row("RESET", 1, "", "Makes the connection like a new one.", connection::reset))),
    row("SAVE", 1, "", "Flushes to tables.", persistence::save),
    row(
        "SHUTDOWN",
        -1,
        "[NOSAVE | SAVE] [NOW] [FORCE]",
        "Stops the server.",
        persistence::shutdown,
    ),
    row("TIME", 1, "", "Seconds since 1970, and microseconds.", upkeep::time),
    row("WAIT", 3, "replicas timeout", "Waits for replicas: there are none.", upkeep::wait),
];
