//! Ranges of a sorted set by rank, score or bytes, and the ranks of members.

use super::parameters::{
    COUNT, DESTINATION, KEY, OFFSET, flags, int, int_out, key, member_bound, reply_out, score_bound,
};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Bytes, Int, Key, OneOf, Optional, Word};
use super::spec::Words::{Flag, Of, Word as Literal};
use super::spec::{Access, Arg, Command, Function, Output, Parameter, ReplyKind};
use super::{MEMBER, SCORES_FLAG, SHOWN, STORED, TO, WITHSCORES, ZSET};

const MIN: Arg = Bytes("min");
const MAX: Arg = Bytes("max");
const REV: Arg = Optional(&[Word("REV")]);
const BY: Arg = Optional(&[OneOf(&[&[Word("BYSCORE")], &[Word("BYLEX")]])]);
const LIMIT: Arg = Optional(&[Word("LIMIT"), Int("offset"), Int("count")]);

const REMOVED: &str = "O(N), N being the number of members removed";
const RETURNED: &str = "O(N), N being the number of members returned";

const MIN_SCORE: Parameter = score_bound("min", "MINEX");
const MAX_SCORE: Parameter = score_bound("max", "MAXEX");
const MIN_MEMBER: Parameter = member_bound("min", "MINEX", "-");
const MAX_MEMBER: Parameter = member_bound("max", "MAXEX", "+");
const BOUND_FLAGS: Parameter = flags(&["MINEX", "MAXEX"]);

const ONLY_MEMBERS: Output = reply_out("an array of members");
const NAN_BOUND: &[&str] = &["NOT_FLOAT: a bound is NaN"];

/// A command that reads a range of one sorted set.
const fn range(
    name: &'static str,
    since: &'static str,
    args: &'static [Arg],
    complexity: &'static str,
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    Command::new(name, since, Read, args, ReplyKind::Varies, complexity, summary)
        .streams()
        .parsed_by_hand("the options are read before the bounds, whose meaning they decide")
        .functions(functions)
        .python_by_hand()
}

/// A command whose bounds are read by hand.
const fn bounded(
    name: &'static str,
    since: &'static str,
    access: Access,
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    let cost = if matches!(access, Read) { "O(1)" } else { REMOVED };
    Command::new(name, since, access, &[ZSET, MIN, MAX], ReplyKind::Int, cost, summary)
        .parsed_by_hand("a bound is a number or a member with a mark before it")
        .functions(functions)
        .python_by_hand()
}

pub(super) const ZCOUNT: Command = bounded(
    "ZCOUNT",
    "2.0.0",
    Read,
    "Counts the members with scores within the bounds.",
    &[Function::words(
        "zcount",
        &[KEY, MIN_SCORE, MAX_SCORE, BOUND_FLAGS],
        &[Of("key"), Of("min"), Of("max")],
        int_out("out", "the number"),
        "ZCOUNT: counts the members with scores from min to max. The flags MINEX and MAXEX \
         exclude the bounds themselves.",
    )
    .statuses(NAN_BOUND)],
);

pub(super) const ZLEXCOUNT: Command = bounded(
    "ZLEXCOUNT",
    "2.8.9",
    Read,
    "Counts the members within the bounds, if all have the same score.",
    &[Function::words(
        "zlexcount",
        &[KEY, MIN_MEMBER, MAX_MEMBER, BOUND_FLAGS],
        &[Of("key"), Of("min"), Of("max")],
        int_out("out", "the number"),
        "ZLEXCOUNT: counts the members from min to max, if all members have the same score. \
         The flags MINEX and MAXEX exclude the bounds themselves.",
    )],
);

pub(super) const ZRANGE: Command = range(
    "ZRANGE",
    "1.2.0",
    &[ZSET, Bytes("start"), Bytes("stop"), BY, REV, LIMIT, WITHSCORES],
    RETURNED,
    "Returns the members of a range by rank, score or bytes.",
    &[
        Function::words(
            "zrange",
            &[KEY, int("start"), int("stop")],
            &[Of("key"), Of("start"), Of("stop")],
            ONLY_MEMBERS,
            "ZRANGE: returns the members from rank start to rank stop, both included. Negative \
             ranks count from the end.",
        ),
        Function::words(
            "zrange_opt",
            &[KEY, int("start"), int("stop"), flags(&["REV", "WITHSCORES"])],
            &[Of("key"), Of("start"), Of("stop"), Of("flags")],
            SHOWN,
            "ZRANGE with options: returns the members from rank start to rank stop, both \
             included. Negative ranks count from the end. Flags REV, WITHSCORES.",
        ),
    ],
);

pub(super) const ZRANGEBYLEX: Command = range(
    "ZRANGEBYLEX",
    "2.8.9",
    &[ZSET, MIN, MAX, LIMIT],
    RETURNED,
    "Returns the members within the bounds, if all have the same score.",
    &[Function::odd(
        "zrangebylex",
        &[KEY, MIN_MEMBER, MAX_MEMBER, flags(&["MINEX", "MAXEX", "REV"]), OFFSET, COUNT],
        ONLY_MEMBERS,
        "ZRANGEBYLEX: returns the members from min to max, if all members have the same score. \
         The flags MINEX and MAXEX exclude the bounds themselves; with REV the greatest member \
         comes first. offset members are skipped and at most count returned; a negative count \
         returns all.",
    )],
);

pub(super) const ZRANGEBYSCORE: Command = range(
    "ZRANGEBYSCORE",
    "1.0.5",
    &[ZSET, MIN, MAX, WITHSCORES, LIMIT],
    RETURNED,
    "Returns the members with scores within the bounds.",
    &[Function::odd(
        "zrangebyscore",
        &[
            KEY,
            MIN_SCORE,
            MAX_SCORE,
            flags(&["MINEX", "MAXEX", "REV", "WITHSCORES"]),
            OFFSET,
            COUNT,
        ],
        SHOWN,
        "ZRANGEBYSCORE: returns the members with scores from min to max. The flags MINEX and \
         MAXEX exclude the bounds themselves; with REV the greatest score comes first. offset \
         members are skipped and at most count returned; a negative count returns all. Flag \
         WITHSCORES.",
    )
    .statuses(NAN_BOUND)],
);

pub(super) const ZRANGESTORE: Command = Command::new(
    "ZRANGESTORE",
    "6.2.0",
    Write,
    &[TO, Key("source"), MIN, MAX, BY, REV, LIMIT],
    ReplyKind::Int,
    "O(N), N being the number of members stored",
    "Stores the members of a range by rank, score or bytes.",
)
.parsed_by_hand("the options are read before the bounds, whose meaning they decide")
.functions(&[
    Function::words(
        "zrangestore",
        &[DESTINATION, key("source"), int("start"), int("stop"), flags(&["REV"])],
        &[Of("destination"), Of("source"), Of("start"), Of("stop"), Of("flags")],
        STORED,
        "ZRANGESTORE: stores at destination the members of source from rank start to rank \
         stop, both included. Flag REV.",
    ),
    Function::odd(
        "zrangestore_byscore",
        &[
            DESTINATION,
            key("source"),
            MIN_SCORE,
            MAX_SCORE,
            flags(&["MINEX", "MAXEX", "REV"]),
            OFFSET,
            COUNT,
        ],
        STORED,
        "ZRANGESTORE with BYSCORE: stores at destination the members of source with scores \
         from min to max. The flags MINEX and MAXEX exclude the bounds themselves; REV starts \
         at the greatest score. offset members are skipped and at most count stored; a \
         negative count stores all.",
    )
    .statuses(NAN_BOUND),
    Function::odd(
        "zrangestore_bylex",
        &[
            DESTINATION,
            key("source"),
            MIN_MEMBER,
            MAX_MEMBER,
            flags(&["MINEX", "MAXEX", "REV"]),
            OFFSET,
            COUNT,
        ],
        STORED,
        "ZRANGESTORE with BYLEX: stores at destination the members of source from min to max, \
         if all have the same score. The flags MINEX and MAXEX exclude the bounds themselves; \
         REV starts at the greatest member. offset members are skipped and at most count \
         stored; a negative count stores all.",
    ),
])
.python_by_hand();

pub(super) const ZRANK: Command = Command::new(
    "ZRANK",
    "2.0.0",
    Read,
    &[ZSET, MEMBER],
    ReplyKind::MaybeInt,
    "O(1)",
    "Returns the rank of a member: how many members precede it.",
)
.output("out", "the rank")
.python_by_hand();

pub(super) const ZREMRANGEBYLEX: Command = bounded(
    "ZREMRANGEBYLEX",
    "2.8.9",
    Write,
    "Removes the members within the bounds, if all have the same score.",
    &[Function::words(
        "zremrangebylex",
        &[KEY, MIN_MEMBER, MAX_MEMBER, BOUND_FLAGS],
        &[Of("key"), Of("min"), Of("max")],
        int_out("removed", "the number of members removed"),
        "ZREMRANGEBYLEX: removes the members from min to max, if all members have the same \
         score. The flags MINEX and MAXEX exclude the bounds themselves.",
    )],
);

pub(super) const ZREMRANGEBYRANK: Command = Command::new(
    "ZREMRANGEBYRANK",
    "2.0.0",
    Write,
    &[ZSET, Int("start"), Int("stop")],
    ReplyKind::Int,
    REMOVED,
    "Removes the members from rank start to rank stop, both included.",
)
.output("removed", "the number of members removed")
.python("zremrangebyrank", &[("name", ""), ("min", ""), ("max", "")]);

pub(super) const ZREMRANGEBYSCORE: Command = bounded(
    "ZREMRANGEBYSCORE",
    "1.2.0",
    Write,
    "Removes the members with scores within the bounds.",
    &[Function::words(
        "zremrangebyscore",
        &[KEY, MIN_SCORE, MAX_SCORE, BOUND_FLAGS],
        &[Of("key"), Of("min"), Of("max")],
        int_out("removed", "the number of members removed"),
        "ZREMRANGEBYSCORE: removes the members with scores from min to max. The flags MINEX \
         and MAXEX exclude the bounds themselves.",
    )
    .statuses(NAN_BOUND)],
);

pub(super) const ZREVRANGE: Command = range(
    "ZREVRANGE",
    "1.2.0",
    &[ZSET, Int("start"), Int("stop"), WITHSCORES],
    RETURNED,
    "Returns the members of a range by rank, the greatest score first.",
    &[Function::words(
        "zrevrange",
        &[KEY, int("start"), int("stop"), SCORES_FLAG],
        &[Of("key"), Of("start"), Of("stop"), Of("flags")],
        SHOWN,
        "ZREVRANGE: returns the members from rank start to rank stop, both included, where \
         rank 0 is the greatest score. Flag WITHSCORES.",
    )],
);

pub(super) const ZREVRANGEBYLEX: Command = range(
    "ZREVRANGEBYLEX",
    "2.8.9",
    &[ZSET, MAX, MIN, LIMIT],
    RETURNED,
    "Returns the members within the bounds, the greatest first, if all have the same score.",
    &[Function::words(
        "zrevrangebylex",
        &[KEY, MAX_MEMBER, MIN_MEMBER, BOUND_FLAGS, OFFSET, COUNT],
        &[Of("key"), Of("max"), Of("min"), Literal("LIMIT"), Of("offset"), Of("count")],
        ONLY_MEMBERS,
        "ZREVRANGEBYLEX: returns the members from max down to min, if all members have the \
         same score. The flags MINEX and MAXEX exclude the bounds themselves. offset members \
         are skipped and at most count returned; a negative count returns all.",
    )],
);

pub(super) const ZREVRANGEBYSCORE: Command = range(
    "ZREVRANGEBYSCORE",
    "2.2.0",
    &[ZSET, MAX, MIN, WITHSCORES, LIMIT],
    RETURNED,
    "Returns the members with scores within the bounds, the greatest score first.",
    &[Function::words(
        "zrevrangebyscore",
        &[KEY, MAX_SCORE, MIN_SCORE, flags(&["MINEX", "MAXEX", "WITHSCORES"]), OFFSET, COUNT],
        &[
            Of("key"),
            Of("max"),
            Of("min"),
            Flag("WITHSCORES"),
            Literal("LIMIT"),
            Of("offset"),
            Of("count"),
        ],
        SHOWN,
        "ZREVRANGEBYSCORE: returns the members with scores from max down to min. The flags \
         MINEX and MAXEX exclude the bounds themselves. offset members are skipped and at most \
         count returned; a negative count returns all. Flag WITHSCORES.",
    )
    .statuses(NAN_BOUND)],
);

pub(super) const ZREVRANK: Command = Command::new(
    "ZREVRANK",
    "2.0.0",
    Read,
    &[ZSET, MEMBER],
    ReplyKind::MaybeInt,
    "O(1)",
    "Returns the rank of a member from the end: how many members follow it.",
)
.output("out", "the rank")
.python_by_hand();
