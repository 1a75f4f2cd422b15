//! A batch of small commands that run with one commit.
//!
//! An event loop collects the commands that arrive in one round, from one pipeline or from many
//! connections. All SETs of the round share one commit and one log write, and all GETs share one
//! lookup. A batch holds only commands that write the one key they name and commands that read one
//! value of one key, so the commit stays small. The commands of one connection are adjacent and in
//! their order, so every client sees them run one after the other.
//!
//! - this file: the batch and the rules for adding a command;
//! - `runner`: runs a batch and writes the replies.

mod runner;

pub(crate) use runner::{BatchConnection, BatchRunner};

use std::ops::Range;

use super::client::Client;
use super::input_buffer::{InputBuffer, InputChunk};
use super::shared::Server;

/// Maximum batch size when one thread serves clients. Other users of the store wait for its locks.
const MAX_COMMANDS: usize = 256;
/// Maximum batch size when several threads serve clients. The store has 256 locks, and a thread
/// that takes most of them delays all others.
const MAX_COMMANDS_MULTITHREADED: usize = 32;
/// A command with more arguments runs alone.
const MAX_ARGUMENTS: usize = 64;
/// A command with a longer argument runs alone.
const MAX_ARGUMENT_BYTES: usize = 16 << 10;

/// A command that waits in a batch.
#[derive(Debug)]
pub(crate) struct BatchedCommand {
    /// The connection's slot in its event loop.
    slot: usize,
    /// The command's index in the command table.
    command: usize,
    chunk: InputChunk,
    /// The byte range of the request in its chunk.
    request: Range<usize>,
    /// The command's arguments within `CommandBatch::argument_ranges`.
    arguments: Range<usize>,
}

/// The result of adding a command to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The batch holds the command.
    Added,
    /// The command fits the next batch: this one is full or uses another database.
    NextBatch,
    /// The command runs on its own.
    Alone,
}

/// Commands of one database that run together.
#[derive(Default)]
pub(crate) struct CommandBatch {
    database: u32,
    commands: Vec<BatchedCommand>,
    /// The byte ranges of all arguments in their chunks.
    argument_ranges: Vec<(usize, usize)>,
}

/// A request that asks to be added to a batch.
pub(crate) struct BatchCandidate<'a> {
    pub(crate) slot: usize,
    pub(crate) chunk: InputChunk,
    /// The byte range of the request in its chunk.
    pub(crate) request: Range<usize>,
    pub(crate) bytes: &'a [u8],
    /// The byte ranges of the arguments in the request.
    pub(crate) arguments: &'a [(usize, usize)],
}

impl CommandBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Adds a command if the batch accepts it.
    pub(crate) fn add(
        &mut self,
        server: &Server,
        client: &Client,
        candidate: BatchCandidate<'_>,
    ) -> Admission {
        let BatchCandidate { slot, chunk, request, bytes, arguments } = candidate;
        let alone = client.queue.is_some()
            || !client.authenticated
            || client.listens
            || client.has_view()
            || client.session.tracks()
            || server.monitors.any();
        if alone || arguments.len() > MAX_ARGUMENTS {
            return Admission::Alone;
        }
        let name = arguments.first().and_then(|(from, to)| bytes.get(*from..*to));
        let entry = name.and_then(|name| server.commands.find(name));
        let Some(entry) = entry.filter(|entry| entry.can_batch) else { return Admission::Alone };
        if arguments.iter().any(|(from, to)| to - from > MAX_ARGUMENT_BYTES) {
            return Admission::Alone;
        }
        let database = client.session.db().database();
        let multithreaded = server.counters.len() > 1;
        let max = if multithreaded { MAX_COMMANDS_MULTITHREADED } else { MAX_COMMANDS };
        if !self.commands.is_empty() && (database != self.database || self.commands.len() >= max) {
            return Admission::NextBatch;
        }
        self.database = database;
        let first = self.argument_ranges.len();
        let start = request.start;
        self.argument_ranges.extend(arguments.iter().map(|(from, to)| (start + from, start + to)));
        let arguments = first..self.argument_ranges.len();
        let command = entry.index;
        self.commands.push(BatchedCommand { slot, command, chunk, request, arguments });
        Admission::Added
    }

    /// Empties the batch and keeps its allocations for the next one.
    fn clear(&mut self) {
        self.commands.clear();
        self.argument_ranges.clear();
    }

    /// The arguments of all commands, names included.
    fn arguments<'a>(&self, input: &'a InputBuffer) -> Vec<&'a [u8]> {
        let mut arguments = Vec::with_capacity(self.argument_ranges.len());
        for command in &self.commands {
            let bytes = input.bytes(command.chunk);
            let ranges = self.argument_ranges.get(command.arguments.clone()).unwrap_or_default();
            arguments
                .extend(ranges.iter().map(|(from, to)| bytes.get(*from..*to).unwrap_or_default()));
        }
        arguments
    }
}

impl BatchedCommand {
    /// This command's part of the arguments of all commands.
    fn argv<'w, 'a>(&self, arguments: &'w [&'a [u8]]) -> &'w [&'a [u8]] {
        arguments.get(self.arguments.clone()).unwrap_or_default()
    }
}
