//! Runs a batch and writes each reply to the output buffer of its connection.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::commands::{Call, Reply, ReplySink as _};
use crate::txn::Db;

use super::{BatchedCommand, CommandBatch};
use crate::resp::Writer;
use crate::server::client::{Client, CloseState};
use crate::server::command_table::CommandKind;
use crate::server::counters::Counters;
use crate::server::dispatch::{ReplyDisposition, dispatch, finish_reply, nanos_since, outcome_of};
use crate::server::input_buffer::InputBuffer;
use crate::server::output_limit::OutputLimit;
use crate::server::shared::Server;

/// A commit ends once it holds this many bytes: a few bytes of SETBIT or SETRANGE may write a large
/// value.
const MAX_COMMIT_BYTES: usize = 1 << 20;

/// A connection as the runner sees it.
pub(crate) trait BatchConnection {
    fn client(&mut self) -> &mut Client;
    /// The bytes of replies that the connection accepts before it pauses.
    fn output_room(&self) -> usize;
    /// Marks one batched command as done; returns the client and the buffer for its reply.
    fn finish_batched(&mut self) -> (&mut Client, &mut Vec<u8>);
    /// Takes back batched requests that did not run; the connection parses them again later.
    fn requeue(&mut self, requests: Vec<u8>, input: &mut InputBuffer);
}

/// Runs the batches of one event loop.
pub(crate) struct BatchRunner<'a, C> {
    pub(crate) server: &'a Server,
    pub(crate) counters: &'a Counters,
    pub(crate) connections: &'a mut [Option<Box<C>>],
}

/// A command of the batch panicked. All connections of the batch close.
#[derive(Debug)]
pub(crate) struct BatchPanicked;

impl<C: BatchConnection> BatchRunner<'_, C> {
    /// Runs the batch and leaves it empty. A command whose reply finds no room goes back to its
    /// connection, with all later commands of that connection.
    pub(crate) fn run(
        &mut self,
        batch: &mut CommandBatch,
        input: &mut InputBuffer,
    ) -> Result<(), BatchPanicked> {
        let arguments = batch.arguments(input);
        let mut unrun = Vec::new();
        let mut rest = batch.commands.as_slice();
        while !rest.is_empty() {
            let run = || self.run_some(rest, &arguments);
            let Ok(ran) = catch_unwind(AssertUnwindSafe(run)) else {
                self.close_all(&batch.commands);
                batch.clear();
                return Err(BatchPanicked);
            };
            let (done, after) = rest.split_at(ran.clamp(1, rest.len()));
            let last = done.last().map(|command| command.slot);
            let full = last.filter(|slot| self.is_full(*slot));
            let without_room = after.iter().take_while(|command| Some(command.slot) == full);
            let (without_room, after) = after.split_at(without_room.count());
            unrun.extend(without_room);
            rest = after;
        }
        for requests in unrun.chunk_by(|a: &&BatchedCommand, b| a.slot == b.slot) {
            self.requeue(requests, input);
        }
        batch.clear();
        Ok(())
    }

    fn connection(&mut self, slot: usize) -> Option<&mut C> {
        self.connections.get_mut(slot)?.as_deref_mut()
    }

    fn is_full(&mut self, slot: usize) -> bool {
        self.connection(slot)
            .is_none_or(|it| it.output_room() == 0 || it.client().close_state == CloseState::Now)
    }

    /// Returns requests of one connection to that connection.
    fn requeue(&mut self, requests: &[&BatchedCommand], input: &mut InputBuffer) {
        let Some(slot) = requests.first().map(|request| request.slot) else { return };
        let bytes = requests.iter().flat_map(|request| {
            let chunk = input.bytes(request.chunk);
            chunk.get(request.request.clone()).unwrap_or_default()
        });
        let bytes: Vec<u8> = bytes.copied().collect();
        if let Some(connection) = self.connection(slot) {
            connection.requeue(bytes, input);
        }
    }

    fn close_all(&mut self, commands: &[BatchedCommand]) {
        for command in commands {
            if let Some(connection) = self.connection(command.slot) {
                connection.client().close_state = CloseState::Now;
            }
        }
    }

    /// Runs commands until one connection has no room for replies or the commit is large enough;
    /// returns their number.
    fn run_some(&mut self, commands: &[BatchedCommand], arguments: &[&[u8]]) -> usize {
        let started = Instant::now();
        // A batch that failed as a whole changed nothing: now each command gets its own reply.
        let Some(replies) = self.run_as_one(commands, arguments) else {
            return self.run_one_by_one(commands, arguments);
        };
        let ran = replies.len();
        let nanos_each = nanos_since(started) / ran.max(1) as u64;
        self.counters.commands.add(ran as u64);
        for (command, reply) in commands.iter().zip(replies) {
            self.answer(command, command.argv(arguments), &reply, nanos_each);
        }
        ran
    }

    fn answer(&mut self, command: &BatchedCommand, argv: &[&[u8]], reply: &Reply, nanos: u64) {
        let (server, counters) = (self.server, self.counters);
        let Some(entry) = server.commands.entry(command.command) else { return };
        let Some(connection) = self.connection(command.slot) else { return };
        let (client, out) = connection.finish_batched();
        let failed = matches!(reply, Reply::Error(_));
        counters.note_call(entry.index, outcome_of(entry, argv, failed), nanos);
        client.has_written |= entry.writes;
        client.record_command(entry);
        let before = out.len();
        let limit = OutputLimit::new(server, client, before);
        let mut writer = Writer::with_limit(out, client.protocol, &limit);
        writer.reply(reply);
        let full = writer.is_full();
        if finish_reply(client, &limit, counters, full) == ReplyDisposition::Discard {
            out.truncate(before);
        }
    }

    fn run_one_by_one(&mut self, commands: &[BatchedCommand], arguments: &[&[u8]]) -> usize {
        let (server, counters) = (self.server, self.counters);
        for (ran, command) in commands.iter().enumerate() {
            let Some(connection) = self.connection(command.slot) else { continue };
            if connection.client().close_state != CloseState::Open {
                continue;
            }
            let (client, out) = connection.finish_batched();
            dispatch(server, counters, client, command.argv(arguments), out);
            if connection.output_room() == 0 {
                return ran + 1;
            }
        }
        commands.len()
    }

    /// Runs commands with one commit; returns the replies of those that ran, or `None` if the
    /// commands cannot run together.
    fn run_as_one(
        &mut self,
        commands: &[BatchedCommand],
        arguments: &[&[u8]],
    ) -> Option<Vec<Reply>> {
        let [first, _, ..] = commands else { return None };
        let server = self.server;
        let db = self.connection(first.slot)?.client().session.db().clone();
        let (mut slots, mut current, mut room) = (commands.iter().map(|c| c.slot), None, 0);
        let has_room = |reply: &Reply| {
            let slot = slots.next();
            if slot != current {
                let connection = slot.and_then(|slot| self.connection(slot));
                (current, room) = (slot, connection.map_or(0, |it| it.output_room()));
            }
            room = room.saturating_sub(reply_bytes(reply));
            room > 0
        };
        commit(server, &db, commands, arguments, has_room)
    }
}

/// Runs commands with one commit and returns the replies of the first of them, at least one. The
/// commit ends after the reply for which `has_room` is false, or when it is large enough. `None`:
/// the commit failed as a whole and changed nothing.
fn commit(
    server: &Server,
    db: &Db,
    commands: &[BatchedCommand],
    arguments: &[&[u8]],
    mut has_room: impl FnMut(&Reply) -> bool,
) -> Option<Vec<Reply>> {
    let call = |command: &BatchedCommand| match server.commands.entry(command.command)?.kind {
        CommandKind::Store(info) => Some(info.call(command.argv(arguments))),
        _ => None,
    };
    let calls: Option<Vec<Call<'_>>> = commands.iter().map(call).collect();
    let goes_on = |reply: &Reply, written: usize| has_room(reply) && written < MAX_COMMIT_BYTES;
    db.run_calls(&calls?, goes_on).ok()
}

/// The approximate size of a reply.
fn reply_bytes(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(bytes) => bytes.len(),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            items.iter().map(reply_bytes).sum()
        }
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            pairs.iter().map(|(a, b)| reply_bytes(a) + reply_bytes(b)).sum()
        }
        _ => 16,
    }
}
