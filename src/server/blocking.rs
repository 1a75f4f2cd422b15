//! Blocking pops: the library waits, and delivers the reply to the mailbox of the client's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::commands::{BlockingPop, PopOutcome, Reply};
use crate::error::ErrorKind;

use super::client::{BlockedState, Client};
use super::error_reply::error_text;
use super::mailbox::Message;
use super::session_call::write_failure;
use super::shared::Server;
use super::transaction_queue::arguments_memory;
use crate::resp::Writer;

/// The number of waits so far. A client may wait again before the reply of an earlier wait arrives.
static WAITS: AtomicU64 = AtomicU64::new(0);

/// Pops, or blocks the client until there is an element.
pub(crate) fn run_blocking_pop(
    server: &Server,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    let pop = match BlockingPop::parse(argv) {
        Ok(pop) => pop,
        Err(error) => return out.error(error.message()),
    };
    let deadline = pop.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
    let (to, mailboxes) = (client.info.handle, Arc::clone(&server.mailboxes));
    let wait = WAITS.fetch_add(1, Ordering::Relaxed);
    let deliver = move |reply: crate::error::Result<Reply>| {
        let reply = match reply {
            Ok(reply) => reply,
            // The server stops: its clients are closed.
            Err(error) if error.kind() == ErrorKind::Closed => return,
            Err(error) => Reply::Error(error_text(&error)),
        };
        mailboxes.post(to.event_loop, Message::Deliver { to, wait, reply });
    };
    match client.session.pop_or_wait(pop, deliver) {
        Ok(PopOutcome::Ready(reply)) => {
            client.has_written = true;
            out.reply(&reply);
        }
        Ok(PopOutcome::Waiting(pop)) => {
            // The keys are stored in the pop and again in the index by key.
            let memory_bytes = 2 * arguments_memory(argv.iter().copied());
            let (pop, timeout_reply) = (Some((wait, pop)), Reply::NilArray);
            client.block(BlockedState { pop, script: None, deadline, timeout_reply, memory_bytes });
        }
        Err(error) if server.is_stopping() => drop(error),
        Err(error) if error.message().starts_with(|c: char| c.is_ascii_uppercase()) => {
            out.error(error.message());
        }
        Err(error) => write_failure(server, &error, out),
    }
}
