//! ZRANDMEMBER.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::types::txn::Tx;

fn out_of_range(detail: &str) -> Error {
    Error::new(ErrorKind::OutOfRange, format!("ERR value is out of range{detail}"))
}

pub(crate) fn zrandmember(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    if args.is_empty() {
        return Ok(Reply::bulk(tx.zrandmember(key)?));
    }
    let count = args.integer()?;
    if count == i64::MIN {
        let (least, most) = (-i64::MAX, i64::MAX);
        return Err(out_of_range(&format!(", value must between {least} and {most}")));
    }
    let with_scores = args.take_word("WITHSCORES");
    if !args.is_empty() {
        return Err(syntax_error());
    }
    // The reply would have twice as many.
    if with_scores && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(out_of_range(""));
    }
    let members = tx.zrandmember_count(key, count)?;
    Ok(super::members(members, with_scores))
}
