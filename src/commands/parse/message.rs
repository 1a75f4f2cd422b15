//! The parser of PUBSUB: one for each of its subcommands.

use bytes::Bytes;

use crate::commands::args::{Args, quoted, wrong_number};
use crate::commands::reply::Reply;
use crate::error::{Error, ErrorKind, Result};
use crate::messages::Kind;
use crate::txn::Tx;

const HELP: [&str; 14] = [
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
    "HELP",
    "    Print this help.",
];

/// Runs PUBSUB.
pub(crate) fn pubsub(tx: &mut Tx<'_>, mut args: Args<'_>) -> Result<Reply> {
    let word = args.bytes()?;
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let hub = tx.store().hub();
    if is("CHANNELS") || is("SHARDCHANNELS") {
        let (kind, name) = match is("CHANNELS") {
            true => (Kind::Channel, "pubsub|channels"),
            false => (Kind::Shard, "pubsub|shardchannels"),
        };
        if args.len() > 1 {
            return Err(wrong_number(name));
        }
        let names = hub.names(kind, args.peek()).into_iter();
        return Ok(Reply::list(names.map(|name| Bytes::copy_from_slice(&name))));
    }
    if is("NUMSUB") || is("SHARDNUMSUB") {
        let kind = if is("NUMSUB") { Kind::Channel } else { Kind::Shard };
        let counted = |name: &&[u8]| {
            let count = i64::try_from(hub.subscribers(kind, name)).unwrap_or(i64::MAX);
            [Reply::Bulk(Bytes::copy_from_slice(name)), Reply::Int(count)]
        };
        return Ok(Reply::Array(args.all().iter().flat_map(counted).collect()));
    }
    if is("NUMPAT") {
        return match args.is_empty() {
            true => Ok(Reply::Int(i64::try_from(hub.len(Kind::Pattern)).unwrap_or(i64::MAX))),
            false => Err(wrong_number("pubsub|numpat")),
        };
    }
    if is("HELP") {
        return match args.is_empty() {
            true => Ok(Reply::Array(HELP.map(Reply::Status).to_vec())),
            false => Err(wrong_number("pubsub|help")),
        };
    }
    let text = format!("ERR unknown subcommand '{}'. Try PUBSUB HELP.", quoted(word));
    Err(Error::new(ErrorKind::Invalid, text))
}
