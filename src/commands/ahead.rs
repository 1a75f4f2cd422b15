//! Commands that run together tell beforehand what they will look for: see `types::txn::ahead`.

use super::dispatch::for_each_key;
use super::plan::Planned;
use super::spec::{Arg, Grammar};
use crate::types::txn::Tx;

/// Fewer commands have little to wait for.
const FEW: usize = 8;

/// These commands, all of the selected database, are about to run.
pub(super) fn bring_near<'a>(tx: &Tx<'_>, commands: &[&Planned<'a>]) {
    if commands.len() < FEW {
        return;
    }
    let mut keys: Vec<&'a [u8]> = Vec::with_capacity(commands.len());
    for command in commands {
        for_each_key(command.row, command.argv, |key| {
            if keys.last() != Some(&key) {
                keys.push(key);
            }
        });
    }
    tx.expect_keys(keys.into_iter());
    // Where members of one collection are asked for in a row its record is read once for all.
    for run in commands.chunk_by(|a, b| a.argv.get(1) == b.argv.get(1)) {
        let key = run.first().filter(|_| run.len() >= FEW).and_then(|first| first.argv.get(1));
        if let Some(key) = key {
            tx.expect_members(key, run.iter().filter_map(|command| member_of(command)));
        }
    }
}

/// The member that a command will probably look for first: behind the key, or at the end of what
/// has numbers and options before it. One that is none costs a read in vain.
fn member_of<'a>(command: &Planned<'a>) -> Option<&'a [u8]> {
    match command.row.grammar {
        Grammar::Regular([Arg::Key, Arg::Bytes(_) | Arg::Many(_) | Arg::Pairs(..), ..], _) => {
            command.argv.get(2).copied()
        }
        _ => command.argv.get(2..)?.last().copied(),
    }
}
