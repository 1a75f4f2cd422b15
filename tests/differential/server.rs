//! A real redis-server of our own: in a scratch directory, on a socket in it, nothing on disk.

use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::resp::{Client, Resp};
use super::toolchain;

/// A server that dies with this value.
pub(crate) struct Server {
    child: Child,
    dir: TempDir,
}

impl Server {
    /// Starts one; `None`, noted as a skip of `test`, where there is no redis-server.
    pub(crate) fn start(test: &str) -> Option<Self> {
        if !toolchain::available("redis-server") {
            toolchain::skip(test, "there is no redis-server; scripts/setup.sh installs it");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket"])
            .arg(dir.path().join("socket"))
            .args(["--save", "", "--appendonly", "no", "--databases", "16", "--dir"])
            .arg(dir.path())
            .args(["--enable-debug-command", "local"])
            // The order of SORT ... ALPHA is that of the locale.
            .env("LC_ALL", "C")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, dir };
        let info = server.connect().call(&["INFO", "server"]).unwrap();
        let Resp::Bulk(Some(info)) = info else { panic!("INFO said {info:?}") };
        let info = String::from_utf8_lossy(&info).into_owned();
        assert!(info.contains("redis_version:7.0."), "the reference is 7.0, this is\n{info}");
        Some(server)
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(self.stream()).unwrap()
    }

    /// Opens a connection as a byte stream.
    pub(crate) fn stream(&self) -> UnixStream {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match UnixStream::connect(self.dir.path().join("socket")) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                    return stream;
                }
                Err(e) => assert!(Instant::now() < deadline, "redis-server does not listen: {e}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
