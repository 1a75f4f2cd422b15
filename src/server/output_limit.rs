//! The limits on the size of a reply.
//!
//! A reply that would exceed `client-output-buffer-limit`, or take the buffers of all clients
//! beyond `maxmemory-clients`, is discarded, and its client is closed. Only a buffer that grows
//! beyond [`LARGE_BUFFER`] checks the buffers of other clients.

use std::cell::Cell;

use super::client::{Client, CloseState};
use super::counters::Counters;
use super::shared::Server;
use crate::resp::GrowthLimit;

/// A buffer of at least this many bytes is large.
const LARGE_BUFFER: usize = 1 << 20;

/// The limits for one reply of one client.
pub(crate) struct OutputLimit<'a> {
    server: &'a Server,
    /// The client's id.
    id: u64,
    /// The offset of the reply in the output buffer.
    begin: usize,
    exceeded: Cell<Option<ExceededLimit>>,
}

/// The limit that a reply exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExceededLimit {
    /// That of one client: `client-output-buffer-limit`.
    Client,
    /// That of all clients together: `maxmemory-clients`.
    AllClients,
}

impl<'a> OutputLimit<'a> {
    pub(crate) fn new(server: &'a Server, client: &Client, begin: usize) -> Self {
        Self { server, id: client.id(), begin, exceeded: Cell::new(None) }
    }

    /// Closes the client whose reply found no room.
    pub(crate) fn close(&self, client: &mut Client, counters: &Counters) {
        let (id, address) = (self.id, &client.info.address);
        self.server.log.line(&match self.exceeded.get() {
            Some(ExceededLimit::AllClients) => {
                counters.evicted.add(1);
                format!(
                    "a reply would bring the buffers of all clients beyond their limit: client {id} from {address} is closed"
                )
            }
            Some(ExceededLimit::Client) => {
                format!(
                    "client {id} from {address} exceeds its buffers by a reply that is too long"
                )
            }
            None => format!("there is no memory for a reply: client {id} from {address} is closed"),
        });
        client.close_state = CloseState::Now;
    }

    /// Reserves memory for this client beside the buffers of all others.
    fn reserve_beside_others(&self, least: usize, likely: usize) -> Option<usize> {
        let limit = self.server.settings.buffers_limit();
        if limit == 0 {
            return Some(likely);
        }
        self.server.clients.reserve_output(self.id, least, likely, limit)
    }
}

impl GrowthLimit for OutputLimit<'_> {
    fn grant(&self, least: usize, likely: usize) -> Option<usize> {
        let most = self.begin.saturating_add(self.server.settings.output_limit());
        if least > most {
            self.exceeded.set(Some(ExceededLimit::Client));
            return None;
        }
        let likely = likely.min(most);
        // A client may leave that much unread anyway.
        if likely < LARGE_BUFFER {
            return Some(likely);
        }
        let granted = self.reserve_beside_others(least, likely);
        if granted.is_none() {
            self.exceeded.set(Some(ExceededLimit::AllClients));
        }
        granted
    }
}
