//! Messages from other threads to an event loop.

use lsmkv::Reply;
use mio::Waker;
use parking_lot::Mutex;

use super::client_list::ClientHandle;
use super::stream::Stream;

/// A message. It names a client by its handle, because another client may use the slot by now.
#[derive(Debug)]
pub(crate) enum Message {
    /// A new connection for this loop, and the name of its listener.
    NewConnection(Stream, String),
    /// The reply for a blocked client.
    Deliver { to: ClientHandle, ticket: u64, reply: Reply },
    /// Unblocks a client, with an error or as if its timeout had passed.
    Unblock { to: ClientHandle, with_error: bool },
    /// Closes a client.
    Kill(ClientHandle),
    /// The server stops.
    Stop,
}

/// The messages for one event loop, and its waker.
#[derive(Debug)]
pub(crate) struct Mailbox {
    messages: Mutex<Vec<Message>>,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { messages: Mutex::default(), waker }
    }

    /// Adds a message and wakes the loop.
    pub(crate) fn post(&self, message: Message) {
        self.messages.lock().push(message);
        // If the wake fails, the loop finds the message at its next tick.
        let _ = self.waker.wake();
    }

    /// Removes and returns all messages.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock())
    }
}
