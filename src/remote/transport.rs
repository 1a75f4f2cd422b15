//! A connected socket, with TLS between it and the commands or without.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use super::address::Endpoint;
use super::socket::Socket;
use crate::tls::{ClientTls, Session as TlsSession};

/// What a connection reads and writes.
#[derive(Debug)]
pub(super) struct Transport {
    socket: Socket,
    tls: Option<Box<TlsSession>>,
    /// The process that connected. A forked child must not speak on its parent's connection.
    process: u32,
}

impl Transport {
    /// Connects within `limit`, the handshake of TLS included.
    pub(super) fn connect(
        endpoint: &Endpoint,
        tls: Option<&ClientTls>,
        limit: Duration,
    ) -> io::Result<Self> {
        let process = std::process::id();
        let deadline = Instant::now() + limit;
        let mut socket = Socket::connect(endpoint, limit)?;
        socket.set_read_limit(Some(limit))?;
        socket.set_write_limit(Some(limit))?;
        let (Some(tls), Endpoint::Tcp(host, _)) = (tls, endpoint) else {
            return Ok(Self { socket, tls: None, process });
        };
        let wait = |socket: &Socket| socket.wait_readable(Some(deadline));
        let session = tls.connect(host, &mut socket, wait)?;
        Ok(Self { socket, tls: Some(Box::new(session)), process })
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether an idle connection is still open: the server has neither closed it nor sent a reply.
    /// With TLS it may have sent what concerns the encryption alone.
    pub(super) fn is_idle(&mut self) -> bool {
        loop {
            if self.socket.is_idle() {
                return true;
            }
            let Some(tls) = &mut self.tls else { return false };
            match tls.receive(&mut self.socket) {
                Ok(false) => {}
                Ok(true) | Err(_) => return false,
            }
        }
    }

    /// Waits until there is something to read, or the connection ended. Returns whether one is so.
    pub(super) fn wait_readable(&mut self, deadline: Option<Instant>) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return self.socket.wait_readable(deadline) };
        loop {
            if tls.has_arrived() {
                return Ok(true);
            }
            if !self.socket.wait_readable(deadline)? {
                return Ok(false);
            }
            tls.receive(&mut self.socket)?;
        }
    }
}

impl Read for Transport {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.socket.read(room),
            Some(tls) => tls.read(&mut self.socket, room),
        }
    }
}

/// With TLS, a flush sends what a write has left.
impl Write for Transport {
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

impl Drop for Transport {
    fn drop(&mut self) {
        if let Some(tls) = &mut self.tls
            && self.process == std::process::id()
        {
            // The close must not wait for a server that takes nothing.
            if self.socket.set_write_limit(Some(Duration::from_millis(1))).is_ok() {
                tls.close(&mut self.socket);
            }
        }
    }
}
