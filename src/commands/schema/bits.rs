//! Strings as arrays of bits.

use super::parameters::{DESTINATION, KEY, KEYS, choice, flags, int, int_out, reply_out};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Choice, Int, Key, Many, OneOf, Optional, Word};
use super::spec::Words::{Flag, Of};
use super::spec::{Arg, Command, Flags, Function, Group, Parameter, ParameterKind, ReplyKind};

/// Strings as arrays of bits.
pub(crate) const GROUP: Group = Group { module: "bits", title: "Bits", commands: COMMANDS };

const STRING: Arg = Key("key");
const UNIT: Arg = Optional(&[OneOf(&[&[Word("BYTE")], &[Word("BIT")]])]);
const GET: &[Arg] = &[Word("GET"), Arg::Bytes("encoding"), Int("offset")];
const OVERFLOW: Arg =
    Optional(&[Word("OVERFLOW"), OneOf(&[&[Word("WRAP")], &[Word("SAT")], &[Word("FAIL")]])]);
const SET: &[Arg] = &[OVERFLOW, Word("SET"), Arg::Bytes("encoding"), Int("offset"), Int("value")];
const INCRBY: &[Arg] =
    &[OVERFLOW, Word("INCRBY"), Arg::Bytes("encoding"), Int("offset"), Int("increment")];
const BIT: Parameter = choice("bit", &["0", "1"]);
const OFFSET: Parameter = Parameter::new("offset", ParameterKind::Offset);
const OPERATIONS: Parameter = Parameter::new("ops", ParameterKind::FieldOperations);
const BAD_OFFSET: &[&str] = &["OUT_OF_RANGE: the offset"];

const COMMANDS: &[Command] = &[
    Command::new(
        "BITCOUNT",
        "2.6.0",
        Read,
        &[STRING, Optional(&[Int("start"), Int("end"), UNIT])],
        ReplyKind::Int,
        "O(N), N being the length of the range",
        "Counts the set bits of a value.",
    )
    .flags(Flags::ONE_VALUE)
    .parsed_by_hand("the options are read only for a key that exists")
    .functions(&[
        Function::words(
            "bitcount",
            &[KEY],
            &[Of("key")],
            int_out("out", "the number"),
            "BITCOUNT: counts the set bits of a value.",
        ),
        Function::words(
            "bitcount_range",
            &[KEY, int("start"), int("end"), flags(&["BIT"])],
            &[Of("key"), Of("start"), Of("end"), Flag("BIT")],
            int_out("out", "the number"),
            "BITCOUNT with a range: counts the set bits from start to end, both included, in bytes \
             or with the flag BIT in bits. Negative positions count from the end.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "BITFIELD",
        "3.2.0",
        Write,
        &[STRING, Optional(&[Many(&[OneOf(&[GET, SET, INCRBY])])])],
        ReplyKind::Varies,
        "O(N), N being the number of operations; plus the length of the value, if it is short and changes",
        "Reads and writes integers of any width inside a value.",
    ).streams()
    .parsed_by_hand("OVERFLOW applies to the operations that follow it")
    .functions(&[Function::odd(
        "bitfield",
        &[KEY, OPERATIONS],
        reply_out("an array with the number that each operation returns, nil for one that failed for overflow"),
        "BITFIELD: runs n operations on integers inside a value, one after the other.",
    )
    .statuses(&["OUT_OF_RANGE: an offset", "INVALID: an operation"])])
    .python_by_hand(),
    Command::new(
        "BITFIELD_RO",
        "6.0.0",
        Read,
        &[STRING, Optional(&[Many(GET)])],
        ReplyKind::Varies,
        "O(N), N being the number of operations",
        "Reads integers of any width inside a value.",
    ).streams()
    .parsed_by_hand("the operations are those of BITFIELD")
    .functions(&[Function::odd(
        "bitfield_ro",
        &[KEY, OPERATIONS],
        reply_out("an array with the number that each operation returns"),
        "BITFIELD_RO: runs n operations that only read integers inside a value.",
    )
    .statuses(&["OUT_OF_RANGE: an offset", "INVALID: an operation, or one that writes"])])
    .python_by_hand(),
    Command::new(
        "BITOP",
        "2.6.0",
        Write,
        &[
            Choice("operation", "BitOp", &["AND", "OR", "XOR", "NOT"]),
            Key("destination"),
            Many(&[STRING]),
        ],
        ReplyKind::Int,
        "O(N*M), N being the length of the longest value, M the number of values",
        "Combines values bit by bit and stores the result.",
    )
    .functions(&[Function::words(
        "bitop",
        &[choice("op", &["AND", "OR", "XOR", "NOT"]), DESTINATION, KEYS],
        &[Of("op"), Of("destination"), Of("keys")],
        int_out("length", "the length of the result"),
        "BITOP: stores at destination the combination of n values. op is LSMKV_AND, LSMKV_OR, \
         LSMKV_XOR, or LSMKV_NOT of one value.",
    )
    .statuses(&["SYNTAX: NOT of several values"])])
    .python_by_hand(),
    Command::new(
        "BITPOS",
        "2.8.7",
        Read,
        &[STRING, Int("bit"), Optional(&[Int("start"), Optional(&[Int("end"), UNIT])])],
        ReplyKind::Int,
        "O(N), N being the length of the range",
        "Finds the first bit that is set, or clear.",
    )
    .parsed_by_hand("the unit is checked before the end")
    .functions(&[
        Function::words(
            "bitpos",
            &[KEY, BIT, int("start").or("0")],
            &[Of("key"), Of("bit"), Of("start")],
            int_out("out", "its index, or -1 if there is none"),
            "BITPOS: finds the first bit that equals bit, 0 or 1, from byte start on. All bits \
             beyond the end of a value are 0.",
        ),
        Function::words(
            "bitpos_range",
            &[KEY, BIT, int("start"), int("end"), flags(&["BIT"])],
            &[Of("key"), Of("bit"), Of("start"), Of("end"), Flag("BIT")],
            int_out("out", "its index, or -1 if there is none"),
            "BITPOS with a range: finds the first bit that equals bit, 0 or 1, from start to end, \
             both included, in bytes or with the flag BIT in bits.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "GETBIT",
        "2.2.0",
        Read,
        &[STRING, Int("offset")],
        ReplyKind::Int,
        "O(1)",
        "Returns the bit at an offset, 0 beyond the end.",
    )
    .flags(Flags::ONE_VALUE)
    .parsed_by_hand("an offset has an error of its own")
    .functions(&[Function::words(
        "getbit",
        &[KEY, OFFSET],
        &[Of("key"), Of("offset")],
        int_out("out", "0 or 1"),
        "GETBIT: returns the bit at an offset, 0 beyond the end.",
    )
    .statuses(BAD_OFFSET)])
    .python_by_hand(),
    Command::new(
        "SETBIT",
        "2.2.0",
        Write,
        &[STRING, Int("offset"), Int("value")],
        ReplyKind::Int,
        "O(1); O(N) if the value is short, N being its length",
        "Sets or clears the bit at an offset and returns what it was.",
    )
    .parsed_by_hand("an offset and a bit have errors of their own")
    .functions(&[Function::words(
        "setbit",
        &[KEY, OFFSET, BIT],
        &[Of("key"), Of("offset"), Of("bit")],
        int_out("old", "what it was"),
        "SETBIT: sets the bit at an offset to 0 or 1, padding the value with zeros.",
    )
    .statuses(BAD_OFFSET)])
    .python_by_hand(),
];
