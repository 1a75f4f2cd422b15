//! The commands that belong to a connection: a session knows them, other handles do not. Plain
//! data: the code generator includes this file as it is.

#![allow(dead_code, reason = "the library and the generator each use a part")]

/// Which command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Client,
    Discard,
    Echo,
    Exec,
    Hello,
    Multi,
    Ping,
    Quit,
    Reset,
    Select,
    Unwatch,
    Watch,
}

/// A command of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionRow {
    /// In capitals.
    pub(crate) name: &'static str,
    /// Number of arguments with the name; negative: at least that many.
    pub(crate) arity: isize,
    pub(crate) verb: Verb,
    /// For the documentation.
    pub(crate) syntax: &'static str,
    /// What it does, in a sentence.
    pub(crate) doc: &'static str,
}

const fn row(
    name: &'static str,
    arity: isize,
    verb: Verb,
    syntax: &'static str,
    doc: &'static str,
) -> SessionRow {
    SessionRow { name, arity, verb, syntax, doc }
}

/// Every command of a connection, by name.
pub(crate) const SESSION_ROWS: &[SessionRow] = &[
    row(
        "CLIENT",
        -2,
        Verb::Client,
        "GETNAME | ID | SETINFO option value | SETNAME name",
        "The connection's name and number.",
    ),
    row("DISCARD", 1, Verb::Discard, "", "Forgets the commands queued since MULTI."),
    row("ECHO", 2, Verb::Echo, "message", "The message."),
    row("EXEC", 1, Verb::Exec, "", "Runs the commands queued since MULTI, as one."),
    row(
        "HELLO",
        -1,
        Verb::Hello,
        "[protover [AUTH username password] [SETNAME name]]",
        "What there is to know of the server; chooses the protocol.",
    ),
    row("MULTI", 1, Verb::Multi, "", "Queues the commands that follow, for EXEC."),
    row("PING", -1, Verb::Ping, "[message]", "The message, or PONG."),
    row("QUIT", -1, Verb::Quit, "", "Ends the connection."),
    row("RESET", 1, Verb::Reset, "", "Makes the connection as it was at first."),
    row("SELECT", 2, Verb::Select, "database", "Selects a database."),
    row("UNWATCH", 1, Verb::Unwatch, "", "Forgets all watched keys."),
    row(
        "WATCH",
        -2,
        Verb::Watch,
        "key [key …]",
        "Makes the next EXEC do nothing if a key was changed before it.",
    ),
];
