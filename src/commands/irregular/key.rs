//! Parsers of the key space.

use crate::commands::args::Args;
use crate::commands::reply::Reply;
use crate::error::Result;
use crate::types::Type;
use crate::types::txn::Tx;

pub(crate) fn r#type(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    Ok(Reply::Status(match tx.kind(args.bytes()?)? {
        None => "none",
        Some(Type::String) => "string",
        Some(Type::Hash) => "hash",
        Some(Type::List) => "list",
        Some(Type::Set) => "set",
        Some(Type::ZSet) => "zset",
    }))
}
