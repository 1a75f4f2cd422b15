//! EXEC: the session runs the commands that it has queued; the server runs its own and puts all
//! replies in order.

use lsmkv::Reply;

use super::client::Client;
use super::commands::{self, Call};
use super::session_call::{run_in_session, write_failure};
use super::shared::Server;
use super::subscribing::{listen, update, update_tracking};
use super::transaction_queue::{QueuedCommand, TransactionQueue};
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
    let of_session = |queued: &QueuedCommand| matches!(queued, QueuedCommand::Session);
    if !queue.subscribes && queue.commands.iter().all(of_session) {
        exec_streamed(server, client, &queue, argv, out);
        return client.sync_with_session();
    }
    match client.session.command(argv) {
        Ok(Reply::Array(replies)) => {
            client.has_written |= queue.writes;
            out.array(queue.commands.len());
            let mut replies = replies.into_iter();
            for queued in &queue.commands {
                answer_queued(server, client, queued, &mut replies, out);
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

/// Writes the reply of a queued command. `replies` are those of the session.
fn answer_queued(
    server: &Server,
    client: &mut Client,
    queued: &QueuedCommand,
    replies: &mut impl Iterator<Item = Reply>,
    out: &mut Writer<'_>,
) {
    let mut reply = || replies.next().unwrap_or(Reply::Nil);
    match queued {
        QueuedCommand::Session => match reply() {
            // Several confirmations of one command: Redis writes one after the other.
            Reply::Array(items) if items.iter().all(|item| matches!(item, Reply::Push(_))) => {
                items.iter().for_each(|item| out.reply(item));
                if items.is_empty() {
                    out.array(0);
                }
            }
            other => out.reply(&other),
        },
        QueuedCommand::Server { handler, argv } => {
            let argv: Vec<&[u8]> = argv.iter().map(Vec::as_slice).collect();
            let mut call = Call { server, client, argv: &argv, out, in_transaction: true };
            commands::run(*handler, &mut call);
        }
    }
}
