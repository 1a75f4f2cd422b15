//! The state that all event loops share.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lsmkv::types::KeyspaceSampler;
use lsmkv::{Db, Error, ErrorKind};
use parking_lot::Mutex;

use super::background_save::BackgroundSave;
use super::client_list::ClientList;
use super::command_table::CommandTable;
use super::counters::Counters;
use super::log::LogThrottle;
use super::mailbox::{Mailbox, Mailboxes, Message};
use super::monitor::Monitors;
use super::scripts::SlowScripts;
use super::settings::Settings;

/// The server: store, settings, clients, statistics.
pub(crate) struct Server {
    /// Its writes do not wait for the device; replies do.
    pub(crate) db: Db,
    pub(crate) settings: Settings,
    pub(crate) commands: CommandTable,
    pub(crate) clients: ClientList,
    pub(crate) monitors: Monitors,
    pub(crate) slow_scripts: SlowScripts,
    /// One for each event loop.
    pub(crate) counters: Vec<Counters>,
    /// Shared with calls of the library that deliver to a client.
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) started: Instant,
    /// The random id of this run, as INFO shows it.
    pub(crate) run_id: String,
    pub(crate) background_save: Arc<BackgroundSave>,
    /// Samples for INFO.
    pub(crate) keyspace: KeyspaceSampler,
    stopping: AtomicBool,
    /// Ends the wait for signals.
    on_stop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    last_failure: Mutex<Option<ErrorKind>>,
    /// Limits the messages about clients that speak HTTP.
    pub(crate) http_log: LogThrottle,
}

impl Server {
    pub(crate) fn new(
        db: Db,
        settings: Settings,
        commands: CommandTable,
        event_loops: usize,
    ) -> Self {
        let counters = (0..event_loops).map(|_| Counters::new(commands.len())).collect();
        Self {
            db,
            settings,
            commands,
            clients: ClientList::default(),
            monitors: Monitors::default(),
            slow_scripts: SlowScripts::default(),
            counters,
            mailboxes: Arc::default(),
            started: Instant::now(),
            run_id: random_id(),
            background_save: Arc::new(BackgroundSave::new()),
            keyspace: KeyspaceSampler::default(),
            stopping: AtomicBool::new(false),
            on_stop: Mutex::default(),
            last_failure: Mutex::default(),
            http_log: LogThrottle::default(),
        }
    }

    /// Hands the settings that the library enforces over to it.
    pub(crate) fn apply_settings(&self) {
        self.db.set_message_limits(self.settings.output_classes().subscribers());
        let max_keys = self.settings.value("tracking-table-max-keys");
        self.db.set_tracking_max_keys(max_keys.parse().unwrap_or(0));
        let busy_ms = self.settings.value("busy-reply-threshold");
        self.db.set_script_busy_ms(busy_ms.parse().unwrap_or(0));
        // CONFIG SET has checked the letters.
        let _ = self.db.set_keyspace_events(&self.settings.value("notify-keyspace-events"));
    }

    /// Milliseconds since the server started.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Sends a message to an event loop.
    pub(crate) fn post(&self, event_loop: usize, message: Message) {
        self.mailboxes.post(event_loop, message);
    }

    pub(crate) fn mailbox(&self, event_loop: usize) -> Option<&Mailbox> {
        self.mailboxes.of(event_loop)
    }

    /// Sets the action to run when a client stops the server.
    pub(crate) fn set_stop_action(&self, action: impl FnOnce() + Send + 'static) {
        *self.on_stop.lock() = Some(Box::new(action));
    }

    /// Stops the server; returns at once.
    pub(crate) fn stop(&self) {
        // This comes first: an event loop that sees `stopping` finds all deliveries in its mailbox.
        self.db.end_waits();
        self.stopping.store(true, Ordering::SeqCst);
        for mailbox in self.mailboxes.all() {
            mailbox.post(Message::Stop);
        }
        if let Some(action) = self.on_stop.lock().take() {
            action();
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Logs a failure of the store, but not the same kind twice in a row.
    pub(crate) fn note_failure(&self, error: &Error) {
        let quiet = matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::Misuse);
        let mut last = self.last_failure.lock();
        if !quiet && *last != Some(error.kind()) {
            *last = Some(error.kind());
            super::log::line(&format!("a command failed: {error}"));
        }
    }
}

/// 40 random hexadecimal digits.
fn random_id() -> String {
    let random = RandomState::new();
    (0..5).map(|n| format!("{:08x}", random.hash_one(n) >> 32)).collect()
}
