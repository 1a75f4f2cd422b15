//! Commands that arrive together run together: one commit, one write to the log for a pipeline of
//! SETs, instead of one for each; one look at the store for a pipeline of GETs.
//!
//! Only commands that write the one key they name are joined, and those that read a single value
//! of one key: such a commit holds few locks, and stays small. To their client, and to others, it
//! looks as if they ran one after the other. Once their replies are as long as a client may leave
//! unread, the rest waits until they are taken.

use lsmkv::{KeyPositions, Reply};
use smallvec::SmallVec;

use super::catalog::{Entry, Kind};
use super::client::Client;
use super::counters::Counters;
use super::execute::{after_data, execute};
use super::shared::Server;
use crate::resp::Writer;

/// Most commands that are joined.
const MOST: usize = 64;
/// Commands with more arguments, or a longer one, run alone.
const MOST_ARGUMENTS: usize = 64;
const LONGEST_ARGUMENT: usize = 16 << 10;

/// A command that waits for others to join it.
pub(crate) struct Joined<'a> {
    entry: &'a Entry,
    argv: SmallVec<[&'a [u8]; 6]>,
    /// Where its request ends in what was received.
    end: usize,
}

/// What became of those that had joined.
pub(crate) enum Ran {
    All,
    /// Not the last ones, `left` of them; the last that ran ends at `end`.
    Some {
        end: usize,
        left: u64,
    },
}

impl<'a> AsRef<[&'a [u8]]> for Joined<'a> {
    fn as_ref(&self) -> &[&'a [u8]] {
        &self.argv
    }
}

/// Commands that run together.
#[derive(Default)]
pub(crate) struct Group<'a>(Vec<Joined<'a>>);

impl<'a> Group<'a> {
    /// Lets a command join, if it is of that sort.
    pub(crate) fn join(
        &mut self,
        server: &'a Server,
        client: &Client,
        argv: impl Iterator<Item = &'a [u8]>,
        end: usize,
    ) -> bool {
        if client.queue.is_some() || !client.authenticated || self.0.len() >= MOST {
            return false;
        }
        let mut argv = argv.peekable();
        let entry = argv.peek().and_then(|name| server.catalog.find(name));
        let Some(entry) = entry.filter(|entry| is_joinable(entry)) else { return false };
        let argv: SmallVec<[&[u8]; 6]> = argv.take(MOST_ARGUMENTS + 1).collect();
        if argv.len() > MOST_ARGUMENTS || argv.iter().any(|arg| arg.len() > LONGEST_ARGUMENT) {
            return false;
        }
        self.0.push(Joined { entry, argv, end });
        true
    }

    /// Runs those that have joined and appends their replies to `out`, until they have about
    /// `room` bytes.
    pub(crate) fn run(
        &mut self,
        server: &Server,
        counters: &Counters,
        client: &mut Client,
        out: &mut Vec<u8>,
        room: usize,
    ) -> Ran {
        let group = std::mem::take(&mut self.0);
        let mut room = room;
        let fits = |reply: &Reply| {
            room = room.saturating_sub(bytes_of(reply));
            room > 0
        };
        let replies = match group.as_slice() {
            [] => return Ran::All,
            [_] => None,
            several => client.session.db().pipeline_while(several, fits).ok(),
        };
        // What failed as a whole changed nothing: each then gets the reply that is its own.
        let Some(replies) = replies else {
            for command in &group {
                execute(server, counters, client, &command.argv, out);
            }
            return Ran::All;
        };
        let ran = replies.len();
        for (Joined { entry, argv, .. }, reply) in group.iter().zip(replies) {
            let before = out.len();
            if let Some(calls) = counters.calls.get(entry.index) {
                calls.add(1);
            }
            after_data(server, client, entry, argv, &reply);
            if matches!(reply, Reply::Error(_)) {
                counters.errors.add(1);
            }
            Writer::new(out, client.protocol).reply(&reply);
            if client.swallows_reply() {
                out.truncate(before);
            }
        }
        let Some(last) = ran.checked_sub(1).and_then(|at| group.get(at)) else { return Ran::All };
        client.note_command(last.entry);
        match group.len() - ran {
            0 => Ran::All,
            left => Ran::Some { end: last.end, left: left as u64 },
        }
    }
}

/// About how long a reply is that one of them may give.
fn bytes_of(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(bytes) => bytes.len(),
        Reply::Array(items) => items.iter().map(bytes_of).sum(),
        _ => 16,
    }
}

fn is_joinable(entry: &Entry) -> bool {
    let one_key = KeyPositions::Range { first: 1, last: 1, step: 1 };
    let fits = entry.writes || entry.reads_one_value;
    fits && entry.keys == one_key && matches!(entry.kind, Kind::Data(_))
}
