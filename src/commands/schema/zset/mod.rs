//! Sorted sets: the commands in the order of the header and the documentation.
//!
//! - `members`: commands that name members, or take them from an end or at random;
//! - `ranges`: ranges by rank, score or bytes, and ranks;
//! - `algebra`: unions, intersections and differences.

mod algebra;
mod members;
mod ranges;

use super::{parameters, spec};
use parameters::{flags, int_out, reply_out};
use spec::Arg::{Counted, Key, Member, Optional, Word};
use spec::{Arg, Command, Group, Output, Parameter};

/// Sorted sets.
pub(crate) const GROUP: Group = Group { module: "zset", title: "Sorted sets", commands: COMMANDS };

const ZSET: Arg = Key("key");
const ZSETS: Arg = Counted("numkeys", &[ZSET]);
const MEMBER: Arg = Member("member");
const TO: Arg = Key("destination");
const WITHSCORES: Arg = Optional(&[Word("WITHSCORES")]);

const SCORES_FLAG: Parameter = flags(&["WITHSCORES"]);
const STORED: Output = int_out("length", "the number of members stored");
const SHOWN: Output = reply_out("an array of members, or of members and scores in turn");

const COMMANDS: &[Command] = &[
    members::ZADD,
    members::ZCARD,
    ranges::ZCOUNT,
    algebra::ZDIFF,
    algebra::ZDIFFSTORE,
    members::ZINCRBY,
    algebra::ZINTER,
    algebra::ZINTERCARD,
    algebra::ZINTERSTORE,
    ranges::ZLEXCOUNT,
    members::ZMPOP,
    members::ZMSCORE,
    members::ZPOPMAX,
    members::ZPOPMIN,
    members::ZRANDMEMBER,
    ranges::ZRANGE,
    ranges::ZRANGEBYLEX,
    ranges::ZRANGEBYSCORE,
    ranges::ZRANGESTORE,
    ranges::ZRANK,
    members::ZREM,
    ranges::ZREMRANGEBYLEX,
    ranges::ZREMRANGEBYRANK,
    ranges::ZREMRANGEBYSCORE,
    ranges::ZREVRANGE,
    ranges::ZREVRANGEBYLEX,
    ranges::ZREVRANGEBYSCORE,
    ranges::ZREVRANK,
    members::ZSCORE,
    algebra::ZUNION,
    algebra::ZUNIONSTORE,
];
