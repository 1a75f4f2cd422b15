//! ZPOPMIN, ZPOPMAX, ZMPOP.

use bytes::Bytes;

use super::integer_from;
use crate::commands::args::{Args, syntax_error};
use crate::commands::sink::{Head, ReplySink};
use crate::commands::write_to::{InPairs, WriteTo};
use crate::error::Result;
use crate::txn::Tx;
use crate::types::zset::End;

pub(crate) fn zpopmin(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let (key, count) = key_and_count(&mut args)?;
    write_popped(tx.zpopmin(key, count.unwrap_or(1))?, count, sink);
    Ok(())
}

pub(crate) fn zpopmax(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let (key, count) = key_and_count(&mut args)?;
    write_popped(tx.zpopmax(key, count.unwrap_or(1))?, count, sink);
    Ok(())
}

/// Writes the reply of a pop. Without a count it is a member and its score, not a list of one pair.
fn write_popped(members: Vec<(Bytes, f64)>, count: Option<u64>, sink: &mut dyn ReplySink) {
    if count.is_some() {
        return InPairs(members).write_to(sink);
    }
    sink.head(Head::Array, 2 * members.len());
    for (member, score) in members {
        sink.shared_bulk(member);
        sink.double(score);
    }
}

fn key_and_count<'a>(args: &mut Args<'a>) -> Result<(&'a [u8], Option<u64>)> {
    let key = args.bytes()?;
    let count = args.peek();
    if args.len() > 1 {
        return Err(syntax_error());
    }
    let error = "ERR value is out of range, must be positive";
    Ok((key, count.map(|count| integer_from(count, 0, error)).transpose()?))
}

pub(crate) fn zmpop(tx: &mut Tx<'_>, mut args: Args<'_>, sink: &mut dyn ReplySink) -> Result<()> {
    let number = integer_from(args.bytes()?, 1, "ERR numkeys should be greater than 0")?;
    let keys = args.take(usize::try_from(number).unwrap_or(usize::MAX))?;
    let end = args.choice(&[("MIN", End::Min), ("MAX", End::Max)])?;
    let mut count = 1;
    if args.len() > 1 && args.take_word("COUNT") {
        count = integer_from(args.bytes()?, 1, "ERR count should be greater than 0")?;
    }
    args.end()?;
    let Some((key, popped)) = tx.zmpop(keys, end, count)? else {
        sink.nil_array();
        return Ok(());
    };
    sink.head(Head::Array, 2);
    sink.shared_bulk(key);
    sink.head(Head::Array, popped.len());
    for (member, score) in popped {
        sink.head(Head::Array, 2);
        sink.shared_bulk(member);
        sink.double(score);
    }
    Ok(())
}
