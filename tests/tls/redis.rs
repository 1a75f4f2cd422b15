//! redis-cli on our server, our client on redis-server, and a program in C on both sides.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use lsmkv::{ErrorKind, Options, Remote, Reply};
use tempfile::TempDir;

use crate::certificates::{Authority, Identity};
use crate::toolchain::{available, compiler, library_path, root, run, skip};
use crate::{trusting, until, usual};

#[test]
fn redis_cli_uses_a_server_with_tls() {
    if !available("redis-cli") {
        return skip("tls::redis-cli", "there is no redis-cli; scripts/setup.sh installs it");
    }
    let (authority, served, _store) = usual();
    let cli = |words: &[&str]| {
        let mut command = Command::new("redis-cli");
        command
            .args(["--tls", "--cacert", &authority.ca_file(), "--sni", "localhost"])
            .args(["-h", "localhost", "-p", &served.port().to_string()])
            .args(words);
        command
    };
    let answer = |words: &[&str]| String::from_utf8(run(&mut cli(words)).stdout).unwrap();
    assert_eq!(answer(&["SET", "k", "v"]), "OK\n");
    assert_eq!(answer(&["-3", "GET", "k"]), "\"v\"\n".replace('"', ""));
    assert!(answer(&["CONFIG", "GET", "tls-port"]).starts_with("tls-port"));
    // 50,000 commands at once, and their replies.
    let mut command = cli(&["--pipe"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let lines: String = (0..50_000).map(|n| format!("SET key:{n} value:{n}\r\n")).collect();
        input.write_all(lines.as_bytes()).unwrap();
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("errors: 0, replies: 50000"), "{text}");
    assert_eq!(served.db.get(b"key:49999").unwrap().as_deref(), Some(&b"value:49999"[..]));
}

/// A redis-server on a port for TLS, which dies with this value.
struct Redis {
    child: Child,
    port: u16,
    dir: TempDir,
}

impl Redis {
    fn start(authority: &Authority, identity: &Identity, more: &[&str]) -> Self {
        // The port may be taken by another before the server has it: then another try.
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let dir = tempfile::tempdir().unwrap();
            let log = std::fs::File::create(dir.path().join("log")).unwrap();
            let child = Command::new("redis-server")
                .args(["--port", "0", "--bind", "127.0.0.1", "--tls-port", &port.to_string()])
                .args(["--tls-cert-file", &identity.cert, "--tls-key-file", &identity.key])
                .args(["--tls-ca-cert-file", &authority.ca_file()])
                .args(["--save", "", "--appendonly", "no", "--dir"])
                .arg(dir.path())
                .args(more)
                .env("LC_ALL", "C")
                .stdin(Stdio::null())
                .stdout(log)
                .spawn()
                .unwrap();
            let mut redis = Self { child, port, dir };
            if redis.listens() {
                return redis;
            }
        }
        panic!("redis-server does not start");
    }

    /// Waits until it listens, or has ended.
    fn listens(&mut self) -> bool {
        let mut ended = false;
        until("redis-server listens", || {
            ended = self.child.try_wait().unwrap().is_some();
            let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap();
            ended || log.contains("Ready to accept connections")
        });
        !ended
    }

    fn address(&self) -> String {
        format!("rediss://:secret@localhost:{}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_redis_server_with_tls_is_a_store() {
    if !available("redis-server") {
        return skip("tls::redis-server", "there is no redis-server; scripts/setup.sh installs it");
    }
    let authority = Authority::new();
    let identity = authority.sign("server", &["localhost", "127.0.0.1"]);
    let redis = Redis::start(&authority, &identity, &["--requirepass", "secret"]);
    // redis-server asks clients for a certificate unless it is told otherwise.
    let error = Remote::open(&redis.address(), &trusting(&authority)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("tls_cert_file"), "{error}");
    let own = authority.sign("client", &["client"]);
    let options =
        Options { tls_cert_file: own.cert, tls_key_file: own.key, ..trusting(&authority) };
    let store = Remote::open(&redis.address(), &options).unwrap();
    let value = vec![b'z'; 8 << 20];
    store.command(&[b"SET", b"big", &value]).unwrap();
    assert_eq!(store.command(&[b"GET", b"big"]).unwrap(), Reply::Bulk(value.into()));
    let mut session = store.session().unwrap();
    session.command(&[b"SUBSCRIBE", b"c"]).unwrap();
    until("the subscription counts", || {
        store.command(&[b"PUBLISH", b"c", b"m"]).unwrap() == Reply::Int(1)
    });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let message = session.wait(Some(deadline)).unwrap().unwrap();
    assert!(format!("{message:?}").contains("\"m\""), "{message:?}");
    assert_eq!(store.select(1).unwrap().command(&[b"DBSIZE"]).unwrap(), Reply::Int(0));
}

/// Three nodes whose clients speak TLS alone; the cluster tells their ports for TLS.
#[test]
fn a_cluster_with_tls_is_a_store() {
    if !available("redis-server") || !available("redis-cli") {
        return skip("tls::cluster", "there is no redis-server; scripts/setup.sh installs it");
    }
    let authority = Authority::new();
    let identity = authority.sign("server", &["localhost", "127.0.0.1"]);
    let more = ["--tls-cluster", "yes", "--tls-auth-clients", "no", "--cluster-enabled", "yes"];
    let nodes: Vec<Redis> = (0..3).map(|_| Redis::start(&authority, &identity, &more)).collect();
    let cli = |port: u16| {
        let mut command = Command::new("redis-cli");
        command.args(["--tls", "--cacert", &authority.ca_file()]).args([
            "-h",
            "127.0.0.1",
            "-p",
            &port.to_string(),
        ]);
        command
    };
    let mut create = cli(nodes[0].port);
    create.args(["--cluster", "create", "--cluster-yes"]);
    create.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)));
    run(&mut create);
    for node in &nodes {
        until("the cluster is up", || {
            let output = run(cli(node.port).args(["CLUSTER", "INFO"]));
            String::from_utf8_lossy(&output.stdout).contains("cluster_state:ok")
        });
    }
    let address = format!("rediss-cluster://127.0.0.1:{}", nodes[1].port);
    let store = Remote::open(&address, &trusting(&authority)).unwrap();
    for n in 0..100 {
        let key = format!("key:{n}");
        store.command(&[b"SET", key.as_bytes(), key.as_bytes()]).unwrap();
        let read = store.command(&[b"GET", key.as_bytes()]).unwrap();
        assert_eq!(read, Reply::Bulk(key.into()));
    }
    assert_eq!(store.command(&[b"DBSIZE"]).unwrap(), Reply::Int(100));
}

#[test]
fn a_program_in_c_serves_and_opens_a_store_with_tls() {
    let authority = Authority::new();
    let identity = authority.sign("server", &["localhost", "127.0.0.1"]);
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("tls");
    run(compiler(false)
        .args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-O1", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("tests/c/tls.c"))
        .arg("-L")
        .arg(library_path(scratch.path()))
        .args(["-llsmkv", "-lpthread", "-ldl", "-lm"]));
    run(Command::new(program)
        .arg(scratch.path().join("stores"))
        .env("LD_LIBRARY_PATH", library_path(scratch.path()))
        .env("LSMKV_TEST_CA", authority.ca_file())
        .env("LSMKV_TEST_CERT", &identity.cert)
        .env("LSMKV_TEST_KEY", &identity.key));
}
