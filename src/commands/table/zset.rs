use super::spec::Access::{self, Read, Write};
use super::spec::Answer::{Int as Number, MaybeDouble, MaybeDoubles, MaybeInt};
use super::spec::Arg::{Bytes, Int, Key, Many};
use super::spec::Grammar::{self, Irregular, Regular};
use super::spec::Keys::{Counted, Range};
use super::spec::{Group, Keys, Row};

/// Sorted sets.
pub(crate) const GROUP: Group = Group { module: "zset", title: "Sorted sets", rows: ROWS };

/// A command on one key.
const fn on_key(
    name: &'static str,
    arity: isize,
    access: Access,
    grammar: Grammar,
    doc: &'static str,
) -> Row {
    Row::new(name, arity, access, Range(1, 1, 1), grammar, doc)
}

/// A command with a parser of its own.
const fn parsed(
    name: &'static str,
    arity: isize,
    access: Access,
    keys: Keys,
    syntax: &'static str,
    doc: &'static str,
) -> Row {
    Row::new(name, arity, access, keys, Irregular(syntax), doc)
}

const ONE: Keys = Range(1, 1, 1);
const MEMBER: &[super::spec::Arg] = &[Key, Bytes("member")];
const MEMBERS: &[super::spec::Arg] = &[Key, Many("member")];
const RANKS: &[super::spec::Arg] = &[Key, Int("start"), Int("stop")];

#[rustfmt::skip]
const ROWS: &[Row] = &[
    parsed("ZADD", -4, Write, ONE, "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member …]", "Gives members scores."),
    on_key("ZCARD", 2, Read, Regular(&[Key], Number), "Number of members."),
    parsed("ZCOUNT", 4, Read, ONE, "key min max", "How many members have scores within the bounds."),
    parsed("ZDIFF", -3, Read, Counted(1, 0), "numkeys key [key …] [WITHSCORES]", "The members of the first key that are in no other."),
    parsed("ZDIFFSTORE", -4, Write, Counted(2, 1), "destination numkeys key [key …]", "Stores the difference of keys."),
    parsed("ZINCRBY", 4, Write, ONE, "key increment member", "Adds to the score of a member."),
    parsed("ZINTER", -3, Read, Counted(1, 0), "numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]", "The members that are in all keys."),
    parsed("ZINTERCARD", -3, Read, Counted(1, 0), "numkeys key [key …] [LIMIT limit]", "How many members are in all keys."),
    parsed("ZINTERSTORE", -4, Write, Counted(2, 1), "destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]", "Stores the intersection of keys."),
    parsed("ZLEXCOUNT", 4, Read, ONE, "key min max", "How many members are within the bounds."),
    parsed("ZMPOP", -4, Write, Counted(1, 0), "numkeys key [key …] MIN | MAX [COUNT count]", "Removes and returns members from an end of the first key that exists."),
    on_key("ZMSCORE", -3, Read, Regular(MEMBERS, MaybeDoubles), "The scores of members."),
    parsed("ZPOPMAX", -2, Write, ONE, "key [count]", "Removes and returns the members with the greatest scores."),
    parsed("ZPOPMIN", -2, Write, ONE, "key [count]", "Removes and returns the members with the least scores."),
    parsed("ZRANDMEMBER", -2, Read, ONE, "key [count [WITHSCORES]]", "Members by chance."),
    parsed("ZRANGE", -4, Read, ONE, "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", "The members of a range.").streamed(),
    parsed("ZRANGEBYLEX", -4, Read, ONE, "key min max [LIMIT offset count]", "The members within the bounds.").streamed(),
    parsed("ZRANGEBYSCORE", -4, Read, ONE, "key min max [WITHSCORES] [LIMIT offset count]", "The members with scores within the bounds.").streamed(),
    parsed("ZRANGESTORE", -5, Write, Range(1, 2, 1), "destination source start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count]", "Stores a range."),
    on_key("ZRANK", 3, Read, Regular(MEMBER, MaybeInt), "How many members come before one."),
    on_key("ZREM", -3, Write, Regular(MEMBERS, Number), "Removes members."),
    parsed("ZREMRANGEBYLEX", 4, Write, ONE, "key min max", "Removes the members within the bounds."),
    on_key("ZREMRANGEBYRANK", 4, Write, Regular(RANKS, Number), "Removes the members from one position to another."),
    parsed("ZREMRANGEBYSCORE", 4, Write, ONE, "key min max", "Removes the members with scores within the bounds."),
    parsed("ZREVRANGE", -4, Read, ONE, "key start stop [WITHSCORES]", "The members of a range, the last one first.").streamed(),
    parsed("ZREVRANGEBYLEX", -4, Read, ONE, "key max min [LIMIT offset count]", "The members within the bounds, the last one first.").streamed(),
    parsed("ZREVRANGEBYSCORE", -4, Read, ONE, "key max min [WITHSCORES] [LIMIT offset count]", "The members with scores within the bounds, the last one first.").streamed(),
    on_key("ZREVRANK", 3, Read, Regular(MEMBER, MaybeInt), "How many members come after one."),
    on_key("ZSCORE", 3, Read, Regular(MEMBER, MaybeDouble), "The score of a member."),
    parsed("ZUNION", -3, Read, Counted(1, 0), "numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]", "The members that are in any key."),
    parsed("ZUNIONSTORE", -4, Write, Counted(2, 1), "destination numkeys key [key …] [WEIGHTS weight …] [AGGREGATE SUM | MIN | MAX]", "Stores the union of keys."),
];
