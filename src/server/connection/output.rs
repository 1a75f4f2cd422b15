//! What a connection sends: replies, messages of channels, lines for those who monitor.

use std::io::{ErrorKind, Write as _};
use std::sync::atomic::Ordering::Relaxed;

use super::{Connection, OUTPUT_PAUSE_BYTES};
use crate::resp::Writer;
use crate::server::client::CloseState;
use crate::server::counters::Counters;
use crate::server::shared::Server;
use crate::server::subscribing::write_messages;

/// The bytes received and replied that make a turn long.
const LONG_TURN_BYTES: usize = 8 << 10;
/// The number of short turns after which a long one is forgotten. If one were enough, a client could
/// send a PING before each request for a large value.
const LONG_TURN_MEMORY: u8 = 16;
/// An empty buffer with more capacity is freed.
const RETAINED_BUFFER_BYTES: usize = 64 << 10;

impl Connection {
    /// Whether there are replies to send, or what TLS has to say.
    pub(crate) fn has_output(&self) -> bool {
        self.sent < self.output_buffer.len() || self.stream.has_unsent()
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.output_buffer.len() - self.sent
    }

    /// Writes a reply that does not come from a command of this turn.
    pub(crate) fn reply(&mut self, write: impl FnOnce(&mut Writer<'_>)) {
        let before = self.output_buffer.len();
        write(&mut Writer::new(&mut self.output_buffer, self.client.protocol));
        if self.client.suppresses_reply() {
            self.output_buffer.truncate(before);
        }
    }

    /// Appends a line for a client that monitors. One that reads too slowly is closed.
    pub(crate) fn append_line(&mut self, line: &[u8], server: &Server) {
        if !self.client.monitors {
            return;
        }
        self.output_buffer.extend_from_slice(line);
        if self.unsent_bytes() > server.settings.monitor_limit() {
            let (id, address) = (self.client.id(), &self.client.info.address);
            server
                .log
                .line(&format!("client {id} from {address} monitors too slowly and is closed"));
            (self.output_buffer, self.sent) = (Vec::new(), 0);
            self.client.close_state = CloseState::Now;
        }
    }

    /// Moves messages of channels to the output buffer, as far as there is room.
    pub(crate) fn receive_messages(&mut self, server: &Server) {
        if self.client.listens && self.batched == 0 && self.client.long_reply.is_none() {
            let most = self.sent.saturating_add(OUTPUT_PAUSE_BYTES);
            write_messages(server, &mut self.client, &mut self.output_buffer, most);
        }
    }

    /// Appends the next part of a long reply, if there is room. One that cannot be read ends the
    /// connection: its client knows how long the reply should be.
    pub(super) fn append_long_reply(&mut self, server: &Server) {
        if self.unsent_bytes() >= OUTPUT_PAUSE_BYTES {
            return;
        }
        let Some(reply) = &mut self.client.long_reply else { return };
        match reply.append(server.now_ms(), &mut self.output_buffer) {
            Ok(()) if !reply.is_done() => {}
            Ok(()) => self.client.long_reply = None,
            Err(error) => {
                server.note_failure(&error);
                self.client.long_reply = None;
                self.client.close_state = CloseState::Now;
            }
        }
    }

    /// Sends as many reply bytes as the socket accepts.
    pub(crate) fn send(&mut self, counters: &Counters, now_ms: u64) {
        if self.client.close_state == CloseState::Now {
            return;
        }
        let bytes = self.received + self.unsent_bytes();
        let was_long = bytes > LONG_TURN_BYTES || self.ran_slow_command || self.was_cut_short;
        // Handshakes are costly, and clients that are there go first.
        let is_part = self.stream.is_handshaking() || (self.received > 0 && !self.had_request);
        self.short_turns_due = match was_long {
            true => LONG_TURN_MEMORY,
            false if is_part => self.short_turns_due.max(1),
            false if self.had_request || self.has_output() => {
                self.short_turns_due.saturating_sub(1)
            }
            false => self.short_turns_due,
        };
        if self.send_some(counters) {
            self.client.info.active_ms.store(now_ms, Relaxed);
        }
        // Replies of batched commands were written after the turn.
        self.publish_memory();
    }

    /// Writes to the socket until it is full; returns whether it accepted anything.
    fn send_some(&mut self, counters: &Counters) -> bool {
        let mut progress = false;
        while self.writable && self.has_output() {
            let rest = self.output_buffer.get(self.sent..).unwrap_or_default();
            let outcome = match rest {
                [] => self.stream.flush().map(|()| 0),
                rest => self.stream.write(rest),
            };
            match outcome {
                Ok(0) if !rest.is_empty() => self.client.close_state = CloseState::Now,
                Ok(len) => {
                    (self.sent, progress) = (self.sent + len, true);
                    counters.output_bytes.add(len as u64);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => self.client.close_state = CloseState::Now,
            }
            self.drop_sent();
            return progress;
        }
        self.release_sent();
        progress
    }

    /// Removes the sent part of a long reply once commands may run again: the next reply would be
    /// appended behind it. The buffer is kept for the requests that wait: the allocator returns
    /// memory later, so a new buffer would stand beside the old one.
    fn drop_sent(&mut self) {
        if self.sent >= OUTPUT_PAUSE_BYTES && self.unsent_bytes() < OUTPUT_PAUSE_BYTES {
            self.output_buffer.drain(..self.sent);
            self.sent = 0;
            if !self.has_requests() {
                self.output_buffer.shrink_to(2 * OUTPUT_PAUSE_BYTES);
            }
        }
    }

    /// Empties the buffer once everything is sent. A large one is freed, unless requests wait.
    pub(super) fn release_sent(&mut self) {
        if self.unsent_bytes() > 0 {
            return;
        }
        self.sent = 0;
        self.output_buffer.clear();
        if self.output_buffer.capacity() > RETAINED_BUFFER_BYTES && !self.has_requests() {
            self.output_buffer = Vec::new();
        }
    }
}
