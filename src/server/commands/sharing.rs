//! What the processes that share a store ask its holder for. Clients of other servers do not find
//! this command.
//!
//! | words after LSMKV.SHARED | reply | |
//! |---|---|---|
//! | HELLO | process, generation | who holds the store |
//! | UPKEEP what \[directory\] | by what it is | FLUSH, STATS and the like, on a thread |
//! | BATCH bytes \[how\] | OK, or a ticket | commits a batch |
//! | WAIT ticket ms | 1 or 0 | whether the writes of a ticket are durable; waits on a thread |
//! | VIEW SNAPSHOT, VIEW TRANSACTION | OK | commands of the connection now run on one |
//! | COMMIT \[how\] | OK, or a ticket | commits the transaction; it is over unless it is TIMEOUT |
//! | ROLLBACK | OK | ends the transaction |
//! | END | OK | commands run on the store again; a transaction is rolled back |
//! | KEYS range | number | begins a walk over keys, on the view if there is one |
//! | NEXT number items bytes | page | the next entries of a walk |
//! | FREE number | OK | ends a walk |
//!
//! `how`: ASYNC replies a ticket instead of waiting for the device; a number is the milliseconds to
//! wait for other writers. Everything that a connection keeps ends with it.

use std::sync::Arc;
use std::time::Duration;

use super::Call;
use super::subcommand::Subcommand;
use super::upkeep::upkeep;
use crate::commands::{Batch, Head, Reply, ReplySink as _, StoredBatch};
use crate::error::{Error, ErrorKind, Result};
use crate::server::scripts::{ThreadPermit, run_on_thread, run_with};
use crate::server::session_call::write_failure;
use crate::server::walk_words::{range_of, write_page};
use crate::txn::{Db, Ticket, Transaction};

/// The name of the command.
pub(super) const NAME: &str = "LSMKV.SHARED";

/// The most entries of a page, and the bytes after which it ends.
const PAGE_ITEMS: usize = 1024;
const PAGE_BYTES: usize = 256 << 10;
/// The most records that a page looks at: others of the event loop wait for it.
const PAGE_RECORDS: u64 = 8192;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::new("BATCH", 3, 4, batch),
    Subcommand::new("COMMIT", 2, 3, commit),
    Subcommand::new("END", 2, 2, end),
    Subcommand::new("FREE", 3, 3, free),
    Subcommand::new("HELLO", 2, 2, hello),
    Subcommand::at_least("KEYS", 2, keys),
    Subcommand::new("NEXT", 5, 5, next),
    Subcommand::new("ROLLBACK", 2, 2, rollback),
    Subcommand::new("UPKEEP", 3, 4, upkeep),
    Subcommand::new("VIEW", 3, 3, view),
    Subcommand::new("WAIT", 4, 4, wait),
];

pub(super) fn shared(call: &mut Call<'_, '_>) {
    call.subcommand(SUBCOMMANDS);
}

/// Which process holds the store, and its generation.
fn hello(call: &mut Call<'_, '_>) {
    let Some(holder) = call.server.holder else { return call.unknown_subcommand() };
    call.out.head(Head::Array, 2);
    call.out.integer(i64::from(holder.process));
    call.out.integer(i64::try_from(holder.generation).unwrap_or(i64::MAX));
}

/// How a commit is made.
enum How {
    Durable,
    Async,
    Within(Duration),
}

impl How {
    fn of(call: &Call<'_, '_>, at: usize) -> Result<Self> {
        match (call.word(at).as_str(), call.number(at).map(u64::try_from)) {
            ("", _) => Ok(Self::Durable),
            ("ASYNC", _) => Ok(Self::Async),
            (_, Some(Ok(ms))) => Ok(Self::Within(Duration::from_millis(ms))),
            _ => Err(Error::new(ErrorKind::Invalid, "no way to commit is called so")),
        }
    }
}

/// What can be committed.
trait Commit: Send + 'static {
    fn commit(&mut self) -> Result<()>;
    fn commit_async(&mut self) -> Result<Ticket>;
    fn commit_timeout(&mut self, limit: Duration) -> Result<()>;
}

impl Commit for Batch {
    fn commit(&mut self) -> Result<()> {
        Self::commit(self)
    }

    fn commit_async(&mut self) -> Result<Ticket> {
        Self::commit_async(self)
    }

    fn commit_timeout(&mut self, limit: Duration) -> Result<()> {
        Self::commit_timeout(self, limit)
    }
}

impl Commit for Arc<Transaction> {
    fn commit(&mut self) -> Result<()> {
        Transaction::commit(self)
    }

    fn commit_async(&mut self) -> Result<Ticket> {
        Transaction::commit_async(self)
    }

    fn commit_timeout(&mut self, limit: Duration) -> Result<()> {
        Transaction::commit_timeout(self, limit)
    }
}

/// Commits a batch.
fn batch(call: &mut Call<'_, '_>) {
    let stored = StoredBatch::from_bytes(call.arg(2));
    let batch = stored.and_then(|stored| stored.batch_of(call.client.session.db()));
    finish(call, batch, 3);
}

/// Commits the transaction of the connection.
fn commit(call: &mut Call<'_, '_>) {
    let transaction = call.client.held.transaction().ok_or_else(no_transaction);
    finish(call, transaction, 2);
}

/// Commits as the word at a place says. Who has to wait for other writers does so on a thread.
fn finish(call: &mut Call<'_, '_>, what: Result<impl Commit>, at: usize) {
    let both = what.and_then(|what| Ok((what, How::of(call, at)?)));
    let (mut what, how) = match both {
        Ok(both) => both,
        Err(error) => return reply(call, Err(error)),
    };
    // The reply then waits for the device.
    call.client.has_written |= !matches!(how, How::Async);
    match how {
        How::Durable => reply(call, what.commit()),
        How::Async => match what.commit_async() {
            Ok(ticket) => call.out.integer(i64::try_from(ticket.number()).unwrap_or(i64::MAX)),
            Err(error) => reply(call, Err(error)),
        },
        How::Within(limit) => match what.commit_timeout(Duration::ZERO) {
            Err(error) if error.kind() == ErrorKind::Timeout && !limit.is_zero() => {
                run_on_thread(call.server, call.client, 0, call.out, move |_| {
                    done(what.commit_timeout(limit))
                });
            }
            outcome => reply(call, outcome),
        },
    }
}

fn rollback(call: &mut Call<'_, '_>) {
    let transaction = call.client.held.transaction().ok_or_else(no_transaction);
    let outcome = transaction.and_then(|transaction| transaction.rollback());
    reply(call, outcome);
}

/// Lets the commands of the connection run on a snapshot or in a transaction.
fn view(call: &mut Call<'_, '_>) {
    let what = call.word(2);
    let client = &mut *call.client;
    let begun = match what.as_str() {
        "SNAPSHOT" => client.held.take_snapshot(&mut client.session),
        "TRANSACTION" => client.held.begin(&mut client.session),
        _ => Err(Error::new(ErrorKind::Invalid, "no view is called so")),
    };
    reply(call, begun);
}

fn end(call: &mut Call<'_, '_>) {
    let client = &mut *call.client;
    client.held.end(&mut client.session);
    client.sync_with_session();
    call.out.ok();
}

/// Begins a walk over keys.
fn keys(call: &mut Call<'_, '_>) {
    let client = &mut *call.client;
    let begun = range_of(call.argv.get(2..).unwrap_or_default())
        .and_then(|range| client.session.db().iter(range))
        .and_then(|walk| client.held.add_walk(walk));
    match begun {
        Ok(number) => call.out.integer(i64::try_from(number).unwrap_or(i64::MAX)),
        Err(error) => reply(call, Err(error)),
    }
}

/// The next entries of a walk.
fn next(call: &mut Call<'_, '_>) {
    let most = |at: usize, most: usize| {
        call.number(at).and_then(|given| usize::try_from(given).ok()).unwrap_or(most).min(most)
    };
    let (items, bytes) = (most(3, PAGE_ITEMS), most(4, PAGE_BYTES));
    let number = number(call, 2);
    let walk = number.and_then(|number| call.client.held.walk(number));
    match walk.and_then(|walk| walk.next_page(items, bytes, PAGE_RECORDS)) {
        Ok(page) => write_page(page, call.out),
        Err(error) => reply(call, Err(error)),
    }
}

fn free(call: &mut Call<'_, '_>) {
    let freed = number(call, 2).map(|number| call.client.held.free_walk(number));
    reply(call, freed);
}

/// Tells whether the writes of a ticket are durable. Who has to wait does so on a thread; without
/// one the client asks again.
fn wait(call: &mut Call<'_, '_>) {
    let both = number(call, 2).and_then(|ticket| Ok((ticket, number(call, 3)?)));
    let (ticket, ms) = match both {
        Ok((ticket, ms)) => (Ticket::from_number(ticket), ms),
        Err(error) => return reply(call, Err(error)),
    };
    let is_durable = match call.client.session.db().wait(ticket, Some(Duration::ZERO)) {
        Ok(is_durable) => is_durable,
        Err(error) => return reply(call, Err(error)),
    };
    let permit = (!is_durable && ms > 0).then(|| ThreadPermit::take(call.server)).flatten();
    let Some(permit) = permit else { return call.out.integer(i64::from(is_durable)) };
    let limit = Duration::from_millis(ms);
    run_with(permit, call.server, call.client, 0, call.out, move |db: &Db| {
        match db.wait(ticket, Some(limit)) {
            Ok(is_durable) => Reply::Int(i64::from(is_durable)),
            Err(error) => Reply::Error(error.to_line()),
        }
    });
}

fn number(call: &Call<'_, '_>, at: usize) -> Result<u64> {
    let number = std::str::from_utf8(call.arg(at)).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::new(ErrorKind::Invalid, "a word is no number"))
}

fn no_transaction() -> Error {
    Error::new(ErrorKind::Invalid, "the connection has no transaction")
}

fn done(outcome: Result<()>) -> Reply {
    match outcome {
        Ok(()) => Reply::Status("OK"),
        Err(error) => Reply::Error(error.to_line()),
    }
}

fn reply(call: &mut Call<'_, '_>, outcome: Result<()>) {
    match outcome {
        Ok(()) => call.out.ok(),
        Err(error) => write_failure(call.server, &error, call.out),
    }
}
