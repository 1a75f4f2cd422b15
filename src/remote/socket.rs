//! The socket of a connection: TCP or Unix, with limits on every wait.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;

use super::address::Endpoint;
use crate::sync::socket_path::{self, NearDirectory};

/// A connected socket.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects within `limit`.
    pub(super) fn connect(endpoint: &Endpoint, limit: Duration) -> io::Result<Self> {
        match endpoint {
            Endpoint::Tcp(host, port) => {
                let stream = connect_tcp(host, *port, limit)?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix(path) => connect_unix(Path::new(path), limit).map(Self::Unix),
        }
    }

    /// Sets the longest wait for the next bytes; `None` for no limit.
    pub(super) fn set_read_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(limit),
            Self::Unix(stream) => stream.set_read_timeout(limit),
        }
    }

    /// Sets the longest wait for room to write; `None` for no limit.
    pub(super) fn set_write_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_write_timeout(limit),
            Self::Unix(stream) => stream.set_write_timeout(limit),
        }
    }

    /// A second handle of the socket, by which another thread can end its waits.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
        })
    }

    /// Ends all waits on the socket, and the connection.
    pub(super) fn shut_down(&self) {
        // It fails if the other side was faster.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Whether an idle connection is still open: the server has neither closed it nor sent
    /// anything.
    pub(super) fn is_idle(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let seen = rustix::net::recv(self.as_fd(), &mut byte, flags);
        matches!(seen, Err(rustix::io::Errno::AGAIN))
    }

    /// Whether the other side has closed the connection.
    pub(super) fn is_ended(&self) -> bool {
        let mut byte = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        match rustix::net::recv(self.as_fd(), &mut byte, flags) {
            Ok((read, _)) => read == 0,
            Err(error) => error != rustix::io::Errno::AGAIN,
        }
    }

    /// Waits until bytes have arrived, or the connection ended. Returns whether one is so.
    pub(super) fn wait_readable(&self, deadline: Option<Instant>) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        loop {
            let mut fds = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN)];
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let limit = left.map(Timespec::try_from).transpose();
            let limit = limit.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            match poll(&mut fds, limit.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The descriptor, to be polled.
    pub(super) fn descriptor(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(room),
            Self::Unix(stream) => stream.read(room),
        }
    }
}

/// Writes never raise SIGPIPE, whatever the program has made of that signal.
impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let flags = rustix::net::SendFlags::NOSIGNAL;
        Ok(rustix::net::send(self.as_fd(), bytes, flags)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to the first address of a host that answers, within the limit for all of them and for
/// finding them.
fn connect_tcp(host: &str, port: u16, limit: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + limit;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses(host, port, limit)? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The addresses of a host.
fn addresses(host: &str, port: u16, limit: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let host = host.to_owned();
    within(limit, move || Ok((host.as_str(), port).to_socket_addrs()?.collect()))
}

/// The most threads that wait for the system's resolver.
const MOST_RESOLVERS: usize = 32;

/// Their number now.
static RESOLVERS: AtomicUsize = AtomicUsize::new(0);

/// Counts a thread that waits for the resolver.
struct Resolver;

impl Resolver {
    fn begin() -> Option<Self> {
        let counted = Self;
        (RESOLVERS.fetch_add(1, Relaxed) < MOST_RESOLVERS).then_some(counted)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        RESOLVERS.fetch_sub(1, Relaxed);
    }
}

/// Does work that has no limit of its own, as a question to the system's resolver, on another thread.
/// When the time is over, that one ends unheard. While many such threads are left, there are no more.
fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let Some(resolver) = Resolver::begin() else {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "the resolver does not answer"));
    };
    let (sender, done) = mpsc::channel();
    crate::sync::spawn("lsmkv-resolver", move || {
        // Nobody listens any more once the time is over.
        let _ = sender.send(work());
        drop(resolver);
    })?;
    done.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Connects to a socket at a path of any length: a long one is reached through its directory. The
/// limit counts where the server has no room for another connection, as one that is stopped.
fn connect_unix(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    if path.as_os_str().len() <= socket_path::LONGEST {
        return connect_near(path, limit);
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    connect_near(&NearDirectory::open(directory)?.path(name), limit)
}

fn connect_near(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    use rustix::net::sockopt::{Timeout, set_socket_timeout};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(limit))?;
    let address = SocketAddrUnix::new(path)?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A resolver that did not answer held a connect for as long as it liked.
    #[test]
    fn work_that_does_not_end_is_left_in_time() {
        let begun = Instant::now();
        let limit = Duration::from_millis(50);
        let slow = within(limit, || {
            std::thread::sleep(Duration::from_secs(20));
            Ok(())
        });
        assert_eq!(slow.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= limit && begun.elapsed() < Duration::from_secs(10));
        assert_eq!(within(limit, || Ok(7)).unwrap(), 7);
        assert!(!addresses("localhost", 7, Duration::from_secs(10)).unwrap().is_empty());
        // An address needs no resolver.
        assert_eq!(addresses("::1", 7, Duration::ZERO).unwrap().len(), 1);
    }
}
