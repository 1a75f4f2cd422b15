//! The command table as callers see it: names, arguments, purpose and key positions.

use std::fmt;

use super::dispatch::{keys_of, runs_alone};
use super::entry::Entry;
use super::generated::dispatch::ENTRIES;
use super::schema::GROUPS;
use super::schema::connection::{CONNECTION, ConnectionCommand};
use super::schema::spec::{Access, Arg, Command, Flags, KeyPositions};
use super::syntax::{missing_syntax, syntax};

/// A command that [`commands`] lists.
#[derive(Clone, Copy)]
pub struct CommandInfo {
    entry: &'static Entry,
    group: &'static str,
}

/// A command with its arguments, made by [`CommandInfo::call`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub(super) entry: &'static Entry,
    /// The arguments, the name first.
    pub(super) argv: &'a [&'a [u8]],
}

impl CommandInfo {
    /// The name, in capitals.
    pub fn name(&self) -> &'static str {
        self.command().name
    }

    fn command(&self) -> &'static Command {
        self.entry.command
    }

    /// The title of the command's group, such as `Hashes`.
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// The number of arguments including the name. A negative number is a minimum.
    pub fn arity(&self) -> isize {
        self.command().arity
    }

    /// Whether the command may change stored data.
    pub fn writes(&self) -> bool {
        self.command().access != Access::Read
    }

    /// The arguments as a person writes them; empty if there are none.
    pub fn syntax(&self) -> String {
        syntax(self.command().args)
    }

    /// The arguments that a call lacks after the first `given` ones; empty if it lacks none.
    pub fn missing_syntax(&self, given: usize) -> String {
        missing_syntax(self.command().args, given)
    }

    /// The Redis version that introduced the command.
    pub fn since(&self) -> &'static str {
        self.command().since
    }

    /// The complexity, in the notation of the Redis documentation.
    pub fn complexity(&self) -> &'static str {
        self.command().complexity
    }

    /// Whether the command reads one value of its only key, whatever the size of the key.
    pub fn reads_one_value(&self) -> bool {
        self.command().flags.has(Flags::ONE_VALUE)
    }

    /// Whether the command waits until a key holds an element: see [`crate::BlockingPop`].
    pub fn blocks(&self) -> bool {
        self.command().flags.has(Flags::BLOCKS)
    }

    /// Whether the command starts a script, which may only read.
    pub fn is_script(&self) -> bool {
        let command = self.command();
        let reads = command.flags.has(Flags::NO_SCRIPT)
            && matches!(command.keys, KeyPositions::Counted { .. });
        command.access == Access::Script || reads
    }

    /// What the command does, in one sentence.
    pub fn doc(&self) -> &'static str {
        self.command().summary
    }

    /// Where the keys of the command are.
    pub fn key_positions(&self) -> KeyPositions {
        self.command().keys
    }

    /// Whether some call of the command may write keys that it does not name.
    pub fn may_write_any_key(&self) -> bool {
        matches!(self.command().access, Access::Alone | Access::AloneWith(_) | Access::Script)
    }

    /// Whether a call with these arguments may write keys that it does not name.
    pub fn writes_any_key(&self, argv: &[&[u8]]) -> bool {
        runs_alone(self.entry, argv)
    }

    /// Binds the command to these arguments, the name first, for [`crate::Db::run_calls`].
    pub fn call<'a>(&self, argv: &'a [&'a [u8]]) -> Call<'a> {
        Call { entry: self.entry, argv }
    }

    /// The keys that these arguments, the name first, name.
    pub fn keys<'a>(&self, argv: &[&'a [u8]]) -> Vec<&'a [u8]> {
        keys_of(self.entry, argv).into_vec()
    }
}

impl fmt::Debug for CommandInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.syntax())
    }
}

/// Every command that [`crate::Db::command`] accepts, by group and name.
///
/// ```
/// let get = lsmkv::commands().find(|command| command.name() == "GETRANGE").unwrap();
/// assert_eq!(get.syntax(), "key start end");
/// assert!(!get.writes());
/// assert_eq!(get.keys(&[b"GETRANGE", b"k", b"0", b"1"]), [b"k"]);
/// ```
pub fn commands() -> impl Iterator<Item = CommandInfo> {
    let titles = GROUPS.iter().flat_map(|group| group.commands.iter().map(|_| group.title));
    ENTRIES.iter().zip(titles).map(|(entry, group)| CommandInfo { entry, group })
}

/// A command that [`session_commands`] lists.
#[derive(Clone, Debug)]
pub struct SessionCommandInfo {
    /// The name, in capitals.
    pub name: &'static str,
    /// The number of arguments including the name. A negative number is a minimum.
    pub arity: isize,
    /// The arguments as a person writes them; empty if there are none.
    pub syntax: String,
    /// What the command does, in one sentence.
    pub doc: &'static str,
    /// The Redis version that introduced the command.
    pub since: &'static str,
    /// Where the keys of the command are.
    pub key_positions: KeyPositions,
    /// The command as an enum.
    pub command: ConnectionCommand,
    args: &'static [Arg],
}

impl SessionCommandInfo {
    /// The arguments that a call lacks after the first `given` ones; empty if it lacks none.
    pub fn missing_syntax(&self, given: usize) -> String {
        missing_syntax(self.args, given)
    }
}

/// Every command that only [`crate::Session::command`] accepts, by name.
pub fn session_commands() -> impl Iterator<Item = SessionCommandInfo> {
    CONNECTION.iter().map(|(which, command)| SessionCommandInfo {
        name: command.name,
        arity: command.arity,
        syntax: syntax(command.args),
        doc: command.summary,
        since: command.since,
        key_positions: command.keys,
        command: *which,
        args: command.args,
    })
}
