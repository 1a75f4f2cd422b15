//! ZPOPMIN, ZPOPMAX, ZMPOP.

use bytes::Bytes;

use super::integer_from;
use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::Reply;
use crate::error::Result;
use crate::txn::Tx;
use crate::types::zset::End;

pub(crate) fn zpopmin(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, count) = key_and_count(&mut args)?;
    Ok(popped(tx.zpopmin(key, count.unwrap_or(1))?, count))
}

pub(crate) fn zpopmax(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, count) = key_and_count(&mut args)?;
    Ok(popped(tx.zpopmax(key, count.unwrap_or(1))?, count))
}

/// The reply of a pop. Without a count it is a member and its score, not a list of one pair.
fn popped(members: Vec<(Bytes, f64)>, count: Option<u64>) -> Reply {
    if count.is_some() {
        return super::members(members, true);
    }
    let pair = |(member, score)| [Reply::Bulk(member), Reply::Double(score)];
    Reply::Array(members.into_iter().flat_map(pair).collect())
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

pub(crate) fn zmpop(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let number = integer_from(args.bytes()?, 1, "ERR numkeys should be greater than 0")?;
    let keys = args.take(usize::try_from(number).unwrap_or(usize::MAX))?;
    let end = args.choice(&[("MIN", End::Min), ("MAX", End::Max)])?;
    let mut count = 1;
    if args.len() > 1 && args.take_word("COUNT") {
        count = integer_from(args.bytes()?, 1, "ERR count should be greater than 0")?;
    }
    args.end()?;
    let Some((key, popped)) = tx.zmpop(keys, end, count)? else { return Ok(Reply::NilArray) };
    let pair = |(member, score)| Reply::Array(vec![Reply::Bulk(member), Reply::Double(score)]);
    let popped = popped.into_iter().map(pair).collect();
    Ok(Reply::Array(vec![Reply::Bulk(key), Reply::Array(popped)]))
}
