use super::spec::Access::{Read, Write};
use super::spec::Answer::{Flag, Flags, Int, Set};
use super::spec::Arg::{Bytes, Key, Keys as AllKeys, Many, Named};
use super::spec::Grammar::{Irregular, Regular};
use super::spec::Keys::{Counted, Range};
use super::spec::{Access, Answer, Arg, Group, Keys, Row};

/// Sets.
pub(crate) const GROUP: Group = Group { module: "set", title: "Sets", rows: ROWS };

const ONE: Keys = Range(1, 1, 1);
const ALL: Keys = Range(1, -1, 1);
const MEMBER: Arg = Bytes("member");
const MEMBERS: Arg = Many("member");

/// A command on one set.
const fn one(
    name: &'static str,
    arity: isize,
    access: Access,
    args: &'static [Arg],
    answer: Answer,
    doc: &'static str,
) -> Row {
    Row::new(name, arity, access, ONE, Regular(args, answer), doc)
}

/// A command on several sets that replies a set.
const fn algebra(name: &'static str, doc: &'static str) -> Row {
    Row::new(name, -2, Read, ALL, Regular(&[AllKeys], Set), doc)
}

/// A command on several sets that writes a set.
const fn store(name: &'static str, doc: &'static str) -> Row {
    Row::new(name, -3, Write, ALL, Regular(&[Named("destination"), AllKeys], Int), doc)
}

const ROWS: &[Row] = &[
    one("SADD", -3, Write, &[Key, MEMBERS], Int, "Adds members."),
    one("SCARD", 2, Read, &[Key], Int, "How many members."),
    algebra("SDIFF", "The members of the first set that no other has."),
    store("SDIFFSTORE", "Stores what SDIFF replies."),
    algebra("SINTER", "The members that all sets have."),
    Row::new(
        "SINTERCARD",
        -3,
        Read,
        Counted(1, 0),
        Irregular("numkeys key [key …] [LIMIT limit]"),
        "How many members all sets have.",
    ),
    store("SINTERSTORE", "Stores what SINTER replies."),
    one("SISMEMBER", 3, Read, &[Key, MEMBER], Flag, "Whether it is a member."),
    one("SMEMBERS", 2, Read, &[Key], Set, "All members.").streamed(),
    one("SMISMEMBER", -3, Read, &[Key, MEMBERS], Flags, "Which of these are members."),
    Row::new(
        "SMOVE",
        4,
        Write,
        Range(1, 2, 1),
        Regular(&[Named("source"), Named("destination"), MEMBER], Flag),
        "Moves a member to another set.",
    ),
    Row::new("SPOP", -2, Write, ONE, Irregular("key [count]"), "Removes members chosen at random."),
    Row::new("SRANDMEMBER", -2, Read, ONE, Irregular("key [count]"), "Members chosen at random."),
    one("SREM", -3, Write, &[Key, MEMBERS], Int, "Removes members."),
    algebra("SUNION", "The members of any of the sets."),
    store("SUNIONSTORE", "Stores what SUNION replies."),
];
