//! The entries of the commands of hashes.

use super::parameters::{ITEMS, KEY, bytes, flags, maybe_bytes_out, reply_out, signed_count};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Bytes, Counted, Float, Int, Key, Many, Member, Optional, Word};
use super::spec::Words::{CountOf, Flag, Of, Word as Literal};
use super::spec::{Arg, Command, Flags, Function, Group, ReplyKind};

/// The commands of hashes.
pub(crate) const GROUP: Group = Group { module: "hash", title: "Hashes", commands: COMMANDS };

const HASH: Arg = Key("key");
const FIELD: Arg = Member("field");
const FIELDS: Arg = Many(&[FIELD]);
const PAIRS: Arg = Many(&[FIELD, Bytes("value")]);
const ALL: &str = "O(N), N being the number of fields of the hash";
const GIVEN: &str = "O(N), N being the number of fields given";

const COMMANDS: &[Command] = &[
    Command::new(
        "HDEL",
        "2.0.0",
        Write,
        &[HASH, FIELDS],
        ReplyKind::Int,
        GIVEN,
        "Deletes fields. A hash without fields is deleted.",
    )
    .output("deleted", "the number of fields deleted")
    .python("hdel", &[("name", ""), ("*keys", "")]),
    Command::new(
        "HEXISTS",
        "2.0.0",
        Read,
        &[HASH, FIELD],
        ReplyKind::Flag,
        "O(1)",
        "Tells whether a field exists.",
    )
    .flags(Flags::ONE_VALUE)
    .python("hexists", &[("name", ""), ("key", "")]),
    Command::new(
        "HGET",
        "2.0.0",
        Read,
        &[HASH, FIELD],
        ReplyKind::Bulk,
        "O(1)",
        "Returns the value of a field.",
    )
    .flags(Flags::ONE_VALUE)
    .python("hget", &[("name", ""), ("key", "")]),
    Command::new(
        "HGETALL",
        "2.0.0",
        Read,
        &[HASH],
        ReplyKind::Map,
        ALL,
        "Returns all fields and values, in the byte order of the fields.",
    )
    .streams()
    .python("hgetall", &[("name", "")]),
    Command::new(
        "HGETDEL",
        "8.0.0",
        Write,
        &[HASH, Word("FIELDS"), Counted("numfields", &[FIELD])],
        ReplyKind::MaybeList,
        GIVEN,
        "Returns the values of fields and deletes the fields.",
    )
    .streams()
    .parsed_by_hand(
        "the type of the key is checked before the grammar, which has errors of its own",
    )
    .functions(&[
        Function::odd(
            "hgetdel",
            &[KEY, bytes("field")],
            maybe_bytes_out("its value"),
            "HGETDEL: deletes a field and returns its value.",
        ),
        Function::words(
            "hgetdel_many",
            &[KEY, ITEMS],
            &[Of("key"), Literal("FIELDS"), CountOf("items"), Of("items")],
            reply_out("an array with the value or nil for each"),
            "HGETDEL: deletes n fields and returns their values.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "HINCRBY",
        "2.0.0",
        Write,
        &[HASH, FIELD, Int("increment")],
        ReplyKind::Int,
        "O(1)",
        "Adds to the integer in a field, 0 if it is missing.",
    )
    .output("out", "the new value")
    .statuses(&["NOT_INTEGER: the value is not an integer", "OVERFLOW"])
    .python("hincrby", &[("name", ""), ("key", ""), ("amount", "1")]),
    Command::new(
        "HINCRBYFLOAT",
        "2.6.0",
        Write,
        &[HASH, FIELD, Float("increment")],
        ReplyKind::Float,
        "O(1)",
        "Adds to the number in a field, 0 if it is missing.",
    )
    .output("out", "the new value")
    .statuses(&[
        "NOT_FLOAT: the value or the increment is not a number",
        "OVERFLOW: the sum is not finite",
    ])
    .python("hincrbyfloat", &[("name", ""), ("key", ""), ("amount", "1.0")]),
    Command::new(
        "HKEYS",
        "2.0.0",
        Read,
        &[HASH],
        ReplyKind::List,
        ALL,
        "Returns all fields, in byte order.",
    )
    .streams()
    .python("hkeys", &[("name", "")]),
    Command::new(
        "HLEN",
        "2.0.0",
        Read,
        &[HASH],
        ReplyKind::Int,
        "O(1)",
        "Returns the number of fields.",
    )
    .flags(Flags::ONE_VALUE)
    .python("hlen", &[("name", "")]),
    Command::new(
        "HMGET",
        "2.0.0",
        Read,
        &[HASH, FIELDS],
        ReplyKind::MaybeList,
        GIVEN,
        "Returns the values of fields, nil for one that is missing.",
    )
    .streams()
    .python_by_hand(),
    Command::new("HMSET", "2.0.0", Write, &[HASH, PAIRS], ReplyKind::Ok, GIVEN, "Sets fields.")
        .python_by_hand(),
    Command::new(
        "HRANDFIELD",
        "6.2.0",
        Read,
        &[HASH, Optional(&[Int("count"), Optional(&[Word("WITHVALUES")])])],
        ReplyKind::Varies,
        "O(N), N being the number of fields returned",
        "Returns random fields.",
    )
    .streams()
    .parsed_by_hand("what is replied depends on the count, whose range depends on WITHVALUES")
    .functions(&[
        Function::method(
            "hrandfield",
            "hrandfield",
            &[KEY],
            maybe_bytes_out("the field"),
            "HRANDFIELD: returns a random field.",
        ),
        Function::words(
            "hrandfield_count",
            &[KEY, signed_count(), flags(&["WITHVALUES"])],
            &[Of("key"), Of("count"), Flag("WITHVALUES")],
            reply_out("an array of fields, or of fields and values in turn"),
            "HRANDFIELD with a count: returns up to count different fields. A negative count \
             returns exactly that many, and some may repeat. Flag WITHVALUES.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "HSET",
        "2.0.0",
        Write,
        &[HASH, PAIRS],
        ReplyKind::Int,
        GIVEN,
        "Sets fields. Of a field that is given twice, the last value counts.",
    )
    .output("added", "the number of new fields")
    .python_by_hand(),
    Command::new(
        "HSETNX",
        "2.0.0",
        Write,
        &[HASH, FIELD, Bytes("value")],
        ReplyKind::Flag,
        "O(1)",
        "Sets a field, if it does not exist.",
    )
    .output("set", "")
    .python_number("hsetnx", &[("name", ""), ("key", ""), ("value", "")]),
    Command::new(
        "HSTRLEN",
        "3.2.0",
        Read,
        &[HASH, FIELD],
        ReplyKind::Int,
        "O(1)",
        "Returns the length of a field's value, 0 if the field is missing.",
    )
    .flags(Flags::ONE_VALUE)
    .output("out", "the length")
    .python("hstrlen", &[("name", ""), ("key", "")]),
    Command::new(
        "HVALS",
        "2.0.0",
        Read,
        &[HASH],
        ReplyKind::List,
        ALL,
        "Returns all values, in the byte order of their fields.",
    )
    .streams()
    .python("hvals", &[("name", "")]),
];
