//! The parser of ZRANDMEMBER: without a count it replies one member, with one an array.

use crate::commands::args::{Args, syntax_error};
use crate::commands::sink::ReplySink;
use crate::commands::write_to::WriteTo;
use crate::error::Result;
use crate::txn::Tx;
use crate::types::number::out_of_range;

pub(crate) fn zrandmember(
    tx: &mut Tx<'_>,
    mut args: Args<'_>,
    sink: &mut dyn ReplySink,
) -> Result<()> {
    let key = args.bytes()?;
    if args.is_empty() {
        tx.zrandmember(key)?.write_to(sink);
        return Ok(());
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
    super::write_members(tx.zrandmember_count(key, count)?, with_scores, sink);
    Ok(())
}
