//! Calls of a connection's session, with their replies and failures.

use crate::error::Error;

use super::client::Client;
use super::error_reply::error_text;
use super::shared::Server;
use crate::resp::Writer;

/// Runs a command in the session and writes the reply.
pub(crate) fn run_in_session(
    server: &Server,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    match client.session.command(argv) {
        Ok(reply) => out.reply(&reply),
        Err(error) => write_failure(server, &error, out),
    }
}

/// Runs a command in the session and writes the reply. Returns whether the session has queued it.
pub(crate) fn queue_in_session(
    server: &Server,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) -> bool {
    let before = client.session.queued_commands();
    run_in_session(server, client, argv, out);
    client.session.queued_commands() > before
}

/// Logs a failure of the store and writes the error reply.
pub(crate) fn write_failure(server: &Server, error: &Error, out: &mut Writer<'_>) {
    server.note_failure(error);
    match server.holder {
        // The processes that share a store tell failures apart as in their own.
        Some(_) => out.error(&error.to_line()),
        None => out.error(&error_text(error)),
    }
}
