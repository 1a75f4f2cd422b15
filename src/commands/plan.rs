//! Several commands that run as one: what they may touch together.

use super::dispatch::{for_each_key, runs_alone};
use super::spec::{Access, Keys, Row};
use crate::types::store::Scope;

/// A command that is about to run with others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned<'a> {
    pub(super) row: &'static Row,
    /// With its name.
    pub(super) argv: &'a [&'a [u8]],
    pub(super) database: u32,
}

impl Planned<'_> {
    pub(super) fn writes(&self) -> bool {
        self.row.access != Access::Read
    }

    /// Whether it may read or write any key.
    fn touches_any(&self) -> bool {
        runs_alone(self.row, self.argv) || self.row.keys == Keys::None
    }
}

/// The keys of all commands, of those that read too: what they read must not change before the
/// others are committed.
pub(super) fn scope_of<'a: 'p, 'p>(
    commands: impl Iterator<Item = &'p Planned<'a>> + Clone,
) -> Scope<'a> {
    if commands.clone().any(Planned::touches_any) {
        return Scope::Every;
    }
    let mut keys: Vec<(u32, &'a [u8])> = Vec::with_capacity(commands.size_hint().1.unwrap_or(0));
    for command in commands {
        for_each_key(command.row, command.argv, |key| {
            let key = (command.database, key);
            // Many in a row are often for one key.
            if keys.last() != Some(&key) {
                keys.push(key);
            }
        });
    }
    Scope::Keys(keys)
}
