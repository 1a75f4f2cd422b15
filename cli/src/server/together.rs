//! Commands that arrive together run together: one commit and one write to the log for all the
//! SETs of a round, of one client's pipeline or of many clients, instead of one for each; one look
//! at the store for all the GETs.
//!
//! Only commands that write the one key they name join, and those that read a single value of one
//! key: such a commit stays small. To every client it looks as if they ran one after the other.
//! The commands of one client stand together, in its order.

use std::ops::Range;

use lsmkv::{Call, CommandInfo, Db, KeyPositions, Reply};

use super::arrivals::{Arrivals, Chunk};
use super::catalog::{Entry, Kind};
use super::client::Client;
use super::shared::Server;

/// Most commands that run together where one thread serves. Others wait for their locks.
const MOST: usize = 256;
/// The same where several do: there are 256 locks, and a thread that takes most of them holds up
/// all others.
const MOST_BESIDE_OTHERS: usize = 32;
/// Commands with more arguments, or a longer one, run alone.
const MOST_ARGUMENTS: usize = 64;
const LONGEST_ARGUMENT: usize = 16 << 10;
/// Once those that ran have written so much, it is committed before the others run: a few bytes of
/// SETBIT or SETRANGE may write a large value.
const ENOUGH_WRITTEN: usize = 1 << 20;

/// A command that waits for others to join it.
#[derive(Debug)]
pub(crate) struct Joined {
    /// The place of its connection.
    pub(crate) slot: usize,
    /// Its number in the catalogue.
    pub(crate) command: usize,
    pub(crate) chunk: Chunk,
    /// Where its request is in the chunk.
    pub(crate) request: Range<usize>,
    /// Which of the group's arguments are its.
    arguments: Range<usize>,
}

/// What becomes of a command that asks to join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joining {
    Joined,
    /// It could, once those that have joined are done.
    NotNow,
    /// It runs alone.
    Alone,
}

/// Commands that run together, all in one database.
#[derive(Default)]
pub(crate) struct Group {
    database: u32,
    commands: Vec<Joined>,
    /// Where the arguments of all are in their chunks.
    places: Vec<(usize, usize)>,
}

/// What a command that asks to join is.
pub(crate) struct Candidate<'a> {
    pub(crate) slot: usize,
    pub(crate) chunk: Chunk,
    /// Where its request is in the chunk.
    pub(crate) request: Range<usize>,
    pub(crate) bytes: &'a [u8],
    /// Where its arguments are in the request.
    pub(crate) arguments: &'a [(usize, usize)],
}

impl Group {
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Lets a command join, if it is of that sort.
    pub(crate) fn join(
        &mut self,
        server: &Server,
        client: &Client,
        candidate: Candidate<'_>,
    ) -> Joining {
        let Candidate { slot, chunk, request, bytes, arguments } = candidate;
        if client.queue.is_some() || !client.authenticated || arguments.len() > MOST_ARGUMENTS {
            return Joining::Alone;
        }
        let name = arguments.first().and_then(|(from, to)| bytes.get(*from..*to));
        let entry = name.and_then(|name| server.catalog.find(name));
        let Some(entry) = entry.filter(|entry| entry.joins) else { return Joining::Alone };
        if arguments.iter().any(|(from, to)| to - from > LONGEST_ARGUMENT) {
            return Joining::Alone;
        }
        let database = client.session.db().database();
        let most = if server.counters.len() > 1 { MOST_BESIDE_OTHERS } else { MOST };
        if !self.commands.is_empty() && (database != self.database || self.commands.len() >= most) {
            return Joining::NotNow;
        }
        self.database = database;
        let first = self.places.len();
        let start = request.start;
        self.places.extend(arguments.iter().map(|(from, to)| (start + from, start + to)));
        let arguments = first..self.places.len();
        self.commands.push(Joined { slot, command: entry.index, chunk, request, arguments });
        Joining::Joined
    }

    /// Those that have joined; none have afterwards.
    pub(crate) fn take(&mut self) -> Taken {
        let Self { commands, places, .. } = std::mem::take(self);
        Taken { commands, places }
    }

    /// Gives memory back to be used for the next.
    pub(crate) fn reuse(&mut self, taken: Taken) {
        let Taken { mut commands, mut places } = taken;
        if self.is_empty() {
            commands.clear();
            places.clear();
            (self.commands, self.places) = (commands, places);
        }
    }
}

/// Commands that are about to run.
pub(crate) struct Taken {
    pub(crate) commands: Vec<Joined>,
    places: Vec<(usize, usize)>,
}

impl Taken {
    /// The arguments of all, with the names.
    pub(crate) fn words<'a>(&self, arrivals: &'a Arrivals) -> Vec<&'a [u8]> {
        let mut words = Vec::with_capacity(self.places.len());
        for command in &self.commands {
            let bytes = arrivals.bytes(command.chunk);
            let places = self.places.get(command.arguments.clone()).unwrap_or_default();
            words.extend(places.iter().map(|(from, to)| bytes.get(*from..*to).unwrap_or_default()));
        }
        words
    }
}

impl Joined {
    /// Its own of the arguments of all.
    pub(crate) fn argv<'w, 'a>(&self, words: &'w [&'a [u8]]) -> &'w [&'a [u8]] {
        words.get(self.arguments.clone()).unwrap_or_default()
    }
}

/// Runs commands together; the replies of the first of them, at least one, up to that of which
/// `goes_on` says no, or that with which enough is written. `None`: it failed as a whole, and
/// nothing was changed.
pub(crate) fn run(
    server: &Server,
    db: &Db,
    commands: &[Joined],
    words: &[&[u8]],
    mut goes_on: impl FnMut(&Reply) -> bool,
) -> Option<Vec<Reply>> {
    let call = |command: &Joined| match server.catalog.entry(command.command)?.kind {
        Kind::Data(info) => Some(info.call(command.argv(words))),
        _ => None,
    };
    let calls: Option<Vec<Call<'_>>> = commands.iter().map(call).collect();
    let goes_on = |reply: &Reply, written: usize| goes_on(reply) && written < ENOUGH_WRITTEN;
    db.calls_while(&calls?, goes_on).ok()
}

/// About how long a reply is that one of them may give.
pub(crate) fn bytes_of(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(bytes) => bytes.len(),
        Reply::Array(items) | Reply::Set(items) => items.iter().map(bytes_of).sum(),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            pairs.iter().map(|(a, b)| bytes_of(a) + bytes_of(b)).sum()
        }
        _ => 16,
    }
}

/// Whether a command may run together with others.
pub(crate) fn joins(entry: &Entry) -> bool {
    let one_key = KeyPositions::Range { first: 1, last: 1, step: 1 };
    let fits = entry.writes || entry.reads_one_value;
    let alone = |info: &CommandInfo| info.may_write_any_key();
    fits && entry.keys == one_key && matches!(&entry.kind, Kind::Data(info) if !alone(info))
}
