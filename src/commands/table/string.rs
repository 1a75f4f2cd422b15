use super::spec::Access::{Read, Write};
use super::spec::Answer::{self, Bulk, Flag, MaybeList, Ok, Value};
use super::spec::Arg::{Bytes, Float, Int, Key, Keys, Pairs};
use super::spec::Grammar::{Irregular, Regular};
use super::spec::Keys::Range;
use super::spec::{Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);
const TWO: super::spec::Keys = Range(1, 2, 1);
const ALL: super::spec::Keys = Range(1, -1, 1);
const PAIRS: super::spec::Keys = Range(1, -1, 2);

/// Strings.
pub(crate) const GROUP: Group = Group { module: "string", title: "Strings", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new(
        "APPEND",
        3,
        Write,
        ONE,
        Regular(&[Key, Bytes("value")], Answer::Int),
        "Adds to the end of a value.",
    ),
    Row::new("DECR", 2, Write, ONE, Regular(&[Key], Answer::Int), "Takes one from a number."),
    Row::new(
        "DECRBY",
        3,
        Write,
        ONE,
        Regular(&[Key, Int("decrement")], Answer::Int),
        "Takes from a number.",
    ),
    Row::new("GET", 2, Read, ONE, Regular(&[Key], Bulk), "The value of a key."),
    Row::new("GETDEL", 2, Write, ONE, Regular(&[Key], Bulk), "Removes a key, and its value."),
    Row::new(
        "GETEX",
        -2,
        Write,
        ONE,
        Irregular("key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]"),
        "The value of a key, whose expiry changes.",
    ),
    Row::new(
        "GETRANGE",
        4,
        Read,
        ONE,
        Regular(&[Key, Int("start"), Int("end")], Value),
        "A part of a value.",
    ),
    Row::new(
        "GETSET",
        3,
        Write,
        ONE,
        Regular(&[Key, Bytes("value")], Bulk),
        "Sets the value of a key; the one it had.",
    ),
    Row::new("INCR", 2, Write, ONE, Regular(&[Key], Answer::Int), "Adds one to a number."),
    Row::new(
        "INCRBY",
        3,
        Write,
        ONE,
        Regular(&[Key, Int("increment")], Answer::Int),
        "Adds to a number.",
    ),
    Row::new(
        "INCRBYFLOAT",
        3,
        Write,
        ONE,
        Regular(&[Key, Float("increment")], Answer::Float),
        "Adds to a number that need not be whole.",
    ),
    Row::new(
        "LCS",
        -3,
        Read,
        TWO,
        Irregular("key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]"),
        "The longest common subsequence of two values.",
    ),
    Row::new("MGET", -2, Read, ALL, Regular(&[Keys], MaybeList), "The values of keys.").streamed(),
    Row::new(
        "MSET",
        -3,
        Write,
        PAIRS,
        Regular(&[Pairs("key", "value")], Ok),
        "Sets the values of keys, all at once.",
    ),
    Row::new(
        "MSETNX",
        -3,
        Write,
        PAIRS,
        Regular(&[Pairs("key", "value")], Flag),
        "Sets the values of keys if none of them exists.",
    ),
    Row::new(
        "PSETEX",
        4,
        Write,
        ONE,
        Regular(&[Key, Int("milliseconds"), Bytes("value")], Ok),
        "Sets the value of a key for a time.",
    ),
    Row::new(
        "SET",
        -3,
        Write,
        ONE,
        Irregular("key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]"),
        "Sets the value of a key.",
    ),
    Row::new(
        "SETEX",
        4,
        Write,
        ONE,
        Regular(&[Key, Int("seconds"), Bytes("value")], Ok),
        "Sets the value of a key for a time.",
    ),
    Row::new(
        "SETNX",
        3,
        Write,
        ONE,
        Regular(&[Key, Bytes("value")], Flag),
        "Sets the value of a key that does not exist.",
    ),
    Row::new(
        "SETRANGE",
        4,
        Write,
        ONE,
        Regular(&[Key, Int("offset"), Bytes("value")], Answer::Int),
        "Writes over a part of a value.",
    ),
    Row::new("STRLEN", 2, Read, ONE, Regular(&[Key], Answer::Int), "Bytes of a value."),
    Row::new(
        "SUBSTR",
        4,
        Read,
        ONE,
        Regular(&[Key, Int("start"), Int("end")], Value),
        "The old name of GETRANGE.",
    ),
];
