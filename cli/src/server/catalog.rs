//! Every command the server knows, by name: those of the store, and its own.

use lsmkv::{CommandInfo, KeyPositions};
use rustc_hash::FxHashMap;

use super::commands::{OWN, OwnCommand};
use super::pop::{PopForm, Taken};
use super::together;

/// Who runs a command.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// The store, by way of the session.
    Data(CommandInfo),
    /// The session: it changes what the connection is about to do.
    Session(Role),
    /// The store, now or when there is something to take.
    Blocking(PopForm),
    /// The server.
    Own(&'static OwnCommand),
}

/// What a command of the session means to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Multi,
    Exec,
    Discard,
    Other,
}

/// A command.
pub(crate) struct Entry {
    /// In lower case.
    pub(crate) name: String,
    /// Its number in the catalogue.
    pub(crate) index: usize,
    /// Number of arguments with the name; negative: at least that many.
    pub(crate) arity: isize,
    pub(crate) kind: Kind,
    pub(crate) writes: bool,
    /// It looks up one value, whatever the size of the key.
    pub(crate) reads_one_value: bool,
    /// It may run together with others.
    pub(crate) joins: bool,
    pub(crate) keys: KeyPositions,
    pub(crate) group: &'static str,
    pub(crate) syntax: String,
    pub(crate) doc: &'static str,
}

impl Entry {
    /// Whether a client may call it that has yet to give the password.
    pub(crate) fn runs_before_auth(&self) -> bool {
        matches!(self.kind, Kind::Own(own) if own.before_auth)
    }

    pub(crate) fn fits(&self, count: usize) -> bool {
        let least = self.arity.unsigned_abs();
        if self.arity < 0 { count >= least } else { count == least }
    }

    /// The keys that a call names.
    pub(crate) fn keys_in<'a>(&self, argv: &[&'a [u8]]) -> Vec<&'a [u8]> {
        match (&self.kind, self.keys) {
            (Kind::Data(info), _) => info.keys(argv),
            (_, KeyPositions::Range { first, last, .. }) => {
                let end = match usize::try_from(last) {
                    Ok(last) => last + 1,
                    Err(_) => (argv.len() + 1).saturating_sub(last.unsigned_abs()),
                };
                argv.get(first..end).unwrap_or_default().to_vec()
            }
            (_, KeyPositions::Counted { at, .. }) => {
                let count = argv.get(at).and_then(|n| std::str::from_utf8(n).ok()?.parse().ok());
                let rest = argv.get(at + 1..).unwrap_or_default();
                rest.iter().take(count.unwrap_or(0)).copied().collect()
            }
            (_, KeyPositions::None) => Vec::new(),
        }
    }
}

/// Commands that look up one value of their only key, and no more.
const READS_OF_ONE_VALUE: [&str; 17] = [
    "BITCOUNT",
    "GET",
    "GETBIT",
    "HEXISTS",
    "HGET",
    "HLEN",
    "HSTRLEN",
    "LINDEX",
    "LLEN",
    "PTTL",
    "SCARD",
    "SISMEMBER",
    "STRLEN",
    "TTL",
    "TYPE",
    "ZCARD",
    "ZSCORE",
];

/// What a command of the session means to the server.
fn role_of(name: &str) -> Role {
    match name {
        "DISCARD" => Role::Discard,
        "EXEC" => Role::Exec,
        "MULTI" => Role::Multi,
        _ => Role::Other,
    }
}

/// Name, arity, form, where the keys are, arguments, what it does.
type BlockingRow = (&'static str, isize, PopForm, KeyPositions, &'static str, &'static str);

const ALL_BUT_LAST: KeyPositions = KeyPositions::Range { first: 1, last: -2, step: 1 };
const TWO: KeyPositions = KeyPositions::Range { first: 1, last: 2, step: 1 };
const COUNTED: KeyPositions = KeyPositions::Counted { at: 2, before: 0 };

const BLOCKING: &[BlockingRow] = &[
    (
        "BLMOVE",
        6,
        PopForm::Move,
        TWO,
        "source destination LEFT | RIGHT LEFT | RIGHT timeout",
        "Moves an element as soon as there is one.",
    ),
    (
        "BLMPOP",
        -5,
        PopForm::Many(Taken::List),
        COUNTED,
        "timeout numkeys key [key …] LEFT | RIGHT [COUNT count]",
        "Takes elements of the first list that has some.",
    ),
    (
        "BLPOP",
        -3,
        PopForm::One(Taken::List, "LEFT"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the first element of the first list that has one.",
    ),
    (
        "BRPOP",
        -3,
        PopForm::One(Taken::List, "RIGHT"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the last element of the first list that has one.",
    ),
    (
        "BRPOPLPUSH",
        4,
        PopForm::RightToLeft,
        TWO,
        "source destination timeout",
        "Moves the last element to the front of another list as soon as there is one.",
    ),
    (
        "BZMPOP",
        -5,
        PopForm::Many(Taken::Sorted),
        COUNTED,
        "timeout numkeys key [key …] MIN | MAX [COUNT count]",
        "Takes members of the first sorted set that has some.",
    ),
    (
        "BZPOPMAX",
        -3,
        PopForm::One(Taken::Sorted, "MAX"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the member with the highest score of the first sorted set that has one.",
    ),
    (
        "BZPOPMIN",
        -3,
        PopForm::One(Taken::Sorted, "MIN"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the member with the lowest score of the first sorted set that has one.",
    ),
];

/// Longest name of a command.
const LONGEST_NAME: usize = 32;

/// See the module's documentation.
pub(crate) struct Catalog {
    entries: Vec<Entry>,
    by_name: FxHashMap<Vec<u8>, usize>,
}

impl Catalog {
    pub(crate) fn new() -> Self {
        let mut catalog = Self { entries: Vec::new(), by_name: FxHashMap::default() };
        for info in lsmkv::commands() {
            catalog.add(
                info.name(),
                Entry {
                    arity: info.arity(),
                    kind: Kind::Data(info),
                    writes: info.writes(),
                    reads_one_value: READS_OF_ONE_VALUE.contains(&info.name()),
                    keys: info.key_positions(),
                    group: info.group(),
                    syntax: info.syntax(),
                    doc: info.doc(),
                    ..Entry::default()
                },
            );
        }
        for info in lsmkv::session_commands() {
            let keys = match info.name {
                "WATCH" => KeyPositions::Range { first: 1, last: -1, step: 1 },
                _ => KeyPositions::None,
            };
            catalog.add(
                info.name,
                Entry {
                    arity: info.arity,
                    kind: Kind::Session(role_of(info.name)),
                    keys,
                    group: "Transactions and connection",
                    syntax: info.syntax.to_owned(),
                    doc: info.doc,
                    ..Entry::default()
                },
            );
        }
        for (name, arity, form, keys, syntax, doc) in BLOCKING {
            let (kind, syntax) = (Kind::Blocking(*form), (*syntax).to_owned());
            let (arity, keys, group) = (*arity, *keys, "Blocking");
            catalog.add(
                name,
                Entry { arity, kind, writes: true, keys, group, syntax, doc, ..Entry::default() },
            );
        }
        for own in OWN {
            let (kind, syntax) = (Kind::Own(own), own.syntax.to_owned());
            let (arity, doc) = (own.arity, own.doc);
            catalog.add(
                own.name,
                Entry { arity, kind, group: "Server", syntax, doc, ..Entry::default() },
            );
        }
        catalog
    }

    /// A later row of the same name, the server's own, takes the place of an earlier one.
    fn add(&mut self, name: &str, entry: Entry) {
        let index = self.entries.len();
        let joins = together::joins(&entry);
        let entry = Entry { name: name.to_ascii_lowercase(), index, joins, ..entry };
        self.by_name.insert(name.as_bytes().to_vec(), index);
        self.entries.push(entry);
    }

    /// The command of this name, in any case.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&Entry> {
        let mut capitals = [0; LONGEST_NAME];
        let capitals = capitals.get_mut(..name.len())?;
        for (to, from) in capitals.iter_mut().zip(name) {
            *to = from.to_ascii_uppercase();
        }
        self.by_name.get(&*capitals).and_then(|index| self.entries.get(*index))
    }

    /// A command by its number.
    pub(crate) fn entry(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)
    }

    /// The name of a command by its number.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.entry(index).map_or("NULL", |entry| entry.name.as_str())
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All that can be called.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_name.values().filter_map(|index| self.entries.get(*index))
    }
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            name: String::new(),
            index: 0,
            arity: 0,
            kind: Kind::Session(Role::Other),
            writes: false,
            reads_one_value: false,
            joins: false,
            keys: KeyPositions::None,
            group: "",
            syntax: String::new(),
            doc: "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_nothing_else_is() {
        let catalog = Catalog::new();
        assert_eq!(catalog.find(b"gEt").unwrap().name, "get");
        assert_eq!(catalog.find(b"BLPOP").unwrap().name, "blpop");
        for name in [&b""[..], b"GE", b"GETT", &[b'G'; 1000], b"\xff"] {
            assert!(catalog.find(name).is_none());
        }
    }

    #[test]
    fn reads_of_one_value_are_reads_of_one_key() {
        let catalog = Catalog::new();
        for name in READS_OF_ONE_VALUE {
            let entry = catalog.find(name.as_bytes()).unwrap();
            assert!(entry.reads_one_value && !entry.writes, "{name}");
            assert_eq!(entry.keys, KeyPositions::Range { first: 1, last: 1, step: 1 }, "{name}");
        }
    }

    #[test]
    fn keys_of_blocking_commands_are_found() {
        let catalog = Catalog::new();
        let keys = |line: &str| {
            let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let keys = catalog.find(argv[0]).unwrap().keys_in(&argv);
            String::from_utf8(keys.join(&b' ')).unwrap()
        };
        assert_eq!(keys("BLPOP a b 0"), "a b");
        assert_eq!(keys("BZMPOP 0 2 a b MIN"), "a b");
        assert_eq!(keys("BLMOVE a b LEFT LEFT 0"), "a b");
        assert_eq!(keys("WATCH a"), "a");
        assert_eq!(keys("PING"), "");
    }
}
