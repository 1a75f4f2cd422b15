//! Starts and stops a server: command line, listeners, threads, signals.

use std::fmt;
use std::net::{AddrParseError, IpAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;

use lsmkv::{Db, Options, SyncMode};
use mio::{Poll, Waker};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::commands::command_table;
use super::event_loop::{EventLoop, MAILBOX};
use super::flusher::Flusher;
use super::log;
use super::mailbox::Mailbox;
use super::memory_trim::MemoryTrim;
use super::settings::Settings;
use super::shared::Server;
use super::stream::Listener;
use crate::failure::{Failure, Outcome};
use crate::store::StoreArgs;

/// Arguments of `lsmkv serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Addresses to listen on; an address with - before it is skipped if this machine does not have
    /// it
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1,-::1",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    bind: Vec<BindAddress>,
    /// TCP port; 0 for none
    #[arg(long, default_value_t = 6380)]
    port: u16,
    /// Also listen on a Unix socket
    #[arg(long, value_name = "PATH")]
    unixsocket: Option<PathBuf>,
    /// Password that clients must give (AUTH)
    #[arg(long, value_name = "PASSWORD", env = "LSMKV_REQUIREPASS", hide_env_values = true)]
    requirepass: Option<String>,
    /// Maximum number of clients
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000)]
    maxclients: u32,
    /// Seconds after which an idle client is closed; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout: u32,
    /// When a reply to a write is sent: always (the write is on the device), interval (it gets
    /// there within a second) or off
    #[arg(long, value_name = "MODE")]
    sync: Option<String>,
    /// Threads that serve clients; 0 chooses
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    threads: usize,
    /// Listen beyond this machine without a password
    #[arg(long)]
    unprotected: bool,
}

/// An address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BindAddress {
    ip: IpAddr,
    /// Whether to skip the address if this machine does not have it.
    optional: bool,
}

impl FromStr for BindAddress {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        let (optional, ip) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        Ok(Self { ip: ip.parse()?, optional })
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.optional { "-" } else { "" };
        write!(f, "{mark}{}", self.ip)
    }
}

impl ServeArgs {
    fn options(&self) -> Result<Options, Failure> {
        // As Redis does, and as its clients expect.
        let defaults = Options { script_keeps_writes: true, ..Options::default() };
        let mut options = self.store.options.applied_to(defaults)?;
        if let Some(mode) = &self.sync {
            options.set("sync", mode).map_err(|error| Failure::usage(error.message()))?;
        }
        Ok(options)
    }

    /// Refuses to listen beyond this machine without a password, unless the user has allowed it.
    fn check_exposure(&self) -> Result<(), Failure> {
        let beyond = self.port != 0 && self.bind.iter().any(|address| !address.ip.is_loopback());
        let protected = self.requirepass.as_ref().is_some_and(|word| !word.is_empty());
        if beyond && !protected && !self.unprotected {
            return Err(Failure::usage(
                "anyone who reaches this address could read and write everything: give \
                 --requirepass, or --unprotected if that is meant, or --bind 127.0.0.1",
            ));
        }
        Ok(())
    }

    fn listeners(&self) -> Result<Vec<Listener>, Failure> {
        let mut listeners = Vec::new();
        if self.port != 0 {
            for BindAddress { ip, optional } in &self.bind {
                listeners.extend(Listener::tcp(*ip, self.port, *optional)?);
            }
        }
        if let Some(path) = &self.unixsocket {
            listeners.push(Listener::unix(path)?);
        }
        if listeners.is_empty() {
            return Err(Failure::usage("nothing to listen on: give --port or --unixsocket"));
        }
        Ok(listeners)
    }

    fn settings(&self, options: &Options) -> Settings {
        let settings = Settings::new();
        let bind: Vec<_> = self.bind.iter().map(ToString::to_string).collect();
        settings.set_initial("bind", &bind.join(" "));
        settings.set_initial("port", &self.port);
        settings.set_initial("timeout", &self.timeout);
        settings.set_initial("maxclients", &self.maxclients.max(1));
        settings.set_initial("databases", &options.databases);
        settings.set_initial("dir", &self.store.dir.display());
        settings.set_initial("requirepass", &self.requirepass.as_deref().unwrap_or_default());
        if let Some(path) = &self.unixsocket {
            settings.set_initial("unixsocket", &path.display());
        }
        let flushes = match options.sync {
            SyncMode::Always => "always",
            SyncMode::Interval => "everysec",
            SyncMode::Off => "no",
        };
        settings.set_initial("appendfsync", &flushes);
        // The letters were checked with the other options.
        let events = lsmkv::normalized_event_classes(&options.notify_keyspace_events);
        settings.set_initial("notify-keyspace-events", &events.unwrap_or_default());
        settings.set_initial("lua-time-limit", &options.script_busy_ms);
        settings.set_initial("busy-reply-threshold", &options.script_busy_ms);
        settings
    }

    /// The number of threads that serve clients. One thread serves hundreds of thousands of
    /// commands a second; the other cores are for the store's background work and for clients on
    /// this machine.
    fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.threads > 0 { self.threads.min(64) } else { cores.div_ceil(2).clamp(1, 4) }
    }
}

/// Serves clients until a signal or SHUTDOWN.
pub(crate) fn serve(args: &ServeArgs) -> Outcome {
    args.check_exposure()?;
    let options = args.options()?;
    let settings = args.settings(&options);
    let budget = options.memory_budget;
    let files = u64::from(options.max_open_files);
    raise_file_limit(files + settings.max_clients() as u64 + 64);
    let listeners = args.listeners()?;
    // Replies wait for the device, once for many commands, so the store's writes need not.
    let sync = if options.sync == SyncMode::Always { SyncMode::Interval } else { options.sync };
    let db = Db::open(&args.store.dir, Options { sync, ..options })?;
    let server = Arc::new(Server::new(db, settings, command_table(), args.threads()));
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    server.set_stop_action(move || handle.close());
    for listener in &listeners {
        log::line(&format!("listening on {}", listener.name()));
    }
    let threads = start(&server, listeners)?;
    // A store opened to flush every second goes on with it, whatever CONFIG SET says.
    let flusher = (sync == SyncMode::Off).then(|| Flusher::start(&server)).transpose()?;
    let trim = MemoryTrim::start(&server, budget)?;
    if signals.forever().next().is_some() {
        log::line("asked to stop");
    }
    server.stop();
    for thread in threads {
        // A thread that panicked has already reported it.
        let _ = thread.join();
    }
    drop((flusher, trim));
    server.db.close()?;
    log::line("everything is on disk, goodbye");
    Ok(ExitCode::SUCCESS)
}

/// Starts the event loops; the first one accepts connections.
fn start(server: &Arc<Server>, listeners: Vec<Listener>) -> Result<Vec<JoinHandle<()>>, Failure> {
    let polls = server.counters.iter().map(|_| Poll::new()).collect::<Result<Vec<_>, _>>()?;
    let mailbox = |poll: &Poll| Waker::new(poll.registry(), MAILBOX).map(Mailbox::new);
    let mailboxes = polls.iter().map(mailbox).collect::<Result<Vec<_>, _>>()?;
    server.mailboxes.set(mailboxes);
    let mut listeners = Some(listeners);
    let mut threads = Vec::new();
    for (index, poll) in polls.into_iter().enumerate() {
        let listeners = listeners.take().unwrap_or_default();
        let mut event_loop = EventLoop::new(index, Arc::clone(server), poll, listeners)?;
        let thread = std::thread::Builder::new().name(format!("lsmkv-loop-{index}"));
        threads.push(thread.spawn(move || event_loop.run())?);
    }
    Ok(threads)
}

/// Raises the limit of open files to what clients and tables may need, as far as the system allows.
fn raise_file_limit(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < needed) else { return };
    let wanted = limit.maximum.map_or(needed, |most| most.min(needed));
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    if wanted < needed || setrlimit(Resource::Nofile, raised).is_err() {
        log::line(&format!(
            "only {} files may be open at once: fewer than {needed} clients and tables",
            wanted.max(current)
        ));
    }
}
