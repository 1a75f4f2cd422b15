//! The entries of the commands of strings.

use super::parameters::{
    KEY, bytes, bytes_out, exclusive_flags, flags, int, int_out, key, maybe_bytes_out, reply_out,
};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Bytes, Float, Int, Key, Many, OneOf, Optional, Word};
use super::spec::Words::{Flag, Of, Word as Literal};
use super::spec::{
    Arg, Command, Flags, Function, Group, Nil, Output, OutputKind, Parameter, ParameterKind,
    ReplyKind,
};

/// The commands of strings.
pub(crate) const GROUP: Group = Group { module: "string", title: "Strings", commands: COMMANDS };

const STRING: Arg = Key("key");
const NOT_AN_INTEGER: &[&str] = &["NOT_INTEGER: the value is not an integer", "OVERFLOW"];
const NOT_A_NUMBER: &[&str] =
    &["NOT_FLOAT: the value or the increment is not a number", "OVERFLOW: the sum is not finite"];
const BAD_TIME: &[&str] = &["INVALID: the time is not positive, or too large"];
const TOO_LONG: &[&str] = &["OUT_OF_RANGE: the values are too long"];
/// The forms of a time to live that SET and GETEX share.
const EX: &[Arg] = &[Word("EX"), Int("seconds")];
const PX: &[Arg] = &[Word("PX"), Int("milliseconds")];
const EXAT: &[Arg] = &[Word("EXAT"), Int("unix-time-seconds")];
const PXAT: &[Arg] = &[Word("PXAT"), Int("unix-time-milliseconds")];
const OLD_VALUE: Output = Output {
    name: "old",
    kind: OutputKind::Replaced,
    receives: "the value that the key had; its data is NULL if there was none",
    nil: Nil::Skipped("NX or XX was not met, and nothing changed"),
};
const COPIED_LENGTH: Output = Output {
    nil: Nil::NotFound,
    ..Output::new("len", OutputKind::Length, "the length of the value")
};

const COMMANDS: &[Command] = &[
    Command::new(
        "APPEND",
        "2.0.0",
        Write,
        &[STRING, Bytes("value")],
        ReplyKind::Int,
        "O(N), N being the length of what is appended, or of the value if it is short",
        "Appends to a value, and creates the key if it is missing.",
    )
    .output("length", "the new length")
    .python("append", &[("key", ""), ("value", "")]),
    Command::new(
        "DECR",
        "1.0.0",
        Write,
        &[STRING],
        ReplyKind::Int,
        "O(1)",
        "Subtracts one from the integer value of a key, 0 if it is missing.",
    )
    .output("out", "the new value")
    .statuses(NOT_AN_INTEGER)
    .python_by_hand(),
    Command::new(
        "DECRBY",
        "1.0.0",
        Write,
        &[STRING, Int("decrement")],
        ReplyKind::Int,
        "O(1)",
        "Subtracts from the integer value of a key, 0 if it is missing.",
    )
    .output("out", "the new value")
    .statuses(NOT_AN_INTEGER)
    .python("decrby", &[("name", ""), ("amount", "1")]),
    Command::new(
        "GET",
        "1.0.0",
        Read,
        &[STRING],
        ReplyKind::Bulk,
        "O(1)",
        "Returns the value of a key.",
    )
    .streams()
    .flags(Flags::ONE_VALUE)
    .more_functions(&[Function::odd(
        "get_into",
        &[KEY, Parameter::new("dst", ParameterKind::Room)],
        COPIED_LENGTH,
        "GET into memory of the caller: copies the value of a key to dst, which has room for \
             cap bytes.",
    )
    .statuses(&[
        "TOO_SMALL: the length is the one needed, and nothing was copied",
        "MISUSE: len is NULL, or dst is NULL and cap is not 0",
    ])])
    .python_by_hand(),
    Command::new(
        "GETDEL",
        "6.2.0",
        Write,
        &[STRING],
        ReplyKind::Bulk,
        "O(1)",
        "Returns the value of a key and deletes the key.",
    )
    .python("getdel", &[("name", "")]),
    Command::new(
        "GETEX",
        "6.2.0",
        Write,
        &[STRING, Optional(&[OneOf(&[EX, PX, EXAT, PXAT, &[Word("PERSIST")]])])],
        ReplyKind::Bulk,
        "O(1)",
        "Returns the value of a key and changes its expiry.",
    )
    .parsed_by_hand("words are checked before numbers, and numbers only for a key that exists")
    .functions(&[Function::odd(
        "getex",
        &[KEY, int("ttl_ms"), exclusive_flags(&["AT", "PERSIST"], &[&["AT", "PERSIST"]])],
        maybe_bytes_out("the value"),
        "GETEX: returns the value of a key and changes its expiry. ttl_ms is the time to live in \
         milliseconds or, with the flag AT, the Unix time in milliseconds at which the key \
         expires. 0 leaves the expiry as it is or, with the flag PERSIST, removes it.",
    )
    .statuses(&["INVALID: the time is negative, or does not go with the flags"])])
    .python_by_hand(),
    Command::new(
        "GETRANGE",
        "2.4.0",
        Read,
        &[STRING, Int("start"), Int("end")],
        ReplyKind::Value,
        "O(N), N being the length of the result",
        "Returns the bytes of a value from start to end, both included. Negative positions count \
         from the end.",
    )
    .python("getrange", &[("key", ""), ("start", ""), ("end", "")]),
    Command::new(
        "GETSET",
        "1.0.0",
        Write,
        &[STRING, Bytes("value")],
        ReplyKind::Bulk,
        "O(1)",
        "Sets the value of a key and returns the one it had.",
    )
    .python("getset", &[("name", ""), ("value", "")]),
    Command::new(
        "INCR",
        "1.0.0",
        Write,
        &[STRING],
        ReplyKind::Int,
        "O(1)",
        "Adds one to the integer value of a key, 0 if it is missing.",
    )
    .output("out", "the new value")
    .statuses(NOT_AN_INTEGER)
    .python_by_hand(),
    Command::new(
        "INCRBY",
        "1.0.0",
        Write,
        &[STRING, Int("increment")],
        ReplyKind::Int,
        "O(1)",
        "Adds to the integer value of a key, 0 if it is missing.",
    )
    .output("out", "the new value")
    .statuses(NOT_AN_INTEGER)
    .python("incrby", &[("name", ""), ("amount", "1")]),
    Command::new(
        "INCRBYFLOAT",
        "2.6.0",
        Write,
        &[STRING, Float("increment")],
        ReplyKind::Float,
        "O(1)",
        "Adds to the numeric value of a key, 0 if it is missing.",
    )
    .output("out", "the new value")
    .statuses(NOT_A_NUMBER)
    .python("incrbyfloat", &[("name", ""), ("amount", "1.0")]),
    Command::new(
        "LCS",
        "7.0.0",
        Read,
        &[
            Key("key1"),
            Key("key2"),
            Optional(&[Word("LEN")]),
            Optional(&[Word("IDX")]),
            Optional(&[Word("MINMATCHLEN"), Int("min-match-len")]),
            Optional(&[Word("WITHMATCHLEN")]),
        ],
        ReplyKind::Varies,
        "O(N*M), N and M being the lengths of the values",
        "Returns the longest common subsequence of two values.",
    )
    .streams()
    .parsed_by_hand("the values are read before the options, and LEN excludes IDX")
    .functions(&[
        Function::words(
            "lcs",
            &[key("key1"), key("key2")],
            &[Of("key1"), Of("key2")],
            bytes_out("the bytes"),
            "LCS: returns the longest common subsequence of two values. The time is proportional \
             to the product of their lengths.",
        )
        .statuses(TOO_LONG),
        Function::words(
            "lcs_len",
            &[key("key1"), key("key2")],
            &[Of("key1"), Of("key2"), Literal("LEN")],
            int_out("out", "the length"),
            "LCS with LEN: returns the length of the longest common subsequence.",
        )
        .statuses(TOO_LONG),
        Function::words(
            "lcs_idx",
            &[key("key1"), key("key2"), int("minmatchlen").or("0"), flags(&["WITHMATCHLEN"])],
            &[
                Of("key1"),
                Of("key2"),
                Literal("IDX"),
                Literal("MINMATCHLEN"),
                Of("minmatchlen"),
                Flag("WITHMATCHLEN"),
            ],
            reply_out("a map of matches and len, as Redis replies"),
            "LCS with IDX: returns where the longest common subsequence is in both values, as \
             matches of at least minmatchlen bytes. Flag WITHMATCHLEN.",
        )
        .statuses(TOO_LONG),
    ])
    .python_by_hand(),
    Command::new(
        "MGET",
        "1.0.0",
        Read,
        &[Many(&[STRING])],
        ReplyKind::MaybeList,
        "O(N), N being the number of keys",
        "Returns the values of keys, nil for one that is missing or not a string.",
    )
    .flags(Flags::ANY_TYPE)
    .streams()
    .python_by_hand(),
    Command::new(
        "MSET",
        "1.0.1",
        Write,
        &[Many(&[STRING, Bytes("value")])],
        ReplyKind::Ok,
        "O(N), N being the number of keys",
        "Sets the values of keys, all at once.",
    )
    .flags(Flags::ANY_TYPE)
    .python_by_hand(),
    Command::new(
        "MSETNX",
        "1.0.1",
        Write,
        &[Many(&[STRING, Bytes("value")])],
        ReplyKind::Flag,
        "O(N), N being the number of keys",
        "Sets the values of keys, if none of the keys exists.",
    )
    .flags(Flags::ANY_TYPE)
    .output("set", "")
    .python_by_hand(),
    Command::new(
        "PSETEX",
        "2.6.0",
        Write,
        &[STRING, Int("milliseconds"), Bytes("value")],
        ReplyKind::Ok,
        "O(1)",
        "Sets the value of a key and its time to live in milliseconds.",
    )
    .flags(Flags::ANY_TYPE)
    .statuses(BAD_TIME)
    .python_by_hand(),
    Command::new(
        "SET",
        "1.0.0",
        Write,
        &[
            STRING,
            Bytes("value"),
            Optional(&[OneOf(&[&[Word("NX")], &[Word("XX")]])]),
            Optional(&[Word("GET")]),
            Optional(&[OneOf(&[EX, PX, EXAT, PXAT, &[Word("KEEPTTL")]])]),
        ],
        ReplyKind::Varies,
        "O(1)",
        "Sets the value of a key, replacing a value of any type.",
    )
    .flags(Flags::ANY_TYPE)
    .parsed_by_hand("options exclude each other in the order in which they come")
    .functions(&[
        Function::method(
            "set",
            "set",
            &[KEY, bytes("value")],
            Output::NONE,
            "SET: sets the value of a key, replacing a value of any type and its expiry.",
        ),
        Function::odd(
            "set_opt",
            &[
                KEY,
                bytes("value"),
                exclusive_flags(
                    &["NX", "XX", "KEEPTTL", "AT"],
                    &[&["NX", "XX"], &["KEEPTTL", "AT"]],
                ),
                int("ttl_ms").or("0"),
            ],
            OLD_VALUE,
            "SET with options: flags NX or XX, and KEEPTTL. ttl_ms is the time to live in \
             milliseconds, 0 for no expiry, or with the flag AT the Unix time in milliseconds at \
             which the key expires.",
        )
        .statuses(&[
            "WRONGTYPE: old is wanted and the key is not a string",
            "INVALID: the time is negative, or does not go with the flags",
        ]),
    ])
    .python_by_hand(),
    Command::new(
        "SETEX",
        "2.0.0",
        Write,
        &[STRING, Int("seconds"), Bytes("value")],
        ReplyKind::Ok,
        "O(1)",
        "Sets the value of a key and its time to live in seconds.",
    )
    .flags(Flags::ANY_TYPE)
    .statuses(BAD_TIME)
    .python_by_hand(),
    Command::new(
        "SETNX",
        "1.0.0",
        Write,
        &[STRING, Bytes("value")],
        ReplyKind::Flag,
        "O(1)",
        "Sets the value of a key, if the key does not exist.",
    )
    .flags(Flags::ANY_TYPE)
    .output("set", "")
    .python("setnx", &[("name", ""), ("value", "")]),
    Command::new(
        "SETRANGE",
        "2.2.0",
        Write,
        &[STRING, Int("offset"), Bytes("value")],
        ReplyKind::Int,
        "O(N), N being the length of what is written, or of the value if it is short",
        "Overwrites a part of a value from an offset on, padding with zero bytes.",
    )
    .output("length", "the new length")
    .statuses(&["OUT_OF_RANGE: the offset is negative"])
    .python("setrange", &[("name", ""), ("offset", ""), ("value", "")]),
    Command::new(
        "STRLEN",
        "2.2.0",
        Read,
        &[STRING],
        ReplyKind::Int,
        "O(1)",
        "Returns the length of a value, 0 if the key is missing.",
    )
    .flags(Flags::ONE_VALUE)
    .output("out", "the length")
    .python("strlen", &[("name", "")]),
    Command::new(
        "SUBSTR",
        "1.0.0",
        Read,
        &[STRING, Int("start"), Int("end")],
        ReplyKind::Value,
        "O(N), N being the length of the result",
        "Returns a part of a value: the old name of GETRANGE.",
    )
    .python("substr", &[("name", ""), ("start", ""), ("end", "-1")]),
];
