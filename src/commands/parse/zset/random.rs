//! ZRANDMEMBER.

use crate::commands::args::{Args, syntax_error};
use crate::commands::reply::{IntoReply, Reply};
use crate::error::Result;
use crate::txn::Tx;
use crate::types::number::out_of_range;

pub(crate) fn zrandmember(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.bytes()?;
    if args.is_empty() {
        return Ok(tx.zrandmember(key)?.into_reply());
    }
    let count = args.signed_count()?;
    let with_scores = args.take_word("WITHSCORES");
    if !args.is_empty() {
        return Err(syntax_error());
    }
    // With scores the reply has twice as many elements.
    if with_scores && count.unsigned_abs() > (i64::MAX / 2).unsigned_abs() {
        return Err(out_of_range(""));
    }
    Ok(super::members(tx.zrandmember_count(key, count)?, with_scores))
}
