//! Scans: walks over keys and members, a few elements per call.

use super::parameters::{KEY, bytes, choice, key, optional, reply_out, unsigned};
use super::spec::Access::Read;
use super::spec::Arg::{Bytes, Int, Key, Optional, Word};
use super::spec::{Arg, Command, Flags, Function, Group, Parameter, ReplyKind};

/// The commands that walk over a part of the keys or of a collection.
pub(crate) const GROUP: Group = Group { module: "scan", title: "Scans", commands: COMMANDS };

const COST: &str = "O(N), N being COUNT";
const MATCH: Arg = Optional(&[Word("MATCH"), Bytes("pattern")]);
const COUNT: Arg = Optional(&[Word("COUNT"), Int("count")]);
const OF_COLLECTION: &[Arg] = &[Key("key"), Int("cursor"), MATCH, COUNT];
const LOOKED_AT: Parameter = unsigned("count").or("0");
const CURSOR: Parameter = bytes("cursor");

/// A scan of a collection.
const fn scans(
    name: &'static str,
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    Command::new(name, "2.8.0", Read, OF_COLLECTION, ReplyKind::Varies, COST, summary)
        .streams()
        .parsed_by_hand("the key is looked up before the options are read")
        .functions(functions)
        .python_by_hand()
}

const COMMANDS: &[Command] = &[
    scans(
        "HSCAN",
        "Returns some fields of a hash with their values.",
        &[Function::odd(
            "hscan",
            &[KEY, CURSOR, optional("pattern"), LOOKED_AT],
            reply_out(
                "an array of the next cursor, empty at the end, and an array of fields and values in turn",
            ),
            "HSCAN: returns some fields of a hash with their values. cursor is empty at first, then \
         the one of the call before. About count fields are looked at, 0 for 10, and those that \
         match pattern are returned.",
        )],
    ),
    Command::new(
        "SCAN",
        "2.8.0",
        Read,
        &[Int("cursor"), MATCH, COUNT, Optional(&[Word("TYPE"), Bytes("type")])],
        ReplyKind::Varies,
        COST,
        "Returns some keys.",
    )
    .streams()
    .flags(Flags::ANY_TYPE)
    .parsed_by_hand("a cursor is read as C reads a number")
    .functions(&[Function::odd(
        "scan",
        &[
            key("cursor"),
            optional("pattern"),
            LOOKED_AT,
            choice("kind", &["", "string", "hash", "list", "set", "zset"]).or("0"),
        ],
        reply_out("an array of the next cursor, empty at the end, and an array of keys"),
        "SCAN: returns some keys, in byte order. cursor is empty at first, then the one of the \
         call before. About count keys are looked at, 0 for 10, and those that match pattern and \
         are of type kind, such as LSMKV_HASH, 0 for any, are returned.",
    )])
    .python_by_hand(),
    scans(
        "SSCAN",
        "Returns some members of a set.",
        &[Function::odd(
            "sscan",
            &[KEY, CURSOR, optional("pattern"), LOOKED_AT],
            reply_out("an array of the next cursor, empty at the end, and an array of members"),
            "SSCAN: returns some members of a set. cursor is empty at first, then the one of the call \
         before. About count members are looked at, 0 for 10, and those that match pattern are \
         returned.",
        )],
    ),
    scans(
        "ZSCAN",
        "Returns some members of a sorted set with their scores.",
        &[Function::odd(
            "zscan",
            &[KEY, CURSOR, optional("pattern"), LOOKED_AT],
            reply_out(
                "an array of the next cursor, empty at the end, and an array of members and scores in turn",
            ),
            "ZSCAN: returns some members of a sorted set with their scores, in the byte order of the \
         members. cursor is empty at first, then the one of the call before. About count members \
         are looked at, 0 for 10, and those that match pattern are returned.",
        )],
    ),
];
