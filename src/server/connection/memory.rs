//! The memory of a connection: what it has, what it may have, and when it gives it back.

use std::sync::atomic::Ordering::Relaxed;

use super::Connection;
use crate::resp::RequestReader;
use crate::server::client::CloseState;
use crate::server::shared::Server;

impl Connection {
    /// Publishes the connection's memory use to the client list.
    pub(super) fn publish_memory(&mut self) {
        let input = self.query_buffer.capacity()
            + self.reader.memory()
            + self.arriving.as_ref().map_or(0, |arriving| arriving.memory())
            + self.client.memory_bytes()
            + self.stream.memory_bytes();
        let grown = input + self.output_buffer.capacity();
        self.memory_growth += grown.saturating_sub(self.client.info.buffered());
        self.client.info.input_bytes.store(input, Relaxed);
        self.client.info.output_bytes.store(self.output_buffer.capacity(), Relaxed);
    }

    pub(super) fn check_limits(&mut self, server: &Server) {
        // The requests that a large buffer was kept for may have had no reply.
        self.release_sent();
        self.publish_memory();
        let waiting = self.unsent_bytes();
        if self.query_buffer.len() > server.settings.input_limit()
            || waiting > server.settings.output_limit()
        {
            let (id, address) = (self.client.id(), &self.client.info.address);
            server.log.line(&format!(
                "client {id} from {address} exceeds its buffers ({} bytes in, {waiting} bytes out)",
                self.query_buffer.len()
            ));
            self.client.close_state = CloseState::Now;
        }
    }

    /// The bytes by which the connection's memory use grew since the last call.
    pub(crate) fn take_memory_growth(&mut self) -> usize {
        std::mem::take(&mut self.memory_growth)
    }

    /// Whether received requests may still have to run.
    pub(super) fn has_requests(&self) -> bool {
        self.has_unparsed || self.parsing.is_some()
    }

    /// Frees the buffers of an idle connection.
    pub(crate) fn release_buffers(&mut self) {
        if self.query_buffer.is_empty() && !self.has_output() {
            (self.query_buffer, self.output_buffer, self.sent) = (Vec::new(), Vec::new(), 0);
            self.reader = RequestReader::default();
            self.publish_memory();
        }
    }
}
