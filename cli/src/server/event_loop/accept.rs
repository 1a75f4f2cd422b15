//! Accepts new connections.

use std::io::ErrorKind;
use std::sync::Arc;

use mio::Token;

use super::{EventLoop, FIRST_CONNECTION};
use crate::server::client::Client;
use crate::server::client_list::{ClientHandle, ClientInfo};
use crate::server::connection::Connection;
use crate::server::counters::Counters;
use crate::server::mailbox::Message;
use crate::server::stream::Stream;

impl EventLoop {
    fn counters(&self) -> Option<&Counters> {
        self.server.counters.get(self.index)
    }

    /// Accepts all waiting connections of a listener and hands them out to the loops in turn.
    pub(super) fn accept(&mut self, listener: usize) {
        let server = Arc::clone(&self.server);
        while let Some(socket) = self.listeners.get(listener) {
            let stream = match socket.accept() {
                Ok(stream) => stream,
                Err(error) if is_transient(error.kind()) => continue,
                // Without descriptors, the next tick tries again.
                Err(_) => return,
            };
            let name = socket.name();
            if !server.clients.reserve(server.settings.max_clients()) {
                self.reject(stream);
                continue;
            }
            let loops = server.counters.len().max(1);
            self.last_assigned = (self.last_assigned + 1) % loops;
            if self.last_assigned == self.index {
                self.adopt(stream, &name);
            } else {
                server.post(self.last_assigned, Message::NewConnection(stream, name));
            }
        }
    }

    fn reject(&self, mut stream: Stream) {
        if let Some(counters) = self.counters() {
            counters.rejected.add(1);
        }
        // The stream closes whether or not the client reads this.
        let _ = std::io::Write::write(&mut stream, b"-ERR max number of clients reached\r\n");
    }

    /// Adds a connection to this loop.
    pub(super) fn adopt(&mut self, mut stream: Stream, listener: &str) {
        let slot = self.free_slots.pop().unwrap_or(self.connections.len());
        if stream.register(self.poll.registry(), Token(FIRST_CONNECTION + slot)).is_err() {
            self.server.clients.release();
            return self.free_slots.push(slot);
        }
        let (server, now_ms) = (&self.server, self.server.now_ms());
        let (address, local_address) = stream.addresses(listener);
        let handle = ClientHandle { event_loop: self.index, slot, id: server.clients.next_id() };
        let info = Arc::new(ClientInfo {
            address,
            local_address,
            descriptor: stream.descriptor(),
            is_unix: matches!(stream, Stream::Unix(_)),
            ..ClientInfo::new(handle, now_ms)
        });
        server.clients.add(Arc::clone(&info));
        if let Some(counters) = self.counters() {
            counters.connections.add(1);
        }
        let authenticated = !server.settings.needs_password();
        let client = Client::new(info, server.db.session(), authenticated);
        let connection = Some(Box::new(Connection::new(stream, client)));
        match self.connections.get_mut(slot) {
            Some(place) => *place = connection,
            None => self.connections.push(connection),
        }
        self.make_ready(slot);
    }
}

/// Whether the loop can go on to accept the next connection.
fn is_transient(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}
