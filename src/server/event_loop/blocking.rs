//! Blocked clients: replies from other threads, CLIENT UNBLOCK, and deadlines.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::commands::Reply;

use super::EventLoop;
use crate::resp::Writer;
use crate::server::client::{BlockedState, CloseState};
use crate::server::client_list::ClientHandle;
use crate::server::connection::Connection;
use crate::server::mailbox::{Mailbox, Message};
use crate::server::monitor;
use crate::server::subscribing::listen;

/// Ends a wait without an element and returns the reply; `None` if the client has just been served
/// and its reply is in the mailbox.
fn cancel(blocked: &mut BlockedState) -> Option<Reply> {
    let waits = blocked.pop.as_mut().is_none_or(|(_, pop)| pop.cancel());
    waits.then(|| blocked.timeout_reply.clone())
}

impl EventLoop {
    /// Handles the messages of other threads.
    pub(super) fn process_messages(&mut self) {
        let messages = self.server.mailbox(self.index).map(Mailbox::take);
        for message in messages.unwrap_or_default() {
            match message {
                Message::NewConnection(stream, listener) => self.adopt(stream, &listener),
                Message::Deliver { to, wait, reply } => self.deliver(to, wait, &reply),
                Message::ScriptDone { to, wait, reply, called, was_slow } => {
                    called.iter().for_each(|steps| monitor::show_steps(&self.server, steps));
                    self.finish_script(to, wait, &reply, was_slow);
                }
                Message::Mail(handle) => self.receive_mail(handle),
                Message::Line { to, line } => {
                    let server = Arc::clone(&self.server);
                    if let Some(connection) = self.connection(to) {
                        connection.append_line(&line, &server);
                        self.finish_turn(to.slot);
                    }
                }
                Message::Listen(handle) => {
                    let server = Arc::clone(&self.server);
                    if let Some(connection) = self.connection(handle) {
                        listen(&server, &mut connection.client);
                    }
                }
                Message::Unblock { to, with_error } => self.unblock(to, with_error),
                Message::Kill(handle) => {
                    if let Some(connection) = self.connection(handle) {
                        connection.client.close_state = CloseState::Now;
                        self.make_ready(handle.slot);
                    }
                }
                Message::Stop => {}
            }
        }
    }

    /// The connection of a client, if the client is still connected.
    pub(super) fn connection(&mut self, handle: ClientHandle) -> Option<&mut Connection> {
        let connection = self.connection_at(handle.slot)?;
        (connection.client.id() == handle.id).then_some(connection)
    }

    /// Sends a client the messages that wait for it.
    fn receive_mail(&mut self, handle: ClientHandle) {
        let server = Arc::clone(&self.server);
        let Some(connection) = self.connection(handle) else { return };
        connection.receive_messages(&server);
        self.finish_turn(handle.slot);
    }

    fn deliver(&mut self, handle: ClientHandle, wait: u64, reply: &Reply) {
        let Some(connection) = self.connection(handle) else { return };
        let blocked = connection.client.blocked.as_mut();
        let Some(BlockedState { pop, .. }) = blocked else { return };
        if pop.as_ref().is_none_or(|(number, _)| *number != wait) {
            return;
        }
        pop.take().into_iter().for_each(|(_, pop)| pop.delivered());
        // The thread that served this client popped the element on its behalf.
        connection.client.has_written = true;
        self.unblock_with(handle.slot, |out| out.reply(reply));
    }

    /// Answers a client whose script ran on a thread of its own.
    fn finish_script(&mut self, handle: ClientHandle, wait: u64, reply: &Reply, was_slow: bool) {
        let Some(connection) = self.connection(handle) else { return };
        let blocked = connection.client.blocked.as_ref();
        if blocked.and_then(|blocked| blocked.script) == Some(wait) {
            connection.client.has_written = true;
            connection.client.had_slow_script = was_slow;
            self.unblock_with(handle.slot, |out| out.reply(reply));
        }
    }

    fn unblock(&mut self, handle: ClientHandle, with_error: bool) {
        let Some(connection) = self.connection(handle) else { return };
        let Some(blocked) = connection.client.blocked.as_mut() else { return };
        let Some(reply) = cancel(blocked) else { return };
        self.unblock_with(handle.slot, |out| {
            if with_error {
                out.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
            } else {
                out.reply(&reply);
            }
        });
    }

    /// Unblocks a client and writes its reply.
    fn unblock_with(&mut self, slot: usize, write: impl FnOnce(&mut Writer<'_>)) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_deref_mut) else {
            return;
        };
        let deadline = connection.client.blocked.as_ref().and_then(|blocked| blocked.deadline);
        connection.client.unblock();
        // A blocked client was not idle: it gets its reply before the idle timeout counts again.
        connection.client.info.active_ms.store(self.server.now_ms(), Relaxed);
        connection.reply(write);
        if let Some(at) = deadline {
            self.deadlines.remove(&(at, slot, connection.client.id()));
        }
        self.make_ready(slot);
    }

    /// Unblocks the clients whose deadline has passed.
    pub(super) fn expire_deadlines(&mut self) {
        while let Some((at, slot, id)) = self.deadlines.first().copied() {
            if at > Instant::now() {
                return;
            }
            self.deadlines.pop_first();
            let handle = ClientHandle { event_loop: self.index, slot, id };
            let Some(connection) = self.connection(handle) else { continue };
            let Some(blocked) = connection.client.blocked.as_mut() else { continue };
            if let Some(reply) = cancel(blocked) {
                self.unblock_with(slot, |out| out.reply(&reply));
            }
        }
    }
}
