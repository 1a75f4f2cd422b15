//! EXEC: the session runs what is queued; the server answers what the session does not know.

use lsmkv::Reply;

use super::catalog::Kind;
use super::client::{Client, Queue, Queued};
use super::commands::Call;
use super::execute::{failed, in_session};
use super::shared::Server;
use crate::resp::Writer;

pub(crate) fn exec(server: &Server, client: &mut Client, argv: &[&[u8]], out: &mut Writer<'_>) {
    if argv.len() != 1 {
        in_session(server, client, argv, out, |_, _| ());
        return client.follow_session();
    }
    let queue = client.queue.take().unwrap_or_default();
    if queue.commands.iter().all(|queued| matches!(queued, Queued::Plain)) {
        exec_plain(server, client, &queue, argv, out);
        return client.follow_session();
    }
    match client.session.command(argv) {
        Ok(Reply::Array(replies)) if replies.len() == queue.commands.len() => {
            client.wrote |= queue.writes;
            out.array(replies.len());
            for (queued, reply) in queue.commands.iter().zip(replies) {
                answer_queued(server, client, queued, reply, out);
            }
            if queue.writes && server.waiters.any() {
                serve_after_exec(server, &queue);
            }
        }
        Ok(reply) => out.reply(&reply),
        Err(error) => failed(server, &error, out),
    }
    client.follow_session();
}

/// EXEC of commands that the session alone answers.
fn exec_plain(
    server: &Server,
    client: &mut Client,
    queue: &Queue,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    match client.session.command_into(argv, out) {
        // Perhaps nothing ran: then there is nothing to flush, and nothing for who waits.
        Ok(()) => {
            client.wrote |= queue.writes;
            if queue.writes && server.waiters.any() {
                serve_after_exec(server, queue);
            }
        }
        Err(error) => failed(server, &error, out),
    }
}

fn answer_queued(
    server: &Server,
    client: &mut Client,
    queued: &Queued,
    reply: Reply,
    out: &mut Writer<'_>,
) {
    match queued {
        Queued::Plain => out.reply(&reply),
        Queued::Popped(pop) => match reply {
            Reply::Nil | Reply::NilArray => out.reply(&pop.nothing()),
            reply => out.reply(&pop.shape(reply)),
        },
        Queued::Refused(text) => out.error(text),
        Queued::Own(command) => {
            let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            let name = argv.first().copied().unwrap_or_default();
            match server.catalog.find(name).map(|entry| entry.kind) {
                Some(Kind::Own(own)) => {
                    let in_transaction = true;
                    (own.run)(&mut Call { server, client, argv: &argv, out, in_transaction });
                }
                _ => out.reply(&reply),
            }
        }
    }
}

fn serve_after_exec(server: &Server, queue: &Queue) {
    if queue.touches_all {
        server.waiters.serve_all(|delivery| server.deliver(delivery));
    } else {
        let keys = queue.touched.iter().map(Vec::as_slice);
        server.waiters.serve(keys, |delivery| server.deliver(delivery));
    }
}
