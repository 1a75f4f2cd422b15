//! MULTI and WATCH on a cluster: all keys have one slot, and a connection to its node has the
//! transaction.
//!
//! The node is known with the first key. Until then nothing is sent: MULTI and commands without a
//! key are answered here, as the node will answer them.

use std::time::Instant;

use super::plan::join_slot;
use super::redirect::Redirect;
use super::{Cluster, PAUSES, USUAL_LIMIT};
use crate::commands::{Head, ReplyBuilder, ReplySink, keys_of};
use crate::error::{Error, Result};
use crate::remote::call::Call;
use crate::remote::connection::{CallFailure, Connection};
use crate::remote::frame::{Frame, Shape};
use crate::remote::server_error::server_error;

/// What a session on a cluster watches and queues.
#[derive(Debug, Default)]
pub(in crate::remote) struct Transaction {
    in_multi: bool,
    /// The slot of all keys so far.
    slot: Option<u16>,
    /// To the node of the slot, once a key told it.
    connection: Option<Connection>,
    /// Commands without a key that came before the first one with a key.
    held: Vec<Vec<Vec<u8>>>,
    /// Whether a command was refused here: EXEC runs nothing then.
    refused: bool,
}

impl Transaction {
    pub(in crate::remote) fn in_multi(&self) -> bool {
        self.in_multi
    }

    /// Runs a command that belongs to a transaction. `None` if it belongs to none.
    pub(in crate::remote) fn run(
        &mut self,
        cluster: &Cluster,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Option<Frame>> {
        let name = call.argv.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let alone = call.argv.len() == 1;
        let outcome = match (name.as_slice(), self.in_multi) {
            (b"WATCH", false) if !alone => self.send(cluster, call.argv.get(1..), call, sink),
            (b"UNWATCH", false) if alone => {
                *self = Self::default();
                sink.status("OK");
                Ok(Frame::Reply)
            }
            (b"MULTI", false) if alone => self.begin(sink),
            (b"MULTI", true) => Ok(Frame::Error("ERR MULTI calls can not be nested".into())),
            (b"EXEC" | b"DISCARD", true) if alone => self.end(cluster, call, sink),
            (_, true) => self.queue(cluster, call, sink),
            (_, false) => return Ok(None),
        };
        outcome.map(Some)
    }

    fn begin(&mut self, sink: &mut dyn ReplySink) -> Result<Frame> {
        // A transaction that ended with its connection was refused too.
        self.refused = false;
        if let Some(connection) = &mut self.connection {
            let sent = connection.call(&[b"MULTI"], Shape::AsSent, None, sink);
            let frame = self.settled(sent)?;
            self.in_multi = frame == Frame::Reply;
            return Ok(frame);
        }
        self.in_multi = true;
        sink.status("OK");
        Ok(Frame::Reply)
    }

    fn queue(
        &mut self,
        cluster: &Cluster,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let keys = call.entry.map(|entry| keys_of(entry, call.argv)).unwrap_or_default();
        if keys.is_empty() && self.connection.is_none() {
            self.held.push(call.argv.iter().map(|word| word.to_vec()).collect());
            sink.status("QUEUED");
            return Ok(Frame::Reply);
        }
        let queued = self.send(cluster, Some(&keys), call, sink);
        self.refused |= queued.is_err();
        queued
    }

    /// Runs EXEC or DISCARD. Afterwards nothing is watched or queued.
    fn end(
        &mut self,
        cluster: &Cluster,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let mut ended = std::mem::take(self);
        let executes = call.argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"EXEC"));
        if !executes {
            // The end of the connection discards what its node has queued.
            sink.status("OK");
            return Ok(Frame::Reply);
        }
        if ended.refused {
            let text = "EXECABORT Transaction discarded because of previous errors.";
            return Ok(Frame::Error(text.into()));
        }
        if ended.connection.is_none() && ended.held.is_empty() {
            sink.head(Head::Array, 0);
            return Ok(Frame::Reply);
        }
        let frame = ended.send(cluster, None, call, sink)?;
        if let Frame::Error(_) = frame {
            // It may be that the slot has moved: the next transaction should find it.
            let _ = cluster.refresh();
        }
        Ok(frame)
    }

    /// Sends a command to the node of the keys. The first one finds the node: as long as no node
    /// takes it, nothing is watched or queued anywhere, and it can be sent again.
    fn send(
        &mut self,
        cluster: &Cluster,
        keys: Option<&[&[u8]]>,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let mut slot = self.slot;
        join_slot(&mut slot, keys.unwrap_or_default(), "a transaction")?;
        if let Some(connection) = &mut self.connection {
            let sent = connection.call(call.argv, Shape::AsSent, None, sink);
            return self.settled(sent);
        }
        let deadline = Instant::now() + cluster.login.reply_limit.unwrap_or(USUAL_LIMIT);
        let (mut pause, most) = PAUSES;
        loop {
            let mut connection = cluster.connect(slot)?;
            let outcome = self.open(&mut connection).and_then(|()| {
                connection
                    .call(call.argv, Shape::AsSent, None, sink)
                    .map_err(CallFailure::into_error)
            });
            match outcome {
                Ok(Frame::Error(text)) => {
                    let asked = cluster.pool_of(slot)?;
                    let moved = Redirect::of(&text, asked.endpoint()).is_some();
                    if !moved || Instant::now() >= deadline {
                        self.keep(slot, connection);
                        return Ok(Frame::Error(text));
                    }
                }
                Ok(frame) => {
                    self.keep(slot, connection);
                    return Ok(frame);
                }
                Err(error) => {
                    *self = Self::default();
                    return Err(error);
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(most);
            let _ = cluster.refresh();
        }
    }

    /// Sends a new connection what was answered here.
    fn open(&self, connection: &mut Connection) -> Result<()> {
        if !self.in_multi {
            return Ok(());
        }
        connection.push(&[b"MULTI"]);
        for command in &self.held {
            let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            connection.push(&argv);
        }
        connection.send()?;
        for number in 0..=self.held.len() {
            let mut nothing = ReplyBuilder::default();
            match connection.receive(Shape::AsSent, None, &mut nothing)? {
                Frame::Error(text) if number == 0 => return Err(server_error(&text)),
                // EXEC reports a command that the node does not take.
                _ => {}
            }
        }
        Ok(())
    }

    fn keep(&mut self, slot: Option<u16>, connection: Connection) {
        self.slot = slot;
        self.connection = Some(connection);
        self.held.clear();
    }

    /// A connection that is lost takes the transaction with it.
    fn settled(&mut self, outcome: std::result::Result<Frame, CallFailure>) -> Result<Frame> {
        outcome.map_err(|failure| {
            *self = Self::default();
            let error: Error = failure.into_error();
            error.wrap(error.kind(), "the transaction ended with its connection")
        })
    }
}
