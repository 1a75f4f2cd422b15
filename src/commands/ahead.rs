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
        let members = || run.iter().filter_map(|command| member_of(command));
        if let Some(key) = run.first().and_then(|first| first.argv.get(1))
            && members().count() >= FEW
        {
            tx.expect_members(key, members());
        }
    }
}

/// A member that a command will look for, if it is one of those: behind the key, or at the end of
/// what has numbers and options before it.
fn member_of<'a>(command: &Planned<'a>) -> Option<&'a [u8]> {
    match command.row.grammar {
        Grammar::Regular([Arg::Key, second, ..], _) => match second {
            Arg::Bytes("member" | "field")
            | Arg::Many("member" | "field")
            | Arg::Pairs("field", _) => command.argv.get(2).copied(),
            _ => None,
        },
        Grammar::Irregular(syntax) => {
            let last = syntax.ends_with("member") || syntax.ends_with("member …]");
            command.argv.get(2..).filter(|_| last)?.last().copied()
        }
        Grammar::Regular(..) => None,
    }
}
