//! Every command the server knows, by name: the library's commands and the server's own.

use crate::commands::{CommandInfo, ConnectionCommand, KeyPositions};
use rustc_hash::FxHashMap;

/// Which part of the program runs a command.
#[derive(Clone, Copy)]
pub(crate) enum CommandKind {
    /// The store, through the connection's session.
    Store(CommandInfo),
    /// The session itself: the command changes the state of the connection.
    Session(SessionRole),
    /// The store, now or as soon as a key holds an element.
    BlockingPop,
    /// The server: the index of the handler in `SERVER_COMMANDS`.
    Server(usize),
}

/// The effect of a session command that the server has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionRole {
    Multi,
    Exec,
    Discard,
    Subscribe,
    Ping,
    Other,
}

/// A command and what the server knows about it.
pub(crate) struct CommandEntry {
    /// The name in lower case.
    pub(crate) name: String,
    /// The entry's index in the table.
    pub(crate) index: usize,
    /// Number of arguments including the name; negative: at least that many.
    pub(crate) arity: isize,
    pub(crate) kind: CommandKind,
    pub(crate) writes: bool,
    /// Whether the command looks up exactly one value, whatever the size of its key.
    pub(crate) reads_one_value: bool,
    /// Whether the command may run in a batch.
    pub(crate) can_batch: bool,
    /// Whether a client may call the command before it has authenticated.
    pub(crate) before_auth: bool,
    /// Whether the command runs at once between MULTI and EXEC.
    pub(crate) never_queued: bool,
    /// Whether the command is refused between MULTI and EXEC.
    pub(crate) refused_in_multi: bool,
    pub(crate) keys: KeyPositions,
    pub(crate) group: &'static str,
    pub(crate) syntax: String,
    pub(crate) doc: &'static str,
    /// The Redis version that introduced the command.
    pub(crate) since: &'static str,
    pub(crate) complexity: &'static str,
}

impl CommandEntry {
    /// Whether the arity allows this number of arguments.
    pub(crate) fn accepts_count(&self, count: usize) -> bool {
        let least = self.arity.unsigned_abs();
        if self.arity < 0 { count >= least } else { count == least }
    }

    /// Whether the command runs a script.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self.kind, CommandKind::Store(info) if info.is_script())
    }

    /// Whether a call can take long by itself. One that only sets up the connection, such as HELLO or
    /// SUBSCRIBE, takes long if its thread was interrupted, which says nothing about the client.
    pub(crate) fn can_take_long(&self) -> bool {
        match &self.kind {
            CommandKind::Session(role) => *role == SessionRole::Exec,
            CommandKind::Server(_) => !["auth", "client", "hello"].contains(&self.name.as_str()),
            CommandKind::Store(_) | CommandKind::BlockingPop => true,
        }
    }

    /// The keys that a call names.
    pub(crate) fn keys_in<'a>(&self, argv: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let mut keys = self.keys.keys(argv);
        if self.name == "sort" {
            keys.extend(sort_destination(argv));
        }
        keys
    }

    /// Whether the command writes only the one key it names, or reads one value of it.
    fn fits_batch(&self) -> bool {
        let one_key = KeyPositions::Range { first: 1, last: 1, step: 1 };
        let is_small = self.writes || self.reads_one_value;
        let stays_in_key =
            matches!(&self.kind, CommandKind::Store(info) if !info.may_write_any_key());
        is_small && self.keys == one_key && stays_in_key
    }
}

fn session_role(command: ConnectionCommand) -> SessionRole {
    match command {
        ConnectionCommand::Discard => SessionRole::Discard,
        ConnectionCommand::Exec => SessionRole::Exec,
        ConnectionCommand::Multi => SessionRole::Multi,
        ConnectionCommand::Ping => SessionRole::Ping,
        ConnectionCommand::Psubscribe
        | ConnectionCommand::Punsubscribe
        | ConnectionCommand::Ssubscribe
        | ConnectionCommand::Subscribe
        | ConnectionCommand::Sunsubscribe
        | ConnectionCommand::Unsubscribe => SessionRole::Subscribe,
        _ => SessionRole::Other,
    }
}

/// The longest name that a lookup considers.
const MAX_NAME: usize = 32;

/// All commands, found by name or by index.
pub(crate) struct CommandTable {
    entries: Vec<CommandEntry>,
    by_name: FxHashMap<Vec<u8>, usize>,
}

impl CommandTable {
    /// The commands of the library and of its sessions.
    pub(crate) fn of_library() -> Self {
        let mut table = Self { entries: Vec::new(), by_name: FxHashMap::default() };
        for info in crate::commands::commands() {
            table.add(
                info.name(),
                CommandEntry {
                    arity: info.arity(),
                    kind: match info.blocks() {
                        true => CommandKind::BlockingPop,
                        false => CommandKind::Store(info),
                    },
                    writes: info.writes(),
                    reads_one_value: info.reads_one_value(),
                    keys: info.key_positions(),
                    group: info.group(),
                    syntax: info.syntax(),
                    doc: info.doc(),
                    since: info.since(),
                    complexity: info.complexity(),
                    ..CommandEntry::default()
                },
            );
        }
        for info in crate::commands::session_commands() {
            table.add(
                info.name,
                CommandEntry {
                    arity: info.arity,
                    kind: CommandKind::Session(session_role(info.command)),
                    keys: info.key_positions,
                    group: match session_role(info.command) {
                        SessionRole::Subscribe => "Messages",
                        _ => "Transactions and connection",
                    },
                    syntax: info.syntax,
                    doc: info.doc,
                    since: info.since,
                    ..CommandEntry::default()
                },
            );
        }
        table
    }

    /// Adds a command. An entry with the name of an earlier one replaces it.
    pub(crate) fn add(&mut self, name: &str, entry: CommandEntry) {
        let index = self.entries.len();
        let can_batch = entry.fits_batch();
        let entry = CommandEntry { name: name.to_ascii_lowercase(), index, can_batch, ..entry };
        self.by_name.insert(name.as_bytes().to_vec(), index);
        self.entries.push(entry);
    }

    /// Finds a command by its name in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&CommandEntry> {
        let mut upper = [0; MAX_NAME];
        let upper = upper.get_mut(..name.len())?;
        for (to, from) in upper.iter_mut().zip(name) {
            *to = from.to_ascii_uppercase();
        }
        self.by_name.get(&*upper).and_then(|index| self.entries.get(*index))
    }

    /// The command at an index.
    pub(crate) fn entry(&self, index: usize) -> Option<&CommandEntry> {
        self.entries.get(index)
    }

    /// The name of the command at an index; `NULL` if there is none, as CLIENT LIST shows it.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.entry(index).map_or("NULL", |entry| entry.name.as_str())
    }

    /// The number of indexes.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Every command that a client can call.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &CommandEntry> {
        self.by_name.values().filter_map(|index| self.entries.get(*index))
    }
}

/// The key at which SORT stores its result: that of the last STORE, as Redis finds it. What follows
/// BY, GET and LIMIT is no option.
fn sort_destination<'a>(argv: &[&'a [u8]]) -> Option<&'a [u8]> {
    let mut words = argv.get(2..).unwrap_or_default().iter().copied();
    let mut found = None;
    while let Some(word) = words.next() {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if is("LIMIT") {
            words.nth(1);
        } else if is("BY") || is("GET") {
            words.next();
        } else if is("STORE") {
            found = words.next().or(found);
        }
    }
    found
}

impl Default for CommandEntry {
    fn default() -> Self {
        Self {
            name: String::new(),
            index: 0,
            arity: 0,
            kind: CommandKind::Session(SessionRole::Other),
            writes: false,
            reads_one_value: false,
            can_batch: false,
            before_auth: false,
            never_queued: false,
            refused_in_multi: false,
            keys: KeyPositions::None,
            group: "",
            syntax: String::new(),
            doc: "",
            since: "1.0.0",
            complexity: "O(1)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_nothing_else_is() {
        let table = CommandTable::of_library();
        assert_eq!(table.find(b"gEt").unwrap().name, "get");
        for name in [&b""[..], b"GE", b"GETT", &[b'G'; 1000], b"\xff"] {
            assert!(table.find(name).is_none());
        }
    }

    #[test]
    fn watch_is_the_only_session_command_with_keys() {
        let table = CommandTable::of_library();
        let all_after_first = KeyPositions::Range { first: 1, last: -1, step: 1 };
        for info in crate::commands::session_commands() {
            let expected = if info.name == "WATCH" { all_after_first } else { KeyPositions::None };
            let found = table.find(info.name.as_bytes()).unwrap().keys;
            assert_eq!(found, expected, "{}", info.name);
        }
    }

    #[test]
    fn reads_of_one_value_are_reads_of_one_key() {
        let table = CommandTable::of_library();
        let entries: Vec<_> = table.entries().filter(|entry| entry.reads_one_value).collect();
        assert_eq!(entries.len(), 17);
        for entry in entries {
            assert!(!entry.writes && entry.can_batch, "{}", entry.name);
            let one_key = KeyPositions::Range { first: 1, last: 1, step: 1 };
            assert_eq!(entry.keys, one_key, "{}", entry.name);
        }
    }
}
