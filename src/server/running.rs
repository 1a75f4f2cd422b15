//! A server from its start to its end: listeners, threads, and the close of the store.
//!
//! Invariants:
//! - A server that runs is listed at its store, which ends it before it closes. So no thread of the
//!   server uses a closed store.
//! - Ending is idempotent: whoever comes first waits for the threads, the others for the first.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use mio::{Poll, Waker};
use parking_lot::Mutex;

use super::address::ServerAddress;
use super::commands::command_table;
use super::event_loop::{EventLoop, MAILBOX};
use super::flusher::Flusher;
use super::log::Log;
use super::mailbox::Mailbox;
use super::settings::Settings;
use super::shared::Server;
use super::sharing::Holder;
use super::stream::Listener;
use crate::error::{Error, ErrorKind, Result};
use crate::options::{ClientCertificates, Options, SyncMode};
use crate::sync::descriptors::make_room_for_descriptors;
use crate::txn::{Db, Dependent};

/// The most threads that serve clients.
const MAX_THREADS: usize = 64;

/// What a server needs to start.
#[derive(Default)]
pub struct ServerConfig {
    /// The sockets that accept connections.
    pub listeners: Vec<Listener>,
    /// Values of parameters of CONFIG GET that differ from their defaults.
    pub parameters: Vec<(&'static str, String)>,
    /// The number of threads that serve clients; zero chooses.
    pub threads: usize,
    /// The name of the program's allocator, for INFO.
    pub allocator: Option<&'static str>,
    /// Where messages for people go.
    pub log: Log,
    /// Runs once when the server stops, on any thread. It must not wait for the server.
    pub on_stop: Option<Box<dyn FnOnce() + Send>>,
}

/// A store behind the Redis protocol, on threads of its own. Dropping it stops it.
pub struct RunningServer {
    running: Arc<Running>,
    addresses: Vec<String>,
    port: Option<u16>,
    /// The process that started it: in a forked child its threads do not exist.
    process: u32,
}

struct Running {
    server: Arc<Server>,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    event_loops: Vec<JoinHandle<()>>,
    /// Ends its thread when it is dropped.
    _flusher: Option<Flusher>,
}

impl RunningServer {
    /// Starts to serve a store on `unix:PATH`, `tcp:HOST:PORT` or `tls:HOST:PORT`; port 0 takes a
    /// free one. Of the options, those that begin with `server_` apply.
    ///
    /// ```
    /// use lsmkv::{Db, Options, Server};
    ///
    /// let db = Db::open(":memory:", Options::default())?;
    /// let server = Server::start(&db, "tcp:127.0.0.1:0", &Options::default())?;
    /// println!("redis-cli -u {}", server.addresses()[0]);
    /// server.stop();
    /// db.close()?;
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn start(db: &Db, address: &str, options: &Options) -> Result<Self> {
        options.validate()?;
        let address = ServerAddress::parse(address)?;
        address.check_exposure(options)?;
        servable(db)?;
        let listener = address.listen(options)?;
        let mut parameters = listener.parameters();
        parameters.push(("requirepass", options.server_password.clone()));
        parameters.push(("maxclients", options.server_max_clients.to_string()));
        parameters.push(("timeout", options.server_idle_timeout_s.to_string()));
        if listener.is_tls() {
            parameters.extend(tls_parameters(options));
        }
        let threads = options.server_threads as usize;
        let listeners = vec![listener];
        Self::with_config(db, ServerConfig { listeners, parameters, threads, ..Default::default() })
    }

    /// Starts to serve a store.
    #[doc(hidden)]
    pub fn with_config(db: &Db, config: ServerConfig) -> Result<Self> {
        Self::with_holder(db, config, None)
    }

    /// Starts to serve a store, to the processes that share it if there is a holder.
    pub(super) fn with_holder(
        db: &Db,
        config: ServerConfig,
        holder: Option<Holder>,
    ) -> Result<Self> {
        servable(db)?;
        let addresses = config.listeners.iter().map(Listener::url).collect();
        let port = config.listeners.iter().find_map(Listener::port);
        let settings = Settings::of_store(db);
        for (name, value) in &config.parameters {
            settings.set_initial(name, value);
        }
        let sync = db.durability();
        // Replies wait for the device, once for many commands, so the writes need not.
        let db = &db.select(0)?;
        let own =
            if sync == SyncMode::Always { db.with_sync(SyncMode::Interval) } else { db.clone() };
        // The close of the handle that was given does not end the waits of clients.
        let own = own.with_waits(Arc::default());
        let threads = thread_count(config.threads);
        let commands = command_table(holder.is_some());
        let mut server = Server::new(own, settings, commands, threads, config.log);
        server.holder = holder;
        server.allocator = config.allocator.unwrap_or(server.allocator);
        let server = Arc::new(server);
        if let Some(action) = config.on_stop {
            server.set_stop_action(action);
        }
        for listener in &config.listeners {
            let kind = if listener.is_tls() { " (TLS)" } else { "" };
            server.log.line(&format!("listening on {}{kind}", listener.name()));
        }
        make_room_for_descriptors(server.settings.max_clients());
        let event_loops =
            start_loops(&server, config.listeners).map_err(|error| no_thread(&error))?;
        let running = Arc::new(Running {
            server: Arc::clone(&server),
            threads: Mutex::new(Some(Threads { event_loops, _flusher: None })),
        });
        let started = Self { running, addresses, port, process: std::process::id() };
        // A store opened to flush every second goes on with it, whatever CONFIG SET says.
        if sync == SyncMode::Off {
            let flusher = Flusher::start(&server).map_err(|error| no_thread(&error))?;
            if let Some(threads) = started.running.threads.lock().as_mut() {
                threads._flusher = Some(flusher);
            }
        }
        let dependent: Weak<dyn Dependent> = Arc::<Running>::downgrade(&started.running);
        db.add_dependent(dependent)?;
        Ok(started)
    }

    /// The addresses that it listens on, as `redis://HOST:PORT`, `rediss://HOST:PORT` or
    /// `unix://PATH`: the form in which `lsmkv_open` and `Remote::open` take them.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The TCP port that it listens on; `None` if it listens on a Unix socket alone.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Stops the server and waits for its threads. Clients are disconnected; the store stays open.
    pub fn stop(&self) {
        if self.process == std::process::id() {
            self.running.end();
        }
    }

    /// Whether it accepts connections. A client may have stopped it by SHUTDOWN.
    pub fn is_running(&self) -> bool {
        !self.running.server.is_stopping()
    }

    /// The bytes of the buffers of all clients.
    pub fn buffered_bytes(&self) -> usize {
        self.running.server.clients.buffered()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Dependent for Running {
    fn end(&self) {
        self.server.stop();
        let mut threads = self.threads.lock();
        for thread in threads.take().into_iter().flat_map(|threads| threads.event_loops) {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

/// The parameters of CONFIG GET that tell how connections are encrypted.
#[doc(hidden)]
pub fn tls_parameters(options: &Options) -> [(&'static str, String); 4] {
    let clients = match options.server_tls_auth_clients {
        ClientCertificates::Required => "yes",
        ClientCertificates::Optional => "optional",
        ClientCertificates::Ignored => "no",
    };
    [
        ("tls-cert-file", options.server_tls_cert_file.clone()),
        ("tls-key-file", options.server_tls_key_file.clone()),
        ("tls-ca-cert-file", options.server_tls_ca_file.clone()),
        ("tls-auth-clients", clients.to_owned()),
    ]
}

/// Fails if the handle cannot be served.
fn servable(db: &Db) -> Result<()> {
    if !db.is_live() {
        let text = "a snapshot or a transaction is not served: serve the store itself";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    db.check_open()
}

/// The number of threads that serve clients. One thread serves hundreds of thousands of commands a
/// second; the other cores are for the store's background work and for clients on this machine.
fn thread_count(wanted: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if wanted > 0 { wanted.min(MAX_THREADS) } else { cores.div_ceil(2).clamp(1, 4) }
}

/// Starts the event loops; the first one accepts connections.
fn start_loops(
    server: &Arc<Server>,
    listeners: Vec<Listener>,
) -> std::io::Result<Vec<JoinHandle<()>>> {
    let polls = server.counters.iter().map(|_| Poll::new()).collect::<std::io::Result<Vec<_>>>()?;
    let mailbox = |poll: &Poll| Waker::new(poll.registry(), MAILBOX).map(Mailbox::new);
    let mailboxes = polls.iter().map(mailbox).collect::<std::io::Result<Vec<_>>>()?;
    server.mailboxes.set(mailboxes);
    let mut listeners = Some(listeners);
    let mut threads = Vec::new();
    for (index, poll) in polls.into_iter().enumerate() {
        let listeners = listeners.take().unwrap_or_default();
        let name = format!("lsmkv-loop-{index}");
        let begun = EventLoop::new(index, Arc::clone(server), poll, listeners)
            .and_then(|mut event_loop| crate::sync::spawn(&name, move || event_loop.run()));
        match begun {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                server.stop();
                threads.into_iter().for_each(|thread: JoinHandle<()>| drop(thread.join()));
                return Err(error);
            }
        }
    }
    Ok(threads)
}

fn no_thread(error: &std::io::Error) -> Error {
    Error::io("start the threads of", std::path::Path::new("a server"), error)
}
