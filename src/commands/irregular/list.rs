//! Parsers of list commands.

use bytes::Bytes;

use crate::commands::args::{Args, syntax_error, wrong_number};
use crate::commands::reply::{IntoReply, Reply};
use crate::error::{Error, ErrorKind, Result};
use crate::types::list::{Place, Search, Side, check_count, check_keys, check_rank, no_such_key};
use crate::types::number::parse_integer;
use crate::types::txn::Tx;

/// `LEFT` or `RIGHT`.
fn side(args: &mut Args<'_>) -> Result<Side> {
    match () {
        () if args.take_word("LEFT") => Ok(Side::Left),
        () if args.take_word("RIGHT") => Ok(Side::Right),
        () => Err(syntax_error()),
    }
}

/// A number that is not negative; `None` if the text is anything else.
fn unsigned(text: &[u8]) -> Option<u64> {
    parse_integer(text).ok().and_then(|number| u64::try_from(number).ok())
}

/// The next argument as a number that is not negative; if it is anything else, this error.
fn unsigned_or(args: &mut Args<'_>, message: &str) -> Result<u64> {
    unsigned(args.bytes()?).ok_or_else(|| Error::new(ErrorKind::OutOfRange, message))
}

/// The list is looked up before the index is read: which error, or nil, comes first.
pub(crate) fn lindex(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, index) = (args.bytes()?, args.integer());
    match index {
        Ok(index) => Ok(tx.lindex(key, index)?.into_reply()),
        Err(_) if tx.llen(key)? == 0 => Ok(Reply::Nil),
        Err(error) => Err(error),
    }
}

/// The list is looked up before the index is read, as in [`lindex`].
pub(crate) fn lset(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, index, element) = (args.bytes()?, args.integer(), args.bytes()?);
    match index {
        Ok(index) => Ok(tx.lset(key, index, element)?.into_reply()),
        Err(_) if tx.llen(key)? == 0 => Err(no_such_key()),
        Err(error) => Err(error),
    }
}

pub(crate) fn linsert(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    let place = match () {
        () if args.take_word("BEFORE") => Place::Before,
        () if args.take_word("AFTER") => Place::After,
        () => return Err(syntax_error()),
    };
    let (pivot, element) = (args.bytes()?, args.bytes()?);
    Ok(tx.linsert(key, place, pivot, element)?.into_reply())
}

pub(crate) fn lmove(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (source, destination) = (args.bytes()?, args.bytes()?);
    let (from, to) = (side(&mut args)?, side(&mut args)?);
    Ok(tx.lmove(source, destination, from, to)?.into_reply())
}

pub(crate) fn lmpop(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let keys = unsigned(args.bytes()?).unwrap_or(0);
    check_keys(keys)?;
    let keys = args.take(usize::try_from(keys).unwrap_or(usize::MAX))?;
    let from = side(&mut args)?;
    let mut count = 1;
    if args.len() > 1 && args.take_word("COUNT") {
        count = unsigned(args.bytes()?).unwrap_or(0);
        check_count(count)?;
    }
    args.end()?;
    Ok(tx.lmpop(keys, from, count)?.map_or(Reply::NilArray, |(key, elements)| {
        Reply::Array(vec![Reply::Bulk(key), Reply::list(elements)])
    }))
}

pub(crate) fn lpop(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    match pop_arguments("LPOP", args)? {
        (key, None) => Ok(tx.lpop(key)?.into_reply()),
        (key, Some(count)) => Ok(popped(tx.lpop_many(key, count)?)),
    }
}

pub(crate) fn rpop(tx: &mut Tx<'_>, args: Args<'_>) -> Result<Reply> {
    match pop_arguments("RPOP", args)? {
        (key, None) => Ok(tx.rpop(key)?.into_reply()),
        (key, Some(count)) => Ok(popped(tx.rpop_many(key, count)?)),
    }
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

fn popped(elements: Option<Vec<Bytes>>) -> Reply {
    elements.map_or(Reply::NilArray, Reply::list)
}

/// One position or nil; with COUNT an array, however many there are.
pub(crate) fn lpos(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
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
    if counted {
        return Ok(Reply::Array(found.into_iter().map(Reply::Int).collect()));
    }
    Ok(found.first().copied().into_reply())
}
