//! What is looked at now and then, and how connections end.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::{EventLoop, TICK};
use crate::server::client::Fate;
use crate::server::connection::Connection;
use crate::server::unused::LARGE;

/// After so many milliseconds of silence a connection gives its buffers back.
const REST_MS: u64 = 2000;

impl EventLoop {
    pub(super) fn tick(&mut self) {
        self.next_tick = Instant::now() + TICK;
        // Those that could not be accepted for want of descriptors.
        (0..self.listeners.len()).for_each(|listener| self.accept(listener));
        self.look_at_idle();
        self.look_at_memory();
    }

    fn look_at_idle(&mut self) {
        let (now_ms, limit_ms) =
            (self.server.now_ms(), self.server.settings.idle_limit_s().saturating_mul(1000));
        let mut over = Vec::new();
        for (slot, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            let idle = now_ms.saturating_sub(connection.client.info.active_ms.load(Relaxed));
            if idle > REST_MS {
                connection.rest();
            }
            // One that gets a turn next has sent or taken something while others kept us busy.
            let waits = connection.client.blocked.is_some() || connection.is_ready;
            if limit_ms > 0 && idle > limit_ms && !waits {
                connection.client.fate = Fate::Dies;
                over.push(slot);
            }
        }
        over.into_iter().for_each(|slot| self.make_ready(slot));
    }

    /// When all buffers together are too large, the client with the largest goes.
    fn look_at_memory(&mut self) {
        let limit = self.server.settings.buffers_limit();
        let clients = self.server.clients.list();
        let all: usize = clients.iter().map(|info| info.buffered()).sum();
        let now_ms = self.server.now_ms();
        if clients.iter().any(|info| info.buffered() >= LARGE) {
            self.server.unused.note_large(now_ms);
        }
        self.server.unused.give_back(now_ms);
        if limit == 0 || all <= limit {
            return;
        }
        let largest = clients
            .iter()
            .filter(|info| !info.no_evict.load(Relaxed))
            .max_by_key(|info| info.buffered());
        let Some(home) = largest.map(|info| info.home) else { return };
        if home.event_loop != self.index {
            return;
        }
        let Some(connection) = self.connection(home) else { return };
        connection.client.fate = Fate::Dies;
        let id = home.id;
        crate::server::log::line(&format!(
            "the buffers of all clients take {all} bytes: client {id} is closed"
        ));
        if let Some(counters) = self.server.counters.get(self.index) {
            counters.evicted.add(1);
        }
        self.make_ready(home.slot);
    }

    pub(super) fn close(&mut self, slot: usize, mut connection: Box<Connection>) {
        let id = connection.client.id();
        connection.stream.deregister(self.poll.registry());
        self.server.clients.remove(id);
        if let Some(blocked) = connection.client.blocked.take() {
            if let Some(ticket) = blocked.ticket {
                self.server.waiters.give_up(ticket);
            }
            if let Some(at) = blocked.deadline {
                self.deadlines.remove(&(at, slot, id));
            }
        }
        self.free.push(slot);
    }

    /// Sends what can still be sent, and closes everything. What was taken for clients that wait
    /// is theirs: it is in the mailbox, and nothing more comes, since a server that stops serves
    /// none of them any more.
    pub(super) fn farewell(&mut self) {
        self.read_mail();
        self.unsent = (0..self.connections.len()).collect();
        self.send_all(self.server.settings.durable());
        let connections = std::mem::take(&mut self.connections);
        for (slot, connection) in connections.into_iter().enumerate() {
            if let Some(connection) = connection {
                self.close(slot, connection);
            }
        }
        self.listeners.clear();
    }
}
