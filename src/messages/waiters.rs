//! Calls that wait until a key holds an element, oldest first.
//!
//! A writer whose commit has changed a key that somebody waits for notes the key while it still
//! holds the key's stripe, and serves the calls that wait for it once it has released its locks: it
//! pops on their behalf. A new call registers first and looks for an element then, under the
//! stripes of its keys. So no wake-up is lost: either the writer sees the call, or the call sees the
//! write.
//!
//! One thread serves at a time. Who finds another thread serving leaves the noted keys to it; that
//! thread looks again after it has finished. So pops that write further keys, as BLMOVE does, need
//! no lock twice. Keys are served in the order in which they were written.

use std::sync::Arc;

use crate::error::Result;
use crate::messages::hub::Hub;
use crate::messages::wait_queues::{WaitQueues, Waiter, Wanted};

/// What a new call found.
pub(crate) enum Attempt<T> {
    /// An element, or an error.
    Done(T),
    /// Nothing: the call waits under this ticket.
    Waits(u64),
}

impl Hub {
    /// Runs `attempt`, which returns `None` if all keys are empty; then the call waits. Calls that
    /// waited before are served first.
    pub(crate) fn wait_for<T>(
        &self,
        keys: Vec<Vec<u8>>,
        waiter: Arc<dyn Waiter>,
        attempt: impl FnOnce() -> Result<Option<T>>,
    ) -> Result<Attempt<T>> {
        let ticket = {
            let mut queues = self.queues.lock();
            queues.written.extend(keys.iter().cloned());
            let ticket = queues.add(keys, waiter);
            self.set_waiting(true);
            ticket
        };
        let serving = self.serving.lock();
        self.serve_written();
        let result = attempt();
        match &result {
            Ok(None) => self.queues.lock().make_ready(ticket),
            _ => drop(self.forget_call(ticket)),
        }
        self.serve_written();
        drop(serving);
        self.serve();
        Ok(match result? {
            Some(found) => Attempt::Done(found),
            None => Attempt::Waits(ticket),
        })
    }

    /// Removes a call that waits no longer; false if it was already served. While another thread
    /// serves, this waits: no element is popped for a call that has given up.
    pub(crate) fn stop_waiting(&self, ticket: u64) -> bool {
        let serving = self.serving.lock();
        let found = self.forget_call(ticket);
        drop(serving);
        self.serve();
        found
    }

    /// Notes keys that a commit has changed, in the order of the writes. The caller still holds
    /// their stripes.
    pub(crate) fn note_written<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        let mut queues = self.queues.lock();
        let WaitQueues { by_key, written, .. } = &mut *queues;
        written.extend(keys.filter(|key| by_key.contains_key(*key)).map(<[u8]>::to_vec));
    }

    /// Notes that any key may have changed.
    pub(crate) fn note_all_written(&self) {
        let mut queues = self.queues.lock();
        let WaitQueues { by_key, written, .. } = &mut *queues;
        written.extend(by_key.keys().cloned());
    }

    /// Serves the calls that wait for keys noted as written. The caller holds no lock.
    pub(crate) fn serve(&self) {
        while !self.queues.lock().written.is_empty() {
            let Some(_serving) = self.serving.try_lock() else { return };
            self.serve_written();
        }
    }

    /// The number of calls that wait.
    pub(crate) fn waiting_calls(&self) -> usize {
        self.queues.lock().calls.len()
    }

    /// Wakes all waiting calls and serves nobody any more.
    pub(super) fn close_waiters(&self) {
        let _serving = self.serving.lock();
        let calls = {
            let mut queues = self.queues.lock();
            queues.closed = true;
            queues.by_key.clear();
            queues.written.clear();
            std::mem::take(&mut queues.calls)
        };
        calls.into_values().for_each(|call| call.waiter.close());
    }

    /// Serves calls until no written key is left. The caller is the one that serves.
    fn serve_written(&self) {
        loop {
            let mut queues = self.queues.lock();
            let Some(key) = queues.written.pop_front() else { return };
            let calls = queues.waiting_for(&key);
            drop(queues);
            let mut exhausted: Vec<Wanted> = Vec::new();
            for (ticket, waiter) in calls {
                if exhausted.contains(&waiter.wanted()) {
                    continue;
                }
                if waiter.serve(&key) {
                    self.forget_call(ticket);
                } else {
                    exhausted.push(waiter.wanted());
                }
            }
        }
    }

    /// Removes a call. The caller is the one that serves.
    fn forget_call(&self, ticket: u64) -> bool {
        let mut queues = self.queues.lock();
        let found = queues.remove(ticket);
        if queues.calls.is_empty() {
            queues.written.clear();
            self.set_waiting(false);
        }
        found
    }
}
