//! Commands that wait until a key holds an element.

use super::parameters::{
    DESTINATION, KEYS, choice, double, key, maybe_bytes_out, reply_out, unsigned,
};
use super::spec::Access::Write;
use super::spec::Arg::{Choice, Counted, Double, Int, Key, Many, Optional, Word};
use super::spec::Words::{CountOf, Of, Word as Literal};
use super::spec::{Arg, Command, Flags, Function, Group, Nil, Output, Parameter, ReplyKind};

/// Commands that wait.
pub(crate) const GROUP: Group =
    Group { module: "blocking", title: "Blocking commands", commands: COMMANDS };

const TIMEOUT: Arg = Double("timeout");
const SECONDS: Parameter = double("timeout");
const ENDS: &[&str] = &["LEFT", "RIGHT"];
const SCORES: &[&str] = &["MIN", "MAX"];
const FIRST_OF: &[Arg] = &[Many(&[Key("key")]), TIMEOUT];
const COUNT: Arg = Optional(&[Word("COUNT"), Int("count")]);
const EACH_KEY: &str = "O(N), N being the number of keys";
const KEYS_AND_POPPED: &str =
    "O(N+M), N being the number of keys, M the number of elements returned";
const LATE: Nil = Nil::NotFoundWhen("the time passed");
const ELEMENT: Output = reply_out("an array of the key and the element").nil(LATE);
const SCORED: Output = reply_out("an array of the key, the member and its score").nil(LATE);
const OUT_OF_TIME: &[&str] = &["OUT_OF_RANGE: the timeout is negative or no number"];

const fn waits(
    name: &'static str,
    since: &'static str,
    args: &'static [Arg],
    complexity: &'static str,
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    Command::new(name, since, Write, args, ReplyKind::Varies, complexity, summary)
        .flags(Flags::BLOCKS)
        .parsed_by_hand("it waits for an element")
        .functions(functions)
        .python_by_hand()
}

/// A function that pops one element of the first of several keys.
const fn first_of(name: &'static str, output: Output, doc: &'static str) -> Function {
    Function::words(name, &[KEYS, SECONDS], &[Of("keys"), Of("timeout")], output, doc)
        .statuses(OUT_OF_TIME)
}

const COMMANDS: &[Command] = &[
    waits(
        "BLMOVE",
        "6.2.0",
        &[
            Key("source"),
            Key("destination"),
            Choice("wherefrom", "Side", ENDS),
            Choice("whereto", "Side", ENDS),
            TIMEOUT,
        ],
        "O(1)",
        "Moves an element from one list to another, as soon as there is one.",
        &[Function::words(
            "blmove",
            &[key("source"), DESTINATION, choice("from", ENDS), choice("to", ENDS), SECONDS],
            &[Of("source"), Of("destination"), Of("from"), Of("to"), Of("timeout")],
            maybe_bytes_out("the element").nil(LATE),
            "BLMOVE: moves an element from an end of a list, LSMKV_LEFT or LSMKV_RIGHT, to an end of \
             the same or another, as soon as there is one. It waits for timeout seconds, 0 for ever.",
        )
        .statuses(OUT_OF_TIME)],
    ),
    waits(
        "BLMPOP",
        "7.0.0",
        &[TIMEOUT, Counted("numkeys", &[Key("key")]), Choice("from", "Side", ENDS), COUNT],
        KEYS_AND_POPPED,
        "Pops elements from the first list that has some, as soon as one has.",
        &[Function::words(
            "blmpop",
            &[KEYS, choice("from", ENDS), unsigned("count"), SECONDS],
            &[
                Of("timeout"),
                CountOf("keys"),
                Of("keys"),
                Of("from"),
                Literal("COUNT"),
                Of("count"),
            ],
            reply_out("an array of the key and an array of the elements").nil(LATE),
            "BLMPOP: pops up to count elements from an end, LSMKV_LEFT or LSMKV_RIGHT, of the first \
             of n lists that has some. It waits for timeout seconds, 0 for ever.",
        )
        .statuses(&["OUT_OF_RANGE: the count is 0, or the timeout is negative or no number"])],
    ),
    waits(
        "BLPOP",
        "2.0.0",
        FIRST_OF,
        EACH_KEY,
        "Pops the first element of the first list that has one, as soon as one has.",
        &[first_of(
            "blpop",
            ELEMENT,
            "BLPOP: pops the first element of the first of n lists that has one. It waits for \
             timeout seconds, 0 for ever. Calls that wait for a key are served in the order in \
             which they came.",
        )],
    ),
    waits(
        "BRPOP",
        "2.0.0",
        FIRST_OF,
        EACH_KEY,
        "Pops the last element of the first list that has one, as soon as one has.",
        &[first_of(
            "brpop",
            ELEMENT,
            "BRPOP: pops the last element of the first of n lists that has one. It waits for \
             timeout seconds, 0 for ever.",
        )],
    ),
    waits(
        "BRPOPLPUSH",
        "2.2.0",
        &[Key("source"), Key("destination"), TIMEOUT],
        "O(1)",
        "Moves the last element of a list to the front of another, as soon as there is one.",
        &[Function::words(
            "brpoplpush",
            &[key("source"), DESTINATION, SECONDS],
            &[Of("source"), Of("destination"), Of("timeout")],
            maybe_bytes_out("the element").nil(LATE),
            "BRPOPLPUSH: moves the last element of a list to the front of the same or another, as \
             soon as there is one. It waits for timeout seconds, 0 for ever.",
        )
        .statuses(OUT_OF_TIME)],
    ),
    waits(
        "BZMPOP",
        "7.0.0",
        &[TIMEOUT, Counted("numkeys", &[Key("key")]), Choice("where", "End", SCORES), COUNT],
        KEYS_AND_POPPED,
        "Pops members from an end of the first sorted set that has some, as soon as one has.",
        &[Function::words(
            "bzmpop",
            &[KEYS, choice("end", SCORES), unsigned("count"), SECONDS],
            &[
                Of("timeout"),
                CountOf("keys"),
                Of("keys"),
                Of("end"),
                Literal("COUNT"),
                Of("count"),
            ],
            reply_out("an array of the key and an array of arrays of member and score").nil(LATE),
            "BZMPOP: pops up to count members with the least (LSMKV_LEAST) or greatest \
             (LSMKV_GREATEST) scores from the first of n sorted sets that has some. It waits for \
             timeout seconds, 0 for ever.",
        )
        .statuses(&["OUT_OF_RANGE: the count is 0, or the timeout is negative or no number"])],
    ),
    waits(
        "BZPOPMAX",
        "5.0.0",
        FIRST_OF,
        EACH_KEY,
        "Pops the member with the greatest score of the first sorted set that has one, as soon as \
         one has.",
        &[first_of(
            "bzpopmax",
            SCORED,
            "BZPOPMAX: pops the member with the greatest score of the first of n sorted sets that \
             has one. It waits for timeout seconds, 0 for ever.",
        )],
    ),
    waits(
        "BZPOPMIN",
        "5.0.0",
        FIRST_OF,
        EACH_KEY,
        "Pops the member with the least score of the first sorted set that has one, as soon as one \
         has.",
        &[first_of(
            "bzpopmin",
            SCORED,
            "BZPOPMIN: pops the member with the least score of the first of n sorted sets that has \
             one. It waits for timeout seconds, 0 for ever.",
        )],
    ),
];
