//! Parsers of list commands.

use bytes::Bytes;

use crate::commands::args::{Args, syntax_error, wrong_number};
use crate::commands::reply::{IntoReply, Reply};
use crate::commands::sink::{Head, ReplySink};
use crate::commands::write_to::WriteTo;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::list::{Search, Side, check_count, check_keys, check_rank, no_such_key};
use crate::types::number::parse_integer;

const ENDS: [(&str, Side); 2] = [("LEFT", Side::Left), ("RIGHT", Side::Right)];

/// Parses a number that is not negative; `None` for any other text.
fn unsigned(text: &[u8]) -> Option<u64> {
    parse_integer(text).ok().and_then(|number| u64::try_from(number).ok())
}

/// Takes the next argument as a number that is not negative. Any other text is an error with
/// `message`.
fn unsigned_or(args: &mut Args<'_>, message: &str) -> Result<u64> {
    unsigned(args.bytes()?).ok_or_else(|| Error::new(ErrorKind::OutOfRange, message))
}

/// Runs LINDEX. The list is looked up before the index is read, which decides the error or nil.
pub(crate) fn lindex(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, index) = (args.bytes()?, args.integer());
    match index {
        Ok(index) => Ok(tx.lindex(key, index)?.into_reply()),
        Err(_) if tx.llen(key)? == 0 => Ok(Reply::Nil),
        Err(error) => Err(error),
    }
}

/// Runs LSET. The list is looked up before the index is read, which decides the error.
pub(crate) fn lset(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, index, element) = (args.bytes()?, args.integer(), args.bytes()?);
    match index {
        Ok(index) => Ok(tx.lset(key, index, element)?.into_reply()),
        Err(_) if tx.llen(key)? == 0 => Err(no_such_key()),
        Err(error) => Err(error),
    }
}

pub(crate) fn lmpop(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let keys = unsigned(args.bytes()?).unwrap_or(0);
    check_keys(keys)?;
    let keys = args.take(usize::try_from(keys).unwrap_or(usize::MAX))?;
    let from = args.choice(&ENDS)?;
    let mut count = 1;
    if args.len() > 1 && args.take_word("COUNT") {
        count = unsigned(args.bytes()?).unwrap_or(0);
        check_count(count)?;
    }
    args.end()?;
    match tx.lmpop(keys, from, count)? {
        Some((key, elements)) => {
            sink.head(Head::Array, 2);
            key.write_to(sink);
            elements.write_to(sink);
        }
        None => sink.nil_array(),
    }
    Ok(())
}

pub(crate) fn lpop(tx: &mut Tx<'_>, args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    match pop_arguments("LPOP", args)? {
        (key, None) => tx.lpop(key)?.write_to(sink),
        (key, Some(count)) => popped(tx.lpop_many(key, count)?, sink),
    }
    Ok(())
}

pub(crate) fn rpop(tx: &mut Tx<'_>, args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    match pop_arguments("RPOP", args)? {
        (key, None) => tx.rpop(key)?.write_to(sink),
        (key, Some(count)) => popped(tx.rpop_many(key, count)?, sink),
    }
    Ok(())
}

/// The key, and the count if there is one.
fn pop_arguments<'a>(name: &str, mut args: Args<'a>) -> Result<(&'a [u8], Option<u64>)> {
    let key = args.bytes()?;
    if args.is_empty() {
        return Ok((key, None));
    }
    if args.len() > 1 {
        return Err(wrong_number(name));
    }
    let count = unsigned_or(&mut args, "ERR value is out of range, must be positive")?;
    Ok((key, Some(count)))
}

fn popped(elements: Option<Vec<Bytes>>, sink: &mut dyn ReplySink) {
    match elements {
        Some(elements) => elements.write_to(sink),
        None => sink.nil_array(),
    }
}

/// Runs LPOS. The reply is one position or nil; with COUNT it is always an array.
pub(crate) fn lpos(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let (key, element) = (args.bytes()?, args.bytes()?);
    let (mut search, mut counted) = (Search::default(), false);
    while !args.is_empty() {
        if args.take_word("RANK") {
            search.rank = args.integer()?;
            check_rank(search.rank)?;
        } else if args.take_word("COUNT") {
            search.count = unsigned_or(&mut args, "ERR COUNT can't be negative")?;
            counted = true;
        } else if args.take_word("MAXLEN") {
            search.maxlen = unsigned_or(&mut args, "ERR MAXLEN can't be negative")?;
        } else {
            return Err(syntax_error());
        }
    }
    let found = tx.lpos(key, element, search)?;
    match counted {
        true => found.write_to(sink),
        false => found.first().copied().write_to(sink),
    }
    Ok(())
}

/// Expected replies come from redis-server 7.0.15.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::txn::Db;

    const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
    const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
    const RANGE: &str = "ERR value is out of range, must be positive";
    const SYNTAX: &str = "ERR syntax error";

    fn open() -> Db {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.set(b"str", b"x").unwrap();
        db.rpush(b"l", &[b"a", b"b", b"c", b"d", b"a", b"b", b"c", b"a"]).unwrap();
        db
    }

    fn run(db: &Db, line: &str) -> Reply {
        let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        db.command(&argv).unwrap()
    }

    fn bulk(text: &'static str) -> Reply {
        Reply::Bulk(Bytes::from_static(text.as_bytes()))
    }

    fn list(elements: &[&'static str]) -> Reply {
        Reply::Array(elements.iter().map(|element| bulk(element)).collect())
    }

    #[test]
    fn the_error_that_comes_first_in_redis_comes_first() {
        for (line, error) in [
            ("LINDEX str x", WRONG_TYPE),
            ("LINDEX l x", NOT_INTEGER),
            ("LSET str x a", WRONG_TYPE),
            ("LSET none x a", "ERR no such key"),
            ("LSET l x a", NOT_INTEGER),
            ("LSET l 8 a", "ERR index out of range"),
            ("LINSERT str foo a b", SYNTAX),
            ("LINSERT str before a b", WRONG_TYPE),
            ("LRANGE str x 0", NOT_INTEGER),
            ("LRANGE str 0 0", WRONG_TYPE),
            ("LREM none x a", NOT_INTEGER),
            ("LTRIM str 0 x", NOT_INTEGER),
            ("LMOVE str d left foo", SYNTAX),
            ("LMOVE none none up up", SYNTAX),
            ("LMOVE l str left right", WRONG_TYPE),
            ("RPOPLPUSH str none", WRONG_TYPE),
            ("LPUSH str a", WRONG_TYPE),
            ("RPUSHX str a", WRONG_TYPE),
            ("LLEN str", WRONG_TYPE),
            ("LPUSH l", "ERR wrong number of arguments for 'lpush' command"),
        ] {
            assert_eq!(run(&open(), line), Reply::Error(error.into()), "{line}");
        }
        assert_eq!(run(&open(), "LINDEX none x"), Reply::Nil);
        assert_eq!(run(&open(), "LINDEX l -8"), bulk("a"));
        assert_eq!(run(&open(), "LMOVE none str left right"), Reply::Nil);
        assert_eq!(run(&open(), "RPOPLPUSH none str"), Reply::Nil);
        assert_eq!(run(&open(), "LSET l -1 z"), Reply::OK);
        assert_eq!(run(&open(), "LTRIM none 0 0"), Reply::OK);
    }

    #[test]
    fn pops_reply_nil_an_array_or_no_array() {
        for (line, error) in [
            ("LPOP str x", RANGE),
            ("LPOP none -1", RANGE),
            ("RPOP l 9223372036854775808", RANGE),
            ("LPOP str 0", WRONG_TYPE),
            ("RPOP str", WRONG_TYPE),
            ("LPOP l 1 2", "ERR wrong number of arguments for 'lpop' command"),
            ("RPOP str 1 2", "ERR wrong number of arguments for 'rpop' command"),
        ] {
            assert_eq!(run(&open(), line), Reply::Error(error.into()), "{line}");
        }
        let db = open();
        assert_eq!(run(&db, "LPOP none"), Reply::Nil);
        assert_eq!(run(&db, "LPOP none 0"), Reply::NilArray);
        assert_eq!(run(&db, "RPOP none 2"), Reply::NilArray);
        assert_eq!(run(&db, "LPOP l 0"), list(&[]));
        assert_eq!(run(&db, "LPOP l"), bulk("a"));
        assert_eq!(run(&db, "LPOP l 1"), list(&["b"]));
        assert_eq!(run(&db, "RPOP l 2"), list(&["a", "c"]));
        assert_eq!(run(&db, "LPOP l 9223372036854775807"), list(&["c", "d", "a", "b"]));
        assert_eq!(run(&db, "EXISTS l"), Reply::Int(0));
    }

    #[test]
    fn lmpop_reads_its_arguments_before_its_keys() {
        let numkeys = "ERR numkeys should be greater than 0";
        let count = "ERR count should be greater than 0";
        for (line, error) in [
            ("LMPOP x l left", numkeys),
            ("LMPOP 0 l left", numkeys),
            ("LMPOP -1 l left", numkeys),
            ("LMPOP 2 l left", SYNTAX),
            ("LMPOP 9223372036854775807 l left", SYNTAX),
            ("LMPOP 1 str up", SYNTAX),
            ("LMPOP 1 str left count 0", count),
            ("LMPOP 1 none left count x", count),
            ("LMPOP 1 l left count 0 x", count),
            ("LMPOP 1 l left count", SYNTAX),
            ("LMPOP 1 l left count 2 count 0", SYNTAX),
            ("LMPOP 1 l left foo 1", SYNTAX),
            ("LMPOP 2 none str left", WRONG_TYPE),
            ("LMPOP 2 str l left", WRONG_TYPE),
            ("LMPOP 1 l", "ERR wrong number of arguments for 'lmpop' command"),
        ] {
            assert_eq!(run(&open(), line), Reply::Error(error.into()), "{line}");
        }
        let db = open();
        let popped = |elements: &[&'static str]| Reply::Array(vec![bulk("l"), list(elements)]);
        assert_eq!(run(&db, "LMPOP 2 none none left"), Reply::NilArray);
        assert_eq!(run(&db, "LMPOP 2 l str LEFT"), popped(&["a"]));
        assert_eq!(run(&db, "LMPOP 2 none l right COUNT 2"), popped(&["a", "c"]));
        assert_eq!(run(&db, "LMPOP 1 l left count 99"), popped(&["b", "c", "d", "a", "b"]));
    }

    #[test]
    fn lpos_replies_a_number_or_nil_and_with_count_an_array() {
        let rank = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                    second ... or use negative to start from the end of the list";
        for (line, error) in [
            ("LPOS str a", WRONG_TYPE),
            ("LPOS str a rank 0", rank),
            ("LPOS none a rank 0 count -1", rank),
            ("LPOS none a count -1 rank 0", "ERR COUNT can't be negative"),
            ("LPOS l a count x", "ERR COUNT can't be negative"),
            ("LPOS l a maxlen -1 rank 0", "ERR MAXLEN can't be negative"),
            ("LPOS l a rank x", NOT_INTEGER),
            ("LPOS l a rank", SYNTAX),
            ("LPOS l a foo 1", SYNTAX),
        ] {
            assert_eq!(run(&open(), line), Reply::Error(error.into()), "{line}");
        }
        let db = open();
        let numbers = |found: &[i64]| Reply::Array(found.iter().copied().map(Reply::Int).collect());
        assert_eq!(run(&db, "LPOS l zz"), Reply::Nil);
        assert_eq!(run(&db, "LPOS none a"), Reply::Nil);
        assert_eq!(run(&db, "LPOS none a count 0"), numbers(&[]));
        assert_eq!(run(&db, "LPOS l zz count 1"), numbers(&[]));
        assert_eq!(run(&db, "LPOS l a rank -2"), Reply::Int(4));
        assert_eq!(run(&db, "LPOS l a rank 2 maxlen 4"), Reply::Nil);
        assert_eq!(run(&db, "LPOS l a COUNT 1 MAXLEN 3 RANK 1"), numbers(&[0]));
        assert_eq!(run(&db, "LPOS l a rank -1 count 0 maxlen 4"), numbers(&[7, 4]));
        assert_eq!(run(&db, "LPOS l a rank -9223372036854775808"), Reply::Int(7));
        assert_eq!(run(&db, "LPOS l a rank -9223372036854775808 count 1"), numbers(&[7, 4, 0]));
    }
}
