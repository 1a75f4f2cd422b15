//! Messages and key events that follow a commit.

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
}

impl Outgoing {
    /// Whether this announces that the key has expired.
    pub(super) fn is_expiry_of(&self, key: &[u8]) -> bool {
        matches!(self, Self::Event(event) if event.class == Classes::EXPIRED && *event.key == *key)
    }

    /// Whether this tells what a command has found, which holds even if the command fails.
    pub(super) fn is_finding(&self) -> bool {
        let found = |class| class == Classes::EXPIRED || class == Classes::KEY_MISS;
        matches!(self, Self::Event(event) if found(event.class))
    }

    /// Roughly the bytes that it takes until the commit.
    pub(super) fn bytes(&self) -> usize {
        const EACH: usize = 64;
        EACH + match self {
            Self::Message { channel, payload, .. } => channel.len() + payload.len(),
            Self::Event(event) => event.key.len(),
        }
    }
}

impl Outbox {
    /// Keeps of what was said since `since` only what was found, not what was done.
    pub(super) fn drop_claims(&mut self, since: usize) {
        if self.outgoing.len() > since {
            let found = self.outgoing.split_off(since).into_iter().filter(Outgoing::is_finding);
            self.outgoing.extend(found.collect::<Vec<_>>());
        }
    }
}
