//! A client of a Redis server: commands in, replies out, in order, pipelined as the caller likes.

use std::io::{BufRead as _, BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use bytes::Bytes;

use super::patience::{Patient, stopped};
use super::stream::write_command;
use super::url::Place;
use super::{Command, Interrupt, RedisUrl};
use crate::failure::Failure;

/// Arrays in arrays, at most: no command here is answered by more.
const DEEPEST: usize = 8;

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Nil,
    Text(Bytes),
    Error(String),
    Int(i64),
    Array(Vec<Answer>),
}

impl Answer {
    /// The text, if it is one.
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

/// An open connection.
pub(crate) struct Client {
    input: BufReader<Box<dyn Read + Send>>,
    output: BufWriter<Box<dyn Write + Send>>,
    peer: String,
}

impl Client {
    /// Connects and, if the address has a password, logs in. Whatever it waits for later, it gives
    /// up when interrupted.
    pub(crate) fn connect(url: &RedisUrl, interrupt: &Interrupt) -> Result<Self, Failure> {
        let peer = url.shown();
        let failed = |error: std::io::Error| Failure::new(format!("{peer}: {error}"));
        let (input, output): (Box<dyn Read + Send>, Box<dyn Write + Send>) = match &url.place {
            Place::Tcp(host, port) => {
                let address = (host.clone(), *port);
                let connected = interrupt.unless_raised(move || TcpStream::connect(address), || ());
                let stream = connected.ok_or_else(|| failed(stopped()))?.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                let other = stream.try_clone().map_err(failed)?;
                let patient = |it| Patient::new(it, interrupt).map(Box::new).map_err(failed);
                (patient(other)?, patient(stream)?)
            }
            Place::Unix(path) => {
                let stream = UnixStream::connect(path).map_err(failed)?;
                let other = stream.try_clone().map_err(failed)?;
                let patient = |it| Patient::new(it, interrupt).map(Box::new).map_err(failed);
                (patient(other)?, patient(stream)?)
            }
        };
        let (input, output) = (BufReader::new(input), BufWriter::with_capacity(64 << 10, output));
        let mut client = Self { input, output, peer };
        if let Some(password) = &url.password {
            let mut auth = vec![Bytes::from_static(b"AUTH")];
            auth.extend(url.user.iter().chain([password]).map(|word| Bytes::from(word.clone())));
            client.ask(&auth)?;
        }
        Ok(client)
    }

    /// Sends a command whose answer will be read later.
    pub(crate) fn send(&mut self, command: &Command) -> Result<(), Failure> {
        write_command(&mut self.output, command).map_err(|error| self.failure(&error))
    }

    /// The answer to the oldest command that has none yet.
    pub(crate) fn receive(&mut self) -> Result<Answer, Failure> {
        self.output.flush().map_err(|error| self.failure(&error))?;
        self.answer(0)
    }

    /// A command and its answer; an error of the server is a failure.
    pub(crate) fn ask(&mut self, command: &Command) -> Result<Answer, Failure> {
        self.send(command)?;
        match self.receive()? {
            Answer::Error(text) => {
                let name = command.first().map(|name| name.escape_ascii().to_string());
                Err(Failure::new(format!("{}: {}: {text}", self.peer, name.unwrap_or_default())))
            }
            answer => Ok(answer),
        }
    }

    /// The same with words of text.
    pub(crate) fn ask_words(&mut self, words: &[&str]) -> Result<Answer, Failure> {
        self.ask(&words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect())
    }

    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!("{}: {error}", self.peer))
    }

    fn nonsense(&self) -> Failure {
        Failure::new(format!("{}: the answer is not one of a Redis server", self.peer))
    }

    fn line(&mut self) -> Result<Vec<u8>, Failure> {
        const LONGEST: u64 = 64 << 10;
        let mut line = Vec::new();
        let read = (&mut self.input).take(LONGEST).read_until(b'\n', &mut line);
        if read.map_err(|error| self.failure(&error))? == 0 {
            return Err(Failure::new(format!("{}: the connection was closed", self.peer)));
        }
        match line.strip_suffix(b"\r\n") {
            Some(text) => Ok(text.to_vec()),
            None => Err(self.nonsense()),
        }
    }

    fn answer(&mut self, depth: usize) -> Result<Answer, Failure> {
        let line = self.line()?;
        let Some((&kind, rest)) = line.split_first() else { return Err(self.nonsense()) };
        let text = String::from_utf8_lossy(rest);
        let number = || text.parse::<i64>().map_err(|_| self.nonsense());
        match kind {
            b'+' => Ok(Answer::Text(Bytes::copy_from_slice(rest))),
            b'-' => Ok(Answer::Error(text.into_owned())),
            b':' => Ok(Answer::Int(number()?)),
            b'_' => Ok(Answer::Nil),
            b'$' => match u64::try_from(number()?) {
                Ok(length) => self.bulk(length).map(Answer::Text),
                Err(_) => Ok(Answer::Nil),
            },
            b'*' if depth < DEEPEST => match u64::try_from(number()?) {
                Ok(count) => (0..count)
                    .map(|_| self.answer(depth + 1))
                    .collect::<Result<_, _>>()
                    .map(Answer::Array),
                Err(_) => Ok(Answer::Nil),
            },
            _ => Err(self.nonsense()),
        }
    }

    /// Reads what is there and allocates no more than that.
    fn bulk(&mut self, length: u64) -> Result<Bytes, Failure> {
        let mut bytes = Vec::new();
        let read = (&mut self.input).take(length.saturating_add(2)).read_to_end(&mut bytes);
        read.map_err(|error| self.failure(&error))?;
        let whole = bytes.len() as u64 == length.saturating_add(2) && bytes.ends_with(b"\r\n");
        if !whole {
            return Err(self.nonsense());
        }
        bytes.truncate(bytes.len() - 2);
        Ok(Bytes::from(bytes))
    }
}
