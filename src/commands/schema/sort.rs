//! The entries of SORT and SORT_RO.

use super::parameters::{COUNT, DESTINATION, KEY, OFFSET, flags, int_out, optional, reply_out};
use super::spec::Access::{AloneWith, Read};
use super::spec::Arg::{Bytes, Int, Key, Many, OneOf, Optional, Word};
use super::spec::Words::{BeforeEach, IfGiven, Of, Word as Literal};
use super::spec::{Arg, Command, Function, Group, Parameter, ParameterKind, ReplyKind, Words};

/// The commands that sort collections.
pub(crate) const GROUP: Group = Group { module: "sort", title: "Sorting", commands: COMMANDS };

const COST: &str = "O(N*log(N)+M), N being the number of elements, M the number of values returned";
const BY: Arg = Optional(&[Word("BY"), Bytes("pattern")]);
const LIMIT: Arg = Optional(&[Word("LIMIT"), Int("offset"), Int("count")]);
const GETS: Arg = Optional(&[Many(&[Word("GET"), Bytes("pattern")])]);
const ORDER: Arg = Optional(&[OneOf(&[&[Word("ASC")], &[Word("DESC")]])]);
const ALPHA: Arg = Optional(&[Word("ALPHA")]);
const PATTERNS: Parameter = Parameter::new("get", ParameterKind::AnyItems("nget")).or("{}");
const PARAMETERS: &[Parameter] =
    &[KEY, optional("by"), PATTERNS, OFFSET, COUNT, flags(&["ALPHA", "REV"])];
const WORDS: &[Words] = &[
    Of("key"),
    IfGiven("BY", "by"),
    Literal("LIMIT"),
    Of("offset"),
    Of("count"),
    BeforeEach("GET", "get"),
    Words::Flag("ALPHA"),
    Words::FlagAs("REV", "DESC"),
];
const NOT_A_NUMBER: &[&str] = &["NOT_FLOAT: an element is not a number"];

const COMMANDS: &[Command] = &[
    Command::new(
        "SORT",
        "1.0.0",
        AloneWith("STORE"),
        &[
            Key("key"),
            BY,
            LIMIT,
            GETS,
            ORDER,
            ALPHA,
            Optional(&[Word("STORE"), Key("destination")]),
        ],
        ReplyKind::Varies,
        COST,
        "Returns the elements of a list, set or sorted set in order, or stores them.",
    )
    .streams()
    .parsed_by_hand("options may repeat, and a pattern without * stays")
    .functions(&[
        Function::words(
            "sort",
            PARAMETERS,
            WORDS,
            reply_out("an array of byte strings or nil"),
            "SORT: returns the elements of a list, set or sorted set in the order of their numbers \
             or, with the flag ALPHA, of their bytes; with REV the largest first. by is a pattern \
             that names the keys to sort by. get holds patterns of what is returned for each \
             element, by default the element itself. offset elements are skipped and at most \
             count returned; a negative count returns all.",
        )
        .runs("SORT_RO", Read)
        .statuses(NOT_A_NUMBER),
        Function::words(
            "sort_store",
            &[KEY, DESTINATION, optional("by"), PATTERNS, OFFSET, COUNT, flags(&["ALPHA", "REV"])],
            &[
                Of("key"),
                IfGiven("BY", "by"),
                Literal("LIMIT"),
                Of("offset"),
                Of("count"),
                BeforeEach("GET", "get"),
                Words::Flag("ALPHA"),
                Words::FlagAs("REV", "DESC"),
                Literal("STORE"),
                Of("destination"),
            ],
            int_out("length", "the length of the list"),
            "SORT with STORE: stores the elements of a list, set or sorted set as a list at \
             destination, in the order of their numbers or, with the flag ALPHA, of their bytes; \
             with REV the largest first. by is a pattern that names the keys to sort by. get holds \
             patterns of what is stored for each element, by default the element itself. offset \
             elements are skipped and at most count stored; a negative count stores all. Waits \
             until no other write runs.",
        )
        .statuses(NOT_A_NUMBER),
    ])
    .python_by_hand(),
    Command::new(
        "SORT_RO",
        "7.0.0",
        Read,
        &[Key("key"), BY, LIMIT, GETS, ORDER, ALPHA],
        ReplyKind::MaybeList,
        COST,
        "Returns the elements of a list, set or sorted set in order.",
    )
    .streams()
    .parsed_by_hand("the options are those of SORT")
    .functions(&[Function::words(
        "sort_ro",
        PARAMETERS,
        WORDS,
        reply_out("an array of byte strings or nil"),
        "SORT_RO: returns the elements of a list, set or sorted set in the order of their numbers \
         or, with the flag ALPHA, of their bytes; with REV the largest first. by is a pattern that \
         names the keys to sort by. get holds patterns of what is returned for each element, by \
         default the element itself. offset elements are skipped and at most count returned; a \
         negative count returns all.",
    )
    .statuses(NOT_A_NUMBER)])
    .python_by_hand(),
];
