//! A client of a Redis server. Replies arrive in the order of the commands, which the caller may
//! pipeline.

use std::io::{BufRead as _, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use bytes::Bytes;

use super::interruptible_io::{InterruptibleSocket, stopped_error};
use super::stream::write_command;
use super::url::Endpoint;
use super::{Command, Interrupt, RedisUrl};
use crate::failure::Failure;

/// The maximum depth of nested arrays; no command used here needs more.
const MAX_DEPTH: usize = 8;

/// A reply of a Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RedisReply {
    Nil,
    Text(Bytes),
    Error(String),
    Int(i64),
    Array(Vec<RedisReply>),
}

impl RedisReply {
    /// The text of a text reply.
    pub(crate) fn text(self) -> Option<Bytes> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn array(self) -> Option<Vec<Self>> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }
}

/// An open connection to a Redis server.
pub(crate) struct RedisClient {
    input: BufReader<Box<dyn Read + Send>>,
    output: BufWriter<Box<dyn Write + Send>>,
    peer: String,
}

impl RedisClient {
    /// Connects, and authenticates if the address has a password. An interruption ends every later
    /// wait.
    pub(crate) fn connect(url: &RedisUrl, interrupt: &Interrupt) -> Result<Self, Failure> {
        let peer = url.shown();
        let failed = |error: std::io::Error| Failure::new(format!("{peer}: {error}"));
        let (input, output): (Box<dyn Read + Send>, Box<dyn Write + Send>) = match &url.endpoint {
            Endpoint::Tcp(host, port) => {
                let address = (host.clone(), *port);
                let connected =
                    interrupt.run_interruptible(move || TcpStream::connect(address), || ());
                let stream = connected.ok_or_else(|| failed(stopped_error()))?.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                let other = stream.try_clone().map_err(failed)?;
                let interruptible =
                    |it| InterruptibleSocket::new(it, interrupt).map(Box::new).map_err(failed);
                (interruptible(other)?, interruptible(stream)?)
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path).map_err(failed)?;
                let other = stream.try_clone().map_err(failed)?;
                let interruptible =
                    |it| InterruptibleSocket::new(it, interrupt).map(Box::new).map_err(failed);
                (interruptible(other)?, interruptible(stream)?)
            }
        };
        let (input, output) = (BufReader::new(input), BufWriter::with_capacity(64 << 10, output));
        let mut client = Self { input, output, peer };
        if let Some(password) = &url.password {
            let mut auth = vec![Bytes::from_static(b"AUTH")];
            auth.extend(url.user.iter().chain([password]).map(|word| Bytes::from(word.clone())));
            client.call(&auth)?;
        }
        Ok(client)
    }

    /// Sends a command without waiting for its reply.
    pub(crate) fn send(&mut self, command: &Command) -> Result<(), Failure> {
        write_command(&mut self.output, command).map_err(|error| self.failure(&error))
    }

    /// Receives the reply to the oldest command without one.
    pub(crate) fn receive(&mut self) -> Result<RedisReply, Failure> {
        self.output.flush().map_err(|error| self.failure(&error))?;
        self.reply(0)
    }

    /// Sends a command and receives its reply; an error reply is a failure.
    pub(crate) fn call(&mut self, command: &Command) -> Result<RedisReply, Failure> {
        self.send(command)?;
        match self.receive()? {
            RedisReply::Error(text) => {
                let name = command.first().map(|name| name.escape_ascii().to_string());
                Err(Failure::new(format!("{}: {}: {text}", self.peer, name.unwrap_or_default())))
            }
            answer => Ok(answer),
        }
    }

    /// Sends a command of text arguments and receives its reply; an error reply is a failure.
    pub(crate) fn call_words(&mut self, words: &[&str]) -> Result<RedisReply, Failure> {
        self.call(&words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect())
    }

    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!("{}: {error}", self.peer))
    }

    fn protocol_failure(&self) -> Failure {
        Failure::new(format!("{}: the answer is not one of a Redis server", self.peer))
    }

    fn line(&mut self) -> Result<Vec<u8>, Failure> {
        const MAX_LINE: u64 = 64 << 10;
        let mut line = Vec::new();
        let read = (&mut self.input).take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| self.failure(&error))? == 0 {
            return Err(Failure::new(format!("{}: the connection was closed", self.peer)));
        }
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(text.to_vec()),
            None => Err(self.protocol_failure()),
        }
    }

    fn reply(&mut self, depth: usize) -> Result<RedisReply, Failure> {
        let line = self.line()?;
        let Some((&kind, rest)) = line.split_first() else { return Err(self.protocol_failure()) };
        let text = String::from_utf8_lossy(rest);
        let number = || text.parse::<i64>().map_err(|_| self.protocol_failure());
        match kind {
            b'+' => Ok(RedisReply::Text(Bytes::copy_from_slice(rest))),
            b'-' => Ok(RedisReply::Error(text.into_owned())),
            b':' => Ok(RedisReply::Int(number()?)),
            b'_' => Ok(RedisReply::Nil),
            b'$' => match u64::try_from(number()?) {
                Ok(length) => self.bulk(length).map(RedisReply::Text),
                Err(_) => Ok(RedisReply::Nil),
            },
            b'*' if depth < MAX_DEPTH => match u64::try_from(number()?) {
                Ok(count) => (0..count)
                    .map(|_| self.reply(depth + 1))
                    .collect::<Result<_, _>>()
                    .map(RedisReply::Array),
                Err(_) => Ok(RedisReply::Nil),
            },
            _ => Err(self.protocol_failure()),
        }
    }

    /// Reads a bulk string. It allocates as bytes arrive, whatever the length claims.
    fn bulk(&mut self, length: u64) -> Result<Bytes, Failure> {
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(length.saturating_add(2)).read_to_end(&mut bytes);
        read.map_err(|error| self.failure(&error))?;
        let whole = bytes.len() as u64 == length.saturating_add(2) && bytes.ends_with(b"\r\n");
        if !whole {
            return Err(self.protocol_failure());
        }
        bytes.truncate(bytes.len() - 2);
        Ok(Bytes::from(bytes))
    }
}
