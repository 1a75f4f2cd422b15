//! Messages. The commands that subscribe belong to a session: see `connection`.

use super::parameters::{ITEMS, bytes, int_out, reply_out};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Bytes, Many, OneOf, Optional, Word};
use super::spec::Words::{Of, Word as Literal};
use super::spec::{Arg, Command, Flags, Function, Group, ReplyKind};

/// The commands that send messages and tell who receives them.
pub(crate) const GROUP: Group = Group { module: "message", title: "Messages", commands: COMMANDS };

const PATTERN: Arg = Optional(&[Bytes("pattern")]);

const COMMANDS: &[Command] = &[
    Command::new(
        "PUBLISH",
        "2.0.0",
        Write,
        &[Bytes("channel"), Bytes("message")],
        ReplyKind::Int,
        "O(N+M), N being the number of subscribers of the channel, M the number of patterns",
        "Sends a message to the subscribers of a channel.",
    )
    .flags(Flags::NO_KEYS.and(Flags::ANY_TYPE))
    .output("receivers", "the number of subscribers that the message reaches")
    .python("publish", &[("channel", ""), ("message", "")]),
    Command::new(
        "PUBSUB",
        "2.8.0",
        Read,
        &[OneOf(&[
            &[Word("CHANNELS"), PATTERN],
            &[Word("HELP")],
            &[Word("NUMPAT")],
            &[Word("NUMSUB"), Optional(&[Many(&[Bytes("channel")])])],
            &[Word("SHARDCHANNELS"), PATTERN],
            &[Word("SHARDNUMSUB"), Optional(&[Many(&[Bytes("shardchannel")])])],
        ])],
        ReplyKind::Varies,
        "O(N), N being the number of channels",
        "Returns the channels that have subscribers, or numbers of subscribers.",
    )
    .flags(Flags::NO_KEYS.and(Flags::ANY_TYPE))
    .parsed_by_hand("each subcommand has errors of its own")
    .functions(&[
        Function::words(
            "pubsub_channels",
            &[bytes("pattern")],
            &[Literal("CHANNELS"), Of("pattern")],
            reply_out("an array of channels"),
            "PUBSUB CHANNELS: returns the channels that have subscribers and match the pattern.",
        ),
        Function::words(
            "pubsub_numpat",
            &[],
            &[Literal("NUMPAT")],
            int_out("out", "the number of patterns that have subscribers"),
            "PUBSUB NUMPAT: returns the number of patterns that have subscribers.",
        ),
        Function::words(
            "pubsub_numsub",
            &[ITEMS],
            &[Literal("NUMSUB"), Of("items")],
            reply_out("an array of channels and numbers in turn"),
            "PUBSUB NUMSUB: returns the numbers of subscribers of n channels, those of patterns \
             left out.",
        ),
        Function::words(
            "pubsub_shardchannels",
            &[bytes("pattern")],
            &[Literal("SHARDCHANNELS"), Of("pattern")],
            reply_out("an array of shard channels"),
            "PUBSUB SHARDCHANNELS: returns the shard channels that have subscribers and match the \
             pattern.",
        ),
        Function::words(
            "pubsub_shardnumsub",
            &[ITEMS],
            &[Literal("SHARDNUMSUB"), Of("items")],
            reply_out("an array of shard channels and numbers in turn"),
            "PUBSUB SHARDNUMSUB: returns the numbers of subscribers of n shard channels.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "SPUBLISH",
        "7.0.0",
        Write,
        &[Bytes("shardchannel"), Bytes("message")],
        ReplyKind::Int,
        "O(N), N being the number of subscribers of the shard channel",
        "Sends a message to the subscribers of a shard channel.",
    )
    .flags(Flags::NO_KEYS.and(Flags::ANY_TYPE))
    .output("receivers", "the number of subscribers that the message reaches")
    .python("spublish", &[("shard_channel", ""), ("message", "")]),
];
