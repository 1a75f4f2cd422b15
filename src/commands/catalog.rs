//! The command table as callers see it: names, arguments, what a command does, where its keys are.

use std::fmt;

use super::dispatch::{keys_of, runs_alone};
use super::session::table::SESSION_ROWS;
use super::spec::{Access, Keys, Row};
use super::table::GROUPS;

/// A command of [`commands`].
#[derive(Clone, Copy)]
pub struct CommandInfo {
    row: &'static Row,
    group: &'static str,
}

/// A command with its arguments: see [`CommandInfo::call`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub(super) row: &'static Row,
    /// With its name.
    pub(super) argv: &'a [&'a [u8]],
}

/// Where the keys of a command are among its arguments; its name is number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPositions {
    /// It has none.
    None,
    /// From the first to the last, every so many; a negative last counts from the end.
    Range {
        /// Number of the first.
        first: usize,
        /// Number of the last.
        last: isize,
        /// From one to the next.
        step: usize,
    },
    /// An argument says how many keys follow it.
    Counted {
        /// Number of that argument.
        at: usize,
        /// How many arguments before it are keys too.
        before: usize,
    },
}

impl CommandInfo {
    /// In capitals.
    pub fn name(&self) -> &'static str {
        self.row.name
    }

    /// The title of the group it belongs to, e.g. `Hashes`.
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// Number of arguments, the name included; negative: at least that many.
    pub fn arity(&self) -> isize {
        self.row.arity
    }

    /// Whether it may change what is stored.
    pub fn writes(&self) -> bool {
        self.row.access != Access::Read
    }

    /// Its arguments as a person writes them; empty if there are none.
    pub fn syntax(&self) -> String {
        self.row.syntax()
    }

    /// What it does, in a sentence.
    pub fn doc(&self) -> &'static str {
        self.row.doc
    }

    /// Where its keys are.
    pub fn key_positions(&self) -> KeyPositions {
        match self.row.keys {
            Keys::None => KeyPositions::None,
            Keys::Range(first, last, step) => KeyPositions::Range { first, last, step },
            Keys::Counted(at, before) => KeyPositions::Counted { at, before },
        }
    }

    /// Whether, called in some way, it may write keys that it does not name.
    pub fn may_write_any_key(&self) -> bool {
        matches!(self.row.access, Access::Alone | Access::AloneWith(_))
    }

    /// Whether, called like this, it may write keys that it does not name.
    pub fn writes_any_key(&self, argv: &[&[u8]]) -> bool {
        runs_alone(self.row, argv)
    }

    /// This command with these arguments, the name first, for [`crate::Db::calls_while`].
    pub fn call<'a>(&self, argv: &'a [&'a [u8]]) -> Call<'a> {
        Call { row: self.row, argv }
    }

    /// The keys that a call with these arguments, the name first, names.
    pub fn keys<'a>(&self, argv: &[&'a [u8]]) -> Vec<&'a [u8]> {
        keys_of(self.row, argv).into_vec()
    }
}

impl fmt::Debug for CommandInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.syntax())
    }
}

/// Every command that [`crate::Db::command`] takes, by group and name.
///
/// ```
/// let get = lsmkv::commands().find(|command| command.name() == "GETRANGE").unwrap();
/// assert_eq!(get.syntax(), "key start end");
/// assert!(!get.writes());
/// assert_eq!(get.keys(&[b"GETRANGE", b"k", b"0", b"1"]), [b"k"]);
/// ```
pub fn commands() -> impl Iterator<Item = CommandInfo> {
    let of = |group: &'static super::spec::Group| {
        group.rows.iter().map(|row| CommandInfo { row, group: group.title })
    };
    GROUPS.iter().flat_map(of)
}

/// A command of [`session_commands`].
#[derive(Clone, Copy, Debug)]
pub struct SessionCommandInfo {
    /// In capitals.
    pub name: &'static str,
    /// Number of arguments, the name included; negative: at least that many.
    pub arity: isize,
    /// Its arguments as a person writes them; empty if there are none.
    pub syntax: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

/// Every command that only [`crate::Session::command`] takes, by name.
pub fn session_commands() -> impl Iterator<Item = SessionCommandInfo> {
    SESSION_ROWS.iter().map(|row| SessionCommandInfo {
        name: row.name,
        arity: row.arity,
        syntax: row.syntax,
        doc: row.doc,
    })
}
