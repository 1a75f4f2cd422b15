//! What commands and the script engine, which is a layer above, know of each other: how a command
//! starts a script, and how a script calls a command.

use std::time::Duration;

use bytes::Bytes;

use super::args::{Args, wrong_number};
use super::dispatch::{as_reply, find, fits, runs_alone};
use super::entry::Entry;
use super::reply::Reply;
use super::schema::connection::ConnectionCommand;
use super::schema::spec::{Access, Flags, KeyPositions};
use super::script_log;
use super::session;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::{Db, ScriptBudget, Tx};

/// The script that a command starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptName<'a> {
    /// Its text.
    Source(&'a [u8]),
    /// The digest of its text.
    Sha1(&'a [u8]),
    /// The name of a function.
    Function(&'a [u8]),
}

/// A script with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptCall<'a> {
    pub(crate) name: ScriptName<'a>,
    pub(crate) keys: &'a [&'a [u8]],
    pub(crate) args: &'a [&'a [u8]],
    /// Whether the script may only read.
    pub(crate) read_only: bool,
}

/// Runs scripts. The crate's root names the implementation.
pub(crate) trait ScriptEngine: Sync {
    /// Runs a script.
    fn run(&self, tx: &mut Tx<'_>, call: &ScriptCall<'_>) -> Result<Reply>;
    /// Runs SCRIPT.
    fn script(&self, tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply>;
    /// Returns an error if there is no function of this name.
    fn find_function(&self, tx: &Tx<'_>, name: &[u8]) -> Result<()>;
    /// Runs FUNCTION.
    fn function(&self, tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply>;
}

/// The script engine of this build.
pub(super) fn engine() -> Result<&'static dyn ScriptEngine> {
    crate::SCRIPT_ENGINE.ok_or_else(|| {
        let text = "ERR this build of lsmkv has no scripts: the feature `scripting` is off";
        Error::new(ErrorKind::Invalid, text)
    })
}

/// What a script may do, and the database that it has selected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptRules {
    database: u32,
    read_only: bool,
    /// Whether a command that writes was called.
    pub(crate) wrote: bool,
}

impl ScriptRules {
    /// The rules of a script that starts on this database.
    pub(crate) fn new(database: u32, read_only: bool) -> Self {
        Self { database, read_only, wrote: false }
    }
}

/// The result of a command that a script called.
#[derive(Debug)]
pub(crate) enum Called {
    /// The reply, which may be an error.
    Reply(Reply),
    /// The command did not run, for this reason.
    Refused(&'static str),
    /// The script must be started again alone.
    Alone,
}

/// Runs a command that a script calls. A command that fails changes nothing. An `Err` is a failure
/// of the store.
pub(crate) fn call(tx: &mut Tx<'_>, rules: &mut ScriptRules, argv: &[&[u8]]) -> Result<Called> {
    let name = argv.first().copied().unwrap_or_default();
    let Some(entry) = find(name) else { return call_other(tx, rules, name, argv) };
    let command = entry.command;
    if command.flags.has(Flags::NO_SCRIPT) {
        return Ok(Called::Refused(NOT_ALLOWED));
    }
    if !fits(command.arity, argv.len()) {
        return Ok(Called::Refused(WRONG_COUNT));
    }
    if rules.read_only && command.access != Access::Read {
        return Ok(Called::Refused("Write commands are not allowed from read-only scripts."));
    }
    if tx.is_restartable() && needs_to_be_alone(entry, argv) {
        tx.restart_alone();
        return Ok(Called::Alone);
    }
    let args = Args::new(argv.get(1..).unwrap_or_default());
    let run = |tx: &mut Tx<'_>| tx.attempt(|tx| entry.run(tx, args));
    let reply = match rules.database == tx.database() {
        true => run(tx),
        false => tx.on_database(rules.database, run),
    };
    script_log::note(rules.database, argv);
    if command.access == Access::Read {
        tx.note_read();
    } else if reply.is_ok() {
        rules.wrote = true;
    }
    reply.or_else(as_reply).map(Called::Reply)
}

/// The error of a digest that the store does not know.
pub(crate) const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
const OVER_BUDGET: &str = "the script takes more than it may here, and was given up";

/// The error of a script that was given up: see [`Db::script_within`].
pub(crate) fn over_budget() -> Error {
    Error::new(ErrorKind::Timeout, OVER_BUDGET)
}

impl Db {
    /// Runs a command that starts a script, such as EVAL, and gives it up once it takes more time than
    /// this (`None`: than the options allow), or more bytes of Lua values beside those that are there
    /// before. Then the result is `None`, nothing was changed, and the caller runs the command where
    /// nobody waits for it.
    pub fn script_within(
        &self,
        argv: &[&[u8]],
        time: Option<Duration>,
        memory: usize,
    ) -> Result<Option<Reply>> {
        let budget = ScriptBudget { time, memory };
        match self.with_script_budget(budget).command(argv) {
            Err(error) if error.kind() == ErrorKind::Timeout && error.message() == OVER_BUDGET => {
                Ok(None)
            }
            Ok(Reply::Error(text)) if text == OVER_BUDGET => Ok(None),
            result => result.map(Some),
        }
    }
}

/// Whether a command of this name exists.
pub(crate) fn is_command(name: &[u8]) -> bool {
    find(name).is_some() || session::find(name).is_some() || name.eq_ignore_ascii_case(b"TIME")
}

const NOT_ALLOWED: &str = "This Redis command is not allowed from script";
const WRONG_COUNT: &str = "Wrong number of args calling Redis command from script";
const UNKNOWN: &str = "Unknown Redis command called from script";

/// Commands of servers that Redis refuses in scripts. The library does not know them.
const OF_SERVERS: [&str; 17] = [
    "acl",
    "auth",
    "bgrewriteaof",
    "bgsave",
    "debug",
    "failover",
    "latency",
    "module",
    "monitor",
    "psync",
    "replicaof",
    "role",
    "save",
    "shutdown",
    "slaveof",
    "sync",
    "wait",
];

/// Whether a command reads or writes keys that it does not name.
fn needs_to_be_alone(entry: &Entry, argv: &[&[u8]]) -> bool {
    runs_alone(entry, argv) || entry.command.keys == KeyPositions::None
}

/// Runs a command that has no entry in the table.
fn call_other(tx: &Tx<'_>, rules: &mut ScriptRules, name: &[u8], argv: &[&[u8]]) -> Result<Called> {
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let bulk = |bytes: &[u8]| Reply::Bulk(Bytes::copy_from_slice(bytes));
    if is("TIME") {
        let ms = tx.script_time();
        let parts = [ms / 1000, ms % 1000 * 1000].map(|part| bulk(part.to_string().as_bytes()));
        let reply = if argv.len() == 1 {
            script_log::note(rules.database, argv);
            Called::Reply(Reply::Array(parts.into()))
        } else {
            Called::Refused(WRONG_COUNT)
        };
        return Ok(reply);
    }
    let Some((command, entry)) = session::find(name) else {
        let known = OF_SERVERS.iter().any(|word| is(word));
        return Ok(Called::Refused(if known { NOT_ALLOWED } else { UNKNOWN }));
    };
    let wanted = matches!(
        command,
        ConnectionCommand::Ping | ConnectionCommand::Echo | ConnectionCommand::Select
    );
    if !wanted {
        return Ok(Called::Refused(NOT_ALLOWED));
    }
    if !fits(entry.arity, argv.len()) {
        return Ok(Called::Refused(WRONG_COUNT));
    }
    let mut args = Args::new(argv.get(1..).unwrap_or_default());
    let reply = match command {
        ConnectionCommand::Ping if args.is_empty() => Ok(Reply::Status("PONG")),
        ConnectionCommand::Ping if args.len() > 1 => Err(wrong_number("ping")),
        ConnectionCommand::Select => session::database(&mut args).and_then(|number| {
            tx.space_of(number)?;
            rules.database = number;
            Ok(Reply::OK)
        }),
        _ => args.bytes().map(bulk),
    };
    script_log::note(rules.database, argv);
    reply.or_else(as_reply).map(Called::Reply)
}
