//! MULTI and WATCH on a cluster: all keys have one slot, and a connection to its node has the
//! transaction.
//!
//! The node is known with the first key. Until then nothing is sent: MULTI and commands without a
//! key are answered here, as the node will answer them.

use super::plan::join_slot;
use super::{Attempts, Cluster, is_redirect};
use crate::commands::{Head, ReplyBuilder, ReplySink, keys_of};
use crate::error::Result;
use crate::remote::Unanswered;
use crate::remote::call::Call;
use crate::remote::connection::{CallFailure, Connection};
use crate::remote::frame::{Frame, Shape};
use crate::remote::server_error::server_error;
use crate::remote::waits::Waits;

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
        waits: &Waits,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Option<Frame>> {
        let name = call.argv.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let alone = call.argv.len() == 1;
        let outcome = match (name.as_slice(), self.in_multi) {
            (b"WATCH", false) if !alone => {
                self.send((cluster, waits), call.argv.get(1..), call, sink)
            }
            (b"UNWATCH", false) if alone => {
                *self = Self::default();
                sink.status("OK");
                Ok(Frame::Reply)
            }
            (b"MULTI", false) if alone => self.begin(sink),
            (b"MULTI", true) => Ok(Frame::Error("ERR MULTI calls can not be nested".into())),
            (b"EXEC" | b"DISCARD", true) if alone => self.end((cluster, waits), call, sink),
            (_, true) => self.queue((cluster, waits), call, sink),
            (_, false) => return Ok(None),
        };
        outcome.map(Some)
    }

    fn begin(&mut self, sink: &mut dyn ReplySink) -> Result<Frame> {
        // A transaction that ended with its connection was refused too.
        self.refused = false;
        if let Some(connection) = &mut self.connection {
            let sent = connection.call(&[b"MULTI"], Shape::AsSent, None, sink);
            let frame = self.settled(false, sent)?;
            self.in_multi = frame == Frame::Reply;
            return Ok(frame);
        }
        self.in_multi = true;
        sink.status("OK");
        Ok(Frame::Reply)
    }

    fn queue(
        &mut self,
        at: (&Cluster, &Waits),
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let keys = call.entry.map(|entry| keys_of(entry, call.argv)).unwrap_or_default();
        if keys.is_empty() && self.connection.is_none() {
            self.held.push(call.argv.iter().map(|word| word.to_vec()).collect());
            sink.status("QUEUED");
            return Ok(Frame::Reply);
        }
        let queued = self.send(at, Some(&keys), call, sink);
        self.refused |= queued.is_err();
        queued
    }

    /// Runs EXEC or DISCARD. Afterwards nothing is watched or queued.
    fn end(
        &mut self,
        at: (&Cluster, &Waits),
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let mut ended = std::mem::take(self);
        if !executes(call) {
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
        let frame = ended.send(at, None, call, sink)?;
        if let Frame::Error(_) = frame {
            // It may be that the slot has moved: the next transaction should find it.
            let _ = at.0.refresh();
        }
        Ok(frame)
    }

    /// Sends a command to the node of the keys. The first one finds the node, and waits for the one
    /// that takes over: as long as no node takes it, nothing is watched or queued anywhere.
    fn send(
        &mut self,
        (cluster, waits): (&Cluster, &Waits),
        keys: Option<&[&[u8]]>,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> Result<Frame> {
        let mut slot = self.slot;
        join_slot(&mut slot, keys.unwrap_or_default(), "a transaction")?;
        if let Some(connection) = &mut self.connection {
            let sent = connection.call(call.argv, Shape::AsSent, None, sink);
            return self.settled(executes(call), sent);
        }
        let mut attempts = Attempts::begin(cluster, waits)?;
        loop {
            match self.begin_at_node(cluster, slot, call, sink) {
                Ok(frame) => return Ok(frame),
                Err(Unanswered::Gone(error)) => attempts.later(&error).inspect_err(|_| {
                    *self = Self::default();
                })?,
                Err(Unanswered::Failed(error)) => {
                    *self = Self::default();
                    return Err(error);
                }
            }
        }
    }

    /// Connects to the node of a slot, and sends it all so far and a command. Without EXEC nothing
    /// runs: a connection that is lost can be replaced.
    fn begin_at_node(
        &mut self,
        cluster: &Cluster,
        slot: Option<u16>,
        call: &Call<'_>,
        sink: &mut dyn ReplySink,
    ) -> std::result::Result<Frame, Unanswered> {
        let mut connection = cluster.connect_once(slot).map_err(Unanswered::Gone)?;
        self.open(&mut connection)?;
        let frame = match connection.call(call.argv, Shape::AsSent, None, sink) {
            Ok(frame) => frame,
            Err(lost @ CallFailure::Lost(_)) if executes(call) => {
                return Err(Unanswered::Failed(lost.into_error()));
            }
            Err(CallFailure::NotSent(error) | CallFailure::Lost(error)) => {
                return Err(Unanswered::Gone(error));
            }
        };
        match frame {
            Frame::Error(text) if is_redirect(&text) => Err(Unanswered::Gone(server_error(&text))),
            frame => {
                (self.slot, self.connection) = (slot, Some(connection));
                self.held.clear();
                Ok(frame)
            }
        }
    }

    /// Sends a new connection what was answered here.
    fn open(&self, connection: &mut Connection) -> std::result::Result<(), Unanswered> {
        if !self.in_multi {
            return Ok(());
        }
        connection.push(&[b"MULTI"]);
        for command in &self.held {
            let argv: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            connection.push(&argv);
        }
        connection.send().map_err(Unanswered::Gone)?;
        for number in 0..=self.held.len() {
            let mut nothing = ReplyBuilder::default();
            let received = connection.receive(Shape::AsSent, None, &mut nothing);
            match received.map_err(Unanswered::Gone)? {
                Frame::Error(text) if number == 0 => {
                    return Err(Unanswered::Failed(server_error(&text)));
                }
                // EXEC reports a command that the node does not take.
                _ => {}
            }
        }
        Ok(())
    }

    /// A connection that is lost takes the transaction with it.
    fn settled(
        &mut self,
        executes: bool,
        outcome: std::result::Result<Frame, CallFailure>,
    ) -> Result<Frame> {
        outcome.map_err(|failure| {
            *self = Self::default();
            let ended = "the transaction ended with its connection";
            match failure {
                CallFailure::Lost(_) if executes => {
                    let error = failure.into_error();
                    error.wrap(error.kind(), ended)
                }
                CallFailure::NotSent(error) | CallFailure::Lost(error) => {
                    error.wrap(error.kind(), format_args!("{ended}, and nothing of it ran"))
                }
            }
        })
    }
}

fn executes(call: &Call<'_>) -> bool {
    call.argv.first().is_some_and(|name| name.eq_ignore_ascii_case(b"EXEC"))
}
