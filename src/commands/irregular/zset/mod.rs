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
    zcount, zlexcount, zrange, zrange_into, zrangebylex, zrangebylex_into, zrangebyscore,
    zrangebyscore_into, zrangestore, zremrangebylex, zremrangebyscore, zrevrange, zrevrange_into,
    zrevrangebylex, zrevrangebylex_into, zrevrangebyscore, zrevrangebyscore_into,
};

use bytes::Bytes;

use crate::commands::reply::{IntoReply, Reply};
use crate::error::{Error, ErrorKind, Result};
use crate::types::number::parse_integer;

/// Members, each followed by its score if asked.
fn members(members: Vec<(Bytes, f64)>, with_scores: bool) -> Reply {
    if !with_scores {
        return Reply::list(members.into_iter().map(|(member, _)| member));
    }
    members.into_reply()
}

/// An integer of at least `least`; anything else is an error with this text.
fn integer_from(text: &[u8], least: u64, error: &str) -> Result<u64> {
    let number = parse_integer(text).ok().and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|number| *number >= least);
    number.ok_or_else(|| Error::new(ErrorKind::OutOfRange, error))
}
