//! Prefetches what the commands of a pipeline will look up: see `txn::prefetch`.

use super::bound::BoundCommand;
use super::dispatch::for_each_key;
use super::schema::spec::MemberPosition;
use crate::txn::Tx;

/// The number of commands below which prefetching does not pay.
const FEW: usize = 8;

/// Starts to load the keys and members of commands that are about to run. All of them are on the
/// selected database.
pub(super) fn prefetch<'a>(tx: &Tx<'_>, commands: &[&BoundCommand<'a>]) {
    if commands.len() < FEW {
        return;
    }
    let mut keys: Vec<&'a [u8]> = Vec::with_capacity(commands.len());
    for command in commands {
        for_each_key(command.entry, command.argv, |key| {
            if keys.last() != Some(&key) {
                keys.push(key);
            }
        });
    }
    tx.prefetch_keys(keys.into_iter());
    // Adjacent commands on one collection share one read of its record.
    for run in commands.chunk_by(|a, b| a.argv.get(1) == b.argv.get(1)) {
        let members = || run.iter().filter_map(|command| member_of(command));
        if let Some(key) = run.first().and_then(|first| first.argv.get(1))
            && members().count() >= FEW
        {
            tx.prefetch_members(key, members());
        }
    }
}

/// The member that a command will look up in the collection of its first argument.
fn member_of<'a>(command: &BoundCommand<'a>) -> Option<&'a [u8]> {
    match command.entry.command.member {
        MemberPosition::None => None,
        MemberPosition::At(number) => command.argv.get(number).copied(),
        MemberPosition::Last => command.argv.get(2..)?.last().copied(),
    }
}
