//! Messages from other threads to an event loop.

use std::sync::{Arc, OnceLock};

use crate::commands::Reply;
use crate::commands::script_log::ScriptSteps;
use mio::Waker;
use parking_lot::Mutex;

use super::client_list::ClientHandle;
use super::stream::Stream;

/// A message. It names a client by its handle, because another client may use the slot by now.
#[derive(Debug)]
pub(crate) enum Message {
    /// A new connection for this loop, and the name of its listener.
    NewConnection(Stream, String),
    /// The reply for a blocked client, and the number of its wait.
    Deliver { to: ClientHandle, wait: u64, reply: Reply },
    /// The reply of a script that ran on a thread of its own, and the number of its wait.
    /// `called`: what it has called, if somebody monitors. `was_slow`: whether it took long.
    ScriptDone { to: ClientHandle, wait: u64, reply: Reply, called: ScriptSteps, was_slow: bool },
    /// Messages of channels wait for a client.
    Mail(ClientHandle),
    /// A command that a client that monitors gets to see.
    Line { to: ClientHandle, line: Arc<[u8]> },
    /// Messages about the cached keys of another client go to this one from now on.
    Listen(ClientHandle),
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

    /// Adds a message and wakes the loop, unless earlier messages have woken it.
    pub(crate) fn post(&self, message: Message) {
        let mut messages = self.messages.lock();
        let sleeps = messages.is_empty();
        messages.push(message);
        drop(messages);
        if sleeps {
            // If the wake fails, the loop finds the message at its next tick.
            let _ = self.waker.wake();
        }
    }

    /// Removes and returns all messages.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock())
    }
}

/// The mailboxes of all event loops, set before any connection is accepted.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes(OnceLock<Vec<Mailbox>>);

impl Mailboxes {
    /// Sets the mailboxes, once.
    pub(crate) fn set(&self, mailboxes: Vec<Mailbox>) {
        // This is the only call, so it succeeds.
        let _ = self.0.set(mailboxes);
    }

    /// Sends a message to an event loop.
    pub(crate) fn post(&self, event_loop: usize, message: Message) {
        if let Some(mailbox) = self.of(event_loop) {
            mailbox.post(message);
        }
    }

    /// The mailbox of an event loop.
    pub(crate) fn of(&self, event_loop: usize) -> Option<&Mailbox> {
        self.all().get(event_loop)
    }

    /// Every mailbox.
    pub(crate) fn all(&self) -> &[Mailbox] {
        self.0.get().map_or(&[], Vec::as_slice)
    }
}
