//! Messages, key events and news of cached keys that follow a commit.

use std::sync::Arc;

use crate::encoding::keys::Space;
use crate::messages::Kind;
use crate::messages::events::{Classes, Event};

/// What commands have to say to others. Most have nothing to say, so it is made when needed.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// In order.
    pub(super) outgoing: Vec<Outgoing>,
    /// Expired keys that a command has met, with their spaces, while somebody wants to know.
    pub(super) expired: Vec<ExpiredKey>,
    /// The client that runs the commands, if it tracks keys.
    pub(super) origin: Option<Origin>,
}

/// A client that tracks keys and runs a command.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The number of its session.
    pub(crate) client: u64,
    /// The keys that the command names, if they are tracked once it has read.
    pub(crate) keys: Option<Arc<[Box<[u8]>]>>,
}

/// A key that has expired, with its space.
pub(super) type ExpiredKey = (Space, Box<[u8]>);

/// Something that is delivered after the commit.
#[derive(Clone, Debug)]
pub(crate) enum Outgoing {
    /// A message of PUBLISH or SPUBLISH.
    Message { kind: Kind, channel: Box<[u8]>, payload: Box<[u8]> },
    /// An event of a key.
    Event(Event),
    /// The client that runs the command has read these keys.
    Read(Arc<[Box<[u8]>]>),
    /// A database was emptied.
    Flushed,
}

impl Outgoing {
    /// Whether this announces that the key has expired.
    pub(super) fn is_expiry_of(&self, key: &[u8]) -> bool {
        matches!(self, Self::Event(event) if event.class == Classes::EXPIRED && *event.key == *key)
    }

    /// Whether this tells what a command has found, which holds even if the command fails.
    pub(super) fn is_finding(&self) -> bool {
        let found = |class| class == Classes::EXPIRED || class == Classes::KEY_MISS;
        match self {
            Self::Event(event) => found(event.class),
            Self::Read(_) => true,
            Self::Message { .. } | Self::Flushed => false,
        }
    }

    /// Roughly the bytes that it takes until the commit.
    pub(super) fn bytes(&self) -> usize {
        const EACH: usize = 64;
        EACH + match self {
            Self::Message { channel, payload, .. } => channel.len() + payload.len(),
            Self::Event(event) => event.key.len(),
            Self::Read(_) | Self::Flushed => 0,
        }
    }
}

impl Outbox {
    /// The number of the client that runs the commands, if it tracks keys; else zero.
    pub(super) fn client(&self) -> u64 {
        self.origin.as_ref().map_or(0, |origin| origin.client)
    }

    /// Notes that the command of the client has read the keys that it names.
    pub(super) fn note_read(&mut self) {
        let Some(keys) = self.origin.as_ref().and_then(|origin| origin.keys.as_ref()) else {
            return;
        };
        // A script may read without end, and nothing happened between two of its reads.
        let is_known =
            matches!(self.outgoing.last(), Some(Outgoing::Read(last)) if Arc::ptr_eq(last, keys));
        if !is_known {
            self.outgoing.push(Outgoing::Read(Arc::clone(keys)));
        }
    }

    /// Keeps of what was said since `since` only what was found, not what was done.
    pub(super) fn drop_claims(&mut self, since: usize) {
        if self.outgoing.len() > since {
            let found = self.outgoing.split_off(since).into_iter().filter(Outgoing::is_finding);
            self.outgoing.extend(found.collect::<Vec<_>>());
        }
    }
}
