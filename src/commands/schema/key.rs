//! The key space: names, types, expiry, databases.

use super::parameters::{
    CONDITIONS, DESTINATION, KEY, database, exclusive_flags, flag_out, flags, int, maybe_bytes_out,
    maybe_int_out,
};
use super::spec::Access::{Alone, AloneWith, Read, Write};
use super::spec::Arg::{Bytes, Int, Key, Many, OneOf, Optional, Word};
use super::spec::Words::{Flag, Of, Word as Literal};
use super::spec::{
    Arg, Command, Flags, Function, Group, KeyPositions, Nil, Output, OutputKind, Parameter,
    ReplyKind,
};

/// The key space.
pub(crate) const GROUP: Group = Group { module: "key", title: "Keys", commands: COMMANDS };

const NAME: Arg = Key("key");
const NAMES: Arg = Many(&[NAME]);
const GIVEN: &str = "O(N), N being the number of keys given";
const COPIED: &str = "O(N), N being the number of members, or the length of a string";
const NEW_EXPIRY: &str = "O(1); for a short string O(N), N being its length";
const FLUSH_MODE: Arg = Optional(&[OneOf(&[&[Word("ASYNC")], &[Word("SYNC")]])]);
const CONDITION: Arg = Optional(&[OneOf(&[
    &[Word("NX")],
    &[Optional(&[Word("XX")]), Optional(&[OneOf(&[&[Word("GT")], &[Word("LT")]])])],
])]);
const CONDITION_FLAGS: Parameter = exclusive_flags(&["NX", "XX", "GT", "LT"], CONDITIONS);
const NO_EXPIRY: &str = "it; -1 if the key does not expire, -2 if it does not exist";
const SET: Output = flag_out("set", "1 if the key exists, else 0");
const SET_IF: Output = flag_out("set", "1 if the key exists and the condition holds, else 0");
const COPY_DONE: Output =
    flag_out("copied", "1 if it was copied, 0 if the source is missing or the destination exists");
const BAD_TIME: &[&str] = &["INVALID: the time is too large"];
const SAME_KEY: &[&str] = &["INVALID: both are the same key"];
const NO_DATABASE: &str = "OUT_OF_RANGE: there is no such database";

/// A command that returns a time of a key.
const fn time_of(name: &'static str, since: &'static str, summary: &'static str) -> Command {
    Command::new(name, since, Read, &[NAME], ReplyKind::Int, "O(1)", summary)
        .flags(Flags::ANY_TYPE)
        .output("out", NO_EXPIRY)
}

/// A command that lets a key expire.
const fn expires(
    name: &'static str,
    since: &'static str,
    args: &'static [Arg],
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    Command::new(name, since, Write, args, ReplyKind::Flag, NEW_EXPIRY, summary)
        .flags(Flags::ANY_TYPE.and(Flags::STRICT))
        .parsed_by_hand(
            "options are read before the time, and unknown ones have an error of their own",
        )
        .functions(functions)
        .python_by_hand()
}

const COMMANDS: &[Command] = &[
    Command::new(
        "COPY",
        "6.2.0",
        AloneWith("DB"),
        &[
            Key("source"),
            Key("destination"),
            Optional(&[Word("DB"), Int("destination-db")]),
            Optional(&[Word("REPLACE")]),
        ],
        ReplyKind::Flag,
        COPIED,
        "Copies a value with its expiry to another key.",
    )
    .flags(Flags::ANY_TYPE)
    .parsed_by_hand("a database is checked where it is named")
    .functions(&[
        Function::words(
            "copy",
            &[KEY, DESTINATION, flags(&["REPLACE"])],
            &[Of("key"), Of("destination"), Flag("REPLACE")],
            COPY_DONE,
            "COPY: copies a value with its expiry to another key. The flag REPLACE replaces a key \
             that exists. The time is proportional to the number of members.",
        )
        .statuses(SAME_KEY),
        Function::words(
            "copy_to",
            &[KEY, DESTINATION, database("database"), flags(&["REPLACE"])],
            &[Of("key"), Of("destination"), Literal("DB"), Of("database"), Flag("REPLACE")],
            COPY_DONE,
            "COPY with DB: copies a value with its expiry to a key of another database. The flag \
             REPLACE replaces a key that exists.",
        )
        .statuses(&["INVALID: both are the same key", NO_DATABASE]),
    ])
    .python_by_hand(),
    Command::new("DBSIZE", "1.0.0", Read, &[], ReplyKind::Int, "O(N), N being the number of keys; O(1) if no key was set, added or deleted, and none expired, since the last call", "Returns the number of keys.")
        .flags(Flags::ANY_TYPE)
        .python("dbsize", &[]),
    Command::new("DEL", "1.0.0", Write, &[NAMES], ReplyKind::Int, GIVEN, "Deletes keys.")
        .flags(Flags::ANY_TYPE.and(Flags::STRICT))
        .output("deleted", "the number of keys deleted")
        .python("delete", &[("*names", "")]),
    Command::new("EXISTS", "1.0.0", Read, &[NAMES], ReplyKind::Int, GIVEN, "Counts the keys that exist. A key that is given twice counts twice.")
        .flags(Flags::ANY_TYPE)
        .python("exists", &[("*names", "")]),
    expires("EXPIRE", "1.0.0", &[NAME, Int("seconds"), CONDITION], "Sets the time to live of a key in seconds.", &[
        Function::words(
            "expire",
            &[KEY, int("seconds")],
            &[Of("key"), Of("seconds")],
            SET,
            "EXPIRE: sets the time to live of a key in seconds. A time that is not positive \
             deletes the key.",
        )
        .statuses(BAD_TIME),
        Function::words(
            "expire_opt",
            &[KEY, int("seconds"), CONDITION_FLAGS],
            &[Of("key"), Of("seconds"), Of("flags")],
            SET_IF,
            "EXPIRE with options: sets the time to live in seconds only if the key has no expiry \
             (NX), has one (XX), or the new one is later (GT) or earlier (LT).",
        )
        .statuses(BAD_TIME),
    ]),
    expires("EXPIREAT", "1.2.0", &[NAME, Int("unix-time-seconds"), CONDITION], "Sets the Unix time in seconds at which a key expires.", &[
        Function::words(
            "expireat",
            &[KEY, int("seconds")],
            &[Of("key"), Of("seconds")],
            SET,
            "EXPIREAT: sets the Unix time in seconds at which a key expires. A time that has passed \
             deletes the key.",
        )
        .statuses(BAD_TIME),
        Function::words(
            "expireat_opt",
            &[KEY, int("seconds"), CONDITION_FLAGS],
            &[Of("key"), Of("seconds"), Of("flags")],
            SET_IF,
            "EXPIREAT with options: sets the Unix time in seconds at which a key expires only if \
             the key has no expiry (NX), has one (XX), or the new one is later (GT) or earlier (LT).",
        )
        .statuses(BAD_TIME),
    ]),
    time_of("EXPIRETIME", "7.0.0", "Returns the Unix time in seconds at which a key expires.")
        .python("expiretime", &[("key", "")]),
    Command::new("FLUSHALL", "1.0.0", Alone, &[FLUSH_MODE], ReplyKind::Ok, "O(N), N being the number of databases", "Deletes all keys of all databases.")
        .flags(Flags::ANY_TYPE)
        .parsed_by_hand("both modes do the same")
        .functions(&[Function::words(
            "flushall",
            &[],
            &[],
            Output::NONE,
            "FLUSHALL: deletes all keys of all databases. The time does not depend on their \
             number. Waits until no other write runs.",
        )])
        .python_by_hand(),
    Command::new("FLUSHDB", "1.0.0", Alone, &[FLUSH_MODE], ReplyKind::Ok, "O(1)", "Deletes all keys of the database.")
        .flags(Flags::ANY_TYPE)
        .parsed_by_hand("both modes do the same")
        .functions(&[Function::words(
            "flushdb",
            &[],
            &[],
            Output::NONE,
            "FLUSHDB: deletes all keys of the database. The time does not depend on their number. \
             Waits until no other write runs.",
        )])
        .python_by_hand(),
    Command::new("KEYS", "1.0.0", Read, &[Bytes("pattern")], ReplyKind::List, "O(N), N being the number of keys", "Returns the keys that match a pattern.").streams()
        .flags(Flags::ANY_TYPE)
        .python("keys", &[("pattern", "\"*\"")]),
    Command::new(
        "MEMORY",
        "4.0.0",
        Read,
        &[OneOf(&[
            &[Word("HELP")],
            &[Word("USAGE"), NAME, Optional(&[Word("SAMPLES"), Int("count")])],
        ])],
        ReplyKind::Varies,
        "O(N), N being the number of members looked at",
        "Estimates the bytes that a key takes in the store.",
    )
    .flags(Flags::ANY_TYPE)
    .keys(KeyPositions::Range { first: 2, last: 2, step: 1 })
    .parsed_by_hand("subcommands have errors of their own")
    .functions(&[Function::words(
        "memory_usage",
        &[KEY],
        &[Literal("USAGE"), Of("key")],
        maybe_int_out("the number of bytes"),
        "MEMORY USAGE: estimates the bytes that a key takes in the store before compression: the \
         key, its value, and what the engine adds to each entry. Of a collection five members are \
         looked at.",
    )])
    .python_by_hand(),
    Command::new("MOVE", "1.0.0", Alone, &[NAME, Int("database")], ReplyKind::Flag, COPIED, "Moves a key to another database.")
        .flags(Flags::ANY_TYPE)
        .parsed_by_hand("the number of a database has an error of its own")
        .functions(&[Function::words(
            "move",
            &[KEY, database("database")],
            &[Of("key"), Of("database")],
            flag_out("moved", "1 if it was moved, 0 if the key is missing here or exists there"),
            "MOVE: moves a key to another database. Waits until no other write runs.",
        )
        .statuses(&["INVALID: it is this database", NO_DATABASE])])
        .python_by_hand(),
    Command::new(
        "OBJECT",
        "2.2.3",
        Read,
        &[OneOf(&[
            &[Word("ENCODING"), NAME],
            &[Word("FREQ"), NAME],
            &[Word("HELP")],
            &[Word("IDLETIME"), NAME],
            &[Word("REFCOUNT"), NAME],
        ])],
        ReplyKind::Varies,
        "O(1); O(N) for N members, if they are at most 512",
        "Tells how Redis would store a value.",
    )
    .flags(Flags::ANY_TYPE)
    .keys(KeyPositions::Range { first: 2, last: 2, step: 1 })
    .parsed_by_hand("subcommands have errors of their own")
    .functions(&[Function::words(
        "object_encoding",
        &[KEY],
        &[Literal("ENCODING"), Of("key")],
        maybe_bytes_out("the name"),
        "OBJECT ENCODING: returns the name of the encoding in which Redis would store a value.",
    )])
    .python_by_hand(),
    Command::new("PERSIST", "2.2.0", Write, &[NAME], ReplyKind::Flag, NEW_EXPIRY, "Removes the expiry of a key.")
        .flags(Flags::ANY_TYPE.and(Flags::STRICT))
        .python("persist", &[("name", "")]),
    expires("PEXPIRE", "2.6.0", &[NAME, Int("milliseconds"), CONDITION], "Sets the time to live of a key in milliseconds.", &[
        Function::words(
            "pexpire",
            &[KEY, int("ms")],
            &[Of("key"), Of("ms")],
            SET,
            "PEXPIRE: sets the time to live of a key in milliseconds. A time that is not positive \
             deletes the key.",
        )
        .statuses(BAD_TIME),
        Function::words(
            "pexpire_opt",
            &[KEY, int("ms"), CONDITION_FLAGS],
            &[Of("key"), Of("ms"), Of("flags")],
            SET_IF,
            "PEXPIRE with options: sets the time to live in milliseconds only if the key has no \
             expiry (NX), has one (XX), or the new one is later (GT) or earlier (LT).",
        )
        .statuses(BAD_TIME),
    ]),
    expires("PEXPIREAT", "2.6.0", &[NAME, Int("unix-time-milliseconds"), CONDITION], "Sets the Unix time in milliseconds at which a key expires.", &[
        Function::words(
            "pexpireat",
            &[KEY, int("ms")],
            &[Of("key"), Of("ms")],
            SET,
            "PEXPIREAT: sets the Unix time in milliseconds at which a key expires. A time that has \
             passed deletes the key.",
        )
        .statuses(BAD_TIME),
        Function::words(
            "pexpireat_opt",
            &[KEY, int("ms"), CONDITION_FLAGS],
            &[Of("key"), Of("ms"), Of("flags")],
            SET_IF,
            "PEXPIREAT with options: sets the Unix time in milliseconds at which a key expires \
             only if the key has no expiry (NX), has one (XX), or the new one is later (GT) or \
             earlier (LT).",
        )
        .statuses(BAD_TIME),
    ]),
    time_of("PEXPIRETIME", "7.0.0", "Returns the Unix time in milliseconds at which a key expires.")
        .python("pexpiretime", &[("key", "")]),
    time_of("PTTL", "2.6.0", "Returns the remaining time to live of a key in milliseconds.")
        .flags(Flags::ONE_VALUE)
        .output("ms", NO_EXPIRY)
        .python("pttl", &[("name", "")]),
    Command::new("RANDOMKEY", "1.0.0", Read, &[], ReplyKind::Bulk, "O(1)", "Returns a random key.")
        .flags(Flags::ANY_TYPE)
        .python("randomkey", &[]),
    Command::new(
        "RENAME",
        "1.0.0",
        Write,
        &[NAME, Key("newkey")],
        ReplyKind::Ok,
        COPIED,
        "Renames a key, replacing one of the new name.",
    )
    .flags(Flags::ANY_TYPE)
    .statuses(&["NO_SUCH_KEY"])
    .python("rename", &[("src", ""), ("dst", "")]),
    Command::new(
        "RENAMENX",
        "1.0.0",
        Write,
        &[NAME, Key("newkey")],
        ReplyKind::Flag,
        COPIED,
        "Renames a key, if no key has the new name.",
    )
    .flags(Flags::ANY_TYPE)
    .statuses(&["NO_SUCH_KEY"])
    .python("renamenx", &[("src", ""), ("dst", "")]),
    Command::new("SWAPDB", "4.0.0", Alone, &[Int("index1"), Int("index2")], ReplyKind::Ok, "O(1)", "Exchanges the contents of two databases.")
        .flags(Flags::ANY_TYPE)
        .parsed_by_hand("each number has an error of its own")
        .functions(&[Function::words(
            "swapdb",
            &[database("first"), database("second")],
            &[Of("first"), Of("second")],
            Output::NONE,
            "SWAPDB: exchanges the contents of two databases. The time does not depend on their \
             size. Waits until no other write runs.",
        )
        .statuses(&["INVALID", NO_DATABASE])])
        .python_by_hand(),
    Command::new("TOUCH", "3.2.1", Read, &[NAMES], ReplyKind::Int, GIVEN, "Counts the keys that exist. A key that is given twice counts twice.")
        .flags(Flags::ANY_TYPE)
        .python("touch", &[("*args", "")]),
    time_of("TTL", "1.0.0", "Returns the remaining time to live of a key in seconds, rounded.")
        .flags(Flags::ONE_VALUE)
        .python("ttl", &[("name", "")]),
    Command::new("TYPE", "1.0.0", Read, &[NAME], ReplyKind::Varies, "O(1)", "Returns the type of a key.")
        .flags(Flags::ANY_TYPE.and(Flags::ONE_VALUE))
        .parsed_by_hand("the reply is a status")
        .functions(&[Function::odd(
            "type",
            &[KEY],
            Output::new(
                "kind",
                OutputKind::Type,
                "LSMKV_STRING, LSMKV_HASH, LSMKV_LIST, LSMKV_SET or LSMKV_ZSET",
            )
            .nil(Nil::NotFound),
            "TYPE: returns the type of a key.",
        )])
        .python_by_hand(),
    Command::new("UNLINK", "4.0.0", Write, &[NAMES], ReplyKind::Int, GIVEN, "Deletes keys, exactly as DEL does.")
        .flags(Flags::ANY_TYPE.and(Flags::STRICT))
        .output("deleted", "the number of keys deleted")
        .python("unlink", &[("*names", "")]),
];
