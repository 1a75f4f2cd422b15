//! A real redis-server for a test, with a socket in the test's directory.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::support::Scratch;
use super::toolchain::skip;

/// A running redis-server; dropping it ends the process.
pub(crate) struct Redis {
    child: Child,
    pub(crate) socket: PathBuf,
    pub(crate) dir: PathBuf,
}

impl Redis {
    /// Starts a server; if none is installed, records the skip and returns `None`.
    pub(crate) fn start(scratch: &Scratch, name: &str, test: &str) -> Option<Self> {
        let dir = scratch.path(name);
        std::fs::create_dir(&dir).unwrap();
        Self::start_in(dir, test)
    }

    /// Restarts the server on its saved data.
    pub(crate) fn restart(mut self, test: &str) -> Option<Self> {
        self.text(&["SAVE"]);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Self::start_in(self.dir.clone(), test)
    }

    fn start_in(dir: PathBuf, test: &str) -> Option<Self> {
        let socket = dir.join("socket");
        let started = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no"])
            .args(["--enable-debug-command", "local", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(&dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            skip(test, "redis-server is not installed");
            return None;
        };
        let redis = Self { child, socket, dir };
        let begun = Instant::now();
        while redis.try_text(&["PING"]).as_deref() != Some("PONG") {
            assert!(begun.elapsed() < Duration::from_secs(20), "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(redis)
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    fn cli(&self) -> Command {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(&self.socket);
        command
    }

    fn try_text(&self, words: &[&str]) -> Option<String> {
        let output = self.cli().args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
        output.status.success().then_some(text)
    }

    /// Runs a command and returns the reply as text.
    pub(crate) fn text(&self, words: &[&str]) -> String {
        self.try_text(words).unwrap_or_else(|| panic!("{words:?} failed"))
    }

    /// Runs lines of commands or a RESP stream; none may fail.
    pub(crate) fn feed(&self, stream: &[u8], pipe: bool) {
        let mut command = self.cli();
        if pipe {
            command.arg("--pipe");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let stream = stream.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&stream).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = text.lines().any(|line| line.starts_with("ERR") || line.starts_with("(error"));
        assert!(!failed && (!pipe || text.contains("errors: 0")), "{text}");
    }

    /// The server's own digest of all databases, and the expiry of each key.
    pub(crate) fn digest(&self) -> (String, Vec<String>) {
        const EXPIRIES: &str = "local all = {} \
            for _, key in ipairs(redis.call('KEYS', '*')) do \
                all[#all + 1] = key .. ' ' .. redis.call('PEXPIRETIME', key) \
            end \
            table.sort(all) \
            return all";
        let of = |number: u32| self.text(&["-n", &number.to_string(), "EVAL", EXPIRIES, "0"]);
        (self.text(&["DEBUG", "DIGEST"]), (0..16).map(of).collect())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
