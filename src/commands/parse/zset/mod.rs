//! Parsers of sorted-set commands.

mod add;
mod combine;
mod pop;
mod random;
mod range;

pub(crate) use add::{zadd, zincrby};
pub(crate) use combine::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
pub(crate) use pop::{zmpop, zpopmax, zpopmin};
pub(crate) use random::zrandmember;
pub(crate) use range::{
    zcount, zlexcount, zrange, zrangebylex, zrangebyscore, zrangestore, zremrangebylex,
    zremrangebyscore, zrevrange, zrevrangebylex, zrevrangebyscore,
};

use bytes::Bytes;

use crate::commands::sink::{Head, ReplySink};
use crate::commands::write_to::{InPairs, WriteTo};
use crate::error::{Error, ErrorKind, Result};
use crate::types::number::parse_integer;

/// Writes members, each with its score if `with_scores`.
fn write_members(members: Vec<(Bytes, f64)>, with_scores: bool, sink: &mut dyn ReplySink) {
    if with_scores {
        return InPairs(members).write_to(sink);
    }
    sink.head(Head::Array, members.len());
    for (member, _) in members {
        sink.shared_bulk(member);
    }
}

/// Parses an integer of at least `least`. Any other text is an error with the text `error`.
fn integer_from(text: &[u8], least: u64, error: &str) -> Result<u64> {
    let number = parse_integer(text).ok().and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|number| *number >= least);
    number.ok_or_else(|| Error::new(ErrorKind::OutOfRange, error))
}
