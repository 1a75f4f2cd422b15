//! Accepts new connections.
//!
//! Beside clients that were there and are active, those beyond a pace wait in the queue of their
//! listener. Where it is full, a Unix socket lets `connect` wait, or fail with EAGAIN if it must not
//! block, and TCP tries again.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Token;

use super::{EventLoop, FIRST_CONNECTION};
use crate::server::client::Client;
use crate::server::client_list::{ClientHandle, ClientInfo};
use crate::server::connection::Connection;
use crate::server::counters::Counters;
use crate::server::mailbox::Message;
use crate::server::stream::Stream;

/// The number of connections that a listener accepts in one round: whoever opens many at once
/// delays the clients that are there by no more.
const ACCEPTED_PER_ROUND: usize = 4;

impl EventLoop {
    fn counters(&self) -> Option<&Counters> {
        self.server.counters.get(self.index)
    }

    /// How long the connections wait that may be there; `None` if there are none.
    pub(super) fn accept_wait(&self) -> Option<Duration> {
        if self.unaccepted.is_empty() {
            return None;
        }
        let is_paced = self.has_settled_clients();
        Some(if is_paced { self.pace.wait(Instant::now()) } else { Duration::ZERO })
    }

    /// Accepts some connections of each listener that has any.
    pub(super) fn accept_waiting(&mut self, until: Instant) {
        for listener in std::mem::take(&mut self.unaccepted) {
            self.accept(listener, until);
        }
    }

    /// Accepts waiting connections of a listener and hands them out to the loops in turn. Begins none
    /// but the first after a time.
    fn accept(&mut self, listener: usize, until: Instant) {
        let server = Arc::clone(&self.server);
        let is_paced = self.has_settled_clients();
        for number in 0..ACCEPTED_PER_ROUND {
            let now = Instant::now();
            if number > 0 && now >= until || is_paced && !self.pace.wait(now).is_zero() {
                break;
            }
            let Some(socket) = self.listeners.get(listener) else { return };
            let stream = match socket.accept() {
                Ok(stream) => stream,
                Err(error) if is_transient(error.kind()) => continue,
                // Without descriptors, the next tick tries again.
                Err(_) => return,
            };
            let name = socket.name();
            if is_paced {
                self.pace.note(now);
            }
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
        self.note_waiting(listener);
    }

    /// Remembers that a listener may have connections to accept.
    pub(super) fn note_waiting(&mut self, listener: usize) {
        if !self.unaccepted.contains(&listener) {
            self.unaccepted.push(listener);
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
        let session = server.db.session();
        let handle = ClientHandle { event_loop: self.index, slot, id: session.id() };
        let info = Arc::new(ClientInfo {
            address,
            local_address,
            descriptor: stream.descriptor(),
            is_unix: stream.is_unix(),
            ..ClientInfo::new(handle, now_ms)
        });
        server.clients.add(Arc::clone(&info));
        if let Some(counters) = self.counters() {
            counters.connections.add(1);
        }
        let authenticated = !server.settings.needs_password();
        let client = Client::new(info, session, authenticated);
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
