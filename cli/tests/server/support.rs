//! A server under test: the program, a scratch directory, and a socket in it.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use tempfile::TempDir;

use crate::resp::{Client, Resp};

/// The program under test.
pub(crate) const LSMKV: &str = env!("CARGO_BIN_EXE_lsmkv");

/// A running server; dropping it ends the process.
pub(crate) struct Lsmkv {
    child: Child,
    /// `None` once the directory is handed on.
    dir: Option<TempDir>,
}

impl Lsmkv {
    /// Starts a server on an empty store, with additional arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), args)
    }

    /// Starts a server on the store in this directory.
    pub(crate) fn start_in(dir: TempDir, args: &[&str]) -> Self {
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let child = Command::new(LSMKV)
            .arg("serve")
            .arg(dir.path().join("store"))
            .arg("--unixsocket")
            .arg(dir.path().join("socket"))
            .args(if args.contains(&"--port") { &[][..] } else { &["--port", "0"] })
            .args(args)
            .stderr(log)
            .spawn()
            .unwrap();
        Self::listening(child, dir)
    }

    /// Starts a real redis-server instead, for comparisons; it appends to a file.
    pub(crate) fn start_redis() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("redis-server");
        child.args(["--port", "0", "--save", "", "--appendonly", "yes", "--unixsocket"]);
        child.arg(dir.path().join("socket")).arg("--dir").arg(dir.path());
        Self::listening(child.stdout(Stdio::null()).stdin(Stdio::null()).spawn().unwrap(), dir)
    }

    fn listening(child: Child, dir: TempDir) -> Self {
        let server = Self { child, dir: Some(dir) };
        drop(server.stream());
        server
    }

    /// Lets all threads of the server run on this processor only.
    pub(crate) fn run_on(&self, processor: usize) {
        let mut taskset = Command::new("taskset");
        taskset.args(["--all-tasks", "--cpu-list", "--pid"]);
        taskset.args([processor.to_string(), self.child.id().to_string()]).stdout(Stdio::null());
        assert!(taskset.status().unwrap().success());
    }

    fn dir(&self) -> &Path {
        self.dir.as_ref().unwrap().path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir().join("socket")
    }

    /// Opens a connection as a byte stream.
    pub(crate) fn stream(&self) -> UnixStream {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            match UnixStream::connect(self.socket()) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                    return stream;
                }
                Err(e) => assert!(Instant::now() < deadline, "the server does not listen: {e}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Opens a connection as a client.
    pub(crate) fn connect(&self) -> Client {
        Client::new(self.stream()).unwrap()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills the server; returns its directory.
    pub(crate) fn kill(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.dir.take().unwrap()
    }

    /// Stops the server by SIGTERM and waits for its end.
    pub(crate) fn stop(mut self) -> (ExitStatus, TempDir) {
        kill_process(self.pid(), Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        (status, self.dir.take().unwrap())
    }

    /// Asks the server to end, and gives it some time.
    fn ends_by_itself(&mut self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(20);
        let _ = kill_process(self.pid(), Signal::TERM);
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                ended => return ended.is_ok(),
            }
        }
        false
    }

    /// Waits until the server has ended on its own.
    pub(crate) fn wait(mut self) -> (ExitStatus, TempDir) {
        let status = self.child.wait().unwrap();
        (status, self.dir.take().unwrap())
    }

    /// Runs `work` while the process is stopped.
    pub(crate) fn while_stopped(&self, work: impl FnOnce()) {
        kill_process(self.pid(), Signal::STOP).unwrap();
        until("the server stands still", || self.stands_still());
        work();
        kill_process(self.pid(), Signal::CONT).unwrap();
    }

    /// Whether each thread is stopped: they stop one by one.
    fn stands_still(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        threads.map(|thread| thread.unwrap().path().join("status")).all(|status| {
            // A thread may have ended meanwhile.
            let text = std::fs::read_to_string(status).unwrap_or_default();
            text.is_empty() || text.contains("State:\tT")
        })
    }

    fn status(&self, field: &str) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().to_owned()
    }

    /// The resident memory of the server.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.bytes_of("VmRSS:")
    }

    /// The peak of the resident memory since the last reset.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.bytes_of("VmHWM:")
    }

    /// Resets the peak of the resident memory.
    pub(crate) fn reset_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    fn bytes_of(&self, field: &str) -> u64 {
        let kilobytes = self.status(field);
        kilobytes.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }

    /// The server's messages on standard error.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir().join("log")).unwrap()
    }
}

impl Drop for Lsmkv {
    fn drop(&mut self) {
        // A program that is measured writes down what ran when it ends by itself.
        let is_measured = std::env::var_os("LLVM_PROFILE_FILE").is_some();
        if !(is_measured && self.ends_by_itself()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// A number from the environment: how much a test does, or a seed.
pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Splits a command line into words.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A request as clients send it.
pub(crate) fn request(words: &[impl AsRef<str>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words.iter().map(AsRef::as_ref) {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

/// Sends a command and returns the reply.
pub(crate) fn ask(client: &mut Client, line: &str) -> Resp {
    client.call(&words(line)).unwrap()
}

/// Sends a command and returns the reply as text.
pub(crate) fn reply_text(client: &mut Client, line: &str) -> String {
    match ask(client, line) {
        Resp::Bulk(Some(bytes)) | Resp::Verbatim(bytes) => String::from_utf8(bytes).unwrap(),
        other => format!("{other:?}"),
    }
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads everything until the server closes the connection.
pub(crate) fn read_until_closed(stream: &mut UnixStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A field of INFO.
pub(crate) fn info(client: &mut Client, section: &str, field: &str) -> u64 {
    let text = reply_text(client, &format!("INFO {section}"));
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.unwrap_or_else(|| panic!("no {field} in\n{text}")).parse().unwrap()
}

/// Lets this thread, and those that it starts, run on this processor only.
pub(crate) fn bind_thread(processor: usize) {
    let mut processors = CpuSet::new();
    processors.set(processor);
    sched_setaffinity(None, &processors).unwrap();
}

/// Raises the limit of open files to what the system allows.
pub(crate) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}
