use super::spec::Access::{Alone, AloneWith, Read, Write};
use super::spec::Answer::{Bulk, Flag, Int, List, Ok};
use super::spec::Arg::{Bytes, Key, Keys, Named};
use super::spec::Grammar::{Irregular, Regular};
use super::spec::Keys::{None, Range};
use super::spec::{Grammar, Group, Row};

const ONE: super::spec::Keys = Range(1, 1, 1);
const TWO: super::spec::Keys = Range(1, 2, 1);
const ALL: super::spec::Keys = Range(1, -1, 1);

const OF_KEY: Grammar = Regular(&[Key], Int);
const EXPIRE: Grammar = Irregular("key seconds [NX | [XX] [GT | LT]]");
const PEXPIRE: Grammar = Irregular("key milliseconds [NX | [XX] [GT | LT]]");

/// The key space.
pub(crate) const GROUP: Group = Group { module: "key", title: "Keys", rows: ROWS };

const ROWS: &[Row] = &[
    Row::new(
        "COPY",
        -3,
        AloneWith("DB"),
        TWO,
        Irregular("source destination [DB number] [REPLACE]"),
        "Copies a key; takes as long as it has members.",
    ),
    Row::new("DBSIZE", 1, Read, None, Regular(&[], Int), "How many keys exist, by counting them."),
    Row::new("DEL", -2, Write, ALL, Regular(&[Keys], Int), "Removes keys."),
    Row::new("EXISTS", -2, Read, ALL, Regular(&[Keys], Int), "How many of the keys exist."),
    Row::new("EXPIRE", -3, Write, ONE, EXPIRE, "Lets a key expire in so many seconds."),
    Row::new("EXPIREAT", -3, Write, ONE, EXPIRE, "Lets a key expire at a second since 1970."),
    Row::new(
        "EXPIRETIME",
        2,
        Read,
        ONE,
        OF_KEY,
        "The second since 1970 at which a key expires; -1: it does not; -2: there is none.",
    ),
    Row::new(
        "FLUSHALL",
        -1,
        Alone,
        None,
        Irregular("[ASYNC | SYNC]"),
        "Empties all databases, in the same time however full they are.",
    ),
    Row::new(
        "FLUSHDB",
        -1,
        Alone,
        None,
        Irregular("[ASYNC | SYNC]"),
        "Empties the database, in the same time however full it is.",
    ),
    Row::new(
        "KEYS",
        2,
        Read,
        None,
        Regular(&[Bytes("pattern")], List),
        "The keys that match a pattern.",
    ),
    Row::new("MOVE", 3, Alone, ONE, Irregular("key database"), "Moves a key to another database."),
    Row::new(
        "OBJECT",
        -2,
        Read,
        Range(2, 2, 1),
        Irregular("ENCODING key | FREQ key | HELP | IDLETIME key | REFCOUNT key"),
        "How Redis would hold a value.",
    ),
    Row::new("PERSIST", 2, Write, ONE, Regular(&[Key], Flag), "Takes a key's expiry away."),
    Row::new("PEXPIRE", -3, Write, ONE, PEXPIRE, "Lets a key expire in so many milliseconds."),
    Row::new(
        "PEXPIREAT",
        -3,
        Write,
        ONE,
        PEXPIRE,
        "Lets a key expire at a millisecond since 1970.",
    ),
    Row::new(
        "PEXPIRETIME",
        2,
        Read,
        ONE,
        OF_KEY,
        "The millisecond since 1970 at which a key expires; -1: it does not; -2: there is none.",
    ),
    Row::new(
        "PTTL",
        2,
        Read,
        ONE,
        OF_KEY,
        "Milliseconds until a key expires; -1: it does not; -2: there is none.",
    ),
    Row::new("RANDOMKEY", 1, Read, None, Regular(&[], Bulk), "Some key."),
    Row::new(
        "RENAME",
        3,
        Write,
        TWO,
        Regular(&[Key, Named("newkey")], Ok),
        "Gives a key another name; takes as long as it has members.",
    ),
    Row::new(
        "RENAMENX",
        3,
        Write,
        TWO,
        Regular(&[Key, Named("newkey")], Flag),
        "Gives a key another name that is free; takes as long as it has members.",
    ),
    Row::new(
        "SWAPDB",
        3,
        Alone,
        None,
        Irregular("database database"),
        "Exchanges what two databases hold.",
    ),
    Row::new("TOUCH", -2, Read, ALL, Regular(&[Keys], Int), "How many of the keys exist."),
    Row::new(
        "TTL",
        2,
        Read,
        ONE,
        OF_KEY,
        "Seconds until a key expires, rounded; -1: it does not; -2: there is none.",
    ),
    Row::new("TYPE", 2, Read, ONE, Irregular("key"), "The type of a key."),
    Row::new("UNLINK", -2, Write, ALL, Regular(&[Keys], Int), "Removes keys."),
];
