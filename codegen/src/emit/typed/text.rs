//! What the typed methods are beside the schema: calls that C has by name alone, and documentation.

/// A call of scripts or functions that C has by name alone.
pub(super) struct ByName {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) parameters: &'static str,
    /// The code that makes its words.
    pub(super) words: &'static str,
    pub(super) returned: &'static str,
}

pub(super) const BY_NAME: &[ByName] = &[
    ByName {
        name: "script_exists",
        doc: "SCRIPT EXISTS: tells which of these digests are known.",
        parameters: "digests: &[&str]",
        words: "let mut argv: Vec<&[u8]> = vec![b\"SCRIPT\", b\"EXISTS\"];\n\
                argv.extend(digests.iter().map(|digest| digest.as_bytes()));",
        returned: "Vec<bool>",
    },
    ByName {
        name: "script_flush",
        doc: "SCRIPT FLUSH: forgets all scripts.",
        parameters: "",
        words: "let argv: [&[u8]; 2] = [b\"SCRIPT\", b\"FLUSH\"];",
        returned: "()",
    },
    ByName {
        name: "function_load",
        doc: "FUNCTION LOAD: stores a library of functions and returns its name. One that exists is \
              an error, unless `replace` is true.",
        parameters: "code: &[u8], replace: bool",
        words: "let mut argv: Vec<&[u8]> = vec![b\"FUNCTION\", b\"LOAD\"];\n\
                argv.extend(replace.then_some(b\"REPLACE\".as_slice()));\nargv.push(code);",
        returned: "String",
    },
    ByName {
        name: "function_delete",
        doc: "FUNCTION DELETE: removes a library.",
        parameters: "library: &[u8]",
        words: "let argv: [&[u8]; 3] = [b\"FUNCTION\", b\"DELETE\", library];",
        returned: "()",
    },
    ByName {
        name: "function_flush",
        doc: "FUNCTION FLUSH: removes all libraries.",
        parameters: "",
        words: "let argv: [&[u8]; 2] = [b\"FUNCTION\", b\"FLUSH\"];",
        returned: "()",
    },
];

/// The comment of the method that runs a command.
pub(super) const CALL: &str = "\
/// Runs a command of the store by its words, not one of the connection such as MULTI. An error of the\n\
/// command is an `Err`.\n";

/// The comment of the trait of stores.
pub(super) const STORES: &str = "\
/// The commands as typed methods, on every store: [`Db`](crate::Db), and where the features are there\n\
/// `Remote`, `SharedStore` and its snapshots and transactions. What takes options beyond these\n\
/// parameters is run by name, by `command`.\n\
///\n\
/// ```\n\
/// use lsmkv::{Commands, Db, Options};\n\
///\n\
/// fn visits(store: &impl Commands, page: &[u8]) -> lsmkv::Result<i64> {\n\
///     store.sadd(b\"pages\", &[page])?;\n\
///     store.hincrby(b\"visits\", page, 1)\n\
/// }\n\
///\n\
/// let db = Db::open(\":memory:\", Options::default())?;\n\
/// visits(&db, b\"/\")?;\n\
/// assert_eq!(visits(&db, b\"/\")?, 2);\n\
/// # Ok::<(), lsmkv::Error>(())\n\
/// ```\n";

/// The comment of the trait of sessions.
pub(super) const SESSIONS: &str = "\
/// The commands as typed methods, on every session: [`Session`](crate::Session), and where the features\n\
/// are there `RemoteSession` and `SharedSession`. Between MULTI and EXEC they fail: commands are given\n\
/// to `command` then, which queues them.\n\
///\n\
/// ```\n\
/// use std::time::Duration;\n\
///\n\
/// use lsmkv::{Db, Options, SessionCommands};\n\
///\n\
/// let db = Db::open(\":memory:\", Options::default())?;\n\
/// let mut session = db.session();\n\
/// session.rpush(b\"jobs\", &[b\"a\"])?;\n\
/// let soon = Some(Duration::from_millis(1));\n\
/// assert_eq!(session.blpop(&[b\"jobs\"], soon)?, Some((\"jobs\".into(), \"a\".into())));\n\
/// assert_eq!(session.blpop(&[b\"jobs\"], soon)?, None);\n\
/// # Ok::<(), lsmkv::Error>(())\n\
/// ```\n";
