//! CLIENT TRACKING: which client may have cached which key, and the messages that a key is no longer
//! valid.
//!
//! A client by default is told of the keys that it has read, once each. In broadcast mode it is told
//! of every key that begins with one of its prefixes.
//!
//! Invariant: if a client has read a key at a read point and a later commit changes the key, the
//! client gets a message, and gets it after the reply of the read. Reads hold no locks, so a commit
//! may come between the read point and the moment at which the table learns of the read. Therefore a
//! client announces its keys before it reads (`Hub::begin_read`), and a commit that changes one of
//! them marks it; `Hub::end_read` then sends the message. A commit looks whether anybody tracks
//! after it is visible, and a client that turns tracking on does so before it reads, with a fence
//! between in both: see `Conflicts`.
//!
//! One lock guards everything. It is taken by clients that track, and by commits while there are
//! such clients.

mod key_table;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use key_table::KeyTable;

use crate::messages::inbox::{Message, OutputLimits};
use crate::messages::peer::Peer;

/// The keys that clients may have cached, by default.
const MAX_KEYS: usize = 1_000_000;

/// Which of the keys that a client reads are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrackedReads {
    /// All of them.
    #[default]
    All,
    /// Those after CLIENT CACHING YES.
    OptIn,
    /// All but those after CLIENT CACHING NO.
    OptOut,
}

/// How a client wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackingMode {
    /// Whether it is told of all keys with its prefixes, not of those that it has read.
    pub(crate) broadcasts: bool,
    pub(crate) reads: TrackedReads,
    /// Whether it is not told of its own changes.
    pub(crate) skips_own: bool,
    /// The client that gets the messages; zero for the client itself.
    pub(crate) redirect: u64,
}

/// Keys of a message, which all its receivers share.
type Keys = Arc<[Arc<[u8]>]>;

/// A client that tracks.
#[derive(Debug)]
pub(super) struct Tracker {
    pub(super) peer: Arc<Peer>,
    pub(super) mode: TrackingMode,
    pub(super) prefixes: BTreeSet<Vec<u8>>,
    /// Whether a message found that the client that it is redirected to is gone.
    pub(super) broken: bool,
}

/// A read that is under way.
#[derive(Debug)]
pub(super) struct OpenRead {
    pub(super) client: u64,
    pub(super) keys: Vec<Box<[u8]>>,
    /// The keys that others have changed meanwhile.
    pub(super) changed: BTreeSet<Box<[u8]>>,
    pub(super) flushed: bool,
}

/// All clients that track, and what they have read.
#[derive(Debug)]
pub(super) struct Tracking {
    /// Every session, by its number.
    pub(super) peers: HashMap<u64, Arc<Peer>>,
    pub(super) trackers: HashMap<u64, Tracker>,
    pub(super) table: KeyTable,
    pub(super) reads: Vec<OpenRead>,
    pub(super) max_keys: usize,
    pub(super) limits: OutputLimits,
}

impl Default for Tracking {
    fn default() -> Self {
        Self {
            peers: HashMap::new(),
            trackers: HashMap::new(),
            table: KeyTable::default(),
            reads: Vec::new(),
            max_keys: MAX_KEYS,
            limits: OutputLimits::default(),
        }
    }
}

/// Something that a commit or read did to the table, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TableChange<'a> {
    /// The client that ran the command has read these keys.
    Read(&'a [Box<[u8]>]),
    /// A key was changed. `expired`: it was not the client that did so.
    Changed { key: &'a [u8], expired: bool },
    /// A database was emptied.
    Flushed,
}

/// What INFO tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackingCounts {
    /// Clients that track.
    pub clients: usize,
    /// Keys that clients may have cached.
    pub keys: usize,
    /// Pairs of such a key and a client.
    pub items: usize,
    /// Prefixes of clients in broadcast mode.
    pub prefixes: usize,
}

impl Tracking {
    pub(super) fn remember(&mut self, client: u64, keys: &[Box<[u8]>]) {
        let tracks = |tracker: &Tracker| !tracker.mode.broadcasts;
        if self.trackers.get(&client).is_some_and(tracks) {
            keys.iter().for_each(|key| self.table.remember(key, client));
            self.give_up_excess();
        }
    }

    pub(super) fn give_up_excess(&mut self) {
        while let Some((key, clients)) = self.table.take_excess(self.max_keys) {
            let message: Keys = Arc::new([key]);
            clients.iter().for_each(|client| self.send(*client, Some(Arc::clone(&message))));
        }
    }

    /// Tells the clients that have read a key.
    pub(super) fn invalidate(&mut self, origin: u64, key: &[u8]) {
        for read in self.reads.iter_mut().filter(|read| read.client != origin) {
            if let Some(key) = read.keys.iter().find(|own| ***own == *key) {
                read.changed.insert(key.clone());
            }
        }
        let Some((key, clients)) = self.table.take(key) else { return };
        let message: Keys = Arc::new([key]);
        for client in clients {
            let wants =
                |it: &Tracker| !(it.mode.broadcasts || it.mode.skips_own && client == origin);
            if self.trackers.get(&client).is_some_and(wants) {
                self.send(client, Some(Arc::clone(&message)));
            }
        }
    }

    /// Tells every client that nothing is valid any more.
    pub(super) fn flush(&mut self, origin: u64) {
        self.table.clear();
        let others = self.reads.iter_mut().filter(|read| read.client != origin);
        others.for_each(|read| read.flushed = true);
        let clients: Vec<u64> = self.trackers.keys().copied().collect();
        clients.into_iter().for_each(|client| self.send(client, None));
    }

    /// Tells clients in broadcast mode of all changed keys with their prefixes, in one message for
    /// each prefix.
    pub(super) fn broadcast(&mut self, origin: u64, changed: &BTreeMap<&[u8], bool>) {
        let mut messages: HashMap<(&[u8], bool), Option<Keys>> = HashMap::new();
        let mut sent = Vec::new();
        for (client, tracker) in self.trackers.iter().filter(|(_, it)| it.mode.broadcasts) {
            let others_only = tracker.mode.skips_own && *client == origin;
            for prefix in &tracker.prefixes {
                let message = messages.entry((prefix, others_only)).or_insert_with(|| {
                    let keys = changed
                        .iter()
                        .filter(|(key, own)| key.starts_with(prefix) && !(others_only && **own));
                    let keys: Vec<Arc<[u8]>> = keys.map(|(key, _)| Arc::from(*key)).collect();
                    (!keys.is_empty()).then(|| keys.into())
                });
                sent.extend(message.clone().map(|message| (*client, message)));
            }
        }
        sent.into_iter().for_each(|(client, keys)| self.send(client, Some(keys)));
    }

    /// Sends a client the keys that are no longer valid, or that none is, or the client that it
    /// redirects to.
    pub(super) fn send(&mut self, client: u64, keys: Option<Keys>) {
        let Some(tracker) = self.trackers.get_mut(&client) else { return };
        let redirect = tracker.mode.redirect;
        let (target, message) = if redirect == 0 {
            (&tracker.peer, Message::Invalidate { keys, by_channel: false })
        } else if let Some(target) = self.peers.get(&redirect) {
            let by_channel = target.protocol() == 2;
            if by_channel && !target.is_subscribed() {
                return;
            }
            (target, Message::Invalidate { keys, by_channel })
        } else {
            tracker.broken = true;
            (&tracker.peer, Message::BrokenRedirect { to: redirect })
        };
        // Version 2 of the protocol has no messages but those of channels.
        if target.protocol() == 3 || matches!(message, Message::Invalidate { by_channel: true, .. })
        {
            target.inbox().push(message, &self.limits);
        }
    }
}

#[cfg(test)]
mod tests;
