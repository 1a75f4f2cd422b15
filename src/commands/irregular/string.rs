//! Parsers of string commands.

use crate::commands::args::Args;
use crate::commands::reply::Reply;
use crate::error::Result;
use crate::types::txn::Tx;

pub(crate) fn set(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (key, value) = (args.bytes()?, args.bytes()?);
    args.end()?;
    tx.set(key, value)?;
    Ok(Reply::OK)
}
