//! What the processes that share a store ask its holder for. Clients of other servers do not find
//! this command.

use super::Call;
use super::subcommand::Subcommand;
use super::upkeep::upkeep;
use crate::commands::{Head, ReplySink as _, StoredBatch};
use crate::error::Result;
use crate::server::session_call::write_failure;

/// The name of the command.
pub(super) const NAME: &str = "LSMKV.SHARED";

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::new("BATCH", 3, 3, batch),
    Subcommand::new("HELLO", 2, 2, hello),
    Subcommand::new("UPKEEP", 3, 4, upkeep),
];

pub(super) fn shared(call: &mut Call<'_, '_>) {
    call.subcommand(SUBCOMMANDS);
}

/// Which process holds the store, and its generation.
fn hello(call: &mut Call<'_, '_>) {
    let Some(holder) = call.server.holder else { return call.unknown_subcommand() };
    call.out.head(Head::Array, 2);
    call.out.integer(i64::from(holder.process));
    call.out.integer(i64::try_from(holder.generation).unwrap_or(i64::MAX));
}

/// Commits a batch.
fn batch(call: &mut Call<'_, '_>) {
    let stored = StoredBatch::from_bytes(call.arg(2));
    let committed = stored
        .and_then(|stored| stored.batch_of(call.client.session.db()))
        .and_then(|mut batch| batch.commit());
    call.client.has_written = true;
    reply(call, committed);
}

fn reply(call: &mut Call<'_, '_>, result: Result<()>) {
    match result {
        Ok(()) => call.out.ok(),
        Err(error) => write_failure(call.server, &error, call.out),
    }
}
