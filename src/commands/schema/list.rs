//! The entries of the commands of lists.

use super::parameters::{
    DESTINATION, KEY, KEYS, bytes, choice, int, int_out, key, maybe_bytes_out, reply_out, unsigned,
};
use super::spec::Access::{Read, Write};
use super::spec::Arg::{Bytes, Choice, Counted, Int, Key, Many, Optional, Word};
use super::spec::Words::{CountOf, Of, Word as Literal};
use super::spec::{Arg, Command, Flags, Function, Group, Nil, Output, Parameter, ReplyKind};

/// The commands of lists.
pub(crate) const GROUP: Group = Group { module: "list", title: "Lists", commands: COMMANDS };

const LIST: Arg = Key("key");
const ELEMENTS: Arg = Many(&[Bytes("element")]);
const ENDS: &[&str] = &["LEFT", "RIGHT"];
const FROM: Parameter = choice("from", ENDS);
const EACH: &str = "O(N), N being the number of elements given";
const POPPED: &str = "O(N), N being the number of elements returned";
const NO_LIST: Nil = Nil::NotFoundWhen("the list does not exist");
const POPPED_ELEMENTS: Output = reply_out("an array of the elements").nil(NO_LIST);

const COMMANDS: &[Command] = &[
    Command::new(
        "LINDEX",
        "1.0.0",
        Read,
        &[LIST, Int("index")],
        ReplyKind::Bulk,
        "O(1)",
        "Returns the element at an index. A negative index counts from the end.",
    )
    .flags(Flags::ONE_VALUE)
    .parsed_by_hand("the list is looked up before the index is read")
    .functions(&[Function::method(
        "lindex",
        "lindex",
        &[KEY, int("index")],
        maybe_bytes_out("the element"),
        "LINDEX: returns the element at an index. A negative index counts from the end.",
    )])
    .python_by_hand(),
    Command::new(
        "LINSERT",
        "2.2.0",
        Write,
        &[LIST, Choice("where", "InsertPosition", &["BEFORE", "AFTER"]), Bytes("pivot"), Bytes("element")],
        ReplyKind::Int,
        "O(N), N being the number of elements before the pivot",
        "Inserts an element before or after another.",
    )
    .functions(&[Function::words(
        "linsert",
        &[KEY, choice("place", &["BEFORE", "AFTER"]), bytes("pivot"), bytes("element")],
        &[Of("key"), Of("place"), Of("pivot"), Of("element")],
        int_out("length", "the new length, -1 if no element equals pivot, 0 if there is no list"),
        "LINSERT: inserts an element before (LSMKV_BEFORE) or after (LSMKV_AFTER) the first \
         element that equals pivot.",
    )])
    .python_by_hand(),
    Command::new("LLEN", "1.0.0", Read, &[LIST], ReplyKind::Int, "O(1)", "Returns the number of elements.")
        .flags(Flags::ONE_VALUE)
        .python("llen", &[("name", "")]),
    Command::new(
        "LMOVE",
        "6.2.0",
        Write,
        &[Key("source"), Key("destination"), Choice("from", "Side", ENDS), Choice("to", "Side", ENDS)],
        ReplyKind::Bulk,
        "O(1)",
        "Moves an element from an end of a list to an end of the same or another list.",
    )
    .functions(&[Function::words(
        "lmove",
        &[key("source"), DESTINATION, FROM, choice("to", ENDS)],
        &[Of("source"), Of("destination"), Of("from"), Of("to")],
        maybe_bytes_out("the element").nil(Nil::NotFoundWhen("the source does not exist")),
        "LMOVE: moves an element from an end of source to an end of destination, each LSMKV_LEFT \
         or LSMKV_RIGHT. Both may be the same list.",
    )])
    .python_by_hand(),
    Command::new(
        "LMPOP",
        "7.0.0",
        Write,
        &[
            Counted("numkeys", &[LIST]),
            Choice("from", "Side", ENDS),
            Optional(&[Word("COUNT"), Int("count")]),
        ],
        ReplyKind::Varies,
        "O(N+M), N being the number of keys, M the number of elements returned",
        "Pops elements from the first list that exists.",
    ).streams()
    .parsed_by_hand("numbers have errors of their own")
    .functions(&[Function::words(
        "lmpop",
        &[KEYS, FROM, unsigned("count")],
        &[CountOf("keys"), Of("keys"), Of("from"), Literal("COUNT"), Of("count")],
        reply_out("an array of the key and an array of the elements")
            .nil(Nil::NotFoundWhen("none of the lists exists")),
        "LMPOP: pops up to count elements from an end, LSMKV_LEFT or LSMKV_RIGHT, of the first of \
         n lists that exists.",
    )
    .statuses(&["OUT_OF_RANGE: the count is 0"])])
    .python_by_hand(),
    Command::new("LPOP", "1.0.0", Write, &[LIST, Optional(&[Int("count")])], ReplyKind::Varies, POPPED, "Pops elements from the front of a list.").streams()
        .parsed_by_hand("what is replied depends on the count")
        .functions(&[
            Function::method("lpop", "lpop", &[KEY], maybe_bytes_out("the element"), "LPOP: pops the first element."),
            Function::words(
                "lpop_count",
                &[KEY, unsigned("count")],
                &[Of("key"), Of("count")],
                POPPED_ELEMENTS,
                "LPOP with a count: pops up to count elements from the front.",
            ),
        ])
        .python_by_hand(),
    Command::new(
        "LPOS",
        "6.0.6",
        Read,
        &[
            LIST,
            Bytes("element"),
            Optional(&[Word("RANK"), Int("rank")]),
            Optional(&[Word("COUNT"), Int("num-matches")]),
            Optional(&[Word("MAXLEN"), Int("len")]),
        ],
        ReplyKind::Varies,
        "O(N), N being the number of elements compared",
        "Finds the index of an element.",
    ).streams()
    .parsed_by_hand("numbers have errors of their own")
    .functions(&[
        Function::words(
            "lpos",
            &[KEY, bytes("element"), int("rank").or("1"), unsigned("maxlen").or("0")],
            &[Of("key"), Of("element"), Literal("RANK"), Of("rank"), Literal("MAXLEN"), Of("maxlen")],
            int_out("out", "its index").nil(Nil::NotFound),
            "LPOS: finds an element that equals this one. rank 1 is the first match, -1 the last. \
             At most maxlen elements are compared, 0 for all.",
        )
        .statuses(&["INVALID: rank is 0"]),
        Function::words(
            "lpos_count",
            &[KEY, bytes("element"), int("rank"), unsigned("count"), unsigned("maxlen").or("0")],
            &[
                Of("key"),
                Of("element"),
                Literal("RANK"),
                Of("rank"),
                Literal("COUNT"),
                Of("count"),
                Literal("MAXLEN"),
                Of("maxlen"),
            ],
            reply_out("an array of indexes"),
            "LPOS with a count: finds up to count elements that equal this one, 0 for all. rank 1 \
             starts at the first match, -1 at the last. At most maxlen elements are compared, 0 \
             for all.",
        )
        .statuses(&["INVALID: rank is 0"]),
    ])
    .python_by_hand(),
    Command::new("LPUSH", "1.0.0", Write, &[LIST, ELEMENTS], ReplyKind::Int, EACH, "Adds elements at the front, one after the other.")
        .output("length", "the new length")
        .python("lpush", &[("name", ""), ("*values", "")]),
    Command::new("LPUSHX", "2.2.0", Write, &[LIST, ELEMENTS], ReplyKind::Int, EACH, "Adds elements at the front, if the list exists.")
        .output("length", "the new length, 0 if there is no list")
        .python("lpushx", &[("name", ""), ("*values", "")]),
    Command::new(
        "LRANGE",
        "1.0.0",
        Read,
        &[LIST, Int("start"), Int("stop")],
        ReplyKind::List,
        "O(N), N being the number of elements returned",
        "Returns the elements from start to stop, both included. Negative indexes count from the end.",
    )
    .streams()
    .python("lrange", &[("name", ""), ("start", ""), ("end", "")]),
    Command::new(
        "LREM",
        "1.0.0",
        Write,
        &[LIST, Int("count"), Bytes("element")],
        ReplyKind::Int,
        "O(N), N being the length of the list",
        "Removes elements that equal this one: the first count, all if it is 0, the last ones if \
         it is negative.",
    )
    .output("removed", "the number of elements removed")
    .python("lrem", &[("name", ""), ("count", ""), ("value", "")]),
    Command::new(
        "LSET",
        "1.0.0",
        Write,
        &[LIST, Int("index"), Bytes("element")],
        ReplyKind::Ok,
        "O(1)",
        "Replaces the element at an index.",
    )
    .parsed_by_hand("the list is looked up before the index is read")
    .functions(&[Function::method(
        "lset",
        "lset",
        &[KEY, int("index"), bytes("element")],
        Output::NONE,
        "LSET: replaces the element at an index.",
    )
    .statuses(&["NO_SUCH_KEY", "OUT_OF_RANGE: there is no such element"])])
    .python_by_hand(),
    Command::new(
        "LTRIM",
        "1.0.0",
        Write,
        &[LIST, Int("start"), Int("stop")],
        ReplyKind::Ok,
        "O(1)",
        "Removes all elements but those from start to stop, both included.",
    )
    .python("ltrim", &[("name", ""), ("start", ""), ("end", "")]),
    Command::new("RPOP", "1.0.0", Write, &[LIST, Optional(&[Int("count")])], ReplyKind::Varies, POPPED, "Pops elements from the end of a list.").streams()
        .parsed_by_hand("what is replied depends on the count")
        .functions(&[
            Function::method("rpop", "rpop", &[KEY], maybe_bytes_out("the element"), "RPOP: pops the last element."),
            Function::words(
                "rpop_count",
                &[KEY, unsigned("count")],
                &[Of("key"), Of("count")],
                POPPED_ELEMENTS,
                "RPOP with a count: pops up to count elements from the end, the last one first.",
            ),
        ])
        .python_by_hand(),
    Command::new(
        "RPOPLPUSH",
        "1.2.0",
        Write,
        &[Key("source"), Key("destination")],
        ReplyKind::Bulk,
        "O(1)",
        "Moves the last element of a list to the front of the same or another list.",
    )
    .python("rpoplpush", &[("src", ""), ("dst", "")]),
    Command::new("RPUSH", "1.0.0", Write, &[LIST, ELEMENTS], ReplyKind::Int, EACH, "Adds elements at the end.")
        .output("length", "the new length")
        .python("rpush", &[("name", ""), ("*values", "")]),
    Command::new("RPUSHX", "2.2.0", Write, &[LIST, ELEMENTS], ReplyKind::Int, EACH, "Adds elements at the end, if the list exists.")
        .output("length", "the new length, 0 if there is no list")
        .python("rpushx", &[("name", ""), ("*values", "")]),
];
