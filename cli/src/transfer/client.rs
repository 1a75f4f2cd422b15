//! A connection to a Redis server, or to a cluster, that an interruption ends. Replies arrive in the
//! order of the commands, which the caller may pipeline.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

use bytes::Bytes;
use lsmkv::{Address, Options, Remote, RemoteSession, Reply};

use super::progress::POLL_INTERVAL;
use super::{Command, Interrupt};
use crate::failure::Failure;

/// The longest silence of a server, in milliseconds.
const SILENCE_LIMIT_MS: u64 = 60_000;
/// The bytes of commands that are sent together.
const WINDOW_BYTES: usize = 256 << 10;

/// An open connection to a Redis server or a cluster.
pub(crate) struct RedisClient {
    session: RemoteSession,
    peer: String,
    is_cluster: bool,
    /// Commands that are not sent yet, and their bytes.
    queued: Vec<Command>,
    queued_bytes: usize,
    /// Replies that nobody has taken yet.
    replies: VecDeque<Reply>,
    interrupt: Interrupt,
    /// Its end tells the watcher that there is nothing more to end.
    _watched: Sender<()>,
}

impl RedisClient {
    /// Connects, with the options that concern remote stores. An interruption ends every later
    /// wait.
    pub(crate) fn connect(
        address: &Address,
        options: &Options,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let peer = address.to_string();
        // The databases are chosen by SELECT, in this one session.
        let first = Address { database: None, ..address.clone() };
        // The other options are those of the store at the other end of a copy.
        let options =
            Options { reply_timeout_ms: SILENCE_LIMIT_MS, read_only: false, ..options.clone() };
        let connect = move || Remote::open_any_protocol(first, &options);
        let connected = interrupt.run_interruptible(connect, || ());
        let remote = connected.ok_or_else(stopped)?.map_err(Failure::from)?;
        let session = remote.session()?;
        let (_watched, ended) = channel::<()>();
        let watcher = interrupt.clone();
        let is_cluster = remote.is_cluster();
        std::thread::spawn(move || {
            while ended.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if watcher.raised() {
                    remote.close();
                    return;
                }
            }
        });
        Ok(Self {
            session,
            peer,
            is_cluster,
            queued: Vec::new(),
            queued_bytes: 0,
            replies: VecDeque::new(),
            interrupt: interrupt.clone(),
            _watched,
        })
    }

    /// Queues a command, and sends the queue once it is long.
    pub(crate) fn send(&mut self, command: Command) -> Result<(), Failure> {
        self.queued_bytes += command.iter().map(Bytes::len).sum::<usize>();
        self.queued.push(command);
        if self.queued_bytes >= WINDOW_BYTES { self.run_queued() } else { Ok(()) }
    }

    /// Receives the reply to the oldest command without one.
    pub(crate) fn receive(&mut self) -> Result<Reply, Failure> {
        if self.replies.is_empty() {
            self.run_queued()?;
        }
        self.replies
            .pop_front()
            .ok_or_else(|| Failure::new(format!("{}: a reply is missing", self.peer)))
    }

    /// Sends a command and receives its reply; an error reply is a failure.
    pub(crate) fn call(&mut self, command: Command) -> Result<Reply, Failure> {
        let name = command.first().map(|name| name.escape_ascii().to_string());
        self.send(command)?;
        match self.receive()? {
            Reply::Error(text) => {
                Err(Failure::new(format!("{}: {}: {text}", self.peer, name.unwrap_or_default())))
            }
            answer => Ok(answer),
        }
    }

    /// Sends a command of text arguments and receives its reply; an error reply is a failure.
    pub(crate) fn call_words(&mut self, words: &[&str]) -> Result<Reply, Failure> {
        self.call(words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect())
    }

    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// Whether the keys are on the nodes of a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    fn run_queued(&mut self) -> Result<(), Failure> {
        let queued = std::mem::take(&mut self.queued);
        self.queued_bytes = 0;
        let argvs: Vec<Vec<&[u8]>> =
            queued.iter().map(|command| command.iter().map(Bytes::as_ref).collect()).collect();
        match self.session.pipeline(&argvs) {
            Ok(replies) => {
                self.replies.extend(replies);
                Ok(())
            }
            Err(_) if self.interrupt.raised() => Err(stopped()),
            Err(error) => Err(error.into()),
        }
    }
}

fn stopped() -> Failure {
    Failure::new("stopped")
}

/// The bytes of a reply that is text.
pub(crate) fn text_of(reply: Reply) -> Option<Bytes> {
    match reply {
        Reply::Bulk(text) | Reply::Text(text) | Reply::Verbatim(_, text) => Some(text),
        Reply::Status(text) => Some(Bytes::from_static(text.as_bytes())),
        _ => None,
    }
}

/// The elements of a reply that has several.
pub(crate) fn elements_of(reply: Reply) -> Option<Vec<Reply>> {
    match reply {
        Reply::Array(elements) | Reply::Set(elements) => Some(elements),
        _ => None,
    }
}
