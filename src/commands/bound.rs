//! Commands bound to their arguments and database, and the keys that several of them touch together.

use super::dispatch::{for_each_key, runs_alone};
use super::entry::Entry;
use super::schema::spec::{Access, Flags, KeyPositions};
use crate::txn::execution::Scope;

/// A command with its arguments and the database it runs on.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundCommand<'a> {
    pub(super) entry: &'static Entry,
    /// The arguments, the name first.
    pub(super) argv: &'a [&'a [u8]],
    pub(super) database: u32,
}

impl BoundCommand<'_> {
    pub(super) fn writes(&self) -> bool {
        self.entry.command.access != Access::Read
    }

    /// Whether the command may read or write any key.
    fn touches_any(&self) -> bool {
        let command = self.entry.command;
        runs_alone(self.entry, self.argv)
            || (command.keys == KeyPositions::None && !command.flags.has(Flags::NO_KEYS))
    }
}

/// The keys of all commands. Those of reads are included: what a command read must not change
/// before the others commit.
pub(super) fn scope_of<'a: 'p, 'p>(
    commands: impl Iterator<Item = &'p BoundCommand<'a>> + Clone,
) -> Scope<'a> {
    if commands.clone().any(BoundCommand::touches_any) {
        return Scope::Every;
    }
    let mut keys: Vec<(u32, &'a [u8])> = Vec::with_capacity(commands.size_hint().1.unwrap_or(0));
    for command in commands {
        for_each_key(command.entry, command.argv, |key| {
            let key = (command.database, key);
            // Adjacent commands often share a key.
            if keys.last() != Some(&key) {
                keys.push(key);
            }
        });
    }
    Scope::Keys(keys)
}
