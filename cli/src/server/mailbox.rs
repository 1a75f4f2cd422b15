//! What other threads tell an event loop.

use lsmkv::Reply;
use mio::Waker;
use parking_lot::Mutex;

use super::clients::Home;
use super::stream::Stream;

/// A message. Those for a client say which: another may have its place by now.
#[derive(Debug)]
pub(crate) enum Message {
    /// A new connection is yours; the name of the listener it came by.
    Adopt(Stream, String),
    /// What a blocked client waits for, by its ticket.
    Deliver { to: Home, ticket: u64, reply: Reply },
    /// A client waits no longer: as if its time had run out, or with an error.
    Unblock { to: Home, with_error: bool },
    /// A client is to be closed.
    Kill(Home),
    /// The server stops.
    Stop,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Mailbox {
    messages: Mutex<Vec<Message>>,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { messages: Mutex::default(), waker }
    }

    /// Leaves a message and wakes the loop.
    pub(crate) fn post(&self, message: Message) {
        self.messages.lock().push(message);
        // A loop that cannot be woken finds it at its next tick.
        let _ = self.waker.wake();
    }

    /// All that was left since the last time.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock())
    }
}
