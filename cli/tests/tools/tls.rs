//! The server, the shell, import, export and watch with TLS.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::certificates::Authority;
use super::support::{Scratch, contents, lsmkv, ok, run, run_with_input};

/// `lsmkv serve` on a port for TLS alone; it dies with this value.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(scratch: &Scratch, store: &str, authority: &Authority) -> Self {
        let identity = authority.sign("server", &["localhost"]);
        // The port may be taken by another before the server has it: then another try.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let text = port.to_string();
            let args = [
                "serve",
                &scratch.arg(store),
                "--bind",
                "127.0.0.1",
                "--port",
                "0",
                "--tls-port",
                &text,
                "--tls-cert-file",
                &identity.cert,
                "--tls-key-file",
                &identity.key,
                "--tls-auth-clients",
                "no",
                "--requirepass",
                "secret",
            ];
            let log = std::fs::File::create(scratch.path("log")).unwrap();
            let child = lsmkv(&args).stdin(Stdio::null()).stderr(log).spawn().unwrap();
            let mut served = Self { child, url: format!("rediss://:secret@localhost:{port}") };
            if served.listens(scratch) {
                return served;
            }
        }
        panic!("the server does not start");
    }

    /// Waits until it listens, or has ended.
    fn listens(&mut self, scratch: &Scratch) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            let log = std::fs::read_to_string(scratch.path("log")).unwrap();
            if log.contains("(TLS)") {
                return true;
            }
            assert!(Instant::now() < deadline, "{log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_tools_take_encrypted_addresses() {
    let scratch = Scratch::new();
    let authority = Authority::new();
    let served = Served::start(&scratch, "served", &authority);
    let (url, trust) = (served.url.as_str(), format!("tls_ca_file={}", authority.ca_file()));
    let trust = ["--option", &trust];

    let shell = |words: &[&str]| ok(&[&trust[..], &[url], words].concat());
    assert_eq!(shell(&["SET", "k", "v"]), "OK\n");
    assert_eq!(shell(&["GET", "k"]), "\"v\"\n");
    assert!(shell(&["CONFIG", "GET", "tls-auth-clients"]).contains("no"));
    let untrusted = run(&[url, "GET", "k"]);
    assert_eq!(untrusted.code, 1);
    assert!(untrusted.err.contains("tls_ca_file"), "{}", untrusted.err);
    assert!(!untrusted.err.contains("secret"), "{}", untrusted.err);

    let (store, copy) = (scratch.arg("store"), scratch.arg("copy"));
    let lines: String = (0..500).map(|n| format!("RPUSH list:{n} a {n}\n")).collect();
    run_with_input(&[&store], lines.as_bytes());
    shell(&["FLUSHALL"]);
    ok(&[&["export", &store, "--quiet", "--to", url], &trust[..]].concat());
    ok(&[&["import", &copy, "--quiet", "--from", url], &trust[..]].concat());
    assert_eq!(contents(&copy), contents(&store));
    let view = ok(&[&["watch", url, "--count", "1"], &trust[..]].concat());
    assert!(view.contains("clients"), "{view}");
}

#[test]
fn a_port_for_tls_needs_its_files_and_its_clients_an_authority() {
    let scratch = Scratch::new();
    let authority = Authority::new();
    let identity = authority.sign("server", &["localhost"]);
    let store = scratch.arg("store");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let serve = ["serve", &store, "--bind", "127.0.0.1", "--port", "0", "--tls-port", &port];
    for (more, part) in [
        (&[][..], "server_tls_cert_file"),
        (
            &["--tls-cert-file", &identity.cert, "--tls-key-file", &identity.key],
            "server_tls_auth_clients=no",
        ),
        (&["--tls-auth-clients", "perhaps"], "yes, no or optional"),
    ] {
        let refused = run(&[&serve[..], more].concat());
        assert_ne!(refused.code, 0);
        assert!(refused.err.contains(part), "{}", refused.err);
    }
}
