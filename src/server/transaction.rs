//! EXEC: the session runs the commands that it has queued; the server runs its own and puts all
//! replies in order.

use crate::commands::Reply;

use super::client::Client;
use super::commands::{self, Call};
use super::session_call::{run_in_session, write_failure};
use super::shared::Server;
use super::subscribing::{listen, update, update_tracking};
use super::transaction_queue::{ServerCommand, TransactionQueue};
use crate::resp::Writer;

/// Runs EXEC and writes its reply.
pub(crate) fn exec(server: &Server, client: &mut Client, argv: &[&[u8]], out: &mut Writer<'_>) {
    let subscribes = client.queue.as_ref().is_some_and(|queue| queue.subscribes);
    if subscribes {
        listen(server, client);
    }
    run_exec(server, client, argv, out);
    if subscribes {
        update(client);
        update_tracking(server, client);
    }
}

fn run_exec(server: &Server, client: &mut Client, argv: &[&[u8]], out: &mut Writer<'_>) {
    if argv.len() != 1 {
        run_in_session(server, client, argv, out);
        return client.sync_with_session();
    }
    let queue = client.queue.take().unwrap_or_default();
    if !queue.subscribes && queue.server_commands.is_empty() {
        exec_streamed(server, client, &queue, argv, out);
        return client.sync_with_session();
    }
    match client.session.command(argv) {
        Ok(Reply::Array(replies)) => {
            client.has_written |= queue.writes;
            out.array(queue.len());
            let mut replies = replies.into_iter();
            let mut own = queue.server_commands.iter().peekable();
            for place in 0..queue.len() {
                match own.next_if(|command| command.place == place) {
                    Some(command) => run_queued(server, client, command, out),
                    None => write_reply(&replies.next().unwrap_or(Reply::Nil), out),
                }
            }
        }
        Ok(reply) => out.reply(&reply),
        Err(error) => write_failure(server, &error, out),
    }
    client.sync_with_session();
}

/// Runs a transaction that the session answers alone, with its replies straight to the client.
fn exec_streamed(
    server: &Server,
    client: &mut Client,
    queue: &TransactionQueue,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    match client.session.command_into(argv, out) {
        // If a watched key changed, nothing ran: then there is nothing to flush.
        Ok(()) => client.has_written |= queue.writes,
        Err(error) => write_failure(server, &error, out),
    }
}

/// Runs a queued command of the server and writes its reply.
fn run_queued(server: &Server, client: &mut Client, command: &ServerCommand, out: &mut Writer<'_>) {
    let argv: Vec<&[u8]> = command.argv.iter().map(Vec::as_slice).collect();
    let mut call = Call { server, client, argv: &argv, out, in_transaction: true };
    commands::run(command.handler, &mut call);
}

/// Writes the reply of a queued command of the session.
fn write_reply(reply: &Reply, out: &mut Writer<'_>) {
    match reply {
        // Several confirmations of one command: Redis writes one after the other.
        Reply::Array(items) if items.iter().all(|item| matches!(item, Reply::Push(_))) => {
            items.iter().for_each(|item| out.reply(item));
            if items.is_empty() {
                out.array(0);
            }
        }
        other => out.reply(other),
    }
}
