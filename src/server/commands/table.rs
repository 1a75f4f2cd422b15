//! The table of the server's own commands. Each row names its handler.

use super::{
    Call, client, command, compatibility, config, connection, debug, info, persistence, sharing,
};
use crate::server::command_table::{CommandEntry, CommandKind, CommandTable};

type Run = fn(&mut Call<'_, '_>);

/// A row of the table.
struct ServerCommand {
    name: &'static str,
    /// Number of arguments including the name; negative: at least that many.
    arity: isize,
    syntax: &'static str,
    doc: &'static str,
    handler: Run,
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
        handler: Run,
    ) -> Self {
        let (never_queued, refused_in_multi, before_auth) = (false, false, false);
        Self { name, arity, syntax, doc, handler, never_queued, refused_in_multi, before_auth }
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
        CommandEntry {
            arity: self.arity,
            kind: CommandKind::Server(index),
            before_auth: self.before_auth,
            never_queued: self.never_queued,
            refused_in_multi: self.refused_in_multi,
            group: "Server",
            syntax: self.syntax.to_owned(),
            doc: self.doc,
            ..CommandEntry::default()
        }
    }
}

/// Every command that clients can call. `shared`: the clients are processes that share the store,
/// and may call what others do not even find.
pub(crate) fn command_table(shared: bool) -> CommandTable {
    let mut table = CommandTable::of_library();
    for (index, row) in SERVER_COMMANDS.iter().enumerate() {
        if shared || row.name != sharing::NAME {
            table.add(row.name, row.entry(index));
        }
    }
    table
}

/// Runs the handler at this index of the table.
pub(crate) fn run(index: usize, call: &mut Call<'_, '_>) {
    if let Some(ServerCommand { handler, .. }) = SERVER_COMMANDS.get(index) {
        handler(call);
    }
}

const SERVER_COMMANDS: &[ServerCommand] = &[
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
         REPLY ON | OFF | SKIP | SETINFO attribute value | TRACKING ON | OFF … | TRACKINGINFO | \
         CACHING YES | NO | GETREDIR",
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
    ServerCommand::new(
        sharing::NAME,
        -2,
        "subcommand …",
        "What the processes that share a store ask its holder for.",
        sharing::shared,
    )
    .refused_in_multi(),
    ServerCommand::new(
        "MONITOR",
        1,
        "",
        "Shows every command that clients run.",
        connection::monitor,
    ),
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
        let table = command_table(false);
        assert_eq!(table.find(b"BLPOP").unwrap().name, "blpop");
        assert_eq!(table.find(b"get").unwrap().name, "get");
    }

    #[test]
    fn commands_that_set_up_a_connection_never_count_as_long() {
        let table = command_table(false);
        let long = |name: &str| table.find(name.as_bytes()).unwrap().can_take_long();
        for name in
            ["HELLO", "AUTH", "CLIENT", "SELECT", "SUBSCRIBE", "PSUBSCRIBE", "MULTI", "PING"]
        {
            assert!(!long(name), "{name}");
        }
        for name in ["GET", "KEYS", "EVAL", "EXEC", "INFO", "BLPOP", "DEBUG"] {
            assert!(long(name), "{name}");
        }
    }

    #[test]
    fn keys_of_blocking_commands_are_found() {
        let table = command_table(false);
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
