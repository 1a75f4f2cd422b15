use super::spec::Access::{Read, Write};
use super::spec::Answer::{Bulk, Flag, Int as Number, List, Map, MaybeList};
use super::spec::Arg::{Bytes, Float, Int, Key, Many, Pairs};
use super::spec::Grammar::{Irregular, Regular};
use super::spec::Keys::Range;
use super::spec::{Answer, Arg, Group, Row};

/// Hashes.
pub(crate) const GROUP: Group = Group { module: "hash", title: "Hashes", rows: ROWS };

const FIELD: Arg = Bytes("field");
const FIELDS: Arg = Many("field");
const PAIRS: Arg = Pairs("field", "value");

const fn read(
    name: &'static str,
    arity: isize,
    args: &'static [Arg],
    answer: Answer,
    doc: &'static str,
) -> Row {
    Row::new(name, arity, Read, Range(1, 1, 1), Regular(args, answer), doc)
}

const fn write(
    name: &'static str,
    arity: isize,
    args: &'static [Arg],
    answer: Answer,
    doc: &'static str,
) -> Row {
    Row::new(name, arity, Write, Range(1, 1, 1), Regular(args, answer), doc)
}

const ROWS: &[Row] = &[
    write("HDEL", -3, &[Key, FIELDS], Number, "Removes fields."),
    read("HEXISTS", 3, &[Key, FIELD], Flag, "Whether a field exists."),
    read("HGET", 3, &[Key, FIELD], Bulk, "The value of a field."),
    read("HGETALL", 2, &[Key], Map, "All fields and values.").streamed(),
    Row::new(
        "HGETDEL",
        -5,
        Write,
        Range(1, 1, 1),
        Irregular("key FIELDS numfields field [field …]"),
        "Removes fields; their values.",
    ),
    write("HINCRBY", 4, &[Key, FIELD, Int("increment")], Number, "Adds to the integer in a field."),
    write(
        "HINCRBYFLOAT",
        4,
        &[Key, FIELD, Float("increment")],
        Answer::Float,
        "Adds to the number in a field.",
    ),
    read("HKEYS", 2, &[Key], List, "All fields.").streamed(),
    read("HLEN", 2, &[Key], Number, "How many fields."),
    read("HMGET", -3, &[Key, FIELDS], MaybeList, "The values of fields.").streamed(),
    write("HMSET", -4, &[Key, PAIRS], Answer::Ok, "Sets fields."),
    Row::new(
        "HRANDFIELD",
        -2,
        Read,
        Range(1, 1, 1),
        Irregular("key [count [WITHVALUES]]"),
        "Fields chosen at random.",
    ),
    write("HSET", -4, &[Key, PAIRS], Number, "Sets fields; how many are new."),
    write("HSETNX", 4, &[Key, FIELD, Bytes("value")], Flag, "Sets a field that does not exist."),
    read("HSTRLEN", 3, &[Key, FIELD], Number, "Bytes of a field's value."),
    read("HVALS", 2, &[Key], List, "All values.").streamed(),
];
