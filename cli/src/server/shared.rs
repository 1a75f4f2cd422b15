//! What all event loops share.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use lsmkv::{Db, Error, ErrorKind};
use parking_lot::Mutex;

use super::catalog::Catalog;
use super::clients::Clients;
use super::commands::Keyspace;
use super::counters::Counters;
use super::log::Seldom;
use super::mailbox::{Mailbox, Message};
use super::saves::Saves;
use super::settings::Settings;
use super::unused::Unused;
use super::waiters::{Delivery, Waiters};

/// See the module's documentation.
pub(crate) struct Server {
    /// Its writes do not wait for the device: replies do.
    pub(crate) db: Db,
    pub(crate) settings: Settings,
    pub(crate) catalog: Catalog,
    pub(crate) clients: Clients,
    pub(crate) waiters: Waiters,
    pub(crate) unused: Unused,
    /// By event loop.
    pub(crate) counters: Vec<Counters>,
    /// By event loop; set before any connection is accepted.
    pub(crate) mailboxes: OnceLock<Vec<Mailbox>>,
    pub(crate) started: Instant,
    /// What it is called from its start to its end, as INFO tells it.
    pub(crate) run_id: String,
    pub(crate) saves: Arc<Saves>,
    /// What INFO knows of databases.
    pub(crate) keyspace: Keyspace,
    stopping: AtomicBool,
    /// How the thread that waits for signals is told to stop.
    on_stop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    last_failure: Mutex<Option<ErrorKind>>,
    /// Of clients that speak HTTP.
    pub(crate) http_notes: Seldom,
}

impl Server {
    pub(crate) fn new(db: Db, settings: Settings, event_loops: usize) -> Self {
        let catalog = Catalog::new();
        let counters = (0..event_loops).map(|_| Counters::new(catalog.len())).collect();
        Self {
            db,
            settings,
            catalog,
            clients: Clients::default(),
            waiters: Waiters::default(),
            unused: Unused::default(),
            counters,
            mailboxes: OnceLock::new(),
            started: Instant::now(),
            run_id: random_name(),
            saves: Arc::new(Saves::new()),
            keyspace: Keyspace::default(),
            stopping: AtomicBool::new(false),
            on_stop: Mutex::default(),
            last_failure: Mutex::default(),
            http_notes: Seldom::default(),
        }
    }

    /// Milliseconds since the server started.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sends a message to an event loop.
    pub(crate) fn post(&self, event_loop: usize, message: Message) {
        if let Some(mailbox) = self.mailbox(event_loop) {
            mailbox.post(message);
        }
    }

    pub(crate) fn mailbox(&self, event_loop: usize) -> Option<&Mailbox> {
        self.mailboxes.get().and_then(|mailboxes| mailboxes.get(event_loop))
    }

    /// Sends a waiter what it waited for.
    pub(crate) fn deliver(&self, delivery: Delivery) {
        let Delivery { to, ticket, reply } = delivery;
        self.post(to.event_loop, Message::Deliver { to, ticket, reply });
    }

    /// What is to happen when a client asks the server to stop.
    pub(crate) fn when_stopped(&self, action: impl FnOnce() + Send + 'static) {
        *self.on_stop.lock() = Some(Box::new(action));
    }

    /// Stops the server; returns at once.
    pub(crate) fn stop(&self) {
        // First: an event loop that sees that it stops finds all deliveries in its mailbox.
        self.waiters.close();
        self.stopping.store(true, Ordering::SeqCst);
        for mailbox in self.mailboxes.get().into_iter().flatten() {
            mailbox.post(Message::Stop);
        }
        if let Some(action) = self.on_stop.lock().take() {
            action();
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Says in the log what is wrong with the store, once for each sort of failure in a row.
    pub(crate) fn note_failure(&self, error: &Error) {
        let quiet = matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::Misuse);
        let mut last = self.last_failure.lock();
        if !quiet && *last != Some(error.kind()) {
            *last = Some(error.kind());
            super::log::line(&format!("a command failed: {error}"));
        }
    }
}

/// 40 hexadecimal digits that no other run has.
fn random_name() -> String {
    let random = RandomState::new();
    (0..5).map(|n| format!("{:08x}", random.hash_one(n) >> 32)).collect()
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
