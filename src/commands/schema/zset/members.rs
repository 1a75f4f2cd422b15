//! Commands that name members, or take them from an end or at random.

use super::parameters::{
    CONDITIONS, KEY, KEYS, bytes, choice, double, double_out, exclusive_flags, flag_out, int,
    int_out, maybe_bytes_out, reply_out, signed_count, unsigned,
};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Choice, Double, Int, Many, OneOf, Optional, Word};
use super::spec::Words::{CountOf, Of, Word as Literal};
use super::spec::{
    Arg, Command, Flags, Function, Nil, Output, OutputKind, Parameter, ParameterKind, ReplyKind,
};
use super::{MEMBER, SCORES_FLAG, SHOWN, WITHSCORES, ZSET, ZSETS};

const MEMBERS: Arg = Many(&[MEMBER]);
const POPPED: &[Arg] = &[ZSET, Optional(&[Int("count")])];

const GIVEN: &str = "O(N), N being the number of members given";
const DRAWN: &str = "O(N), N being the number of members returned";

const ADD_FLAGS: Parameter = exclusive_flags(&["NX", "XX", "GT", "LT", "CH"], CONDITIONS);
const SCORED: Parameter = Parameter::new("items", ParameterKind::Scored);

const NAN_SCORE: &[&str] = &["NOT_FLOAT: a score is NaN"];
const NAN_SUM: &[&str] = &["NOT_FLOAT: the increment or the sum is not a number"];
const POPPED_MEMBER: Output =
    Output::new("member", OutputKind::MemberAndScore, "the member and its score")
        .nil(Nil::NotFound);
const POPPED_MEMBERS: Output = reply_out("an array of members and scores in turn");

pub(super) const ZADD: Command = Command::new(
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
    Function::odd(
        "zadd_opt",
        &[KEY, double("score"), bytes("member"), ADD_FLAGS],
        flag_out("changed", "1 if the member is new or, with CH, its score changed, else 0"),
        "ZADD with options: flags NX or XX, GT or LT, CH.",
    )
    .statuses(NAN_SCORE),
    Function::odd(
        "zadd_many",
        &[KEY, SCORED, ADD_FLAGS],
        int_out("changed", "the number of members that are new or, with CH, changed"),
        "ZADD: adds n members, or changes their scores. Flags NX or XX, GT or LT, CH.",
    )
    .statuses(&["NOT_FLOAT: a score is NaN", "MISUSE: scores is NULL"]),
    Function::odd(
        "zadd_incr",
        &[KEY, double("increment"), bytes("member"), ADD_FLAGS],
        double_out("the new score").nil(Nil::Skipped("a flag forbade the change")),
        "ZADD with INCR: adds to the score of a member, 0 if it is missing. Flags NX or XX, GT \
         or LT, CH.",
    )
    .statuses(NAN_SUM),
])
.python_by_hand();

pub(super) const ZCARD: Command = Command::new(
    "ZCARD",
    "1.2.0",
    Read,
    &[ZSET],
    ReplyKind::Int,
    "O(1)",
    "Returns the number of members.",
)
.flags(Flags::ONE_VALUE)
.python("zcard", &[("name", "")]);

pub(super) const ZINCRBY: Command = Command::new(
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
.python_by_hand();

pub(super) const ZMPOP: Command = Command::new(
    "ZMPOP",
    "7.0.0",
    Write,
    &[ZSETS, Choice("where", "End", &["MIN", "MAX"]), Optional(&[Word("COUNT"), Int("count")])],
    ReplyKind::Varies,
    "O(N+M), N being the number of keys, M the number of members returned",
    "Removes members from an end of the first sorted set that exists, and returns them.",
)
.streams()
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
.python_by_hand();

pub(super) const ZMSCORE: Command = Command::new(
    "ZMSCORE",
    "6.2.0",
    Read,
    &[ZSET, MEMBERS],
    ReplyKind::MaybeDoubles,
    GIVEN,
    "Returns the scores of members, nil for one that is missing.",
)
.streams()
.python_by_hand();

pub(super) const ZPOPMAX: Command = Command::new(
    "ZPOPMAX",
    "5.0.0",
    Write,
    POPPED,
    ReplyKind::Varies,
    DRAWN,
    "Removes the members with the greatest scores and returns them.",
)
.streams()
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
.python_by_hand();

pub(super) const ZPOPMIN: Command = Command::new(
    "ZPOPMIN",
    "5.0.0",
    Write,
    POPPED,
    ReplyKind::Varies,
    DRAWN,
    "Removes the members with the least scores and returns them.",
)
.streams()
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
.python_by_hand();

pub(super) const ZRANDMEMBER: Command = Command::new(
    "ZRANDMEMBER",
    "6.2.0",
    Read,
    &[ZSET, Optional(&[Int("count"), WITHSCORES])],
    ReplyKind::Varies,
    DRAWN,
    "Returns random members.",
)
.streams()
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
.python_by_hand();

pub(super) const ZREM: Command = Command::new(
    "ZREM",
    "1.2.0",
    Write,
    &[ZSET, MEMBERS],
    ReplyKind::Int,
    GIVEN,
    "Removes members. A sorted set without members is deleted.",
)
.output("removed", "the number of members removed")
.python("zrem", &[("name", ""), ("*values", "")]);

pub(super) const ZSCORE: Command = Command::new(
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
.python("zscore", &[("name", ""), ("value", "")]);
