//! TCP and Unix sockets, with TLS or without: streams and listeners.

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

use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::sync::descriptors::Listed;
use crate::sync::socket_path::LONGEST;
use crate::tls::{ClientFault, ServerTls, Session as TlsSession};

/// The socket of a connection, in non-blocking mode.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Dropped before the socket.
    _listed: Listed,
    socket: StreamSocket,
    /// Between the socket and the commands, on a port for TLS.
    tls: Option<Box<TlsSession>>,
}

#[derive(Debug)]
enum StreamSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn new(socket: StreamSocket) -> Self {
        Self { _listed: Listed::new(socket.as_fd().as_raw_fd()), socket, tls: None }
    }

    /// The peer's address and ours, as CLIENT LIST shows them.
    pub(crate) fn addresses(&self, listener: &str) -> (String, String) {
        let StreamSocket::Tcp(stream) = &self.socket else {
            return (format!("{listener}:0"), listener.to_owned());
        };
        let shown = |address: io::Result<SocketAddr>| {
            address.map_or_else(|_| "?:0".to_owned(), |address| address.to_string())
        };
        (shown(stream.peer_addr()), shown(stream.local_addr()))
    }

    pub(crate) fn is_unix(&self) -> bool {
        matches!(self.socket, StreamSocket::Unix(_))
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.socket.as_fd().as_raw_fd()
    }

    fn source(&mut self) -> &mut dyn Source {
        match &mut self.socket {
            StreamSocket::Tcp(stream) => stream,
            StreamSocket::Unix(stream) => stream,
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self.source(), token, Interest::READABLE | Interest::WRITABLE)
    }

    pub(crate) fn deregister(&mut self, registry: &Registry) {
        // The stream closes next, which deregisters it anyway.
        let _ = registry.deregister(self.source());
    }

    /// Whether encrypted bytes wait for room in the socket.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    /// Whether another read would find something, though the socket tells of no new bytes.
    #[inline]
    pub(crate) fn may_have_more(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.may_have_more())
    }

    /// Whether the handshake of TLS is not over.
    #[inline]
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// The memory that TLS takes.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tls.as_ref().map_or(0, |tls| tls.memory_bytes())
    }

    /// What the client did wrong, if TLS has ended the connection.
    pub(crate) fn tls_fault(&self) -> Option<(ClientFault, String)> {
        self.tls.as_ref()?.fault()
    }

    /// Tells the peer that nothing more follows; without TLS, the close of the socket does.
    pub(crate) fn finish(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close(&mut self.socket);
        }
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for StreamSocket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

/// Writes never raise SIGPIPE, whatever the program has made of that signal.
impl Write for StreamSocket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.as_fd(), bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A short read has emptied the socket, unless [`Stream::may_have_more`].
impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => tls.read(&mut self.socket, buffer),
        }
    }
}

/// With TLS, bytes that were taken may still wait for room: [`Stream::has_unsent`].
impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => tls.write(&mut self.socket, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.flush(&mut self.socket))
    }
}

/// Whether this machine lacks the address or its address family.
fn is_unavailable(error: &io::Error) -> bool {
    let no_such_family = Errno::AFNOSUPPORT.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(no_such_family)
}

/// A socket that accepts connections. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub struct Listener {
    /// Dropped before the socket.
    _listed: Listed,
    socket: ListenerSocket,
    /// What connections need, on a port for TLS.
    tls: Option<ServerTls>,
}

#[derive(Debug)]
enum ListenerSocket {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

fn refused(name: &str, error: &io::Error) -> Error {
    let plain = Error::io("listen on", Path::new(name), error);
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            plain.wrap(ErrorKind::Busy, "another server listens there; choose another address")
        }
        _ => plain,
    }
}

impl Listener {
    fn new(socket: ListenerSocket) -> Self {
        let descriptor = match &socket {
            ListenerSocket::Tcp(listener) => listener.as_raw_fd(),
            ListenerSocket::Unix(listener, _) => listener.as_raw_fd(),
        };
        Self { _listed: Listed::new(descriptor), socket, tls: None }
    }

    /// Listens on a TCP address; returns `None` if it is `optional` and this machine does not have
    /// it.
    pub fn tcp(address: SocketAddr, optional: bool) -> Result<Option<Self>> {
        match TcpListener::bind(address) {
            Ok(listener) => Ok(Some(Self::new(ListenerSocket::Tcp(listener)))),
            Err(error) if optional && is_unavailable(&error) => Ok(None),
            Err(error) => Err(refused(&address.to_string(), &error)),
        }
    }

    /// Encrypts the connections that it accepts, with the certificate that the options name.
    pub fn with_tls(mut self, options: &Options) -> Result<Self> {
        self.tls = Some(ServerTls::from_options(options)?);
        Ok(self)
    }

    /// Whether it accepts TLS alone.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Listens on a Unix socket. Replaces the socket file of a dead server, but no other file.
    pub fn unix(path: &Path) -> Result<Self> {
        let length = path.as_os_str().len();
        if length > LONGEST {
            let text = format!(
                "the path of a Unix socket has at most {LONGEST} bytes and this one has \
                 {length}: use a shorter one, or a relative one, instead of {}",
                path.display()
            );
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        let refused = |error: io::Error| refused(&path.display().to_string(), &error);
        let is_socket = path.symlink_metadata().is_ok_and(|data| data.file_type().is_socket());
        if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
            std::fs::remove_file(path).map_err(refused)?;
        }
        let listener = UnixListener::bind(path).map_err(refused)?;
        let own = Self::new(ListenerSocket::Unix(listener, path.to_owned()));
        let only_owner = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path, only_owner).map_err(refused)?;
        Ok(own)
    }

    /// Takes a Unix socket that listens already, in non-blocking mode.
    pub(crate) fn of_unix(
        listener: std::os::unix::net::UnixListener,
        path: PathBuf,
    ) -> Result<Self> {
        Ok(Self::new(ListenerSocket::Unix(UnixListener::from_std(listener), path)))
    }

    /// The address it listens on.
    pub(crate) fn name(&self) -> String {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "tcp".into(), |address| address.to_string())
            }
            ListenerSocket::Unix(_, path) => path.display().to_string(),
        }
    }

    /// The address by which a store behind this socket is opened.
    pub(crate) fn url(&self) -> String {
        match &self.socket {
            ListenerSocket::Tcp(_) if self.is_tls() => format!("rediss://{}", self.name()),
            ListenerSocket::Tcp(_) => format!("redis://{}", self.name()),
            ListenerSocket::Unix(_, path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                format!("unix://{}", path.display())
            }
        }
    }

    pub(crate) fn port(&self) -> Option<u16> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => listener.local_addr().ok().map(|it| it.port()),
            ListenerSocket::Unix(..) => None,
        }
    }

    /// The parameters of CONFIG GET that tell its address.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let ip = listener.local_addr().map(|address| address.ip().to_string());
                let port = self.port().unwrap_or(0).to_string();
                let name = if self.is_tls() { "tls-port" } else { "port" };
                vec![("bind", ip.unwrap_or_default()), (name, port)]
            }
            ListenerSocket::Unix(_, path) => vec![("unixsocket", path.display().to_string())],
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match &mut self.socket {
            ListenerSocket::Tcp(listener) => registry.register(listener, token, Interest::READABLE),
            ListenerSocket::Unix(listener, _) => {
                registry.register(listener, token, Interest::READABLE)
            }
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Without it, some small replies wait 40 ms.
                let _ = stream.set_nodelay(true);
                let tls = self.tls.as_ref().map(|tls| tls.session().map(Box::new)).transpose()?;
                Ok(Stream { tls, ..Stream::new(StreamSocket::Tcp(stream)) })
            }
            ListenerSocket::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                Ok(Stream::new(StreamSocket::Unix(stream)))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let ListenerSocket::Unix(_, path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}
