//! TCP and Unix sockets: streams and listeners.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::SendFlags;

use crate::error::{Error, Result};

/// The socket of a connection, in non-blocking mode.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// The peer's address and ours, as CLIENT LIST shows them.
    pub(crate) fn addresses(&self, listener: &str) -> (String, String) {
        let Self::Tcp(stream) = self else { return (format!("{listener}:0"), listener.to_owned()) };
        let shown = |address: io::Result<SocketAddr>| {
            address.map_or_else(|_| "?:0".to_owned(), |address| address.to_string())
        };
        (shown(stream.peer_addr()), shown(stream.local_addr()))
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.as_fd().as_raw_fd()
    }

    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(stream) => stream,
            Self::Unix(stream) => stream,
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self.source(), token, Interest::READABLE | Interest::WRITABLE)
    }

    pub(crate) fn deregister(&mut self, registry: &Registry) {
        // The stream closes next, which deregisters it anyway.
        let _ = registry.deregister(self.source());
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

/// Writes never raise SIGPIPE, whatever the program has made of that signal.
impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.as_fd(), bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether this machine lacks the address or its address family.
fn is_unavailable(error: &io::Error) -> bool {
    let no_such_family = Errno::AFNOSUPPORT.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(no_such_family)
}

/// A socket that accepts connections. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub struct Listener(Socket);

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

fn refused(name: &str, error: &io::Error) -> Error {
    Error::io("listen on", Path::new(name), error)
}

impl Listener {
    /// Listens on a TCP address; returns `None` if it is `optional` and this machine does not have
    /// it.
    pub fn tcp(address: SocketAddr, optional: bool) -> Result<Option<Self>> {
        match TcpListener::bind(address) {
            Ok(listener) => Ok(Some(Self(Socket::Tcp(listener)))),
            Err(error) if optional && is_unavailable(&error) => Ok(None),
            Err(error) => Err(refused(&address.to_string(), &error)),
        }
    }

    /// Listens on a Unix socket. Replaces the socket file of a dead server, but no other file.
    pub fn unix(path: &Path) -> Result<Self> {
        let refused = |error: io::Error| refused(&path.display().to_string(), &error);
        let is_socket = path.symlink_metadata().is_ok_and(|data| data.file_type().is_socket());
        if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
            std::fs::remove_file(path).map_err(refused)?;
        }
        let listener = UnixListener::bind(path).map_err(refused)?;
        let own = Self(Socket::Unix(listener, path.to_owned()));
        let only_owner = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path, only_owner).map_err(refused)?;
        Ok(own)
    }

    /// The address it listens on.
    pub(crate) fn name(&self) -> String {
        match &self.0 {
            Socket::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "tcp".into(), |address| address.to_string())
            }
            Socket::Unix(_, path) => path.display().to_string(),
        }
    }

    /// The address by which a store behind this socket is opened.
    pub(crate) fn url(&self) -> String {
        match &self.0 {
            Socket::Tcp(_) => format!("redis://{}", self.name()),
            Socket::Unix(_, path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("unix://{}", path.display())
            }
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.0 {
            Socket::Tcp(listener) => registry.register(listener, token, Interest::READABLE),
            Socket::Unix(listener, _) => registry.register(listener, token, Interest::READABLE),
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match &self.0 {
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Without it, some small replies wait 40 ms.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            Socket::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}
