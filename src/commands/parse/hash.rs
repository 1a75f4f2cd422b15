//! Parsers of hash commands.

use crate::commands::args::{Args, syntax_error};
use crate::commands::sink::ReplySink;
use crate::commands::write_to::{InPairs, WriteTo};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::Tx;
use crate::types::number::{out_of_range, parse_integer};

pub(crate) fn hgetdel(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let invalid = |text: &str| Error::new(ErrorKind::Invalid, text);
    let key = args.bytes()?;
    // Redis checks the key's type before the grammar.
    tx.hlen(key)?;
    if !args.take_word("FIELDS") {
        let text = "ERR Mandatory argument FIELDS is missing or not at the right position";
        return Err(invalid(text));
    }
    let count = parse_integer(args.bytes()?).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| invalid("ERR Number of fields must be a positive integer"))?;
    if usize::try_from(count) != Ok(args.len()) {
        let text = "ERR The `numfields` parameter must match the number of arguments";
        return Err(invalid(text));
    }
    tx.hgetdel(key, args.all())?.write_to(sink);
    Ok(())
}

pub(crate) fn hrandfield(
    tx: &mut Tx<'_>,
    mut args: Args<'_>,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    let key = args.bytes()?;
    if args.is_empty() {
        tx.hrandfield(key)?.write_to(sink);
        return Ok(());
    }
    let count = args.signed_count()?;
    if args.is_empty() {
        tx.hrandfield_count(key, count)?.write_to(sink);
        return Ok(());
    }
    if !args.take_word("WITHVALUES") || !args.is_empty() {
        return Err(syntax_error());
    }
    if count.unsigned_abs() > (i64::MAX / 2).unsigned_abs() {
        return Err(out_of_range(""));
    }
    InPairs(tx.hrandfield_withvalues(key, count)?).write_to(sink);
    Ok(())
}

#[cfg(test)]
mod tests;
