//! Runs a command of a connection and writes its reply.
//!
//! Commands of the store go through the connection's session, which also queues them after MULTI.
//! The session does not know the server's own commands, which the client's queue holds then. EXEC
//! puts all replies in order.

use std::time::Instant;

use crate::commands::ReplySink as _;
use crate::commands::script_log::{self, ScriptSteps};

use super::blocking::run_blocking_pop;
use super::client::{Client, CloseState};
use super::command_table::{CommandEntry, CommandKind, SessionRole};
use super::commands::{self, Call};
use super::counters::{CallOutcome, Counters};
use super::long_reply::LongReply;
use super::monitor::{self, Shown};
use super::output_limit::OutputLimit;
use super::scripts::run_script;
use super::session_call::{queue_in_session, run_in_session, write_failure};
use super::shared::Server;
use super::subscribing::{self, pong, run_subscribe};
use super::transaction::exec;
use super::transaction_queue::ShownCommand;
use crate::resp::{Protocol, Writer};

/// Runs `argv`, which has at least a name, and appends the reply to `out`. Returns how long it took,
/// in nanoseconds.
pub(crate) fn dispatch(
    server: &Server,
    counters: &Counters,
    client: &mut Client,
    argv: &[&[u8]],
    out: &mut Vec<u8>,
) -> u64 {
    let (before, started) = (out.len(), Instant::now());
    let name = argv.first().copied().unwrap_or_default();
    let entry = server.commands.find(name);
    let may_run = client.authenticated || entry.is_none_or(|entry| entry.before_auth);
    let limit = OutputLimit::new(server, client, before);
    // Nobody monitored when this began, and its value is not at hand.
    let shown = entry.filter(|_| client.long_value.is_none());
    let mut monitored =
        shown.map_or(Shown::No, |entry| monitor::shown(server, client, entry, argv));
    let queued = take_shown(client, entry, monitored);
    let mut called = ScriptSteps::new();
    let mut writer = Writer::with_limit(out, client.protocol, &limit);
    // A long reply reads at a snapshot, and a transaction has none.
    if entry.is_some_and(|entry| entry.name == "get")
        && !client.monitors
        && !client.held.has_transaction()
    {
        writer = writer.leaving_out_long();
    }
    match entry {
        None if is_http(name) => close_http_client(server, client),
        // The session writes the error and makes a transaction with this command fail.
        None => run_in_session(server, client, argv, &mut writer),
        Some(entry) if !may_run => {
            refuse(client, entry, &mut writer, "NOAUTH Authentication required.");
        }
        Some(entry) => match refusal(client, entry, argv) {
            Some(text) => {
                monitored = Shown::No;
                refuse(client, entry, &mut writer, &text);
            }
            None if monitored == Shown::Ran => {
                ((), called) = script_log::record(|| run(server, client, entry, argv, &mut writer));
            }
            None => run(server, client, entry, argv, &mut writer),
        },
    }
    let full = writer.is_full();
    if writer.has_left_out() {
        begin_long_reply(server, client, argv, out);
    }
    if monitored != Shown::No && may_run {
        let reply = out.get(before..).unwrap_or_default();
        match (monitored, entry) {
            (Shown::Queued, Some(entry)) => note_queued(client, entry, argv, reply),
            _ => show(server, client, argv, (&queued, &called), reply),
        }
    }
    counters.commands.add(1);
    let nanos = nanos_since(started);
    let failed = out.get(before) == Some(&b'-');
    match entry {
        None => counters.errors.add(1),
        Some(entry) => {
            let outcome =
                if may_run { outcome_of(entry, argv, failed) } else { CallOutcome::Rejected };
            counters.note_call(entry.index, outcome, nanos);
        }
    }
    // A blocked client has no reply yet.
    if client.blocked.is_none()
        && finish_reply(client, &limit, counters, full) == ReplyDisposition::Discard
    {
        out.truncate(before);
        client.long_reply = None;
    }
    nanos
}

/// Begins the reply to a GET whose string was left out. A string that has become short meanwhile is
/// the reply of another GET.
fn begin_long_reply(server: &Server, client: &mut Client, argv: &[&[u8]], out: &mut Vec<u8>) {
    let key = argv.get(1).copied().unwrap_or_default();
    match LongReply::begin(client.session.db(), key, server.now_ms(), out) {
        Ok(Some(reply)) => client.long_reply = Some(reply),
        Ok(None) => {
            let mut writer = Writer::new(out, client.protocol);
            run_in_session(server, client, argv, &mut writer);
        }
        Err(error) => write_failure(server, &error, &mut Writer::new(out, client.protocol)),
    }
}

/// The error for a command that this client may not call now, if this is one.
fn refusal(client: &Client, entry: &CommandEntry, argv: &[&[u8]]) -> Option<String> {
    subscribing::refusal(client, entry, argv).or_else(|| monitor::refusal(client, entry, argv))
}

/// Takes the words of queued commands for those that monitor, if EXEC is about to run.
fn take_shown(
    client: &mut Client,
    entry: Option<&CommandEntry>,
    shown: Shown,
) -> Vec<ShownCommand> {
    let runs = shown == Shown::Ran && entry.is_some_and(|entry| entry.name == "exec");
    let queue = client.queue.as_mut().filter(|_| runs);
    queue.map_or_else(Vec::new, |queue| std::mem::take(&mut queue.shown))
}

/// Notes a queued command for those that monitor, who see it when EXEC runs it.
fn note_queued(client: &mut Client, entry: &CommandEntry, argv: &[&[u8]], reply: &[u8]) {
    if let Some(queue) = client.queue.as_mut().filter(|_| reply.starts_with(b"+QUEUED")) {
        let words = monitor::words(argv);
        queue.shown.push(ShownCommand { words, is_script: entry.is_script() });
    }
}

/// Shows a command to those that monitor. `queued`: the commands that EXEC ran before it. `called`: what
/// the scripts among them called, or the command itself.
fn show(
    server: &Server,
    client: &Client,
    argv: &[&[u8]],
    (queued, called): (&[ShownCommand], &ScriptSteps),
    reply: &[u8],
) {
    let mut called = called.iter();
    if reply.starts_with(b"*") && !reply.starts_with(b"*-1") {
        for command in queued {
            monitor::show_words(server, client, &command.words);
            let steps = command.is_script.then(|| called.next()).flatten();
            monitor::show_steps(server, steps.map_or(&[], Vec::as_slice));
        }
    }
    monitor::show(server, client, argv);
    called.for_each(|steps| monitor::show_steps(server, steps));
}

/// Whether a command is a line of an HTTP request. A web page can make a browser on this machine
/// send such a request to any port, with commands in its body.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"Host:")
}

/// Closes a client that speaks HTTP: its further lines must not run.
fn close_http_client(server: &Server, client: &mut Client) {
    if server.http_log.is_due(server.now_ms()) {
        let (id, address) = (client.id(), &client.info.address);
        server.log.line(&format!("client {id} from {address} speaks HTTP and is closed"));
    }
    client.close_state = CloseState::Now;
}

/// Whether a written reply stays in the output buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyDisposition {
    Keep,
    /// The client wants no reply, or closes because there was no room for it.
    Discard,
}

/// Decides about a written reply. `full`: there was no room for it, and the client closes.
pub(crate) fn finish_reply(
    client: &mut Client,
    limit: &OutputLimit<'_>,
    counters: &Counters,
    full: bool,
) -> ReplyDisposition {
    if client.suppresses_reply() {
        return ReplyDisposition::Discard;
    }
    if full {
        limit.close(client, counters);
        return ReplyDisposition::Discard;
    }
    ReplyDisposition::Keep
}

/// The outcome of a call for the statistics; `failed`: its reply is an error.
pub(crate) fn outcome_of(entry: &CommandEntry, argv: &[&[u8]], failed: bool) -> CallOutcome {
    match failed {
        false => CallOutcome::Done,
        true if entry.accepts_count(argv.len()) => CallOutcome::Failed,
        true => CallOutcome::Rejected,
    }
}

pub(crate) fn nanos_since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn run(
    server: &Server,
    client: &mut Client,
    entry: &CommandEntry,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    client.record_command(entry);
    match entry.kind {
        CommandKind::Store(_) | CommandKind::BlockingPop if client.queue.is_some() => {
            queue_store_command(server, client, entry, argv, out);
        }
        CommandKind::Store(_) => run_store_command(server, client, entry, argv, out),
        // There it does not wait.
        CommandKind::BlockingPop if client.has_view() => {
            run_store_command(server, client, entry, argv, out);
        }
        CommandKind::Session(role) => run_session_command(server, client, role, argv, out),
        _ if !entry.accepts_count(argv.len()) => {
            let text = format!("ERR wrong number of arguments for '{}' command", entry.name);
            reject(client, out, &text);
        }
        CommandKind::BlockingPop => run_blocking_pop(server, client, argv, out),
        CommandKind::Server(handler) => {
            run_server_command(server, client, entry, handler, argv, out);
        }
    }
}

/// Refuses a command that this client may not call now.
fn refuse(client: &mut Client, entry: &CommandEntry, out: &mut Writer<'_>, text: &str) {
    if entry.name != "exec" {
        return reject(client, out, text);
    }
    let why = text.strip_prefix("ERR ").unwrap_or(text);
    out.error(&format!("EXECABORT Transaction discarded because of: {why}"));
}

/// Writes an error that also makes a transaction fail.
fn reject(client: &mut Client, out: &mut Writer<'_>, text: &str) {
    client.session.mark_dirty();
    out.error(text);
}

/// Runs a command of the store at once, with its reply straight to the output buffer.
fn run_store_command(
    server: &Server,
    client: &mut Client,
    entry: &CommandEntry,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    // What a transaction writes becomes visible by its commit.
    client.has_written |= entry.writes && !client.has_view();
    if entry.is_script() && entry.accepts_count(argv.len()) && !client.session.tracks() {
        return run_script(server, client, argv, out);
    }
    // First, because its word in `argv` is empty: another client may have made this one the target of
    // its tracking while the value arrived.
    let ran = match client.long_value.take() {
        Some(mut value) => client.session.run_long_value(&mut value, argv, out),
        None if client.listens => return run_before_messages(server, client, argv, out),
        None => client.session.command_into(argv, out),
    };
    if let Err(error) = ran {
        write_failure(server, &error, out);
    }
}

/// Runs a command of a client that receives messages. Those that the command itself causes come
/// before its reply, as in Redis, but those about cached keys after it.
fn run_before_messages(server: &Server, client: &mut Client, argv: &[&[u8]], out: &mut Writer<'_>) {
    match client.session.command(argv) {
        Ok(reply) => {
            // A client that was too slow is closed later.
            let (before, after) = client.session.take_messages().unwrap_or_default();
            before.iter().for_each(|message| out.reply(message));
            out.reply(&reply);
            after.iter().for_each(|message| out.reply(message));
        }
        Err(error) => write_failure(server, &error, out),
    }
}

/// Queues a command of the store after MULTI.
fn queue_store_command(
    server: &Server,
    client: &mut Client,
    entry: &CommandEntry,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    let queued = queue_in_session(server, client, argv, out);
    if let Some(queue) = client.queue.as_mut().filter(|_| queued) {
        queue.push_of_session();
        queue.writes |= entry.writes;
    }
    client.sync_with_session();
}

fn run_session_command(
    server: &Server,
    client: &mut Client,
    role: SessionRole,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    match role {
        SessionRole::Exec => return exec(server, client, argv, out),
        SessionRole::Multi => {
            run_in_session(server, client, argv, out);
            if client.session.in_multi() {
                client.queue.get_or_insert_default();
            }
        }
        SessionRole::Ping
            if client.queue.is_none()
                && client.is_subscribed()
                && client.protocol == Protocol::Resp2
                && argv.len() <= 2 =>
        {
            pong(argv, out);
        }
        SessionRole::Subscribe if client.queue.is_none() => {
            run_subscribe(server, client, argv, out);
        }
        SessionRole::Discard | SessionRole::Subscribe | SessionRole::Ping | SessionRole::Other => {
            let queued = queue_in_session(server, client, argv, out);
            if let Some(queue) = client.queue.as_mut().filter(|_| queued) {
                queue.push_of_session();
                queue.subscribes |= role == SessionRole::Subscribe;
            }
        }
    }
    client.sync_with_session();
}

/// Queues a command that the session does not know, if the client is between MULTI and EXEC.
fn queue_in_server(client: &mut Client, handler: usize, argv: &[&[u8]], out: &mut Writer<'_>) {
    if let Some(queue) = &mut client.queue {
        queue.push(handler, argv);
        out.status("QUEUED");
    }
    client.sync_with_session();
}

fn run_server_command(
    server: &Server,
    client: &mut Client,
    entry: &CommandEntry,
    handler: usize,
    argv: &[&[u8]],
    out: &mut Writer<'_>,
) {
    if client.queue.is_some() && entry.refused_in_multi {
        return reject(client, out, "ERR Command not allowed inside a transaction");
    }
    if client.queue.is_some() && subscribing::is_of_session(entry, argv) {
        let queued = queue_in_session(server, client, argv, out);
        if let Some(queue) = client.queue.as_mut().filter(|_| queued) {
            queue.push_of_session();
            queue.subscribes = true;
        }
        return client.sync_with_session();
    }
    if client.queue.is_some() && !entry.never_queued {
        return queue_in_server(client, handler, argv, out);
    }
    commands::run(handler, &mut Call { server, client, argv, out, in_transaction: false });
}
