//! Parsers of key space commands.

use bytes::Bytes;

use crate::commands::args::{Args, quoted, syntax_error, wrong_number};
use crate::commands::reply::{IntoReply, Reply};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::parse_integer;
use crate::types::{ExpireIf, Type};

/// The name of a type.
pub(super) fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::String => "string",
        Type::Hash => "hash",
        Type::List => "list",
        Type::Set => "set",
        Type::ZSet => "zset",
    }
}

pub(crate) fn r#type(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    Ok(Reply::Status(tx.kind(args.bytes()?)?.map_or("none", type_name)))
}

type Expire<'s> = fn(&mut Tx<'s>, &[u8], i64, ExpireIf) -> Result<bool>;

/// Parses and runs an EXPIRE command. The options are read before the time, as in Redis.
fn expire_by<'s>(tx: &mut Tx<'s>, mut args: Args<'_>, method: Expire<'s>) -> Result<Reply> {
    let (key, time) = (args.bytes()?, args.bytes()?);
    let mut condition = ExpireIf::ALWAYS;
    while let Some(option) = args.peek() {
        if args.take_word("NX") {
            condition.none = true;
        } else if args.take_word("XX") {
            condition.some = true;
        } else if args.take_word("GT") {
            condition.later = true;
        } else if args.take_word("LT") {
            condition.earlier = true;
        } else {
            let message = format!("ERR Unsupported option {}", quoted(option));
            return Err(Error::new(ErrorKind::Syntax, message));
        }
    }
    condition.check()?;
    Ok(method(tx, key, parse_integer(time)?, condition)?.into_reply())
}

pub(crate) fn expire(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    expire_by(tx, args, Tx::expire)
}

pub(crate) fn pexpire(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    expire_by(tx, args, Tx::pexpire)
}

pub(crate) fn expireat(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    expire_by(tx, args, Tx::expireat)
}

pub(crate) fn pexpireat(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    expire_by(tx, args, Tx::pexpireat)
}

/// Parses the number of a database. The method checks that it exists.
fn database(text: &[u8]) -> Result<u32> {
    let number = parse_integer(text)?;
    let number = i32::try_from(number).map_err(|_| {
        let message = "ERR value is out of range, value must between -2147483648 and 2147483647";
        Error::new(ErrorKind::OutOfRange, message)
    })?;
    // A negative number maps to the largest one: neither exists.
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

pub(crate) fn copy(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, to) = (args.bytes()?, args.bytes()?);
    let (mut into, mut replace) = (tx.database(), false);
    while !args.is_empty() {
        if args.take_word("REPLACE") {
            replace = true;
        } else if args.take_word("DB") {
            into = database(args.bytes()?)?;
            tx.space_of(into)?;
        } else {
            return Err(syntax_error());
        }
    }
    Ok(tx.copy_to(key, to, into, replace)?.into_reply())
}

pub(crate) fn r#move(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, into) = (args.bytes()?, database(args.bytes()?)?);
    Ok(tx.r#move(key, into)?.into_reply())
}

pub(crate) fn swapdb(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let mut number = |which: &str| {
        let message = || Error::new(ErrorKind::Invalid, format!("ERR invalid {which} DB index"));
        database(args.bytes()?).map_err(|_| message())
    };
    let (a, b) = (number("first")?, number("second")?);
    tx.swapdb(a, b)?;
    Ok(Reply::OK)
}

/// Accepts and ignores ASYNC and SYNC: a flush takes no time, so there is nothing to defer.
fn flush_mode(mut args: Args<'_>) -> Result<()> {
    let _known = args.take_word("SYNC") || args.take_word("ASYNC");
    args.end()
}

pub(crate) fn flushdb(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    flush_mode(args)?;
    tx.flushdb()?;
    Ok(Reply::OK)
}

pub(crate) fn flushall(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    flush_mode(args)?;
    tx.flushall()?;
    Ok(Reply::OK)
}

const OBJECT_HELP: [&str; 11] = [
    "OBJECT <subcommand> <arg>. Subcommands are:",
    "ENCODING <key>",
    "    The encoding in which Redis would hold the value.",
    "FREQ <key>",
    "    An error: how often keys are used is not counted.",
    "IDLETIME <key>",
    "    0: when keys are used is not kept.",
    "REFCOUNT <key>",
    "    1: values are not shared.",
    "HELP",
    "    Prints this help.",
];

const NO_FREQUENCY: &str = "ERR An LFU maxmemory policy is not selected, access frequency not \
    tracked. Please note that when switching between policies at runtime LRU and LFU data will \
    take some time to adjust.";

pub(crate) fn object(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let word = args.bytes()?;
    let name = String::from_utf8_lossy(word).to_ascii_lowercase();
    if name == "help" {
        args.end().map_err(|_| wrong_number("object|help"))?;
        return Ok(Reply::list(OBJECT_HELP.map(|line| Bytes::from_static(line.as_bytes()))));
    }
    if !matches!(name.as_str(), "encoding" | "freq" | "idletime" | "refcount") {
        let word = quoted(word);
        let message = format!("ERR unknown subcommand '{word}'. Try OBJECT HELP.");
        return Err(Error::new(ErrorKind::Syntax, message));
    }
    let &[key] = args.all() else { return Err(wrong_number(&format!("object|{name}"))) };
    let Some(encoding) = tx.object_encoding(key)? else { return Ok(Reply::Nil) };
    match name.as_str() {
        "encoding" => Ok(Reply::Bulk(Bytes::from_static(encoding.as_bytes()))),
        "freq" => Err(Error::new(ErrorKind::Invalid, NO_FREQUENCY)),
        "refcount" => Ok(Reply::Int(1)),
        _ => Ok(Reply::Int(0)),
    }
}

const MEMORY_HELP: [&str; 5] = [
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "USAGE <key> [SAMPLES <count>]",
    "    The bytes that a key takes in the store, roughly.",
    "HELP",
    "    Prints this help.",
];

/// The number of members that are looked at unless the caller says so.
const SAMPLES: u64 = 5;

pub(crate) fn memory(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let word = args.bytes()?;
    match word.to_ascii_lowercase().as_slice() {
        b"help" => {
            args.end().map_err(|_| wrong_number("memory|help"))?;
            Ok(Reply::list(MEMORY_HELP.map(|line| Bytes::from_static(line.as_bytes()))))
        }
        b"usage" if args.is_empty() => Err(wrong_number("memory|usage")),
        b"usage" => {
            let (key, mut samples) = (args.bytes()?, SAMPLES);
            while !args.is_empty() {
                if !args.take_word("samples") || args.is_empty() {
                    return Err(syntax_error());
                }
                samples = u64::try_from(args.integer()?).map_err(|_| syntax_error())?;
            }
            let bytes = tx.memory_usage(key, samples)?;
            let number = |bytes| Reply::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
            Ok(bytes.map_or(Reply::Nil, number))
        }
        _ => {
            let word = quoted(word);
            let message = format!("ERR unknown subcommand '{word}'. Try MEMORY HELP.");
            Err(Error::new(ErrorKind::Syntax, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::txn::Db;

    fn call(db: &Db, line: &str) -> Reply {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        db.command(&argv).unwrap()
    }

    #[test]
    fn errors_come_in_the_order_of_the_reference() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.set(b"k", b"v").unwrap();
        let range = "ERR value is out of range, value must between -2147483648 and 2147483647";
        for (line, error) in [
            ("MOVE k x", "ERR value is not an integer or out of range"),
            ("MOVE k 99", "ERR DB index is out of range"),
            ("MOVE k -1", "ERR DB index is out of range"),
            ("MOVE k 99999999999", range),
            ("MOVE k 0", "ERR source and destination objects are the same"),
            ("COPY k k", "ERR source and destination objects are the same"),
            ("COPY none none", "ERR source and destination objects are the same"),
            ("COPY k q DB x", "ERR value is not an integer or out of range"),
            ("COPY k q DB 99", "ERR DB index is out of range"),
            ("COPY k q DB 99 FOO", "ERR DB index is out of range"),
            ("COPY k q DB", "ERR syntax error"),
            ("COPY k q FOO DB x", "ERR syntax error"),
            ("SWAPDB x 1", "ERR invalid first DB index"),
            ("SWAPDB 0 x", "ERR invalid second DB index"),
            ("SWAPDB 99999999999 1", "ERR invalid first DB index"),
            ("SWAPDB 0 99", "ERR DB index is out of range"),
            ("SWAPDB -1 0", "ERR DB index is out of range"),
            ("FLUSHDB FOO", "ERR syntax error"),
            ("FLUSHALL SYNC ASYNC", "ERR syntax error"),
            ("RENAME none none", "ERR no such key"),
            ("RENAMENX none x", "ERR no such key"),
            ("OBJECT", "ERR wrong number of arguments for 'object' command"),
            ("OBJECT foo", "ERR unknown subcommand 'foo'. Try OBJECT HELP."),
            ("OBJECT ENCODING", "ERR wrong number of arguments for 'object|encoding' command"),
            ("OBJECT help x", "ERR wrong number of arguments for 'object|help' command"),
            ("EXPIRE k x foo", "ERR Unsupported option foo"),
            (
                "EXPIRE k x NX GT LT",
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ),
            ("EXPIRE k x gt lt", "ERR GT and LT options at the same time are not compatible"),
            ("EXPIRE k x gt", "ERR value is not an integer or out of range"),
            ("EXPIRE none 9223372036854775807", "ERR invalid expire time in 'expire' command"),
            ("SORT k", "WRONGTYPE Operation against a key holding the wrong kind of value"),
            ("SORT none LIMIT 0", "ERR syntax error"),
            ("SORT none LIMIT 0 x", "ERR value is not an integer or out of range"),
            ("SORT none GET", "ERR syntax error"),
            ("SORT_RO none STORE x", "ERR syntax error"),
        ] {
            assert_eq!(call(&db, line), Reply::Error(error.into()), "{line}");
        }
        assert_eq!(db.keys(b"*").unwrap(), ["k"]);
    }

    #[test]
    fn replies_are_of_the_kinds_of_the_reference() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.set(b"k", b"12").unwrap();
        let bulk = |text: &'static str| Reply::Bulk(Bytes::from_static(text.as_bytes()));
        for (line, reply) in [
            ("TYPE k", Reply::Status("string")),
            ("TYPE none", Reply::Status("none")),
            ("DBSIZE", Reply::Int(1)),
            ("TOUCH k k none", Reply::Int(2)),
            ("RENAME k k", Reply::OK),
            ("RENAMENX k k", Reply::Int(0)),
            ("RANDOMKEY", bulk("k")),
            ("KEYS *", Reply::Array(vec![bulk("k")])),
            ("OBJECT ENCODING k", bulk("int")),
            ("OBJECT FREQ none", Reply::Nil),
            ("OBJECT REFCOUNT k", Reply::Int(1)),
            ("COPY k q DB 1", Reply::Int(1)),
            ("copy k q db 1", Reply::Int(0)),
            ("COPY k q REPLACE DB 1", Reply::Int(1)),
            ("MOVE k 1", Reply::Int(1)),
            ("RANDOMKEY", Reply::Nil),
            ("SWAPDB 0 0", Reply::OK),
            ("SWAPDB 0 1", Reply::OK),
            ("EXPIRE k 100 xx", Reply::Int(0)),
            ("EXPIRE k 100 nx", Reply::Int(1)),
            ("TTL k", Reply::Int(100)),
            ("PERSIST k", Reply::Int(1)),
            ("UNLINK k q none", Reply::Int(2)),
            ("SORT none", Reply::Array(Vec::new())),
            ("SORT none STORE q", Reply::Int(0)),
            ("FLUSHDB ASYNC", Reply::OK),
            ("FLUSHALL", Reply::OK),
        ] {
            assert_eq!(call(&db, line), reply, "{line}");
        }
    }
}
