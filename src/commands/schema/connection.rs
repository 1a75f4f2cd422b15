//! Connection commands: a session accepts them, other handles refuse them.

use super::spec::Access::Read;
use super::spec::Arg::{Bytes, Int, Key, Many, OneOf, Optional, Word};
use super::spec::{Arg, Command, ReplyKind};

/// A connection command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionCommand {
    /// CLIENT: tells about connections, or changes this one.
    Client,
    /// CONFIG: tells or sets what a server is configured with.
    Config,
    /// DISCARD: forgets the commands since MULTI.
    Discard,
    /// ECHO: replies its argument.
    Echo,
    /// EXEC: runs the commands since MULTI as one.
    Exec,
    /// HELLO: chooses the protocol, and logs in.
    Hello,
    /// INFO: tells about the store, as text.
    Info,
    /// MULTI: queues the commands that follow, for EXEC.
    Multi,
    /// PING: replies PONG, or its argument.
    Ping,
    /// PSUBSCRIBE: listens to the channels that patterns match.
    Psubscribe,
    /// PUNSUBSCRIBE: listens to patterns no more.
    Punsubscribe,
    /// QUIT: ends the connection.
    Quit,
    /// RESET: forgets all that the connection remembers.
    Reset,
    /// SELECT: chooses the database.
    Select,
    /// SSUBSCRIBE: listens to channels of shards.
    Ssubscribe,
    /// SUBSCRIBE: listens to channels.
    Subscribe,
    /// SUNSUBSCRIBE: listens to channels of shards no more.
    Sunsubscribe,
    /// TIME: tells the time of the server.
    Time,
    /// UNSUBSCRIBE: listens to channels no more.
    Unsubscribe,
    /// UNWATCH: forgets the watched keys.
    Unwatch,
    /// WATCH: makes EXEC run only if these keys stay as they are.
    Watch,
}

const fn entry(
    name: &'static str,
    since: &'static str,
    args: &'static [Arg],
    summary: &'static str,
) -> Command {
    Command::new(name, since, Read, args, ReplyKind::Varies, "O(1)", summary)
}

/// Every connection command, by name.
pub(crate) const CONNECTION: &[(ConnectionCommand, Command)] = &[
    (
        ConnectionCommand::Client,
        entry(
            "CLIENT",
            "2.4.0",
            &[OneOf(&[
                &[Word("CACHING"), OneOf(&[&[Word("YES")], &[Word("NO")]])],
                &[Word("GETNAME")],
                &[Word("GETREDIR")],
                &[Word("ID")],
                &[Word("INFO")],
                &[
                    Word("LIST"),
                    Optional(&[OneOf(&[
                        &[Word("TYPE"), Bytes("type")],
                        &[Word("ID"), Many(&[Int("client-id")])],
                    ])]),
                ],
                &[Word("NO-EVICT"), OneOf(&[&[Word("ON")], &[Word("OFF")]])],
                &[Word("NO-TOUCH"), OneOf(&[&[Word("ON")], &[Word("OFF")]])],
                &[Word("REPLY"), Word("ON")],
                &[Word("SETINFO"), Bytes("option"), Bytes("value")],
                &[Word("SETNAME"), Bytes("name")],
                &[
                    Word("TRACKING"),
                    OneOf(&[&[Word("ON")], &[Word("OFF")]]),
                    Optional(&[Word("REDIRECT"), Int("client-id")]),
                    Optional(&[Many(&[Word("PREFIX"), Bytes("prefix")])]),
                    Optional(&[Word("BCAST")]),
                    Optional(&[Word("OPTIN")]),
                    Optional(&[Word("OPTOUT")]),
                    Optional(&[Word("NOLOOP")]),
                ],
                &[Word("TRACKINGINFO")],
            ])],
            "Tells about the sessions of the store, names this one, or tracks the keys that it reads.",
        ),
    ),
    (
        ConnectionCommand::Config,
        entry(
            "CONFIG",
            "2.0.0",
            &[OneOf(&[
                &[Word("GET"), Many(&[Bytes("pattern")])],
                &[Word("RESETSTAT")],
                &[Word("REWRITE")],
                &[Word("SET"), Many(&[Bytes("parameter"), Bytes("value")])],
            ])],
            "Returns settings as a server would, or sets notify-keyspace-events.",
        ),
    ),
    (
        ConnectionCommand::Discard,
        entry("DISCARD", "2.0.0", &[], "Discards the commands queued since MULTI."),
    ),
    (ConnectionCommand::Echo, entry("ECHO", "1.0.0", &[Bytes("message")], "Returns the message.")),
    (
        ConnectionCommand::Exec,
        entry("EXEC", "1.2.0", &[], "Runs the commands queued since MULTI, as one."),
    ),
    (
        ConnectionCommand::Hello,
        entry(
            "HELLO",
            "6.0.0",
            &[Optional(&[
                Int("protover"),
                Optional(&[Word("AUTH"), Bytes("username"), Bytes("password")]),
                Optional(&[Word("SETNAME"), Bytes("clientname")]),
            ])],
            "Returns properties of the server and selects the protocol.",
        ),
    ),
    (
        ConnectionCommand::Info,
        entry(
            "INFO",
            "1.0.0",
            &[Optional(&[Many(&[Bytes("section")])])],
            "Returns figures of the store as a server would.",
        ),
    ),
    (
        ConnectionCommand::Multi,
        entry("MULTI", "1.2.0", &[], "Queues the commands that follow, for EXEC."),
    ),
    (
        ConnectionCommand::Ping,
        entry("PING", "1.0.0", &[Optional(&[Bytes("message")])], "Returns the message, or PONG."),
    ),
    (
        ConnectionCommand::Psubscribe,
        entry(
            "PSUBSCRIBE",
            "2.0.0",
            &[Many(&[Bytes("pattern")])],
            "Receives the messages of all channels that match the patterns.",
        ),
    ),
    (
        ConnectionCommand::Punsubscribe,
        entry(
            "PUNSUBSCRIBE",
            "2.0.0",
            &[Optional(&[Many(&[Bytes("pattern")])])],
            "Ends subscriptions to patterns, or to all patterns.",
        ),
    ),
    (
        ConnectionCommand::Quit,
        entry("QUIT", "1.0.0", &[Optional(&[Many(&[Bytes("ignored")])])], "Closes the connection."),
    ),
    (
        ConnectionCommand::Reset,
        entry("RESET", "6.2.0", &[], "Resets the connection to its initial state."),
    ),
    (ConnectionCommand::Select, entry("SELECT", "1.0.0", &[Int("index")], "Selects a database.")),
    (
        ConnectionCommand::Ssubscribe,
        entry(
            "SSUBSCRIBE",
            "7.0.0",
            &[Many(&[Bytes("shardchannel")])],
            "Receives the messages of shard channels.",
        ),
    ),
    (
        ConnectionCommand::Subscribe,
        entry(
            "SUBSCRIBE",
            "2.0.0",
            &[Many(&[Bytes("channel")])],
            "Receives the messages of channels.",
        ),
    ),
    (
        ConnectionCommand::Sunsubscribe,
        entry(
            "SUNSUBSCRIBE",
            "7.0.0",
            &[Optional(&[Many(&[Bytes("shardchannel")])])],
            "Ends subscriptions to shard channels, or to all of them.",
        ),
    ),
    (
        ConnectionCommand::Time,
        entry("TIME", "2.6.0", &[], "Returns the seconds since 1970, and microseconds."),
    ),
    (
        ConnectionCommand::Unsubscribe,
        entry(
            "UNSUBSCRIBE",
            "2.0.0",
            &[Optional(&[Many(&[Bytes("channel")])])],
            "Ends subscriptions to channels, or to all of them.",
        ),
    ),
    (ConnectionCommand::Unwatch, entry("UNWATCH", "2.2.0", &[], "Forgets all watched keys.")),
    (
        ConnectionCommand::Watch,
        entry(
            "WATCH",
            "2.2.0",
            &[Many(&[Key("key")])],
            "Makes the next EXEC fail if one of the keys changes before it.",
        ),
    ),
];
