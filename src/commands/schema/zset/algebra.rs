//! Unions, intersections and differences of sorted sets.

use super::parameters::{DESTINATION, KEYS, choice, int_out, unsigned};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Choice, Double, Int, Many, Optional, Word};
use super::spec::Words::{CountOf, IfGiven, Of, Word as Literal};
use super::spec::{Access, Arg, Command, Function, Parameter, ParameterKind, ReplyKind};
use super::{SCORES_FLAG, SHOWN, STORED, TO, WITHSCORES, ZSETS};

const WEIGHTS: Arg = Optional(&[Word("WEIGHTS"), Many(&[Double("weight")])]);
const AGGREGATE: Arg =
    Optional(&[Word("AGGREGATE"), Choice("aggregate", "Aggregate", &["SUM", "MIN", "MAX"])]);

const DIFFERENCE: &str = "O(N*(M+log(N))), N being the size of the first set, M the number of sets";
const INTERSECTION: &str = "O(N*M), N being the size of the smallest set, M the number of sets";
const ALL: &str = "O(N*log(N)), N being the total number of members";

const WEIGHT: Parameter = Parameter::new("weights", ParameterKind::Weights).or("{}");
const HOW: Parameter = choice("aggregate", &["SUM", "MIN", "MAX"]).or("LSMKV_SUM");
const NAN_WEIGHT: &[&str] = &["NOT_FLOAT: a weight is NaN"];

/// A command that combines sorted sets.
const fn combines(
    name: &'static str,
    since: &'static str,
    access: Access,
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

pub(super) const ZDIFF: Command = combines(
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
)
.streams();

pub(super) const ZDIFFSTORE: Command = combines(
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
);

pub(super) const ZINTER: Command = combines(
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
)
.streams();

pub(super) const ZINTERCARD: Command = combines(
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
);

pub(super) const ZINTERSTORE: Command = combines(
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
);

pub(super) const ZUNION: Command = combines(
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
)
.streams();

pub(super) const ZUNIONSTORE: Command = combines(
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
);
