//! Runs the commands that have joined, of whatever connections, and gives out their replies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use lsmkv::{Reply, ReplySink as _};

use super::EventLoop;
use crate::resp::Writer;
use crate::server::budget::Budget;
use crate::server::client::Fate;
use crate::server::connection::Connection;
use crate::server::counters::Counters;
use crate::server::execute::{Settled, after_data, execute, nanos_since, outcome_of, settle};
use crate::server::shared::Server;
use crate::server::together::{self, Joined};

type Connections = [Option<Box<Connection>>];

fn connection_at(connections: &mut Connections, slot: usize) -> Option<&mut Connection> {
    connections.get_mut(slot)?.as_deref_mut()
}

impl EventLoop {
    /// Runs all that have joined. What finds no room for its reply is left for later, with all
    /// that its client has sent after it.
    pub(super) fn run_group(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let server = Arc::clone(&self.server);
        let Some(counters) = server.counters.get(self.index) else { return };
        let taken = self.group.take();
        let words = taken.words(&self.arrivals);
        let mut left = Vec::new();
        let mut rest = taken.commands.as_slice();
        while !rest.is_empty() {
            let run = || run_some(&server, counters, &mut self.connections, rest, &words);
            let Ok(ran) = catch_unwind(AssertUnwindSafe(run)) else {
                self.panicked();
                return self.drop_all(&taken.commands);
            };
            let (done, after) = rest.split_at(ran.clamp(1, rest.len()));
            let last = done.last().map(|command| command.slot);
            let full = last.filter(|slot| {
                let connection = connection_at(&mut self.connections, *slot);
                connection.is_none_or(|it| it.room() == 0 || it.client.fate == Fate::Dies)
            });
            let without_room = after.iter().take_while(|command| Some(command.slot) == full);
            let (unrun, after) = after.split_at(without_room.count());
            left.extend(unrun);
            rest = after;
        }
        for requests in left.chunk_by(|a: &&Joined, b| a.slot == b.slot) {
            self.leave_for_later(requests);
        }
        self.group.reuse(taken);
    }

    /// Gives requests of one connection back to it.
    fn leave_for_later(&mut self, requests: &[&Joined]) {
        let Some(slot) = requests.first().map(|request| request.slot) else { return };
        let bytes = requests.iter().flat_map(|request| {
            let chunk = self.arrivals.bytes(request.chunk);
            chunk.get(request.request.clone()).unwrap_or_default()
        });
        let bytes: Vec<u8> = bytes.copied().collect();
        if let Some(connection) = connection_at(&mut self.connections, slot) {
            connection.take_back(bytes, &mut self.arrivals);
        }
    }

    fn drop_all(&mut self, commands: &[Joined]) {
        for command in commands {
            if let Some(connection) = connection_at(&mut self.connections, command.slot) {
                connection.client.fate = Fate::Dies;
            }
        }
    }
}

/// Runs commands until one client has no room for more replies, or enough is written; how many.
fn run_some(
    server: &Server,
    counters: &Counters,
    connections: &mut Connections,
    commands: &[Joined],
    words: &[&[u8]],
) -> usize {
    let started = Instant::now();
    // What failed as a whole changed nothing: each then gets the reply that is its own.
    let Some(replies) = run_as_one(server, connections, commands, words) else {
        return run_apart(server, counters, connections, commands, words);
    };
    let ran = replies.len();
    let each = nanos_since(started) / ran.max(1) as u64;
    counters.commands.add(ran as u64);
    for (command, reply) in commands.iter().zip(replies) {
        let argv = command.argv(words);
        let Some(entry) = server.catalog.entry(command.command) else { continue };
        let Some(connection) = connection_at(connections, command.slot) else { continue };
        let (client, out) = connection.joined_ran();
        let failed = matches!(reply, Reply::Error(_));
        counters.note_call(entry.index, outcome_of(entry, argv, failed), each);
        after_data(server, client, entry, argv, &reply);
        client.note_command(entry);
        let before = out.len();
        let budget = Budget::new(server, client, before);
        let mut writer = Writer::within(out, client.protocol, &budget);
        writer.reply(&reply);
        let full = writer.is_full();
        if settle(client, &budget, counters, full) == Settled::Dropped {
            out.truncate(before);
        }
    }
    ran
}

/// The same one after the other.
fn run_apart(
    server: &Server,
    counters: &Counters,
    connections: &mut Connections,
    commands: &[Joined],
    words: &[&[u8]],
) -> usize {
    for (ran, command) in commands.iter().enumerate() {
        let Some(connection) = connection_at(connections, command.slot) else { continue };
        if connection.client.fate != Fate::Lives {
            continue;
        }
        let (client, out) = connection.joined_ran();
        execute(server, counters, client, command.argv(words), out);
        if connection.room() == 0 {
            return ran + 1;
        }
    }
    commands.len()
}

/// The replies of those that ran, together; `None` if they cannot.
fn run_as_one(
    server: &Server,
    connections: &mut Connections,
    commands: &[Joined],
    words: &[&[u8]],
) -> Option<Vec<Reply>> {
    let [first, _, ..] = commands else { return None };
    let db = connection_at(connections, first.slot)?.client.session.db().clone();
    let (mut slots, mut of, mut room) = (commands.iter().map(|c| c.slot), None, 0);
    let goes_on = |reply: &Reply| {
        let slot = slots.next();
        if slot != of {
            let connection = slot.and_then(|slot| connection_at(connections, slot));
            (of, room) = (slot, connection.map_or(0, |connection| connection.room()));
        }
        room = room.saturating_sub(together::bytes_of(reply));
        room > 0
    };
    together::run(server, &db, commands, words, goes_on)
}
