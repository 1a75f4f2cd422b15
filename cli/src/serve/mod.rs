//! `lsmkv serve`: the library's server as a program. Command line, signals, messages on standard
//! error, and the memory of the process are here; the rest is in the library.

mod memory_trim;

use std::fmt;
use std::io::Write as _;
use std::net::{AddrParseError, IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use lsmkv::server::{Listener, Log, RunningServer, ServerConfig, tls_parameters};
use lsmkv::{ClientCertificates, Db, Options};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, Outcome};
use crate::store::{StoreArgs, refuse_shared};
use memory_trim::MemoryTrim;

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
    /// TCP port for TLS; 0 for none
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    tls_port: u16,
    /// Certificate of the server (PEM)
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<String>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key_file: Option<String>,
    /// Certificates of the authorities of clients (PEM)
    #[arg(long, value_name = "FILE")]
    tls_ca_cert_file: Option<String>,
    /// Whether clients of the port for TLS need a certificate: yes, no or optional
    #[arg(long, value_name = "MODE")]
    tls_auth_clients: Option<String>,
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
        for (name, value) in [
            ("sync", &self.sync),
            ("server_tls_cert_file", &self.tls_cert_file),
            ("server_tls_key_file", &self.tls_key_file),
            ("server_tls_ca_file", &self.tls_ca_cert_file),
            ("server_tls_auth_clients", &self.tls_auth_clients),
        ] {
            if let Some(value) = value {
                options.set(name, value).map_err(|error| Failure::usage(error.message()))?;
            }
        }
        Ok(options)
    }

    /// Refuses to listen beyond this machine without a password, unless the user has allowed it.
    fn check_exposure(&self, options: &Options) -> Result<(), Failure> {
        let certified = options.server_tls_auth_clients == ClientCertificates::Required;
        let is_open = self.port != 0 || (self.tls_port != 0 && !certified);
        let beyond = is_open && self.bind.iter().any(|address| !address.ip.is_loopback());
        let protected = self.requirepass.as_ref().is_some_and(|word| !word.is_empty());
        if beyond && !protected && !self.unprotected {
            return Err(Failure::usage(
                "anyone who reaches this address could read and write everything: give \
                 --requirepass, or --unprotected if that is meant, or --bind 127.0.0.1",
            ));
        }
        Ok(())
    }

    fn listeners(&self, options: &Options) -> Result<Vec<Listener>, Failure> {
        let mut listeners = Vec::new();
        for BindAddress { ip, optional } in &self.bind {
            if self.port != 0 {
                listeners.extend(Listener::tcp(SocketAddr::new(*ip, self.port), *optional)?);
            }
            if self.tls_port != 0 {
                let listener = Listener::tcp(SocketAddr::new(*ip, self.tls_port), *optional)?;
                listeners.extend(listener.map(|it| it.with_tls(options)).transpose()?);
            }
        }
        if let Some(path) = &self.unixsocket {
            listeners.push(Listener::unix(path)?);
        }
        if listeners.is_empty() {
            return Err(Failure::usage(
                "nothing to listen on: give --port, --tls-port or --unixsocket",
            ));
        }
        Ok(listeners)
    }

    /// The parameters of CONFIG GET that the command line sets.
    fn parameters(&self, options: &Options) -> Vec<(&'static str, String)> {
        let bind: Vec<_> = self.bind.iter().map(ToString::to_string).collect();
        let path = |path: &PathBuf| path.display().to_string();
        let mut parameters = vec![
            ("bind", bind.join(" ")),
            ("port", self.port.to_string()),
            ("tls-port", self.tls_port.to_string()),
            ("timeout", self.timeout.to_string()),
            ("maxclients", self.maxclients.max(1).to_string()),
            ("dir", path(&self.store.dir)),
            ("requirepass", self.requirepass.clone().unwrap_or_default()),
            ("unixsocket", self.unixsocket.as_ref().map(path).unwrap_or_default()),
        ];
        parameters.extend(tls_parameters(options));
        parameters
    }
}

/// Serves clients until a signal or SHUTDOWN.
pub(crate) fn serve(args: &ServeArgs) -> Outcome {
    let options = refuse_shared(args.options()?)?;
    args.check_exposure(&options)?;
    let budget = options.memory_budget;
    let files = u64::from(options.max_open_files);
    raise_file_limit(files + u64::from(args.maxclients.max(1)) + 64);
    let listeners = args.listeners(&options)?;
    let parameters = args.parameters(&options);
    let db = Db::open(&args.store.dir, options)?;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let handle = signals.handle();
    let config = ServerConfig {
        listeners,
        parameters,
        threads: args.threads,
        allocator: Some("mimalloc"),
        log: Log::to(say),
        on_stop: Some(Box::new(move || handle.close())),
    };
    let server = Arc::new(RunningServer::with_config(&db, config)?);
    let trim = MemoryTrim::start(&db, &server, budget)?;
    if signals.forever().next().is_some() {
        say("asked to stop");
    }
    server.stop();
    drop(trim);
    db.close()?;
    say("everything is on disk, goodbye");
    Ok(ExitCode::SUCCESS)
}

/// Writes a line to standard error.
fn say(text: &str) {
    // The server runs on if nobody can read its messages.
    let _ = writeln!(std::io::stderr(), "lsmkv: {text}");
}

/// Raises the limit of open files to what clients and tables may need, as far as the system allows.
fn raise_file_limit(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let Some(current) = limit.current.filter(|current| *current < needed) else { return };
    let wanted = limit.maximum.map_or(needed, |most| most.min(needed));
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    if wanted < needed || setrlimit(Resource::Nofile, raised).is_err() {
        say(&format!(
            "only {} files may be open at once: fewer than {needed} clients and tables",
            wanted.max(current)
        ));
    }
}
