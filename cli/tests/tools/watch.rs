//! `lsmkv watch` in a real terminal, that of tmux: the views of a directory and of a server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::interrupt::until;
use super::support::{Scratch, fill, lsmkv};
use super::toolchain::skip;

/// A terminal of 100 columns and 40 lines that runs a command; dropping it ends the command.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a command in a terminal; without tmux, records the skip and returns `None`.
    fn run(scratch: &Scratch, args: &[&str], test: &str) -> Option<Self> {
        if !Command::new("tmux").arg("-V").output().is_ok_and(|out| out.status.success()) {
            skip(test, "tmux is not installed");
            return None;
        }
        let terminal = Self { socket: scratch.arg("tmux") };
        let size = ["new-session", "-d", "-x", "100", "-y", "40"];
        let program = env!("CARGO_BIN_EXE_lsmkv");
        let started =
            terminal.tmux(&["-f", "/dev/null"]).args(size).arg(program).args(args).status();
        assert!(started.unwrap().success());
        Some(terminal)
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket]).args(args).env("LC_ALL", "C.UTF-8");
        command.stderr(Stdio::null());
        command
    }

    /// The content of the screen; `None` once the command has ended.
    fn screen(&self) -> Option<String> {
        let output = self.tmux(&["capture-pane", "-p"]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Waits until the screen satisfies a condition.
    fn shows(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        until(what, || {
            last = self.screen().unwrap_or_else(|| panic!("the command has ended"));
            holds(&last)
        });
        last
    }

    /// Ends the command by Ctrl-C.
    fn end(&self) {
        assert!(self.tmux(&["send-keys", "C-c"]).status().unwrap().success());
        until("Ctrl-C ends it", || self.screen().is_none());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).status();
    }
}

/// `lsmkv serve`; dropping it kills the process.
struct Server(Child);

impl Server {
    fn start(store: &str, socket: &str) -> Self {
        let mut serve = lsmkv(&["serve", store, "--port", "0", "--unixsocket", socket]);
        let server = Self(serve.stderr(Stdio::null()).spawn().unwrap());
        until("it listens", || UnixStream::connect(socket).is_ok());
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sets keys until `stop` is set.
fn write_until(socket: &str, stop: &AtomicBool) {
    let stream = UnixStream::connect(socket).unwrap();
    let (mut input, mut output) = (BufReader::new(stream.try_clone().unwrap()), stream);
    let mut line = String::new();
    for n in (0..1000).cycle() {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        writeln!(output, "SET key:{n} value\r").unwrap();
        line.clear();
        input.read_line(&mut line).unwrap();
        assert_eq!(line, "+OK\r\n");
    }
}

#[test]
fn a_directory_shows_its_levels() {
    let scratch = Scratch::new();
    let store = scratch.arg("store");
    fill(&scratch.path("store"));
    let watch = ["watch", &store, "--interval", "0.2"];
    let Some(terminal) = Terminal::run(&scratch, &watch, "tools::watch::directory") else { return };
    let screen = terminal.shows("a second refresh", |screen| screen.contains("tables came"));
    for part in
        [&store, "(Ctrl-C ends)", "meta ", "data ", "score ", "  L0 ", "█", "keys_estimated"]
    {
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }
    assert!(screen.lines().next().unwrap().contains(store.as_str()), "not drawn from the top");
    terminal.end();
}

#[test]
fn a_server_shows_its_operations() {
    let scratch = Scratch::new();
    let (store, socket) = (scratch.arg("store"), scratch.arg("socket"));
    let _server = Server::start(&store, &socket);
    let url = format!("unix://{socket}");
    let watch = ["watch", &url, "--interval", "0.2"];
    let Some(terminal) = Terminal::run(&scratch, &watch, "tools::watch::server") else { return };
    terminal.shows("a first refresh", |screen| screen.contains("operations/s"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| write_until(&socket, &stop));
        let rate = |screen: &str, name: &str| {
            let line = screen.lines().find_map(|line| line.trim().strip_prefix(name))?.trim();
            line.split('/').next()?.trim().parse::<u64>().ok()
        };
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            terminal.shows("operations and the command", |screen| {
                rate(screen, "operations/s").is_some_and(|rate| rate > 0)
                    && rate(screen, "set ").is_some_and(|rate| rate > 0)
                    && screen.contains("memtable_bytes")
            })
        }));
        stop.store(true, Ordering::Relaxed);
        seen.unwrap_or_else(|cause| std::panic::resume_unwind(cause));
    });
    terminal.end();
}
