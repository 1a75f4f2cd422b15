//! MONITOR: clients that see every command that others run.
//!
//! A command is shown after it has run. Administrative commands are not shown, and neither are
//! passwords. What a script calls comes after the script. While nobody monitors, a command pays one load.
//!
//! Lines wait in the output buffer of the monitor. One that reads too slowly is closed at the limit
//! that `client-output-buffer-limit` sets for replicas, as in Redis.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::commands::script_log::ScriptStep;

use super::client::Client;
use super::client_list::ClientHandle;
use super::command_table::{CommandEntry, CommandKind};
use super::mailbox::Message;
use super::shared::Server;

/// Commands that are not shown.
const ADMINISTRATIVE: [&str; 6] = ["bgsave", "config", "debug", "monitor", "save", "shutdown"];
/// Parts of CLIENT that are not shown.
const ADMINISTRATIVE_OF_CLIENT: [&[u8]; 3] = [b"kill", b"list", b"no-evict"];
/// Commands of the store that do not look at keys.
const WITHOUT_KEYS: [&str; 5] = ["function", "publish", "pubsub", "script", "spublish"];
/// What stands for a password.
const REDACTED: &[u8] = b"(redacted)";

/// The clients that monitor.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    handles: Mutex<Vec<ClientHandle>>,
}

impl Monitors {
    /// Whether anybody monitors.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    pub(crate) fn add(&self, handle: ClientHandle) {
        let mut handles = self.handles.lock();
        handles.push(handle);
        self.count.store(handles.len(), Relaxed);
    }

    pub(crate) fn remove(&self, handle: ClientHandle) {
        let mut handles = self.handles.lock();
        handles.retain(|known| *known != handle);
        self.count.store(handles.len(), Relaxed);
    }

    fn send(&self, server: &Server, line: &str) {
        let line: Arc<[u8]> = line.as_bytes().into();
        for to in self.handles.lock().iter() {
            server.post(to.event_loop, Message::Line { to: *to, line: Arc::clone(&line) });
        }
    }
}

/// How a command came to run, for those that monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Not at all: it was refused, or nobody monitors.
    No,
    /// It ran.
    Ran,
    /// It waits for EXEC.
    Queued,
}

/// Tells how a command is shown that is about to run.
pub(crate) fn shown(
    server: &Server,
    client: &Client,
    entry: &CommandEntry,
    argv: &[&[u8]],
) -> Shown {
    if !server.monitors.any() || !entry.accepts_count(argv.len()) || is_administrative(entry, argv)
    {
        return Shown::No;
    }
    let at_once =
        entry.never_queued || matches!(entry.name.as_str(), "discard" | "exec" | "multi" | "watch");
    if client.queue.is_some() && !at_once { Shown::Queued } else { Shown::Ran }
}

fn is_administrative(entry: &CommandEntry, argv: &[&[u8]]) -> bool {
    let is_word = |word: &&[u8]| argv.get(1).is_some_and(|own| own.eq_ignore_ascii_case(word));
    ADMINISTRATIVE.contains(&entry.name.as_str())
        || (entry.name == "client" && ADMINISTRATIVE_OF_CLIENT.iter().any(is_word))
}

/// Shows a command that has run.
pub(crate) fn show(server: &Server, client: &Client, argv: &[&[u8]]) {
    show_words(server, client, &words(argv));
}

/// Shows the commands that a script has called.
pub(crate) fn show_steps(server: &Server, steps: &[ScriptStep]) {
    for step in steps {
        let argv: Vec<&[u8]> = step.words.iter().map(Vec::as_slice).collect();
        show_line(server, step.database, "lua", &words(&argv));
    }
}

/// Shows a command by its quoted words.
pub(crate) fn show_words(server: &Server, client: &Client, words: &str) {
    let from = match client.info.is_unix {
        true => format!("unix:{}", server.settings.value("unixsocket")),
        false => client.info.address.clone(),
    };
    show_line(server, client.session.db().database(), &from, words);
}

fn show_line(server: &Server, database: u32, from: &str, words: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, micros) = (now.as_secs(), now.subsec_micros());
    let line = format!("+{seconds}.{micros:06} [{database} {from}]{words}\r\n");
    server.monitors.send(server, &line);
}

/// The words of a command in quotes, each after a space, without passwords.
pub(crate) fn words(argv: &[&[u8]]) -> String {
    let mut text = String::new();
    let name = argv.first().copied().unwrap_or_default();
    let is_auth = name.eq_ignore_ascii_case(b"AUTH");
    let is_hello = name.eq_ignore_ascii_case(b"HELLO");
    let mut secret = 0usize;
    for (at, word) in argv.iter().enumerate() {
        let hidden = at > 0 && (is_auth || secret > 0);
        secret = secret.saturating_sub(1);
        if !hidden && is_hello && at > 1 && word.eq_ignore_ascii_case(b"AUTH") {
            secret = 2;
        }
        quote(if hidden { REDACTED } else { word }, &mut text);
    }
    text
}

fn quote(word: &[u8], text: &mut String) {
    text.push_str(" \"");
    for byte in word {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Writing to a string does not fail.
            other => drop(write!(text, "\\x{other:02x}")),
        }
    }
    text.push('"');
}

/// The error for a command that a monitor may not call, if this is one.
pub(crate) fn refusal(client: &Client, entry: &CommandEntry, argv: &[&[u8]]) -> Option<String> {
    let looks_at_keys = matches!(entry.kind, CommandKind::Store(_) | CommandKind::BlockingPop)
        && !WITHOUT_KEYS.contains(&entry.name.as_str());
    let refused = client.monitors && looks_at_keys && entry.accepts_count(argv.len());
    refused.then(|| "ERR Replica can't interact with the keyspace".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_passwords_hidden() {
        let line = |argv: &[&[u8]]| words(argv);
        assert_eq!(
            line(&[b"SET", b"a", b"\"\\\n\r\t\x07\x08\x00\xff'"]),
            r#" "SET" "a" "\"\\\n\r\t\a\b\x00\xff'""#
        );
        assert_eq!(line(&[b"auth", b"user", b"pass"]), r#" "auth" "(redacted)" "(redacted)""#);
        assert_eq!(
            line(&[b"HELLO", b"3", b"auth", b"auth", b"pass", b"SETNAME", b"x"]),
            r#" "HELLO" "3" "auth" "(redacted)" "(redacted)" "SETNAME" "x""#
        );
    }
}
