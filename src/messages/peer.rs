//! A session as others see it who send to it: its number, its queue, how it reads.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use crate::messages::inbox::Inbox;

/// A session that may receive messages.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The number that CLIENT ID shows.
    pub(crate) id: u64,
    /// Where messages arrive. Most sessions never have one.
    inbox: OnceLock<Arc<Inbox>>,
    protocol: AtomicU8,
    /// Whether it is subscribed to anything.
    subscribed: AtomicBool,
}

impl Peer {
    pub(crate) fn new(id: u64) -> Self {
        Self {
            id,
            inbox: OnceLock::new(),
            protocol: AtomicU8::new(2),
            subscribed: AtomicBool::new(false),
        }
    }

    /// Where messages arrive, made when it is first asked for.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        self.inbox.get_or_init(Arc::default)
    }

    /// Where messages arrive, if anybody has asked for it.
    pub(crate) fn known_inbox(&self) -> Option<&Arc<Inbox>> {
        self.inbox.get()
    }

    /// Makes messages arrive in this inbox. The session has none yet.
    pub(crate) fn use_inbox(&self, inbox: Arc<Inbox>) {
        let _ = self.inbox.set(inbox);
    }

    /// The version of the protocol, 2 or 3.
    pub(crate) fn protocol(&self) -> u8 {
        self.protocol.load(Ordering::Relaxed)
    }

    pub(crate) fn set_protocol(&self, protocol: u8) {
        self.protocol.store(protocol, Ordering::Relaxed);
    }

    pub(crate) fn is_subscribed(&self) -> bool {
        self.subscribed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_subscribed(&self, subscribed: bool) {
        self.subscribed.store(subscribed, Ordering::Relaxed);
    }
}
