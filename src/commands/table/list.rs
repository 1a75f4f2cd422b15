use super::spec::Access::{Read, Write};
use super::spec::Answer::{Bulk, Int, List, Ok};
use super::spec::Arg::{self, Bytes, Key, Many, Named};
use super::spec::Grammar::{Irregular, Regular};
use super::spec::Keys::{Counted, Range};
use super::spec::{Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);
const TWO: super::spec::Keys = Range(1, 2, 1);

const PUSH: super::spec::Grammar = Regular(&[Key, Many("element")], Int);

/// Lists.
pub(crate) const GROUP: Group = Group { module: "list", title: "Lists", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new("LINDEX", 3, Read, ONE, Irregular("key index"), "The element at an index."),
    Row::new(
        "LINSERT",
        5,
        Write,
        ONE,
        Irregular("key BEFORE | AFTER pivot element"),
        "Inserts an element beside another.",
    ),
    Row::new("LLEN", 2, Read, ONE, Regular(&[Key], Int), "Number of elements."),
    Row::new(
        "LMOVE",
        5,
        Write,
        TWO,
        Irregular("source destination LEFT | RIGHT LEFT | RIGHT"),
        "Moves an element from an end of a list to an end of the same or another.",
    ),
    Row::new(
        "LMPOP",
        -4,
        Write,
        Counted(1, 0),
        Irregular("numkeys key [key …] LEFT | RIGHT [COUNT count]"),
        "Takes elements of the first list that exists.",
    ),
    Row::new("LPOP", -2, Write, ONE, Irregular("key [count]"), "Takes the first elements."),
    Row::new(
        "LPOS",
        -3,
        Read,
        ONE,
        Irregular("key element [RANK rank] [COUNT count] [MAXLEN len]"),
        "Where an element is.",
    ),
    Row::new("LPUSH", -3, Write, ONE, PUSH, "Adds elements in front."),
    Row::new("LPUSHX", -3, Write, ONE, PUSH, "Adds elements in front of a list that exists."),
    Row::new(
        "LRANGE",
        4,
        Read,
        ONE,
        Regular(&[Key, Arg::Int("start"), Arg::Int("stop")], List),
        "The elements between two indexes.",
    )
    .streamed(),
    Row::new(
        "LREM",
        4,
        Write,
        ONE,
        Regular(&[Key, Arg::Int("count"), Bytes("element")], Int),
        "Removes elements by value.",
    ),
    Row::new("LSET", 4, Write, ONE, Irregular("key index element"), "Replaces an element."),
    Row::new(
        "LTRIM",
        4,
        Write,
        ONE,
        Regular(&[Key, Arg::Int("start"), Arg::Int("stop")], Ok),
        "Leaves only the elements between two indexes.",
    ),
    Row::new("RPOP", -2, Write, ONE, Irregular("key [count]"), "Takes the last elements."),
    Row::new(
        "RPOPLPUSH",
        3,
        Write,
        TWO,
        Regular(&[Named("source"), Named("destination")], Bulk),
        "Moves the last element of a list to the front of the same or another.",
    ),
    Row::new("RPUSH", -3, Write, ONE, PUSH, "Adds elements at the end."),
    Row::new("RPUSHX", -3, Write, ONE, PUSH, "Adds elements at the end of a list that exists."),
];
