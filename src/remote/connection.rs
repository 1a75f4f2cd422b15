//! One connection to a server: the handshake, commands in words, replies in order.
//!
//! A connection whose reply was lost, or whose bytes were no reply, is broken for good: what comes
//! next on it could belong to another command.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::address::Endpoint;
use super::frame::{Frame, ReadFailure, Shape};
use super::reply_reader::ReplyReader;
use super::server_error::server_error;
use super::socket::Socket;
use super::transport::Transport;
use crate::commands::{Reply, ReplyBuilder, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::descriptors::Listed;
use crate::tls::{ClientTls, explain_server};

/// The bytes for commands that are kept across calls.
const KEPT_BYTES: usize = 1 << 20;

/// Who connects, to which database, and how long it may wait.
#[derive(Clone, Debug)]
pub(super) struct Login {
    /// What to show and to trust, if connections are encrypted.
    pub(super) tls: Option<ClientTls>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: u32,
    /// The process behind the connection, if it must be the holder of a shared store.
    pub(super) holder: Option<SeenHolder>,
    /// Whether a server that speaks RESP2 alone will do.
    pub(super) any_protocol: bool,
    pub(super) connect_limit: Duration,
    /// The longest wait for the next bytes of a reply; `None` for no limit.
    pub(super) reply_limit: Option<Duration>,
    /// The longest value that is accepted.
    pub(super) longest_value: u64,
}

/// The process that was last found to hold a shared store.
pub(super) type SeenHolder = Arc<Mutex<Option<Holder>>>;

/// The holder of a shared store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The number of the process.
    pub(crate) process: u32,
    /// A number that differs each time that a process becomes the holder.
    pub(crate) generation: i64,
}

/// A call that failed, and whether the server may have run it.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// The server has not seen the whole command.
    NotSent(Error),
    /// The command was sent and its reply is lost.
    Lost(Error),
}

impl CallFailure {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::NotSent(error) => error,
            Self::Lost(error) => error.wrap(
                error.kind(),
                "the reply to a command was lost, and the command may or may not have run",
            ),
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    /// Closes the copy of a forked child. Dropped before the socket.
    _listed: Listed,
    transport: Transport,
    reader: ReplyReader,
    /// Commands that are not written yet.
    out: Vec<u8>,
    peer: String,
    reply_limit: Option<Duration>,
    /// The limit that the socket has now.
    read_limit: Option<Duration>,
    broken: bool,
    wrote_any: bool,
}

impl Connection {
    /// Connects and logs in.
    pub(super) fn open(endpoint: &Endpoint, login: &Login) -> Result<Self> {
        let peer = endpoint.to_string();
        let failed = |error: &std::io::Error| match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => {
                let ms = login.connect_limit.as_millis();
                let hint = if login.tls.is_some() { ", or it speaks no TLS" } else { "" };
                let text =
                    format!("no connection to {peer} within {ms} ms (connect_timeout_ms){hint}");
                Error::new(ErrorKind::Timeout, text)
            }
            std::io::ErrorKind::UnexpectedEof => {
                let text =
                    format!("{peer} ended the TLS handshake: it may speak no TLS (redis://)");
                Error::new(ErrorKind::Incompatible, text)
            }
            _ => explain_server(&peer, error)
                .unwrap_or_else(|| Error::io("connect to", Path::new(&peer), error)),
        };
        let transport = Transport::connect(endpoint, login.tls.as_ref(), login.connect_limit)
            .map_err(|e| failed(&e))?;
        let limit = Some(login.connect_limit);
        let mut connection = Self {
            _listed: Listed::new(transport.socket().descriptor()),
            transport,
            reader: ReplyReader::new(login.longest_value),
            out: Vec::new(),
            peer,
            reply_limit: limit,
            read_limit: limit,
            broken: false,
            wrote_any: false,
        };
        connection.log_in(login)?;
        connection.reply_limit = login.reply_limit;
        connection.socket().set_write_limit(login.reply_limit).map_err(|e| connection.io(&e))?;
        Ok(connection)
    }

    fn log_in(&mut self, login: &Login) -> Result<()> {
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(password) = &login.password {
            let user = login.user.as_deref().unwrap_or("default");
            hello.extend([b"AUTH".as_slice(), user.as_bytes(), password.as_bytes()]);
        }
        let peer = self.peer.clone();
        let refused = |text: &str| {
            let unknown = text.starts_with("NOPROTO") || text.contains("unknown command");
            if unknown {
                let message = format!(
                    "{peer} speaks no RESP3, which a remote store needs: Redis 6, Valkey or another \
                     server of that age ({text})"
                );
                return Error::new(ErrorKind::Incompatible, message);
            }
            let message = format!("{peer} refuses the login of the address: {text}");
            Error::new(ErrorKind::Invalid, message)
        };
        match self.handshake(&hello, refused) {
            Err(error) if login.any_protocol && error.kind() == ErrorKind::Incompatible => {
                if let Some(password) = &login.password {
                    let mut auth: Vec<&[u8]> = vec![b"AUTH"];
                    auth.extend(login.user.iter().chain([password]).map(String::as_bytes));
                    self.handshake(&auth, refused)?;
                }
            }
            outcome => outcome?,
        }
        if let Some(seen) = &login.holder {
            let holder = self.greet_holder()?;
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(holder);
        }
        if login.database == 0 {
            return Ok(());
        }
        let number = login.database.to_string();
        self.handshake(&[b"SELECT", number.as_bytes()], |text| {
            let message = format!("{peer} has no database {number}: {text}");
            let shared = login.holder.is_some();
            let kind = if shared { ErrorKind::OutOfRange } else { server_error(text).kind() };
            Error::new(kind, message)
        })
    }

    /// Asks which process holds the shared store behind the connection.
    fn greet_holder(&mut self) -> Result<Holder> {
        let reply =
            self.query(&[b"LSMKV.SHARED", b"HELLO"]).map_err(|error| match error.kind() {
                ErrorKind::Io | ErrorKind::Timeout => error,
                _ => self.no_holder(),
            })?;
        if let Reply::Array(words) = &reply
            && let [Reply::Int(process), Reply::Int(generation)] = words.as_slice()
            && let Ok(process) = u32::try_from(*process)
        {
            return Ok(Holder { process, generation: *generation });
        }
        Err(self.no_holder())
    }

    fn no_holder(&self) -> Error {
        let message = format!("{} is a server, but no holder of a shared store", self.peer);
        Error::new(ErrorKind::Incompatible, message)
    }

    fn handshake(&mut self, argv: &[&[u8]], refused: impl FnOnce(&str) -> Error) -> Result<()> {
        let mut nothing = ReplyBuilder::default();
        match self.call(argv, Shape::AsSent, None, &mut nothing) {
            Ok(Frame::Error(text)) => Err(refused(&text)),
            Ok(_) => Ok(()),
            Err(CallFailure::NotSent(error) | CallFailure::Lost(error)) => Err(error),
        }
    }

    /// Runs a command. `wait` is how long the command itself may wait at the server, if it does.
    pub(super) fn call(
        &mut self,
        argv: &[&[u8]],
        shape: Shape,
        wait: Option<Wait>,
        sink: &mut dyn ReplySink,
    ) -> std::result::Result<Frame, CallFailure> {
        self.push(argv);
        self.send().map_err(CallFailure::NotSent)?;
        self.receive(shape, wait, sink).map_err(CallFailure::Lost)
    }

    /// Runs a command that replies one value, and returns it. An error reply is an error.
    pub(super) fn query(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        let mut reply = ReplyBuilder::default();
        match self.call(argv, Shape::AsSent, None, &mut reply).map_err(CallFailure::into_error)? {
            Frame::Error(text) => Err(server_error(&text)),
            _ => Ok(reply.finish()),
        }
    }

    /// Adds a command to those that the next [`Connection::send`] writes.
    pub(super) fn push(&mut self, argv: &[&[u8]]) {
        write_command(&mut self.out, argv);
    }

    /// The number of bytes that wait to be written.
    pub(super) fn pending(&self) -> usize {
        self.out.len()
    }

    /// Writes the commands.
    pub(super) fn send(&mut self) -> Result<()> {
        let sent = self.write_out();
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        sent.map_err(|error| {
            self.broken = true;
            self.io(&error)
        })
    }

    fn write_out(&mut self) -> std::io::Result<()> {
        let mut rest = self.out.as_slice();
        while !rest.is_empty() {
            match self.transport.write(rest) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.wrote_any = true;
                    rest = rest.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.transport.flush()
    }

    /// Whether any byte was written since this was last asked.
    pub(super) fn take_wrote_any(&mut self) -> bool {
        std::mem::take(&mut self.wrote_any)
    }

    /// Reads what comes next: the reply to the oldest command without one, or a message.
    pub(super) fn receive(
        &mut self,
        shape: Shape,
        wait: Option<Wait>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let limit = match wait {
            None => self.reply_limit,
            Some(Wait::Forever) => None,
            Some(Wait::For(time)) => self.reply_limit.map(|limit| limit.saturating_add(time)),
            Some(Wait::AtMost(time)) => Some(time),
        };
        if limit != self.read_limit {
            self.socket().set_read_limit(limit).map_err(|error| self.io(&error))?;
            self.read_limit = limit;
        }
        let begin = sink.position();
        self.reader.read(&mut self.transport, shape, sink).map_err(|failure| {
            self.broken = true;
            sink.rollback_to(begin);
            match failure {
                ReadFailure::Io(error) => self.io(&error),
                ReadFailure::Protocol(text) => {
                    let message = format!("{} is no Redis server, or damaged: {text}", self.peer);
                    Error::new(ErrorKind::Io, message)
                }
            }
        })
    }

    /// Waits until something arrives. Returns whether it did before the deadline.
    pub(super) fn wait_readable(&mut self, deadline: Option<Instant>) -> Result<bool> {
        if self.reader.has_read_ahead() {
            return Ok(true);
        }
        self.transport.wait_readable(deadline).map_err(|error| self.io(&error))
    }

    /// Whether the connection can run another command.
    pub(super) fn is_usable(&self) -> bool {
        !self.broken && self.out.is_empty() && !self.reader.has_read_ahead()
    }

    /// Whether an idle connection is still open.
    pub(super) fn is_idle(&mut self) -> bool {
        self.is_usable() && self.transport.is_idle()
    }

    /// Whether the server has closed the connection, or it failed.
    pub(super) fn is_ended(&self) -> bool {
        self.broken || self.socket().is_ended()
    }

    pub(super) fn socket(&self) -> &Socket {
        self.transport.socket()
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    fn io(&self, error: &std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                let ms = self.read_limit.unwrap_or_default().as_millis();
                let text = format!("{} has not answered within {ms} ms", self.peer);
                Error::new(ErrorKind::Timeout, text)
            }
            _ => explain_server(&self.peer, error)
                .unwrap_or_else(|| Error::io("talk to", Path::new(&self.peer), error)),
        }
    }
}

/// How long a command waits at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For a time of its own, and the usual limit in addition.
    For(Duration),
    Forever,
    /// Whatever the usual limit is.
    AtMost(Duration),
}

/// Appends a command as a server reads it.
pub(super) fn write_command(out: &mut Vec<u8>, argv: &[&[u8]]) {
    let head = |kind: u8, number: usize, out: &mut Vec<u8>| {
        out.push(kind);
        // Writing to memory does not fail.
        let _ = write!(out, "{number}");
        out.extend_from_slice(b"\r\n");
    };
    head(b'*', argv.len(), out);
    for word in argv {
        head(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_its_words() {
        let mut out = Vec::new();
        write_command(&mut out, &[b"SET", b"k", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
    }
}
