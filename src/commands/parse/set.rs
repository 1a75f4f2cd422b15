//! Parsers of set commands.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::{IntoReply, Reply};
use crate::commands::sink::ReplySink;
use crate::commands::write_to::{Members, WriteTo};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::{out_of_range, parse_integer};

pub(crate) fn sintercard(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let invalid = |text: &str| Error::new(ErrorKind::Invalid, text);
    let count = parse_integer(args.bytes()?).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| invalid("ERR numkeys should be greater than 0"))?;
    let keys = usize::try_from(count).ok().and_then(|count| args.take(count).ok());
    let keys =
        keys.ok_or_else(|| invalid("ERR Number of keys can't be greater than number of args"))?;
    let mut limit = 0;
    while !args.is_empty() {
        if !args.take_word("LIMIT") {
            return Err(syntax_error());
        }
        let number = parse_integer(args.bytes()?).ok().and_then(|limit| u64::try_from(limit).ok());
        limit = number.ok_or_else(|| invalid("ERR LIMIT can't be negative"))?;
    }
    Ok(tx.sintercard(keys, limit)?.into_reply())
}

pub(crate) fn spop(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let key = args.bytes()?;
    if args.is_empty() {
        tx.spop(key)?.write_to(sink);
        return Ok(());
    }
    if args.len() > 1 {
        return Err(syntax_error());
    }
    let count = parse_integer(args.bytes()?).ok().and_then(|count| u64::try_from(count).ok());
    let count = count.ok_or_else(|| out_of_range(", must be positive"))?;
    Members(tx.spop_count(key, count)?).write_to(sink);
    Ok(())
}

pub(crate) fn srandmember(
    tx: &mut Tx<'_>,
    mut args: Args<'_>,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    let key = args.bytes()?;
    if args.is_empty() {
        tx.srandmember(key)?.write_to(sink);
        return Ok(());
    }
    if args.len() > 1 {
        return Err(syntax_error());
    }
    let count = args.signed_count()?;
    tx.srandmember_count(key, count)?.write_to(sink);
    Ok(())
}

#[cfg(test)]
mod tests;
