//! Clients that wait: what other threads send them, and the end of their time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use lsmkv::Reply;

use super::EventLoop;
use crate::resp::Writer;
use crate::server::client::{Blocked, Fate};
use crate::server::clients::Home;
use crate::server::connection::Connection;
use crate::server::mailbox::{Mailbox, Message};
use crate::server::shared::Server;

/// What a client is told whose wait ends; `None` if it has just been served: that is on its way.
fn in_vain(server: &Server, blocked: &Blocked) -> Option<Reply> {
    match blocked.ticket {
        Some(ticket) => server.waiters.give_up(ticket),
        None => Some(blocked.finally.clone()),
    }
}

impl EventLoop {
    /// Does what others have asked for.
    pub(super) fn read_mail(&mut self) {
        let messages = self.server.mailbox(self.index).map(Mailbox::take);
        for message in messages.unwrap_or_default() {
            match message {
                Message::Adopt(stream, listener) => self.adopt(stream, &listener),
                Message::Deliver { to, ticket, reply } => self.deliver(to, ticket, &reply),
                Message::Unblock { to, with_error } => self.unblock(to, with_error),
                Message::Kill(home) => {
                    if let Some(connection) = self.connection(home) {
                        connection.client.fate = Fate::Dies;
                        self.make_ready(home.slot);
                    }
                }
                Message::Stop => {}
            }
        }
    }

    /// The connection of a client, if it is still there.
    pub(super) fn connection(&mut self, home: Home) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(home.slot)?.as_deref_mut()?;
        (connection.client.id() == home.id).then_some(connection)
    }

    fn deliver(&mut self, home: Home, ticket: u64, reply: &Reply) {
        let Some(connection) = self.connection(home) else { return };
        let waits = connection.client.blocked.as_ref().and_then(|blocked| blocked.ticket);
        if waits != Some(ticket) {
            return;
        }
        // Whoever served it wrote for it.
        connection.client.wrote = true;
        self.end_wait(home.slot, |out| out.reply(reply));
    }

    fn unblock(&mut self, home: Home, with_error: bool) {
        let server = Arc::clone(&self.server);
        let Some(connection) = self.connection(home) else { return };
        let Some(blocked) = connection.client.blocked.as_ref() else { return };
        let Some(nothing) = in_vain(&server, blocked) else { return };
        self.end_wait(home.slot, |out| {
            if with_error {
                out.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
            } else {
                out.reply(&nothing);
            }
        });
    }

    /// Ends the wait of a client with a reply.
    fn end_wait(&mut self, slot: usize, write: impl FnOnce(&mut Writer<'_>)) {
        let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_deref_mut) else {
            return;
        };
        let deadline = connection.client.blocked.as_ref().and_then(|blocked| blocked.deadline);
        connection.client.unblock();
        // It was not silent while it waited: it shall have its reply before it counts as idle.
        connection.client.info.active_ms.store(self.server.now_ms(), Relaxed);
        connection.reply(write);
        if let Some(at) = deadline {
            self.deadlines.remove(&(at, slot, connection.client.id()));
        }
        self.make_ready(slot);
    }

    /// Ends the waits whose time has run out.
    pub(super) fn end_waits(&mut self) {
        while let Some((at, slot, id)) = self.deadlines.first().copied() {
            if at > Instant::now() {
                return;
            }
            self.deadlines.pop_first();
            let home = Home { event_loop: self.index, slot, id };
            let server = Arc::clone(&self.server);
            let Some(connection) = self.connection(home) else { continue };
            let Some(blocked) = connection.client.blocked.as_ref() else { continue };
            if let Some(reply) = in_vain(&server, blocked) {
                self.end_wait(slot, |out| out.reply(&reply));
            }
        }
    }
}
