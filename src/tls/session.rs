//! The TLS of one connection: reads and writes of plain bytes on one side, records on the other.
//!
//! A session owns no socket; every call is given it. The socket may block or not. Invariants:
//! - A read of a server's session that returns fewer bytes than asked for, and after which
//!   [`Session::may_have_more`] is false, has emptied the socket.
//! - At most one record of replies is encrypted ahead of the socket, so what a peer does not take
//!   stays with the caller, whose limits count it.
//! - An error of TLS is final. The alert that tells the peer is sent once, as far as there is room.

use std::io::{self, ErrorKind, Read, Write};

use rustls::Connection;

#[cfg(feature = "server")]
use super::{ClientFault, failure};

/// The plain bytes that a record holds at most.
const RECORD_BYTES: usize = 16 << 10;
/// The bytes that one read takes from the socket at most: a peer could send empty records without
/// end.
const RECEIVED_PER_READ: usize = 128 << 10;
/// The memory of a session without what it has received or not sent yet: keys, state, and a buffer
/// for the next record.
const SESSION_BYTES: usize = 12 << 10;

/// The TLS of a connection.
#[derive(Debug)]
pub(crate) struct Session {
    connection: Connection,
    /// Whether a read goes on until it has all it asked for or the socket is empty; otherwise it
    /// returns with the first bytes.
    reads_all: bool,
    end: Option<End>,
    /// Whether the last read left the socket with bytes, or the session with its end.
    may_have_more: bool,
    /// The bytes of the handshake so far. A peer that sends a long one has them kept.
    handshake_bytes: usize,
}

/// Why nothing more is received.
#[derive(Debug)]
enum End {
    /// The peer has closed its side. Commands and replies tell their lengths, so one that was cut off
    /// shows without the closing message of TLS, which many programs do not send.
    Closed,
    Failed(rustls::Error),
}

impl Session {
    pub(super) fn new(connection: Connection, reads_all: bool) -> Self {
        Self { connection, reads_all, end: None, may_have_more: false, handshake_bytes: 0 }
    }

    /// Reads plain bytes; 0 is the end of the stream.
    pub(crate) fn read<S: Read + Write>(
        &mut self,
        socket: &mut S,
        room: &mut [u8],
    ) -> io::Result<usize> {
        let (mut filled, mut received) = (0, 0);
        self.may_have_more = true;
        loop {
            filled += self.take_plain(room.get_mut(filled..).unwrap_or_default());
            if filled == room.len() || (filled > 0 && !self.reads_all) {
                return Ok(filled);
            }
            let outcome = match &self.end {
                Some(End::Closed) => Ok(0),
                Some(End::Failed(error)) => Err(io::Error::other(error.clone())),
                None if received >= RECEIVED_PER_READ => Err(ErrorKind::Interrupted.into()),
                None => match self.receive_some(socket) {
                    Ok(len) => {
                        received += len;
                        continue;
                    }
                    Err(error) => {
                        self.may_have_more = error.kind() != ErrorKind::WouldBlock;
                        Err(error)
                    }
                },
            };
            // What was received before the end comes first; the next read tells the end.
            return if filled > 0 { Ok(filled) } else { outcome };
        }
    }

    /// Receives once, and returns whether there are plain bytes to read, or the end.
    #[cfg(feature = "remote")]
    pub(crate) fn receive<S: Read + Write>(&mut self, socket: &mut S) -> io::Result<bool> {
        if !self.has_arrived() {
            self.receive_some(socket)?;
        }
        Ok(self.has_arrived())
    }

    /// Whether a read returns at once: there are plain bytes to read, or the end.
    #[cfg(feature = "remote")]
    pub(crate) fn has_arrived(&mut self) -> bool {
        let first = self.connection.reader().into_first_chunk();
        self.end.is_some() || first.is_ok_and(|chunk| !chunk.is_empty())
    }

    fn take_plain(&mut self, room: &mut [u8]) -> usize {
        // An error says that nothing is there yet; ends are noted when they are received.
        self.connection.reader().read(room).unwrap_or(0)
    }

    /// Reads from the socket once, and answers what TLS has to answer.
    fn receive_some<S: Read + Write>(&mut self, socket: &mut S) -> io::Result<usize> {
        let len = self.connection.read_tls(socket)?;
        if self.connection.is_handshaking() {
            self.handshake_bytes = self.handshake_bytes.saturating_add(len);
        }
        match self.connection.process_new_packets() {
            Ok(state) if len == 0 || state.peer_has_closed() => self.end = Some(End::Closed),
            Ok(_) => {}
            Err(error) => self.end = Some(End::Failed(error)),
        }
        if !self.connection.is_handshaking() {
            self.handshake_bytes = 0;
        }
        // A later flush sends the rest. A socket that is broken shows with the next read.
        let _ = self.flush(socket);
        Ok(len)
    }

    /// Fails if nothing more is received.
    #[cfg(feature = "remote")]
    pub(super) fn check_end(&self) -> io::Result<()> {
        match &self.end {
            None => Ok(()),
            Some(End::Closed) => Err(ErrorKind::UnexpectedEof.into()),
            Some(End::Failed(error)) => Err(io::Error::other(error.clone())),
        }
    }

    /// Encrypts some bytes and sends what the socket takes of them. Those of which it returns the
    /// number are encrypted, and sent by later calls if not by this one.
    pub(crate) fn write<S: Write>(&mut self, socket: &mut S, bytes: &[u8]) -> io::Result<usize> {
        self.flush(socket)?;
        if self.connection.is_handshaking() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let some = bytes.get(..RECORD_BYTES.min(bytes.len())).unwrap_or_default();
        let taken = self.connection.writer().write(some)?;
        match self.flush(socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends all that is encrypted, or fails with `WouldBlock`.
    pub(crate) fn flush<S: Write>(&mut self, socket: &mut S) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the peer that nothing more follows, as far as the socket takes it.
    pub(crate) fn close<S: Write>(&mut self, socket: &mut S) {
        self.connection.send_close_notify();
        // The socket closes next, whether or not the peer is told.
        let _ = self.flush(socket);
    }

    /// Whether encrypted bytes wait for room in the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether another read would find something, though the socket tells of no new bytes.
    pub(crate) fn may_have_more(&self) -> bool {
        self.may_have_more
    }

    /// Whether the handshake is not over.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Approximate memory of the session with its buffers.
    pub(crate) fn memory_bytes(&self) -> usize {
        let unsent = if self.has_unsent() { RECORD_BYTES } else { 0 };
        SESSION_BYTES + unsent + self.handshake_bytes
    }

    /// What the client did wrong, if it did.
    #[cfg(feature = "server")]
    pub(crate) fn fault(&self) -> Option<(ClientFault, String)> {
        match &self.end {
            Some(End::Failed(error)) => Some(failure::of_client(error)),
            _ => None,
        }
    }
}
