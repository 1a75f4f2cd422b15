//! Periodic checks of idle clients and memory, and the end of connections.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::{EventLoop, TICK};
use crate::server::client::CloseState;
use crate::server::client_list::ClientInfo;
use crate::server::connection::Connection;
use crate::tls::ClientFault;

/// A connection frees its buffers after this many idle milliseconds.
const IDLE_BUFFERS_MS: u64 = 2000;
/// A client has this many milliseconds for the handshake of TLS, or as many as it may be idle.
const HANDSHAKE_MS: u64 = 10_000;
/// Memory is checked after buffers have grown by one of this many parts of their limit.
const GROWTH_PARTS: usize = 32;
/// A round checks this many connections, so that many idle ones delay nobody.
const CHECKED_PER_ROUND: usize = 64;
/// A round frees at most this much of the transactions of clients that are gone, and one chunk more.
const FREED_PER_ROUND: usize = 128 << 10;

impl EventLoop {
    pub(super) fn tick(&mut self) {
        self.next_tick = Instant::now() + TICK;
        // Retries connections that could not be accepted for lack of descriptors.
        (0..self.listeners.len()).for_each(|listener| self.note_waiting(listener));
        // Rounds that take long check fewer than all connections between two ticks.
        if self.unchecked.is_empty() {
            self.unchecked = 0..self.connections.len();
        }
        self.check_memory();
    }

    /// Checks some of the connections that the last tick is for.
    pub(super) fn check_some_idle(&mut self) {
        let from = self.unchecked.start;
        let to = self.unchecked.end.min(from + CHECKED_PER_ROUND);
        self.unchecked.start = to;
        if from < to {
            self.check_idle(from..to);
        }
    }

    fn check_idle(&mut self, slots: Range<usize>) {
        let (now_ms, limit_ms) =
            (self.server.now_ms(), self.server.settings.idle_limit_s().saturating_mul(1000));
        let handshake_ms = if limit_ms > 0 { limit_ms.min(HANDSHAKE_MS) } else { HANDSHAKE_MS };
        let mut over = Vec::new();
        for slot in slots {
            let Some(connection) = self.connections.get_mut(slot).and_then(Option::as_mut) else {
                continue;
            };
            let idle = now_ms.saturating_sub(connection.client.info.active_ms.load(Relaxed));
            if idle > IDLE_BUFFERS_MS {
                connection.release_buffers();
            }
            // A ready connection was active while the loop served others.
            let client = &connection.client;
            let is_waiting =
                client.blocked.is_some() || client.is_subscribed() || connection.is_ready;
            if connection.is_handshake_overdue(now_ms, handshake_ms) {
                let address = &connection.client.info.address;
                let why = format!("it has not finished the TLS handshake in {handshake_ms} ms");
                self.server.note_tls_fault(address, ClientFault::Other, &why);
                connection.client.close_state = CloseState::Now;
                over.push(slot);
            } else if client.long_reply.as_ref().is_some_and(|reply| reply.is_stalled(now_ms)) {
                let (id, address) = (client.id(), &client.info.address);
                self.server.log.line(&format!(
                    "client {id} from {address} does not take the rest of a long string and is closed"
                ));
                connection.client.close_state = CloseState::Now;
                over.push(slot);
            } else if limit_ms > 0 && idle > limit_ms && !is_waiting {
                connection.client.close_state = CloseState::Now;
                over.push(slot);
            }
        }
        over.into_iter().for_each(|slot| self.make_ready(slot));
    }

    /// Checks memory at once if buffers have grown by a part of `maxmemory-clients`.
    pub(super) fn check_memory_growth(&mut self) {
        let limit = self.server.settings.buffers_limit();
        if limit > 0 && self.memory_growth > limit / GROWTH_PARTS {
            self.check_memory();
        }
    }

    /// If the buffers of all clients exceed `maxmemory-clients`, closes those with the
    /// largest buffers, until the rest fits or the largest belongs to another event loop, which
    /// closes it.
    fn check_memory(&mut self) {
        self.memory_growth = 0;
        let limit = self.server.settings.buffers_limit();
        let mut clients = self.server.clients.list();
        let mut all: usize = clients.iter().map(|info| info.buffered()).sum();
        if limit == 0 || all <= limit {
            return;
        }
        clients.retain(|info| !info.no_evict.load(Relaxed));
        clients.sort_unstable_by_key(|info| std::cmp::Reverse(info.buffered()));
        let own = self.index;
        for info in clients.iter().take_while(|info| info.handle.event_loop == own) {
            self.evict(info, all);
            all = all.saturating_sub(info.buffered());
            if all <= limit {
                return;
            }
        }
    }

    fn evict(&mut self, info: &ClientInfo, all: usize) {
        let handle = info.handle;
        let Some(connection) = self.connection(handle) else { return };
        connection.client.close_state = CloseState::Now;
        let id = handle.id;
        self.server
            .log
            .line(&format!("the buffers of all clients take {all} bytes: client {id} is closed"));
        if let Some(counters) = self.server.counters.get(self.index) {
            counters.evicted.add(1);
        }
        self.make_ready_now(handle.slot);
    }

    /// Frees a part of the transactions of clients that are gone, so that nobody waits for the
    /// rest.
    pub(super) fn free_abandoned(&mut self) {
        if let Some(abandoned) = self.abandoned.last_mut()
            && !abandoned.free_some(FREED_PER_ROUND)
        {
            self.abandoned.pop();
        }
    }

    pub(super) fn close(&mut self, slot: usize, mut connection: Box<Connection>) {
        self.abandoned.extend(connection.client.session.abandon_queue());
        let id = connection.client.id();
        connection.stream.finish();
        connection.stream.deregister(self.poll.registry());
        self.server.clients.remove(id);
        if connection.client.monitors {
            self.server.monitors.remove(connection.client.info.handle);
        }
        if let Some(blocked) = connection.client.blocked.take()
            && let Some(at) = blocked.deadline
        {
            self.deadlines.remove(&(at, slot, id));
        }
        self.free_slots.push(slot);
    }

    /// Sends what can still be sent and closes everything. Blocked clients wait no longer: an element
    /// that was popped for one of them is in the mailbox by now, and no more follow.
    pub(super) fn shut_down(&mut self) {
        for connection in self.connections.iter_mut().flatten() {
            if let Some((_, pop)) =
                connection.client.blocked.as_mut().and_then(|it| it.pop.as_mut())
            {
                pop.cancel();
            }
        }
        self.process_messages();
        self.pending_replies = (0..self.connections.len()).collect();
        self.send_replies(self.server.settings.durable());
        let connections = std::mem::take(&mut self.connections);
        for (slot, connection) in connections.into_iter().enumerate() {
            if let Some(connection) = connection {
                self.close(slot, connection);
            }
        }
        self.listeners.clear();
    }
}
