//! The state that all event loops share.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::tls::ClientFault;
use crate::txn::Db;
use crate::types::KeyspaceSampler;
use parking_lot::Mutex;

use super::background_save::BackgroundSave;
use super::client_list::ClientList;
use super::command_table::CommandTable;
use super::counters::Counters;
use super::log::{Log, LogThrottle};
use super::mailbox::{Mailbox, Mailboxes, Message};
use super::monitor::Monitors;
use super::scripts::SlowScripts;
use super::settings::Settings;
use super::sharing::Holder;

/// The server: store, settings, clients, statistics.
pub(crate) struct Server {
    /// Its writes do not wait for the device; replies do.
    pub(crate) db: Db,
    pub(crate) settings: Settings,
    pub(crate) commands: CommandTable,
    pub(crate) clients: ClientList,
    pub(crate) monitors: Monitors,
    pub(crate) slow_scripts: Arc<SlowScripts>,
    /// When a client that has been there for a while was last active, in the server's milliseconds.
    pub(crate) settled_ms: AtomicU64,
    /// One for each event loop.
    pub(crate) counters: Vec<Counters>,
    /// Shared with calls of the library that deliver to a client.
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) started: Instant,
    /// The random id of this run, as INFO shows it.
    pub(crate) run_id: String,
    pub(crate) background_save: Arc<BackgroundSave>,
    pub(crate) log: Log,
    /// The name of the program's allocator.
    pub(crate) allocator: &'static str,
    /// Samples for INFO.
    pub(crate) keyspace: KeyspaceSampler,
    /// The process that holds the store, if others share it.
    pub(crate) holder: Option<Holder>,
    stopping: AtomicBool,
    /// What to do when the server stops.
    on_stop: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    last_failure: Mutex<Option<ErrorKind>>,
    /// Limits the messages about clients that speak HTTP.
    pub(crate) http_log: LogThrottle,
    /// Limits the messages about clients that TLS refuses, by what they did wrong.
    tls_logs: [LogThrottle; 3],
}

impl Server {
    pub(crate) fn new(
        db: Db,
        settings: Settings,
        commands: CommandTable,
        event_loops: usize,
        log: Log,
    ) -> Self {
        let counters = (0..event_loops).map(|_| Counters::new(commands.len())).collect();
        Self {
            db,
            settings,
            commands,
            clients: ClientList::default(),
            monitors: Monitors::default(),
            slow_scripts: Arc::default(),
            settled_ms: AtomicU64::new(0),
            counters,
            mailboxes: Arc::default(),
            started: Instant::now(),
            run_id: random_id(),
            background_save: Arc::new(BackgroundSave::new(log.clone())),
            log,
            allocator: "libc",
            keyspace: KeyspaceSampler::default(),
            holder: None,
            stopping: AtomicBool::new(false),
            on_stop: Mutex::default(),
            last_failure: Mutex::default(),
            http_log: LogThrottle::default(),
            tls_logs: Default::default(),
        }
    }

    /// Hands those of the changed settings that the store enforces over to it. The others stay as
    /// they are: the program that owns the store may have set them.
    pub(crate) fn apply_settings(&self, changed: &[&str]) {
        let (db, value) = (&self.db, |name| self.settings.value(name));
        for name in changed {
            match *name {
                "client-output-buffer-limit" => {
                    db.set_message_limits(self.settings.output_classes().subscribers());
                }
                "tracking-table-max-keys" => {
                    db.set_tracking_max_keys(value(name).parse().unwrap_or(0));
                }
                "busy-reply-threshold" => {
                    db.set_script_busy_ms(value(name).parse().unwrap_or(0));
                }
                "notify-keyspace-events" => {
                    // CONFIG SET has checked the letters.
                    let _ = db.set_keyspace_events(&value(name));
                }
                _ => {}
            }
        }
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

    /// Sets the action to run when the server stops, for whatever reason.
    pub(crate) fn set_stop_action(&self, action: impl FnOnce() + Send + 'static) {
        *self.on_stop.lock() = Some(Box::new(action));
    }

    /// Stops the server; returns at once.
    pub(crate) fn stop(&self) {
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

    /// Logs why TLS refused a client.
    pub(crate) fn note_tls_fault(&self, address: &str, fault: ClientFault, why: &str) {
        let [no_tls, certificate, other] = &self.tls_logs;
        let throttle = match fault {
            ClientFault::NoTls => no_tls,
            ClientFault::Certificate => certificate,
            ClientFault::Other => other,
        };
        if throttle.is_due(self.now_ms()) {
            self.log.line(&format!("the client from {address} is closed: {why}"));
        }
    }

    /// Logs a failure of the store, but not the same kind twice in a row.
    pub(crate) fn note_failure(&self, error: &Error) {
        let quiet = matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::Misuse);
        let mut last = self.last_failure.lock();
        if !quiet && *last != Some(error.kind()) {
            *last = Some(error.kind());
            self.log.line(&format!("a command failed: {error}"));
        }
    }
}

/// 40 random hexadecimal digits.
fn random_id() -> String {
    let random = RandomState::new();
    (0..5).map(|n| format!("{:08x}", random.hash_one(n) >> 32)).collect()
}
