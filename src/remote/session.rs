//! Sessions on a remote store: a connection of their own, for MULTI, WATCH and subscriptions.

use std::collections::{BTreeSet, VecDeque};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::call::Call;
use super::cluster::{Cluster, Pipeline, Transaction, slot_of};
use super::connection::{CallFailure, Connection};
use super::frame::{Frame, Shape};
use super::server_error::server_error;
use super::waits::{Waiting, Waits};
use super::{Remote, Unanswered, WINDOW, unconnected};
use crate::commands::entry::Entry;
use crate::commands::{
    Reply, ReplyBuilder, ReplySink, SessionCommands, by_entry_outside_multi, name_of,
};
use crate::error::{Error, ErrorKind, Result};

/// A connection to a remote store that no other call uses. It is opened at its first command.
#[derive(Debug)]
pub struct RemoteSession {
    remote: Remote,
    connection: Option<Connection>,
    /// Its entry among the waits: the close of the handle ends any call on the connection.
    waiting: Option<Waiting>,
    /// Messages that came before replies.
    messages: VecDeque<Reply>,
    /// The channels, patterns and shard channels that are subscribed to.
    names: [BTreeSet<Bytes>; 3],
    in_multi: bool,
    /// Whether the server may have seen any of the last call.
    sent: bool,
    /// MULTI and WATCH on a cluster.
    transaction: Transaction,
    /// Whether the connection is as a new one: no other call may get it otherwise.
    is_plain: bool,
    waits: Arc<Waits>,
}

impl Drop for RemoteSession {
    fn drop(&mut self) {
        // From here on a close of the handle must leave the connection alone.
        self.waiting = None;
        if let Some(connection) = self.connection.take().filter(|_| self.is_plain) {
            self.remote.give_back(connection);
        }
    }
}

impl SessionCommands for RemoteSession {
    fn call(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        by_entry_outside_multi(self.in_multi(), argv, |entry, sink| {
            self.run_entry(entry, argv, sink)
        })
    }
}

impl RemoteSession {
    pub(super) fn new(remote: Remote) -> Result<Self> {
        let waits = remote.shared.store_waits.of_handle()?;
        Ok(Self {
            remote,
            connection: None,
            waiting: None,
            messages: VecDeque::new(),
            names: Default::default(),
            in_multi: false,
            sent: false,
            transaction: Transaction::default(),
            is_plain: true,
            waits,
        })
    }

    /// Connects, unless it is connected.
    pub(crate) fn connect_now(&mut self) -> std::result::Result<(), Unanswered> {
        self.connection().map(drop).map_err(unconnected)
    }

    /// Whether the connection that it had has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.connection.as_ref().is_some_and(Connection::is_ended)
    }

    /// Whether the server may have seen any of the last call.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent
    }

    /// Whether it is subscribed to anything.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.names.iter().any(|names| !names.is_empty())
    }

    /// Whether commands are being queued.
    pub fn in_multi(&self) -> bool {
        self.in_multi || self.transaction.in_multi()
    }

    /// Runs a command. An error of the command is a reply.
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<Reply> {
        ReplyBuilder::collect(|reply| self.command_into(argv, reply))
    }

    /// Runs a command and writes its reply to `sink`. An error of the command is a reply.
    pub fn command_into(&mut self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        let name = name_of(argv)?;
        if let Some(word) = subscribing(name).filter(|_| !self.in_multi()) {
            return self.subscribe(word, argv, sink);
        }
        self.run(&Call::of(argv), sink)?.write_error(sink);
        Ok(())
    }

    /// Runs a command whose entry is known. An error of the command is an `Err`.
    pub(crate) fn run_entry(
        &mut self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        self.run(&Call { argv, entry: Some(entry) }, sink)?.into_result()
    }

    /// Runs commands in order, each like [`RemoteSession::command`]. They are sent together, as far as
    /// they fit a window; on a cluster those of each node are, and the nodes work at the same time.
    pub fn pipeline<'a>(&mut self, commands: &[impl AsRef<[&'a [u8]]>]) -> Result<Vec<Reply>> {
        let mut replies = Vec::with_capacity(commands.len());
        let argvs = commands.iter().map(|argv| Ok(argv.as_ref().to_vec()));
        self.pipeline_into(argvs, &mut ReplyBuilder::default(), |builder| {
            replies.push(std::mem::take(builder).finish());
        })?;
        Ok(replies)
    }

    /// Runs commands like [`RemoteSession::pipeline`], writes their replies to `sink`, and calls
    /// `each` after each one.
    pub(crate) fn pipeline_into<'c, S: ReplySink>(
        &mut self,
        mut commands: impl Iterator<Item = Result<Vec<&'c [u8]>>>,
        sink: &mut S,
        mut each: impl FnMut(&mut S),
    ) -> Result<()> {
        let remote = self.remote.clone();
        if let Some(cluster) = remote.cluster() {
            return self.pipeline_on(cluster, commands, sink, &mut each);
        }
        self.sent = false;
        let mut ended = false;
        while !ended {
            let mut shapes = Vec::new();
            while shapes.is_empty() || self.connection()?.pending() < WINDOW {
                let Some(argv) = commands.next() else {
                    ended = true;
                    break;
                };
                let argv = argv?;
                let call = Call::of(&argv);
                // Confirmations of subscriptions are no replies, and waits have limits of their own.
                let subscribes = subscribing(name_of(&argv)?).is_some();
                if subscribes || call.wait().is_some() {
                    self.receive_all(&mut shapes, sink, &mut each)?;
                    self.command_into(&argv, sink)?;
                    each(sink);
                    continue;
                }
                self.remote.check_writable(&call)?;
                self.note(&call);
                self.connection()?.push(&argv);
                shapes.push(call.shape());
            }
            self.receive_all(&mut shapes, sink, &mut each)?;
        }
        Ok(())
    }

    fn pipeline_on<'c, S: ReplySink>(
        &mut self,
        cluster: &Cluster,
        commands: impl Iterator<Item = Result<Vec<&'c [u8]>>>,
        sink: &mut S,
        each: &mut impl FnMut(&mut S),
    ) -> Result<()> {
        let waits = Arc::clone(&self.waits);
        let mut pipeline = Pipeline::new(cluster, &waits);
        for argv in commands {
            let argv = argv?;
            let call = Call::of(&argv);
            self.remote.check_writable(&call)?;
            if self.in_multi() || !pipeline.push(&argv)? {
                pipeline.finish(sink, each)?;
                self.command_into(&argv, sink)?;
                each(sink);
            } else if pipeline.is_full() {
                pipeline.finish(sink, each)?;
            }
        }
        pipeline.finish(sink, each)
    }

    fn receive_all<S: ReplySink>(
        &mut self,
        shapes: &mut Vec<Shape>,
        sink: &mut S,
        each: &mut impl FnMut(&mut S),
    ) -> Result<()> {
        if shapes.is_empty() {
            return Ok(());
        }
        let connection = self.connection()?;
        let sent = connection.send();
        self.sent |= connection.take_wrote_any();
        sent?;
        for shape in shapes.drain(..) {
            let lost = |error| CallFailure::Lost(error).into_error();
            self.receive(shape, sink).map_err(lost)?.write_error(sink);
            each(sink);
        }
        Ok(())
    }

    /// Waits until a message arrives, at most until the deadline; `None` if it passed.
    pub fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Reply>> {
        if let Some(message) = self.messages.pop_front() {
            return Ok(Some(message));
        }
        let waits = Arc::clone(&self.waits);
        let connection = self.connection()?;
        let readable = connection.wait_readable(deadline)?;
        waits.check_open()?;
        if !readable {
            return Ok(None);
        }
        let mut nothing = ReplyBuilder::default();
        match connection.receive(Shape::AsSent, None, &mut nothing)? {
            Frame::Push(message) => Ok(Some(message)),
            Frame::Error(text) => Err(server_error(&text)),
            Frame::Reply => {
                Err(Error::new(ErrorKind::Io, "a reply came that no command asked for"))
            }
        }
    }

    /// A descriptor that is readable when a message arrives. It belongs to the session.
    pub fn message_descriptor(&mut self) -> Result<RawFd> {
        Ok(self.connection()?.socket().descriptor())
    }

    /// By which another thread can end a wait of the session.
    pub(crate) fn waits(&self) -> Arc<Waits> {
        Arc::clone(&self.waits)
    }

    fn run(&mut self, call: &Call<'_>, sink: &mut dyn ReplySink) -> Result<Frame> {
        self.remote.check_writable(call)?;
        if let Some(cluster) = self.remote.cluster() {
            self.waits.check_open()?;
            if let Some(frame) = self.transaction.run(cluster, &self.waits, call, sink)? {
                return Ok(frame);
            }
            if call.entry.is_some() {
                return cluster.run(call, &self.waits, sink);
            }
        }
        let was_plain = self.is_plain;
        self.sent = false;
        self.note(call);
        let waits = Arc::clone(&self.waits);
        let connection = self.connection()?;
        let wait = call.wait();
        connection.push(call.argv);
        if let Err(error) = connection.send() {
            // Without state there is nothing that a new connection would miss.
            if !was_plain {
                return Err(error);
            }
            self.connection = None;
            let connection = self.connection()?;
            connection.push(call.argv);
            connection.send()?;
        }
        self.sent = true;
        let received = loop {
            match self.connection()?.receive(call.shape(), wait, sink) {
                Ok(Frame::Push(message)) => self.messages.push_back(message),
                other => break other,
            }
        };
        received.map_err(|error| match waits.check_open() {
            Ok(()) => CallFailure::Lost(error).into_error(),
            Err(closed) => closed,
        })
    }

    fn receive(&mut self, shape: Shape, sink: &mut dyn ReplySink) -> Result<Frame> {
        loop {
            match self.connection()?.receive(shape, None, sink)? {
                Frame::Push(message) => self.messages.push_back(message),
                other => return Ok(other),
            }
        }
    }

    /// Runs a command that begins or ends subscriptions. Its reply is a confirmation for each name;
    /// several are an array.
    fn subscribe(
        &mut self,
        word: &'static str,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        self.is_plain = false;
        let slot = argv.get(1).filter(|_| word == "ssubscribe").map(|name| slot_of(name));
        self.sent = false;
        let connection = self.connect(slot)?;
        connection.push(argv);
        connection.send()?;
        self.sent = true;
        // Without names all subscriptions of the kind end, and there is one confirmation at least.
        let expected = match argv.len() {
            0 | 1 => self.names_of(word).len().max(1),
            words => words - 1,
        };
        let mut confirmations: Vec<Reply> = Vec::new();
        while confirmations.len() < expected {
            let mut reply = ReplyBuilder::default();
            match self.connection()?.receive(Shape::AsSent, None, &mut reply)? {
                Frame::Error(text) if text.starts_with("MOVED ") => {
                    let message = "the shard channels of a session on a cluster need one node: \
                                   receive those of another node by a session of its own";
                    return Err(Error::new(ErrorKind::Unsupported, message));
                }
                Frame::Error(text) => {
                    sink.error(&text);
                    return Ok(());
                }
                Frame::Reply => confirmations.push(reply.finish()),
                Frame::Push(message) => match confirmed(&message, word) {
                    Some(name) => {
                        let begins = !word.contains("un");
                        let names = self.names_of(word);
                        if begins {
                            names.insert(name);
                        } else {
                            names.remove(&name);
                        }
                        confirmations.push(message);
                    }
                    None => self.messages.push_back(message),
                },
            }
        }
        match confirmations.pop() {
            Some(only) if confirmations.is_empty() => only.write_to(sink),
            last => {
                confirmations.extend(last);
                Reply::Array(confirmations).write_to(sink);
            }
        }
        Ok(())
    }

    /// The names that are subscribed to, of the kind that a word concerns.
    fn names_of(&mut self, word: &str) -> &mut BTreeSet<Bytes> {
        let [channels, patterns, shards] = &mut self.names;
        match word.as_bytes().first() {
            Some(b'p') => patterns,
            _ if matches!(word, "ssubscribe" | "sunsubscribe") => shards,
            _ => channels,
        }
    }

    /// Notes what a command changes about the connection.
    fn note(&mut self, call: &Call<'_>) {
        let name = call.argv.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        match name.as_slice() {
            b"MULTI" => self.in_multi = true,
            b"EXEC" | b"DISCARD" | b"RESET" => self.in_multi = false,
            _ => {}
        }
        if call.entry.is_none() {
            self.is_plain = false;
        }
    }

    fn connection(&mut self) -> Result<&mut Connection> {
        self.connect(None)
    }

    /// The connection; the first call opens it, to the node of a slot or to any.
    fn connect(&mut self, slot: Option<u16>) -> Result<&mut Connection> {
        if self.connection.is_none() {
            let connection = self.remote.own_connection(slot)?;
            self.waiting = Some(self.waits.enter(connection.socket())?);
            self.connection = Some(connection);
        }
        let gone = || Error::new(ErrorKind::Closed, "the session has no connection");
        self.connection.as_mut().ok_or_else(gone)
    }
}

/// The word in the confirmation of a command that begins or ends subscriptions.
fn subscribing(name: &[u8]) -> Option<&'static str> {
    const WORDS: [&str; 6] =
        ["subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"];
    WORDS.into_iter().find(|word| name.eq_ignore_ascii_case(word.as_bytes()))
}

/// The name in a message, if it is the confirmation with this word.
fn confirmed(message: &Reply, word: &str) -> Option<Bytes> {
    let Reply::Push(parts) = message else { return None };
    match parts.as_slice() {
        [Reply::Bulk(first), name, _] if first.as_ref() == word.as_bytes() => Some(match name {
            Reply::Bulk(name) => name.clone(),
            _ => Bytes::new(),
        }),
        _ => None,
    }
}
