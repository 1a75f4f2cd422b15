//! The table of the server's own commands. Each row names its handler.

use lsmkv::KeyPositions;

use super::{Call, client, command, compatibility, config, connection, debug, info, persistence};
use crate::server::blocking_pop::{PopSource, PopSyntax};
use crate::server::command_table::{CommandEntry, CommandKind, CommandTable};

type Run = fn(&mut Call<'_, '_>);

/// How a command of the server runs.
#[derive(Clone, Copy)]
enum Handler {
    Run(Run),
    /// The dispatcher runs blocking pops: they may leave the client waiting.
    Pop(PopSyntax),
}

/// A row of the table.
struct ServerCommand {
    name: &'static str,
    /// Number of arguments including the name; negative: at least that many.
    arity: isize,
    syntax: &'static str,
    doc: &'static str,
    handler: Handler,
    keys: KeyPositions,
    /// Whether the command runs at once between MULTI and EXEC.
    never_queued: bool,
    /// Whether the command is refused between MULTI and EXEC.
    refused_in_multi: bool,
    /// Whether the command runs before the client has authenticated.
    before_auth: bool,
}

impl ServerCommand {
    const fn new(
        name: &'static str,
        arity: isize,
        syntax: &'static str,
        doc: &'static str,
        run: Run,
    ) -> Self {
        Self::with(name, arity, syntax, doc, Handler::Run(run), KeyPositions::None)
    }

    const fn pop(
        name: &'static str,
        arity: isize,
        form: PopSyntax,
        keys: KeyPositions,
        syntax: &'static str,
        doc: &'static str,
    ) -> Self {
        Self::with(name, arity, syntax, doc, Handler::Pop(form), keys)
    }

    const fn with(
        name: &'static str,
        arity: isize,
        syntax: &'static str,
        doc: &'static str,
        handler: Handler,
        keys: KeyPositions,
    ) -> Self {
        let (never_queued, refused_in_multi, before_auth) = (false, false, false);
        Self {
            name,
            arity,
            syntax,
            doc,
            handler,
            keys,
            never_queued,
            refused_in_multi,
            before_auth,
        }
    }

    const fn before_auth(self) -> Self {
        Self { before_auth: true, ..self }
    }

    const fn never_queued(self) -> Self {
        Self { never_queued: true, ..self }
    }

    const fn refused_in_multi(self) -> Self {
        Self { refused_in_multi: true, ..self }
    }

    fn entry(&self, index: usize) -> CommandEntry {
        let (kind, group) = match self.handler {
            Handler::Run(_) => (CommandKind::Server(index), "Server"),
            Handler::Pop(form) => (CommandKind::BlockingPop(form), "Blocking"),
        };
        CommandEntry {
            arity: self.arity,
            kind,
            writes: matches!(self.handler, Handler::Pop(_)),
            before_auth: self.before_auth,
            never_queued: self.never_queued,
            refused_in_multi: self.refused_in_multi,
            keys: self.keys,
            group,
            syntax: self.syntax.to_owned(),
            doc: self.doc,
            ..CommandEntry::default()
        }
    }
}

/// Every command that clients can call.
pub(crate) fn command_table() -> CommandTable {
    let mut table = CommandTable::of_library();
    for (index, row) in SERVER_COMMANDS.iter().enumerate() {
        table.add(row.name, row.entry(index));
    }
    table
}

/// Runs the handler at this index of the table.
pub(crate) fn run(index: usize, call: &mut Call<'_, '_>) {
    if let Some(ServerCommand { handler: Handler::Run(run), .. }) = SERVER_COMMANDS.get(index) {
        run(call);
    }
}

const ALL_BUT_LAST: KeyPositions = KeyPositions::Range { first: 1, last: -2, step: 1 };
const TWO: KeyPositions = KeyPositions::Range { first: 1, last: 2, step: 1 };
const COUNTED: KeyPositions = KeyPositions::Counted { at: 2, before: 0 };

const SERVER_COMMANDS: &[ServerCommand] = &[
    ServerCommand::pop(
        "BLMOVE",
        6,
        PopSyntax::Move,
        TWO,
        "source destination LEFT | RIGHT LEFT | RIGHT timeout",
        "Moves an element as soon as there is one.",
    ),
    ServerCommand::pop(
        "BLMPOP",
        -5,
        PopSyntax::Multi(PopSource::List),
        COUNTED,
        "timeout numkeys key [key …] LEFT | RIGHT [COUNT count]",
        "Takes elements of the first list that has some.",
    ),
    ServerCommand::pop(
        "BLPOP",
        -3,
        PopSyntax::Single(PopSource::List, "LEFT"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the first element of the first list that has one.",
    ),
    ServerCommand::pop(
        "BRPOP",
        -3,
        PopSyntax::Single(PopSource::List, "RIGHT"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the last element of the first list that has one.",
    ),
    ServerCommand::pop(
        "BRPOPLPUSH",
        4,
        PopSyntax::RPopLPush,
        TWO,
        "source destination timeout",
        "Moves the last element to the front of another list as soon as there is one.",
    ),
    ServerCommand::pop(
        "BZMPOP",
        -5,
        PopSyntax::Multi(PopSource::SortedSet),
        COUNTED,
        "timeout numkeys key [key …] MIN | MAX [COUNT count]",
        "Takes members of the first sorted set that has some.",
    ),
    ServerCommand::pop(
        "BZPOPMAX",
        -3,
        PopSyntax::Single(PopSource::SortedSet, "MAX"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the member with the highest score of the first sorted set that has one.",
    ),
    ServerCommand::pop(
        "BZPOPMIN",
        -3,
        PopSyntax::Single(PopSource::SortedSet, "MIN"),
        ALL_BUT_LAST,
        "key [key …] timeout",
        "Takes the member with the lowest score of the first sorted set that has one.",
    ),
    ServerCommand::new(
        "AUTH",
        -2,
        "[username] password",
        "Authenticates the connection.",
        connection::auth,
    )
    .before_auth(),
    ServerCommand::new(
        "BGSAVE",
        -1,
        "[SCHEDULE]",
        "Flushes to tables in the background.",
        persistence::bgsave,
    ),
    ServerCommand::new(
        "CLIENT",
        -2,
        "ID | GETNAME | SETNAME name | INFO | LIST | KILL … | UNBLOCK id | NO-EVICT ON | OFF | \
         REPLY ON | OFF | SKIP | SETINFO attribute value",
        "Asks for and changes connections.",
        client::client,
    ),
    ServerCommand::new(
        "CLUSTER",
        -2,
        "subcommand …",
        "Refused: there is no cluster.",
        compatibility::no_cluster,
    ),
    ServerCommand::new(
        "COMMAND",
        -1,
        "[COUNT | DOCS [name …] | INFO [name …] | LIST [FILTERBY PATTERN pattern] | GETKEYS name \
         …]",
        "Asks for commands.",
        command::command,
    ),
    ServerCommand::new(
        "CONFIG",
        -2,
        "GET pattern [pattern …] | SET name value [name value …] | RESETSTAT | REWRITE",
        "Asks for and changes settings.",
        config::config,
    ),
    ServerCommand::new(
        "DEBUG",
        -2,
        "SLEEP seconds | OBJECT key | JMAP | SET-ACTIVE-EXPIRE 0 | 1",
        "For test suites.",
        debug::debug,
    ),
    ServerCommand::new(
        "HELLO",
        -1,
        "[version [AUTH username password] [SETNAME name]]",
        "Chooses the version of the protocol.",
        connection::hello,
    )
    .before_auth(),
    ServerCommand::new(
        "INFO",
        -1,
        "[section …]",
        "What the server holds and has done.",
        info::info,
    ),
    ServerCommand::new(
        "LASTSAVE",
        1,
        "",
        "When data was last flushed to tables.",
        persistence::lastsave,
    ),
    ServerCommand::new("LOLWUT", -1, "[VERSION version]", "The version.", compatibility::lolwut),
    ServerCommand::new("QUIT", -1, "", "Closes the connection.", connection::quit)
        .before_auth()
        .never_queued(),
    ServerCommand::new(
        "READONLY",
        1,
        "",
        "Refused: there is no cluster.",
        compatibility::no_cluster,
    ),
    ServerCommand::new(
        "READWRITE",
        1,
        "",
        "Refused: there is no cluster.",
        compatibility::no_cluster,
    ),
    ServerCommand::new("RESET", 1, "", "Makes the connection like a new one.", connection::reset)
        .before_auth()
        .never_queued(),
    ServerCommand::new("SAVE", 1, "", "Flushes to tables.", persistence::save).refused_in_multi(),
    ServerCommand::new(
        "SHUTDOWN",
        -1,
        "[NOSAVE | SAVE] [NOW] [FORCE]",
        "Stops the server.",
        persistence::shutdown,
    )
    .refused_in_multi(),
    ServerCommand::new("TIME", 1, "", "Seconds since 1970, and microseconds.", compatibility::time),
    ServerCommand::new(
        "WAIT",
        3,
        "replicas timeout",
        "Waits for replicas: there are none.",
        compatibility::wait,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_server_are_found_beside_those_of_the_library() {
        let table = command_table();
        assert_eq!(table.find(b"BLPOP").unwrap().name, "blpop");
        assert_eq!(table.find(b"get").unwrap().name, "get");
    }

    #[test]
    fn keys_of_blocking_commands_are_found() {
        let table = command_table();
        let keys = |line: &str| {
            let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            let keys = table.find(argv[0]).unwrap().keys_in(&argv);
            String::from_utf8(keys.join(&b' ')).unwrap()
        };
        assert_eq!(keys("BLPOP a b 0"), "a b");
        assert_eq!(keys("BZMPOP 0 2 a b MIN"), "a b");
        assert_eq!(keys("BLMOVE a b LEFT LEFT 0"), "a b");
        assert_eq!(keys("WATCH a"), "a");
        assert_eq!(keys("PING"), "");
    }
}
