//! Sorted sets.

use super::parameters::{
    CONDITIONS, COUNT, DESTINATION, KEY, KEYS, OFFSET, bytes, choice, double, double_out,
    exclusive_flags, flag_out, flags, int, int_out, key, maybe_bytes_out, member_bound, reply_out,
    score_bound, signed_count, unsigned,
};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{
    Bytes, Choice, Counted, Double, Int, Key, Many, Member, OneOf, Optional, Word,
};
use super::spec::Words::{CountOf, Flag, IfGiven, Of, Word as Literal};
use super::spec::{
    Arg, Command, Flags, Function, Group, Nil, Output, OutputKind, Parameter, ParameterKind,
    ReplyKind,
};

/// Sorted sets.
pub(crate) const GROUP: Group = Group { module: "zset", title: "Sorted sets", commands: COMMANDS };

const ZSET: Arg = Key("key");
const ZSETS: Arg = Counted("numkeys", &[ZSET]);
const MEMBER: Arg = Member("member");
const MEMBERS: Arg = Many(&[MEMBER]);
const TO: Arg = Key("destination");
const REV: Arg = Optional(&[Word("REV")]);
const BY: Arg = Optional(&[OneOf(&[&[Word("BYSCORE")], &[Word("BYLEX")]])]);
const LIMIT: Arg = Optional(&[Word("LIMIT"), Int("offset"), Int("count")]);
const WITHSCORES: Arg = Optional(&[Word("WITHSCORES")]);
const WEIGHTS: Arg = Optional(&[Word("WEIGHTS"), Many(&[Double("weight")])]);
const AGGREGATE: Arg =
    Optional(&[Word("AGGREGATE"), Choice("aggregate", "Aggregate", &["SUM", "MIN", "MAX"])]);
const MIN: Arg = Bytes("min");
const MAX: Arg = Bytes("max");
const POPPED: &[Arg] = &[ZSET, Optional(&[Int("count")])];

const GIVEN: &str = "O(N), N being the number of members given";
const IN_RANGE: &str = "O(N), N being the number of members within the bounds";
const BY_RANK: &str = "O(S+N), S being the number of members skipped, N the number returned";
const BEFORE: &str = "O(N), N being the number of members before or after it, whichever is less";
const DRAWN: &str = "O(N), N being the number of members returned";
const DIFFERENCE: &str = "O(N*(M+log(N))), N being the size of the first set, M the number of sets";
const ALL: &str = "O(N*log(N)), N being the total number of members";
const INTERSECTION: &str = "O(N*M), N being the size of the smallest set, M the number of sets";

const MIN_SCORE: Parameter = score_bound("min", "MINEX");
const MAX_SCORE: Parameter = score_bound("max", "MAXEX");
const MIN_MEMBER: Parameter = member_bound("min", "MINEX", "-");
const MAX_MEMBER: Parameter = member_bound("max", "MAXEX", "+");
const BOUND_FLAGS: Parameter = flags(&["MINEX", "MAXEX"]);
const ADD_FLAGS: Parameter = exclusive_flags(&["NX", "XX", "GT", "LT", "CH"], CONDITIONS);
const SCORED: Parameter = Parameter::new("items", ParameterKind::Scored);
const WEIGHT: Parameter = Parameter::new("weights", ParameterKind::Weights).or("{}");
const HOW: Parameter = choice("aggregate", &["SUM", "MIN", "MAX"]).or("LSMKV_SUM");
const SCORES_FLAG: Parameter = flags(&["WITHSCORES"]);

const STORED: Output = int_out("length", "the number of members stored");
const SHOWN: Output = reply_out("an array of members, or of members and scores in turn");
const ONLY_MEMBERS: Output = reply_out("an array of members");
const NAN_BOUND: &[&str] = &["NOT_FLOAT: a bound is NaN"];
const NAN_SCORE: &[&str] = &["NOT_FLOAT: a score is NaN"];
const NAN_WEIGHT: &[&str] = &["NOT_FLOAT: a weight is NaN"];
const NAN_SUM: &[&str] = &["NOT_FLOAT: the increment or the sum is not a number"];
const POPPED_MEMBER: Output =
    Output::new("member", OutputKind::MemberAndScore, "the member and its score")
        .nil(Nil::NotFound);
const POPPED_MEMBERS: Output = reply_out("an array of members and scores in turn");

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
    access: super::spec::Access,
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    Command::new(name, since, access, &[ZSET, MIN, MAX], ReplyKind::Int, IN_RANGE, summary)
        .parsed_by_hand("a bound is a number or a member with a mark before it")
        .functions(functions)
        .python_by_hand()
}

/// A command that combines sorted sets.
const fn combines(
    name: &'static str,
    since: &'static str,
    access: super::spec::Access,
    args: &'static [Arg],
    complexity: &'static str,
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    Command::new(name, since, access, args, ReplyKind::Varies, complexity, summary)
        .parsed_by_hand("the keys are looked up before the options are read")
        .functions(functions)
        .python_by_hand()
}

const COMMANDS: &[Command] = &[
    Command::new(
        "ZADD",
        "1.2.0",
        Write,
        &[
            ZSET,
            Optional(&[OneOf(&[&[Word("NX")], &[Word("XX")]])]),
            Optional(&[OneOf(&[&[Word("GT")], &[Word("LT")]])]),
            Optional(&[Word("CH")]),
            Optional(&[Word("INCR")]),
            Many(&[Double("score"), MEMBER]),
        ],
        ReplyKind::Varies,
        GIVEN,
        "Adds members with scores, or changes their scores.",
    )
    .parsed_by_hand("options come before the scores, and all scores are read before any is set")
    .functions(&[
        Function::odd(
            "zadd",
            &[KEY, double("score"), bytes("member")],
            flag_out("added", "1 if the member is new, else 0"),
            "ZADD: adds a member with a score, or changes its score.",
        )
        .statuses(NAN_SCORE),
        Function::words(
            "zadd_opt",
            &[KEY, double("score"), bytes("member"), ADD_FLAGS],
            &[Of("key"), Of("flags"), Of("score"), Of("member")],
            flag_out("changed", "1 if the member is new or, with CH, its score changed, else 0"),
            "ZADD with options: flags NX or XX, GT or LT, CH.",
        )
        .statuses(NAN_SCORE),
        Function::words(
            "zadd_many",
            &[KEY, SCORED, ADD_FLAGS],
            &[Of("key"), Of("flags"), Of("items")],
            int_out("changed", "the number of members that are new or, with CH, changed"),
            "ZADD: adds n members, or changes their scores. Flags NX or XX, GT or LT, CH.",
        )
        .statuses(NAN_SCORE),
        Function::words(
            "zadd_incr",
            &[KEY, double("increment"), bytes("member"), ADD_FLAGS],
            &[Of("key"), Of("flags"), Literal("INCR"), Of("increment"), Of("member")],
            double_out("the new score").nil(Nil::Skipped("a flag forbade the change")),
            "ZADD with INCR: adds to the score of a member, 0 if it is missing. Flags NX or XX, GT \
             or LT, CH.",
        )
        .statuses(NAN_SUM),
    ])
    .python_by_hand(),
    Command::new(
        "ZCARD",
        "1.2.0",
        Read,
        &[ZSET],
        ReplyKind::Int,
        "O(1)",
        "Returns the number of members.",
    )
    .flags(Flags::ONE_VALUE)
    .python("zcard", &[("name", "")]),
    bounded(
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
    ),
    combines(
        "ZDIFF",
        "6.2.0",
        Read,
        &[ZSETS, WITHSCORES],
        DIFFERENCE,
        "Returns the members of the first key that no other key has.",
        &[Function::words(
            "zdiff",
            &[KEYS, SCORES_FLAG],
            &[CountOf("keys"), Of("keys"), Of("flags")],
            SHOWN,
            "ZDIFF: returns the members of the first of n keys that no other has. Flag WITHSCORES.",
        )],
    ),
    combines(
        "ZDIFFSTORE",
        "6.2.0",
        Write,
        &[TO, ZSETS],
        "O(N*M), N being the size of the first set, M the number of sets",
        "Stores the members of the first key that no other key has.",
        &[Function::words(
            "zdiffstore",
            &[DESTINATION, KEYS],
            &[Of("destination"), CountOf("keys"), Of("keys")],
            STORED,
            "ZDIFFSTORE: stores at destination the members of the first of n keys that no other has.",
        )],
    ),
    Command::new(
        "ZINCRBY",
        "1.2.0",
        Write,
        &[ZSET, Double("increment"), MEMBER],
        ReplyKind::Double,
        "O(1)",
        "Adds to the score of a member, 0 if it is missing.",
    )
    .parsed_by_hand("Redis reads it as ZADD with INCR, so that options are bad syntax")
    .functions(&[Function::method(
        "zincrby",
        "zincrby",
        &[KEY, double("increment"), bytes("member")],
        double_out("the new score"),
        "ZINCRBY: adds to the score of a member, 0 if it is missing.",
    )
    .statuses(NAN_SUM)])
    .python_by_hand(),
    combines(
        "ZINTER",
        "6.2.0",
        Read,
        &[ZSETS, WEIGHTS, AGGREGATE, WITHSCORES],
        ALL,
        "Returns the members that all keys have.",
        &[Function::words(
            "zinter",
            &[KEYS, WEIGHT, HOW, SCORES_FLAG],
            &[
                CountOf("keys"),
                Of("keys"),
                IfGiven("WEIGHTS", "weights"),
                Literal("AGGREGATE"),
                Of("aggregate"),
                Of("flags"),
            ],
            SHOWN,
            "ZINTER: returns the members that all of n keys have. Each score is multiplied by the \
             weight of its key, 1 by default, and the scores of a member are combined by \
             aggregate: LSMKV_SUM, LSMKV_MIN or LSMKV_MAX. Flag WITHSCORES.",
        )
        .statuses(NAN_WEIGHT)],
    ),
    combines(
        "ZINTERCARD",
        "7.0.0",
        Read,
        &[ZSETS, Optional(&[Word("LIMIT"), Int("limit")])],
        INTERSECTION,
        "Counts the members that all keys have.",
        &[Function::words(
            "zintercard",
            &[KEYS, unsigned("limit").or("0")],
            &[CountOf("keys"), Of("keys"), Literal("LIMIT"), Of("limit")],
            int_out("out", "the number"),
            "ZINTERCARD: counts the members that all of n keys have, up to limit, 0 for all.",
        )],
    ),
    combines(
        "ZINTERSTORE",
        "2.0.0",
        Write,
        &[TO, ZSETS, WEIGHTS, AGGREGATE],
        ALL,
        "Stores the members that all keys have.",
        &[Function::words(
            "zinterstore",
            &[DESTINATION, KEYS, WEIGHT, HOW],
            &[
                Of("destination"),
                CountOf("keys"),
                Of("keys"),
                IfGiven("WEIGHTS", "weights"),
                Literal("AGGREGATE"),
                Of("aggregate"),
            ],
            STORED,
            "ZINTERSTORE: stores at destination the members that all of n keys have. Each score is \
             multiplied by the weight of its key, 1 by default, and the scores of a member are \
             combined by aggregate: LSMKV_SUM, LSMKV_MIN or LSMKV_MAX.",
        )
        .statuses(NAN_WEIGHT)],
    ),
    bounded(
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
    ),
    Command::new(
        "ZMPOP",
        "7.0.0",
        Write,
        &[ZSETS, Choice("where", "End", &["MIN", "MAX"]), Optional(&[Word("COUNT"), Int("count")])],
        ReplyKind::Varies,
        "O(N+M), N being the number of keys, M the number of members returned",
        "Removes members from an end of the first sorted set that exists, and returns them.",
    )
    .parsed_by_hand("numbers have errors of their own")
    .functions(&[Function::words(
        "zmpop",
        &[KEYS, choice("end", &["MIN", "MAX"]), int("count")],
        &[CountOf("keys"), Of("keys"), Of("end"), Literal("COUNT"), Of("count")],
        reply_out("an array of the key and an array of arrays of member and score")
            .nil(Nil::NotFoundWhen("none of the keys exists")),
        "ZMPOP: removes up to count members with the least (LSMKV_LEAST) or greatest \
         (LSMKV_GREATEST) scores from the first of n keys that exists.",
    )
    .statuses(&["OUT_OF_RANGE: the count is below 1"])])
    .python_by_hand(),
    Command::new(
        "ZMSCORE",
        "6.2.0",
        Read,
        &[ZSET, MEMBERS],
        ReplyKind::MaybeDoubles,
        GIVEN,
        "Returns the scores of members, nil for one that is missing.",
    )
    .python_by_hand(),
    Command::new(
        "ZPOPMAX",
        "5.0.0",
        Write,
        POPPED,
        ReplyKind::Varies,
        DRAWN,
        "Removes the members with the greatest scores and returns them.",
    )
    .parsed_by_hand("what is replied depends on the count")
    .functions(&[
        Function::odd(
            "zpopmax",
            &[KEY],
            POPPED_MEMBER,
            "ZPOPMAX: removes the member with the greatest score.",
        ),
        Function::words(
            "zpopmax_count",
            &[KEY, unsigned("count")],
            &[Of("key"), Of("count")],
            POPPED_MEMBERS,
            "ZPOPMAX with a count: removes up to count members with the greatest scores.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "ZPOPMIN",
        "5.0.0",
        Write,
        POPPED,
        ReplyKind::Varies,
        DRAWN,
        "Removes the members with the least scores and returns them.",
    )
    .parsed_by_hand("what is replied depends on the count")
    .functions(&[
        Function::odd(
            "zpopmin",
            &[KEY],
            POPPED_MEMBER,
            "ZPOPMIN: removes the member with the least score.",
        ),
        Function::words(
            "zpopmin_count",
            &[KEY, unsigned("count")],
            &[Of("key"), Of("count")],
            POPPED_MEMBERS,
            "ZPOPMIN with a count: removes up to count members with the least scores.",
        ),
    ])
    .python_by_hand(),
    Command::new(
        "ZRANDMEMBER",
        "6.2.0",
        Read,
        &[ZSET, Optional(&[Int("count"), WITHSCORES])],
        ReplyKind::Varies,
        DRAWN,
        "Returns random members.",
    )
    .parsed_by_hand("what is replied depends on the count, whose range depends on WITHSCORES")
    .functions(&[
        Function::method(
            "zrandmember",
            "zrandmember",
            &[KEY],
            maybe_bytes_out("the member"),
            "ZRANDMEMBER: returns a random member.",
        ),
        Function::words(
            "zrandmember_count",
            &[KEY, signed_count(), SCORES_FLAG],
            &[Of("key"), Of("count"), Of("flags")],
            SHOWN,
            "ZRANDMEMBER with a count: returns up to count different members. A negative count \
             returns exactly that many, and some may repeat. Flag WITHSCORES.",
        ),
    ])
    .python_by_hand(),
    range(
        "ZRANGE",
        "1.2.0",
        &[ZSET, Bytes("start"), Bytes("stop"), BY, REV, LIMIT, WITHSCORES],
        BY_RANK,
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
    ),
    range(
        "ZRANGEBYLEX",
        "2.8.9",
        &[ZSET, MIN, MAX, LIMIT],
        BY_RANK,
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
    ),
    range(
        "ZRANGEBYSCORE",
        "1.0.5",
        &[ZSET, MIN, MAX, WITHSCORES, LIMIT],
        BY_RANK,
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
    ),
    Command::new(
        "ZRANGESTORE",
        "6.2.0",
        Write,
        &[TO, Key("source"), MIN, MAX, BY, REV, LIMIT],
        ReplyKind::Int,
        "O(S+N), S being the number of members skipped, N the number stored",
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
    .python_by_hand(),
    Command::new(
        "ZRANK",
        "2.0.0",
        Read,
        &[ZSET, MEMBER],
        ReplyKind::MaybeInt,
        BEFORE,
        "Returns the rank of a member: how many members precede it.",
    )
    .output("out", "the rank")
    .python_by_hand(),
    Command::new(
        "ZREM",
        "1.2.0",
        Write,
        &[ZSET, MEMBERS],
        ReplyKind::Int,
        GIVEN,
        "Removes members. A sorted set without members is deleted.",
    )
    .output("removed", "the number of members removed")
    .python("zrem", &[("name", ""), ("*values", "")]),
    bounded(
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
    ),
    Command::new(
        "ZREMRANGEBYRANK",
        "2.0.0",
        Write,
        &[ZSET, Int("start"), Int("stop")],
        ReplyKind::Int,
        "O(S+N), S being the number of members skipped, N the number removed",
        "Removes the members from rank start to rank stop, both included.",
    )
    .output("removed", "the number of members removed")
    .python("zremrangebyrank", &[("name", ""), ("min", ""), ("max", "")]),
    bounded(
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
    ),
    range(
        "ZREVRANGE",
        "1.2.0",
        &[ZSET, Int("start"), Int("stop"), WITHSCORES],
        BY_RANK,
        "Returns the members of a range by rank, the greatest score first.",
        &[Function::words(
            "zrevrange",
            &[KEY, int("start"), int("stop"), SCORES_FLAG],
            &[Of("key"), Of("start"), Of("stop"), Of("flags")],
            SHOWN,
            "ZREVRANGE: returns the members from rank start to rank stop, both included, where \
             rank 0 is the greatest score. Flag WITHSCORES.",
        )],
    ),
    range(
        "ZREVRANGEBYLEX",
        "2.8.9",
        &[ZSET, MAX, MIN, LIMIT],
        BY_RANK,
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
    ),
    range(
        "ZREVRANGEBYSCORE",
        "2.2.0",
        &[ZSET, MAX, MIN, WITHSCORES, LIMIT],
        BY_RANK,
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
    ),
    Command::new(
        "ZREVRANK",
        "2.0.0",
        Read,
        &[ZSET, MEMBER],
        ReplyKind::MaybeInt,
        BEFORE,
        "Returns the rank of a member from the end: how many members follow it.",
    )
    .output("out", "the rank")
    .python_by_hand(),
    Command::new(
        "ZSCORE",
        "1.2.0",
        Read,
        &[ZSET, MEMBER],
        ReplyKind::MaybeDouble,
        "O(1)",
        "Returns the score of a member.",
    )
    .flags(Flags::ONE_VALUE)
    .output("out", "the score")
    .python("zscore", &[("name", ""), ("value", "")]),
    combines(
        "ZUNION",
        "6.2.0",
        Read,
        &[ZSETS, WEIGHTS, AGGREGATE, WITHSCORES],
        ALL,
        "Returns the members of any of the keys.",
        &[Function::words(
            "zunion",
            &[KEYS, WEIGHT, HOW, SCORES_FLAG],
            &[
                CountOf("keys"),
                Of("keys"),
                IfGiven("WEIGHTS", "weights"),
                Literal("AGGREGATE"),
                Of("aggregate"),
                Of("flags"),
            ],
            SHOWN,
            "ZUNION: returns the members of any of n keys. Each score is multiplied by the weight \
             of its key, 1 by default, and the scores of a member are combined by aggregate: \
             LSMKV_SUM, LSMKV_MIN or LSMKV_MAX. Flag WITHSCORES.",
        )
        .statuses(NAN_WEIGHT)],
    ),
    combines(
        "ZUNIONSTORE",
        "2.0.0",
        Write,
        &[TO, ZSETS, WEIGHTS, AGGREGATE],
        ALL,
        "Stores the members of any of the keys.",
        &[Function::words(
            "zunionstore",
            &[DESTINATION, KEYS, WEIGHT, HOW],
            &[
                Of("destination"),
                CountOf("keys"),
                Of("keys"),
                IfGiven("WEIGHTS", "weights"),
                Literal("AGGREGATE"),
                Of("aggregate"),
            ],
            STORED,
            "ZUNIONSTORE: stores at destination the members of any of n keys. Each score is \
             multiplied by the weight of its key, 1 by default, and the scores of a member are \
             combined by aggregate: LSMKV_SUM, LSMKV_MIN or LSMKV_MAX.",
        )
        .statuses(NAN_WEIGHT)],
    ),
];
