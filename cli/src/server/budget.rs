//! How much a reply may take before its client is closed.
//!
//! A reply that would pass `client-output-buffer-limit`, or bring the buffers of all clients beyond
//! `maxmemory-clients`, ends where it is found out: what was written of it is given back, and its
//! client is closed. Only buffers that grow beyond [`LARGE`] look at those of others.

use std::cell::Cell;

use super::client::{Client, Fate};
use super::counters::Counters;
use super::shared::Server;
use super::unused::LARGE;
use crate::resp::Room;

/// See the module's documentation.
pub(crate) struct Budget<'a> {
    server: &'a Server,
    /// Whose reply it is.
    id: u64,
    /// Where in the buffer it begins.
    begin: usize,
    refused: Cell<Option<Refused>>,
}

/// Which limit a reply came upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// That of each client.
    Own,
    /// That of all together.
    All,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(server: &'a Server, client: &Client, begin: usize) -> Self {
        Self { server, id: client.id(), begin, refused: Cell::new(None) }
    }

    /// Closes the client of a reply that found no room.
    pub(crate) fn close(&self, client: &mut Client, counters: &Counters) {
        let (id, address) = (self.id, &client.info.address);
        super::log::line(&match self.refused.get() {
            Some(Refused::All) => {
                counters.evicted.add(1);
                format!(
                    "a reply would bring the buffers of all clients beyond their limit: client {id} from {address} is closed"
                )
            }
            Some(Refused::Own) => {
                format!(
                    "client {id} from {address} exceeds its buffers by a reply that is too long"
                )
            }
            None => format!("there is no memory for a reply: client {id} from {address} is closed"),
        });
        client.fate = Fate::Dies;
    }

    /// What is left for this client when all others have what they have.
    fn grant_beside_others(&self, least: usize, likely: usize) -> Option<usize> {
        let limit = self.server.settings.buffers_limit();
        if limit == 0 {
            return Some(likely);
        }
        self.server.clients.grant_output(self.id, least, likely, limit)
    }
}

impl Room for Budget<'_> {
    fn grant(&self, least: usize, likely: usize) -> Option<usize> {
        let most = self.begin.saturating_add(self.server.settings.output_limit());
        if least > most {
            self.refused.set(Some(Refused::Own));
            return None;
        }
        let likely = likely.min(most);
        // A client may leave that much unread anyway.
        if likely < LARGE {
            return Some(likely);
        }
        self.server.unused.note_large(self.server.now_ms());
        let granted = self.grant_beside_others(least, likely);
        if granted.is_none() {
            self.refused.set(Some(Refused::All));
        }
        granted
    }
}
