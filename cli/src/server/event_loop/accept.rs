//! New connections.

use std::io::ErrorKind;
use std::sync::Arc;

use mio::Token;

use super::{EventLoop, FIRST_CONNECTION};
use crate::server::client::Client;
use crate::server::clients::{ClientInfo, Home};
use crate::server::connection::Connection;
use crate::server::counters::Counters;
use crate::server::mailbox::Message;
use crate::server::stream::Stream;

impl EventLoop {
    fn counters(&self) -> Option<&Counters> {
        self.server.counters.get(self.index)
    }

    /// Accepts all that knock at a listener, and hands them out in turn.
    pub(super) fn accept(&mut self, listener: usize) {
        let server = Arc::clone(&self.server);
        while let Some(socket) = self.listeners.get(listener) {
            let stream = match socket.accept() {
                Ok(stream) => stream,
                Err(error) if is_passing(error.kind()) => continue,
                // Without descriptors it is tried again at the next tick.
                Err(_) => return,
            };
            let name = socket.name();
            if !server.clients.admit(server.settings.max_clients()) {
                self.reject(stream);
                continue;
            }
            let loops = server.counters.len().max(1);
            self.next_home = (self.next_home + 1) % loops;
            if self.next_home == self.index {
                self.adopt(stream, &name);
            } else {
                server.post(self.next_home, Message::Adopt(stream, name));
            }
        }
    }

    fn reject(&self, mut stream: Stream) {
        if let Some(counters) = self.counters() {
            counters.rejected.add(1);
        }
        // It is closed whether it heard this or not.
        let _ = std::io::Write::write(&mut stream, b"-ERR max number of clients reached\r\n");
    }

    /// Makes a connection one of this loop's.
    pub(super) fn adopt(&mut self, mut stream: Stream, listener: &str) {
        let slot = self.free.pop().unwrap_or(self.connections.len());
        if stream.register(self.poll.registry(), Token(FIRST_CONNECTION + slot)).is_err() {
            self.server.clients.dismiss();
            return self.free.push(slot);
        }
        let (server, now_ms) = (&self.server, self.server.now_ms());
        let (address, local_address) = stream.addresses(listener);
        let home = Home { event_loop: self.index, slot, id: server.clients.next_id() };
        let info = Arc::new(ClientInfo {
            address,
            local_address,
            descriptor: stream.descriptor(),
            is_unix: matches!(stream, Stream::Unix(_)),
            ..ClientInfo::new(home, now_ms)
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

/// Whether the next one may be accepted all the same.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}
