//! Servers that run beside the benchmark, and the processors that both run on.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// A server on a socket in a directory of its own, which dies with this value.
pub(crate) struct Process {
    child: Child,
    directory: tempfile::TempDir,
    socket: PathBuf,
}

impl Process {
    /// Starts a server that listens on `socket` in its directory.
    pub(crate) fn start(command: impl FnOnce(&Path) -> Command) -> Result<Self> {
        Self::start_on("socket", command)
    }

    /// Starts a server that listens on a socket at this path below its directory.
    pub(crate) fn start_on(socket: &str, command: impl FnOnce(&Path) -> Command) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let socket = directory.path().join(socket);
        let mut command = command(directory.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let process = Self { child, directory, socket };
        let deadline = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(process.socket()).is_err() {
            if Instant::now() > deadline {
                return Err("a server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(process)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Lets the server run on these processors alone.
    pub(crate) fn pin(&self, processors: &str) -> Result<()> {
        pin(self.child.id(), processors)
    }

    pub(crate) fn connect(&self) -> Result<redis::Connection> {
        let client = redis::Client::open(self.address())?;
        Ok(client.get_connection()?)
    }

    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.socket().display())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets this process run on these processors alone.
pub(crate) fn pin_self(processors: &str) -> Result<()> {
    pin(std::process::id(), processors)
}

fn pin(process: u32, processors: &str) -> Result<()> {
    let mut taskset = Command::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid", processors, &process.to_string()]);
    if !taskset.stdout(Stdio::null()).status()?.success() {
        return Err("taskset failed".into());
    }
    Ok(())
}
