//! Runs a command of a connection and writes its reply.
//!
//! Commands of the store go through the connection's session, which also queues them after MULTI.
//! For what the session does not know (the server's own commands, blocking pops) a stand-in is
//! queued, and EXEC puts the right reply in the place of the stand-in's.

use std::time::Instant;

use lsmkv::{Error, ErrorKind, Reply, ReplySink as _};

use super::budget::Budget;
use super::catalog::{Entry, Kind, Role};
use super::client::{Blocked, Client, Fate, Queue, Queued, memory_of};
use super::commands::{Call, OwnCommand};
use super::counters::{Counters, Outcome};
use super::exec::exec;
use super::pop::{Pop, PopForm};
use super::shared::Server;
use super::waiters::Wait;
use crate::resp::Writer;

/// Runs `argv`, which has at least a name, and appends the reply to `out`.
pub(crate) fn execute(
    server: &Server,
    counters: &Counters,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Vec<u8>,
) {
    let (before, started) = (out.len(), Instant::now());
    let name = argv.first().copied().unwrap_or_default();
    let entry = server.catalog.find(name);
    let may_run = client.authenticated || entry.is_none_or(Entry::runs_before_auth);
    let budget = Budget::new(server, client, before);
    let mut writer = Writer::within(out, client.protocol, &budget);
    match entry {
        None if is_http(name) => turn_away(server, client),
        // The session knows what to say, and that a transaction with such a command fails.
        None => in_session(server, client, argv, &mut writer, |_, _| ()),
        Some(_) if !may_run => refuse(client, &mut writer, "NOAUTH Authentication required."),
        Some(entry) => run(server, client, entry, argv, &mut writer),
    }
    let full = writer.is_full();
    counters.commands.add(1);
    let failed = out.get(before) == Some(&b'-');
    match entry {
        None => counters.errors.add(1),
        Some(entry) => {
            let outcome = if may_run { outcome_of(entry, argv, failed) } else { Outcome::Rejected };
            counters.note_call(entry.index, outcome, nanos_since(started));
        }
    }
    // One that waits has no reply yet.
    if client.blocked.is_none() && settle(client, &budget, counters, full) == Settled::Dropped {
        out.truncate(before);
    }
}

/// Whether a command is a line of an HTTP request: a web page that a user of this machine looks at
/// can have the browser send one to any port, with commands as its body.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
}

/// Closes a client whose further lines must not run.
fn turn_away(server: &Server, client: &mut Client) {
    if server.http_notes.is_due(server.now_ms()) {
        let (id, address) = (client.id(), &client.info.address);
        super::log::line(&format!("client {id} from {address} speaks HTTP and is closed"));
    }
    client.fate = Fate::Dies;
}

/// What becomes of a reply that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Stays,
    /// Its client wants none, or is closed because there was no room for it.
    Dropped,
}

/// To be asked after each reply; `full`: there was no room for it.
pub(crate) fn settle(
    client: &mut Client,
    budget: &Budget<'_>,
    counters: &Counters,
    full: bool,
) -> Settled {
    if client.swallows_reply() {
        return Settled::Dropped;
    }
    if full {
        budget.close(client, counters);
        return Settled::Dropped;
    }
    Settled::Stays
}

/// How a call went whose reply is an error, or is none.
pub(crate) fn outcome_of(entry: &Entry, argv: &[&[u8]], failed: bool) -> Outcome {
    match failed {
        false => Outcome::Done,
        true if entry.fits(argv.len()) => Outcome::Failed,
        true => Outcome::Rejected,
    }
}

pub(crate) fn nanos_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn run(server: &Server, client: &mut Client, entry: &Entry, argv: &[&[u8]], out: &mut Writer<'_>) {
    client.note_command(entry);
    match entry.kind {
        Kind::Data(_) if client.queue.is_none() => run_data(server, client, entry, argv, out),
        Kind::Data(_) => in_session(server, client, argv, out, |client, reply| {
            after_data(server, client, entry, argv, reply);
        }),
        Kind::Session(role) => run_session(server, client, role, argv, out),
        _ if !entry.fits(argv.len()) => {
            let text = format!("ERR wrong number of arguments for '{}' command", entry.name);
            refuse(client, out, &text);
        }
        Kind::Blocking(form) => run_blocking(server, client, form, argv, out),
        Kind::Own(own) => run_own(server, client, own, argv, out),
    }
}

/// An error that also makes a transaction fail.
fn refuse(client: &mut Client, out: &mut Writer<'_>, text: &str) {
    if client.queue.is_some() {
        // No command has this name; the session notes the error.
        let _ = client.session.command(&[b"\0"]);
    }
    out.error(text);
}

/// The text that a client is told of a failure of the store.
pub(crate) fn failure_text(error: &Error) -> String {
    let text = error.message();
    let code = text.split(' ').next().unwrap_or_default();
    if code.len() > 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return text.to_owned();
    }
    let code = match error.kind() {
        ErrorKind::ReadOnly => "READONLY",
        ErrorKind::Degraded => "MISCONF",
        _ => "ERR",
    };
    format!("{code} {text}")
}

/// A command of the store that runs now: its reply goes straight to the client's buffer.
fn run_data(
    server: &Server,
    client: &mut Client,
    entry: &Entry,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    match client.session.command_into(argv, out) {
        Ok(()) if entry.writes => after_write(server, client, entry, argv),
        Ok(()) => {}
        Err(error) => failed(server, &error, out),
    }
}

pub(crate) fn failed(server: &Server, error: &Error, out: &mut Writer<'_>) {
    server.note_failure(error);
    out.error(&failure_text(error));
}

/// Lets the session run it; `then` sees the reply before it is written.
pub(crate) fn in_session(
    server: &Server,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
    then: impl FnOnce(&mut Client, &Reply),
) {
    match client.session.command(argv) {
        Ok(reply) => {
            then(client, &reply);
            out.reply(&reply);
        }
        Err(error) => failed(server, &error, out),
    }
}

/// Remembers what is queued, or serves those who wait for what was written.
pub(crate) fn after_data(
    server: &Server,
    client: &mut Client,
    entry: &Entry,
    argv: &[&[u8]],
    reply: &Reply,
) {
    if let Some(queue) = &mut client.queue {
        if matches!(reply, Reply::Error(_)) {
            return;
        }
        queue.push(Queued::Plain);
        if entry.writes {
            note_touched(queue, entry, argv);
        }
        return client.follow_session();
    }
    if entry.writes {
        after_write(server, client, entry, argv);
    }
}

fn after_write(server: &Server, client: &mut Client, entry: &Entry, argv: &[&[u8]]) {
    client.wrote = true;
    if server.waiters.any() {
        if touches_all(entry, argv) {
            server.waiters.serve_all(|delivery| server.deliver(delivery));
        } else {
            let keys = entry.keys_in(argv);
            server.waiters.serve(keys, |delivery| server.deliver(delivery));
        }
    }
}

fn touches_all(entry: &Entry, argv: &[&[u8]]) -> bool {
    matches!(entry.kind, Kind::Data(info) if info.writes_any_key(argv))
}

fn note_touched(queue: &mut Queue, entry: &Entry, argv: &[&[u8]]) {
    queue.writes = true;
    queue.touches_all |= touches_all(entry, argv);
    entry.keys_in(argv).into_iter().for_each(|key| queue.touch(key));
}

fn run_session(
    server: &Server,
    client: &mut Client,
    role: Role,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    match role {
        Role::Exec => return exec(server, client, argv, out),
        Role::Multi => in_session(server, client, argv, out, |client, reply| {
            if *reply == Reply::OK {
                client.queue = Some(Queue::default());
            }
        }),
        Role::Discard | Role::Other => in_session(server, client, argv, out, |client, reply| {
            if let (Some(queue), Reply::Status("QUEUED")) = (&mut client.queue, reply) {
                queue.push(Queued::Plain);
            }
        }),
    }
    client.follow_session();
}

/// Queues `argv`, which the session does not know, if it is between MULTI and EXEC: there
/// `command` stands in for it.
fn queue(
    client: &mut Client,
    argv: &[&[u8]],
    command: &[&[u8]],
    queued: Queued,
    out: &mut Writer<'_>,
) {
    match client.session.command(command) {
        Ok(reply) => {
            if let (Some(queue), Reply::Status(_)) = (&mut client.queue, &reply) {
                queue.push_own(queued, argv);
            }
            out.reply(&reply);
        }
        Err(error) => out.error(&failure_text(&error)),
    }
    client.follow_session();
}

fn run_own(
    server: &Server,
    client: &mut Client,
    own: &'static OwnCommand,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    if client.queue.is_some() && !own.never_queued {
        let command = argv.iter().map(|word| word.to_vec()).collect();
        return queue(client, argv, &[b"PING"], Queued::Own(command), out);
    }
    (own.run)(&mut Call { server, client, argv, out, in_transaction: false });
}

fn run_blocking(
    server: &Server,
    client: &mut Client,
    form: PopForm,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    let pop = match (Pop::parse(form, argv), client.queue.is_some()) {
        (Ok(pop), _) => pop,
        (Err(text), true) => return queue(client, &[], &[b"PING"], Queued::Refused(text), out),
        (Err(text), false) => return out.error(&text),
    };
    let command = pop.command();
    let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
    if let Some(transaction) = &mut client.queue {
        transaction.writes = true;
        pop.destination().into_iter().for_each(|key| transaction.touch(key));
        return queue(client, argv, &words, Queued::Popped(pop), out);
    }
    let deadline = pop.limit.and_then(|limit| Instant::now().checked_add(limit));
    let destination = pop.destination().map(<[u8]>::to_vec);
    let (home, db) = (client.info.home, client.session.db().clone());
    let mut failure = None;
    let first = |pop: &Pop| match client.session.command(&words) {
        Ok(Reply::Nil | Reply::NilArray) => None,
        Ok(reply) => Some(pop.shape(reply)),
        Err(error) => {
            failure = Some(failure_text(&error));
            Some(Reply::Nil)
        }
    };
    let wait = server.waiters.take_or_wait(home, &db, pop, first, |d| server.deliver(d));
    match wait {
        Wait::Done(reply) => {
            client.wrote = true;
            match failure {
                Some(text) => out.error(&text),
                None => out.reply(&reply),
            }
            if server.waiters.any() {
                let keys = destination.iter().map(Vec::as_slice);
                server.waiters.serve(keys, |delivery| server.deliver(delivery));
            }
        }
        Wait::Waits(ticket) => {
            // The keys are there once in what it waits for, and once in the table of who waits.
            let bytes = 2 * memory_of(argv.iter().copied());
            client.block(Blocked { ticket: Some(ticket), deadline, finally: Reply::Nil, bytes });
        }
    }
}
