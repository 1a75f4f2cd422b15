//! The queues of calls that wait for elements, by key.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

/// What a waiting call would take: the database, and the type of the key. If one call finds
/// nothing, those behind it that want the same find nothing either.
pub(super) type Wanted = (u32, u8);

/// A call that waits for an element.
pub(crate) trait Waiter: Send + Sync {
    /// What the call would take.
    fn wanted(&self) -> Wanted;
    /// Pops from this key on behalf of the call and hands the result over. Returns false if there
    /// is nothing for it.
    fn serve(&self, key: &[u8]) -> bool;
    /// Ends the wait because the store is closed.
    fn close(&self);
}

/// A call in the queues of its keys.
pub(super) struct Waiting {
    keys: Vec<Vec<u8>>,
    pub(super) waiter: Arc<dyn Waiter>,
    /// False until the call itself has looked for an element.
    ready: bool,
}

/// All waiting calls of a store.
#[derive(Default)]
pub(super) struct WaitQueues {
    next_ticket: u64,
    pub(super) calls: HashMap<u64, Waiting>,
    /// The tickets that wait for each key, in any database.
    pub(super) by_key: HashMap<Vec<u8>, BTreeSet<u64>>,
    /// Keys that were written and not served yet.
    pub(super) written: VecDeque<Vec<u8>>,
    pub(super) closed: bool,
}

impl fmt::Debug for WaitQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueues").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

impl WaitQueues {
    pub(super) fn add(&mut self, keys: Vec<Vec<u8>>, waiter: Arc<dyn Waiter>) -> u64 {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        if self.closed {
            waiter.close();
            return ticket;
        }
        for key in &keys {
            self.by_key.entry(key.clone()).or_default().insert(ticket);
        }
        self.calls.insert(ticket, Waiting { keys, waiter, ready: false });
        ticket
    }

    pub(super) fn make_ready(&mut self, ticket: u64) {
        if let Some(call) = self.calls.get_mut(&ticket) {
            call.ready = true;
        }
    }

    pub(super) fn waiting_for(&self, key: &[u8]) -> Vec<(u64, Arc<dyn Waiter>)> {
        let tickets = self.by_key.get(key).into_iter().flatten();
        let call = |ticket: &u64| {
            let call = self.calls.get(ticket).filter(|call| call.ready)?;
            Some((*ticket, Arc::clone(&call.waiter)))
        };
        tickets.filter_map(call).collect()
    }

    pub(super) fn remove(&mut self, ticket: u64) -> bool {
        let Some(call) = self.calls.remove(&ticket) else { return false };
        for key in &call.keys {
            if let Some(queue) = self.by_key.get_mut(key) {
                queue.remove(&ticket);
                if queue.is_empty() {
                    self.by_key.remove(key);
                }
            }
        }
        true
    }
}
