//! The sessions of a store, as CLIENT LIST and INFO tell of them.
//!
//! A session updates its card; others read it. A list may be slightly out of date.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

/// The names that a session has given itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientNames {
    pub(crate) name: Bytes,
    pub(crate) library: Bytes,
    pub(crate) library_version: Bytes,
}

/// What others may know of a session.
#[derive(Debug)]
pub(crate) struct ClientCard {
    pub(crate) id: u64,
    since: Instant,
    pub(crate) names: Mutex<ClientNames>,
    pub(crate) database: AtomicU32,
    pub(crate) no_evict: AtomicBool,
}

impl ClientCard {
    /// The card of a session that begins now.
    pub(crate) fn new(id: u64) -> Self {
        Self {
            id,
            since: Instant::now(),
            names: Mutex::default(),
            database: AtomicU32::new(0),
            no_evict: AtomicBool::new(false),
        }
    }

    /// How long the session has existed.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// The sessions of a store.
#[derive(Debug)]
pub(crate) struct Clients {
    opened: Instant,
    joined: AtomicU64,
    cards: Mutex<BTreeMap<u64, Weak<ClientCard>>>,
}

impl Default for Clients {
    fn default() -> Self {
        Self { opened: Instant::now(), joined: AtomicU64::new(0), cards: Mutex::default() }
    }
}

impl Clients {
    /// Lists a session for as long as somebody holds its card.
    pub(crate) fn join(&self, card: &Arc<ClientCard>) {
        self.joined.fetch_add(1, Ordering::Relaxed);
        self.cards.lock().insert(card.id, Arc::downgrade(card));
    }

    /// Takes a session off the list.
    pub(crate) fn leave(&self, id: u64) {
        self.cards.lock().remove(&id);
    }

    /// The cards of all sessions, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<ClientCard>> {
        self.cards.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// The number of sessions so far.
    pub(crate) fn joined(&self) -> u64 {
        self.joined.load(Ordering::Relaxed)
    }

    /// How long the store has been open.
    pub(crate) fn uptime(&self) -> Duration {
        self.opened.elapsed()
    }
}
