//! The socket of a store that processes share: in the directory of the store, for its owner alone.
//!
//! Only the process that holds the lock of the store makes or removes the socket. It listens under a
//! temporary name first, so whoever finds the socket by its name can connect, or its holder is gone.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::running::{RunningServer, ServerConfig};
use super::stream::Listener;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::sync::socket_path::NearDirectory;
use crate::txn::Db;

/// The name of the socket in the directory of the store.
pub(crate) const SOCKET: &str = "SHARED";
/// The name until it listens. Recovery removes what a killed process left under such a name.
const UNFINISHED: &str = "SHARED.tmp";

/// The process that holds a shared store. A process that holds it a second time has another
/// generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) process: u32,
    pub(crate) generation: u64,
}

impl Holder {
    fn this_process() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let generation = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Self { process: std::process::id(), generation }
    }
}

/// The path of the socket of the store in a directory.
pub(crate) fn socket_in(dir: &Path) -> PathBuf {
    dir.join(SOCKET)
}

impl RunningServer {
    /// Serves a store that this process has opened in `dir` to the other processes that share it.
    pub(crate) fn share(db: &Db, dir: &Path, options: &Options) -> Result<Self> {
        let listener = listen_in(dir)
            .map_err(|error| Error::io("listen on", &socket_in(dir), &error))
            .and_then(|listener| Listener::of_unix(listener, socket_in(dir)))?;
        let threads = options.server_threads as usize;
        let config = ServerConfig { listeners: vec![listener], threads, ..Default::default() };
        Self::with_holder(db, config, Some(Holder::this_process()))
    }
}

fn listen_in(dir: &Path) -> io::Result<UnixListener> {
    let unfinished = dir.join(UNFINISHED);
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let near = NearDirectory::open(dir)?;
    let listener =
        UnixListener::bind(near.path(UNFINISHED)).or_else(|_| UnixListener::bind(&unfinished))?;
    std::fs::set_permissions(&unfinished, Permissions::from_mode(0o600))?;
    std::fs::rename(&unfinished, socket_in(dir))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
