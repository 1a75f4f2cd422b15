//! TLS of servers and of remote stores, in one process or with the programs of Redis.
//!
//! - `traffic`: what a plain connection does, an encrypted one does too;
//! - `refusals`: certificates and peers that are refused, in time and with the way out;
//! - `hostile`: clients of a server that send garbage, stall, or are cut off;
//! - `redis`: redis-cli on our server, our client on redis-server, a program in C on both sides.
#![cfg(all(feature = "tls", feature = "remote", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

#[path = "../support/certificates.rs"]
mod certificates;
mod hostile;
mod redis;
mod refusals;
#[path = "../toolchain/mod.rs"]
mod toolchain;
mod traffic;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use certificates::{Authority, Identity};
use lsmkv::server::{Listener, Log, RunningServer, ServerConfig, tls_parameters};
use lsmkv::{ClientCertificates, Db, Options, Remote, Reply};

/// A server in this process on a port for TLS.
struct Served {
    server: RunningServer,
    db: Db,
    log: Arc<Mutex<Vec<String>>>,
}

impl Served {
    /// Starts a server with the TLS of these options.
    fn start(options: &Options) -> Self {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let lines = Arc::clone(&log);
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), false).unwrap().unwrap();
        let mut parameters = tls_parameters(options).to_vec();
        parameters.push(("timeout", options.server_idle_timeout_s.to_string()));
        let config = ServerConfig {
            listeners: vec![listener.with_tls(options).unwrap()],
            parameters,
            threads: 2,
            log: Log::to(move |line| lines.lock().unwrap().push(line.to_owned())),
            ..ServerConfig::default()
        };
        let server = RunningServer::with_config(&db, config).unwrap();
        Self { server, db, log }
    }

    fn port(&self) -> u16 {
        self.server.port().unwrap()
    }

    fn address(&self) -> String {
        format!("rediss://localhost:{}", self.port())
    }

    /// The lines of the log that contain a text.
    fn logged(&self, part: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|line| line.contains(part)).count()
    }

    /// Waits until a line of the log contains a text.
    fn wait_for_log(&self, part: &str) {
        until(&format!("the log has '{part}', not {:?}", self.log.lock().unwrap()), || {
            self.logged(part) > 0
        });
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.stop();
        let _ = self.db.close();
    }
}

/// Asserts that a store answers.
fn works(store: &Remote) {
    assert_eq!(store.command(&[b"SET", b"k", b"v"]).unwrap(), Reply::Text("OK".into()));
    assert_eq!(store.command(&[b"GET", b"k"]).unwrap(), Reply::Bulk("v".into()));
}

/// Waits for a condition, long enough for any machine.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The options of a server with this certificate, which asks its clients for none.
fn showing(identity: &Identity) -> Options {
    Options {
        server_tls_cert_file: identity.cert.clone(),
        server_tls_key_file: identity.key.clone(),
        server_tls_auth_clients: ClientCertificates::Ignored,
        ..Options::default()
    }
}

/// The options of a client that trusts this authority.
fn trusting(authority: &Authority) -> Options {
    Options { tls_ca_file: authority.ca_file(), ..Options::default() }
}

/// An authority, a server with a certificate of it, and a store that reaches the server.
fn usual() -> (Authority, Served, Remote) {
    let authority = Authority::new();
    let served = Served::start(&showing(&authority.sign("server", &["localhost"])));
    let store = Remote::open(&served.address(), &trusting(&authority)).unwrap();
    (authority, served, store)
}
