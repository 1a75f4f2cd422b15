//! The entries of the commands of sets.

use super::parameters::{KEY, KEYS, int_out, maybe_bytes_out, reply_out, signed_count, unsigned};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Counted, Int, Key, Many, Member, Optional, Word};
use super::spec::Words::{CountOf, Of, Word as Literal};
use super::spec::{Arg, Command, Flags, Function, Group, ReplyKind};

/// The commands of sets.
pub(crate) const GROUP: Group = Group { module: "set", title: "Sets", commands: COMMANDS };

const SET: Arg = Key("key");
const SETS: Arg = Many(&[SET]);
const MEMBER: Arg = Member("member");
const MEMBERS: Arg = Many(&[MEMBER]);
const TO: Arg = Key("destination");
const GIVEN: &str = "O(N), N being the number of members given";
const DIFFERENCE: &str = "O(N*M), N being the size of the first set, M the number of sets";
const INTERSECTION: &str = "O(N*M), N being the size of the smallest set, M the number of sets";
const UNION: &str = "O(N*log(M)), N being the total number of members, M the number of sets";
const DRAWN: &str = "O(N), N being the number of members returned";

/// A command that combines sets and returns the members.
const fn combines(name: &'static str, complexity: &'static str, summary: &'static str) -> Command {
    Command::new(name, "1.0.0", Read, &[SETS], ReplyKind::Set, complexity, summary)
        .streams()
        .python_by_hand()
}

/// A command that combines sets and stores the members.
const fn stores(name: &'static str, complexity: &'static str, summary: &'static str) -> Command {
    Command::new(name, "1.0.0", Write, &[TO, SETS], ReplyKind::Int, complexity, summary)
        .output("out", "the number of members stored")
        .python_by_hand()
}

const COMMANDS: &[Command] = &[
    Command::new("SADD", "1.0.0", Write, &[SET, MEMBERS], ReplyKind::Int, GIVEN, "Adds members.")
        .output("added", "the number of new members")
        .python("sadd", &[("name", ""), ("*values", "")]),
    Command::new(
        "SCARD",
        "1.0.0",
        Read,
        &[SET],
        ReplyKind::Int,
        "O(1)",
        "Returns the number of members.",
    )
    .flags(Flags::ONE_VALUE)
    .python("scard", &[("name", "")]),
    combines("SDIFF", DIFFERENCE, "Returns the members of the first set that no other set has."),
    stores("SDIFFSTORE", DIFFERENCE, "Stores the members of the first set that no other set has."),
    combines("SINTER", INTERSECTION, "Returns the members that all sets have."),
    Command::new(
        "SINTERCARD",
        "7.0.0",
        Read,
        &[Counted("numkeys", &[SET]), Optional(&[Word("LIMIT"), Int("limit")])],
        ReplyKind::Int,
        INTERSECTION,
        "Counts the members that all sets have.",
    )
    .parsed_by_hand("numbers have errors of their own")
    .functions(&[Function::words(
        "sintercard",
        &[KEYS, unsigned("limit").or("0")],
        &[CountOf("keys"), Of("keys"), Literal("LIMIT"), Of("limit")],
        int_out("out", "the number"),
        "SINTERCARD: counts the members that all of n sets have, up to limit, 0 for all.",
    )])
    .python_by_hand(),
    stores("SINTERSTORE", INTERSECTION, "Stores the members that all sets have."),
    Command::new(
        "SISMEMBER",
        "1.0.0",
        Read,
        &[SET, MEMBER],
        ReplyKind::Flag,
        "O(1)",
        "Tells whether a set has a member.",
    )
    .flags(Flags::ONE_VALUE)
    .python_number("sismember", &[("name", ""), ("value", "")]),
    Command::new(
        "SMEMBERS",
        "1.0.0",
        Read,
        &[SET],
        ReplyKind::Set,
        "O(N), N being the number of members",
        "Returns all members.",
    )
    .streams()
    .python("smembers", &[("name", "")]),
    Command::new(
        "SMISMEMBER",
        "6.2.0",
        Read,
        &[SET, MEMBERS],
        ReplyKind::Flags,
        GIVEN,
        "Tells for each member whether the set has it.",
    )
    .streams()
    .python_by_hand(),
    Command::new(
        "SMOVE",
        "1.0.0",
        Write,
        &[Key("source"), TO, MEMBER],
        ReplyKind::Flag,
        "O(1)",
        "Moves a member to another set.",
    )
    .python("smove", &[("src", ""), ("dst", ""), ("value", "")]),
    Command::new(
        "SPOP",
        "1.0.0",
        Write,
        &[SET, Optional(&[Int("count")])],
        ReplyKind::Varies,
        DRAWN,
        "Removes random members and returns them.",
    )
    .streams()
    .parsed_by_hand("what is replied depends on the count")
    .functions(&[
        Function::method(
            "spop",
            "spop",
            &[KEY],
            maybe_bytes_out("the member"),
            "SPOP: removes a random member.",
        ),
        Function::words(
            "spop_count",
            &[KEY, unsigned("count")],
            &[Of("key"), Of("count")],
            reply_out("a set of the members"),
            "SPOP with a count: removes up to count random members.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "SRANDMEMBER",
        "1.0.0",
        Read,
        &[SET, Optional(&[Int("count")])],
        ReplyKind::Varies,
        DRAWN,
        "Returns random members.",
    )
    .streams()
    .parsed_by_hand("what is replied depends on the count")
    .functions(&[
        Function::method(
            "srandmember",
            "srandmember",
            &[KEY],
            maybe_bytes_out("the member"),
            "SRANDMEMBER: returns a random member.",
        ),
        Function::words(
            "srandmember_count",
            &[KEY, signed_count()],
            &[Of("key"), Of("count")],
            reply_out("an array of the members"),
            "SRANDMEMBER with a count: returns up to count different members. A negative count \
                 returns exactly that many, and some may repeat.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "SREM",
        "1.0.0",
        Write,
        &[SET, MEMBERS],
        ReplyKind::Int,
        GIVEN,
        "Removes members. A set without members is deleted.",
    )
    .output("removed", "the number of members removed")
    .python("srem", &[("name", ""), ("*values", "")]),
    combines("SUNION", UNION, "Returns the members of any of the sets."),
    stores("SUNIONSTORE", UNION, "Stores the members of any of the sets."),
];
