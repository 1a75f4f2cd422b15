//! Several commands that run as one: what they may touch together.

use super::dispatch::{keys_of, runs_alone};
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
pub(super) fn scope_of<'a>(commands: &[Planned<'a>]) -> Scope<'a> {
    if commands.iter().any(Planned::touches_any) {
        return Scope::Every;
    }
    let mut keys = Vec::new();
    for command in commands {
        let own = keys_of(command.row, command.argv);
        keys.extend(own.into_iter().map(|key| (command.database, key)));
    }
    Scope::Keys(keys)
}
