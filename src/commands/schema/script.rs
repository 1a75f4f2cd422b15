//! Scripts and functions.

use super::parameters::{bytes, bytes_out, reply_out};
use super::spec::Access::{Read, Script};
use super::spec::Arg::{Bytes, Int, Key, Many, OneOf, Optional, Word};
use super::spec::Words::{CountOf, Of, Word as Literal};
use super::spec::{
    Access, Arg, Command, Flags, Function, Group, KeyPositions, Nil, Output, Parameter,
    ParameterKind, ReplyKind, Words,
};

/// Scripts and functions.
pub(crate) const GROUP: Group = Group { module: "script", title: "Scripts", commands: COMMANDS };

const COST: &str = "Depends on the script";
const KEYS: Parameter = Parameter::new("keys", ParameterKind::AnyItems("nkeys")).or("{}");
const ARGS: Parameter = Parameter::new("args", ParameterKind::AnyItems("nargs")).or("{}");
const ARGUMENTS: Arg = Optional(&[Many(&[Bytes("arg")])]);
const NUMKEYS: Arg = Int("numkeys");
const KEY_LIST: Arg = Optional(&[Many(&[Key("key")])]);
const FAILURES: &[&str] = &["INVALID: the script failed", "BUSY: a slow script holds the keys"];

/// What a script returns. An error that it returns, and does not raise, is a reply too.
const fn script_out(receives: &'static str) -> Output {
    reply_out(receives).nil(Nil::NotFoundWhen("it returns nil or false"))
}

/// A command that runs a script.
const fn runs(
    name: &'static str,
    since: &'static str,
    access: Access,
    args: &'static [Arg],
    summary: &'static str,
    functions: &'static [Function],
) -> Command {
    Command::new(name, since, access, args, ReplyKind::Varies, COST, summary)
        .keys(KeyPositions::Counted { at: 2, before: 0 })
        .flags(Flags::NO_SCRIPT.and(Flags::ANY_TYPE))
        .parsed_by_hand("the number of keys is checked before anything else")
        .functions(functions)
        .python_by_hand()
}

const WITH_SOURCE: &[Parameter] = &[bytes("script"), KEYS, ARGS];
const SOURCE_WORDS: &[Words] = &[Of("script"), CountOf("keys"), Of("keys"), Of("args")];
const WITH_SHA: &[Parameter] = &[bytes("sha1"), KEYS, ARGS];
const SHA_WORDS: &[Words] = &[Of("sha1"), CountOf("keys"), Of("keys"), Of("args")];
const WITH_FUNCTION: &[Parameter] = &[bytes("function"), KEYS, ARGS];
const FUNCTION_WORDS: &[Words] = &[Of("function"), CountOf("keys"), Of("keys"), Of("args")];

const COMMANDS: &[Command] = &[
    runs(
        "EVAL",
        "2.6.0",
        Script,
        &[Bytes("script"), NUMKEYS, KEY_LIST, ARGUMENTS],
        "Runs a Lua script as one command.",
        &[Function::words(
            "eval",
            WITH_SOURCE,
            SOURCE_WORDS,
            script_out("what the script returns"),
            "EVAL: runs a Lua script as one command. keys and args are its tables KEYS and ARGV. If \
             the script fails, none of its writes remains, unless the option script_keeps_writes \
             is on.",
        )
        .statuses(FAILURES)],
    ),
    runs(
        "EVALSHA",
        "2.6.0",
        Script,
        &[Bytes("sha1"), NUMKEYS, KEY_LIST, ARGUMENTS],
        "Runs a script that the store knows, by its SHA-1 digest.",
        &[Function::words(
            "evalsha",
            WITH_SHA,
            SHA_WORDS,
            script_out("what the script returns"),
            "EVALSHA: runs a script that the store knows, by its SHA-1 digest in 40 hexadecimal \
             digits. keys and args are its tables KEYS and ARGV.",
        )
        .statuses(FAILURES)],
    ),
    runs(
        "EVALSHA_RO",
        "7.0.0",
        Read,
        &[Bytes("sha1"), NUMKEYS, KEY_LIST, ARGUMENTS],
        "Runs a script that only reads, by its SHA-1 digest.",
        &[Function::words(
            "evalsha_ro",
            WITH_SHA,
            SHA_WORDS,
            script_out("what the script returns"),
            "EVALSHA_RO: runs a script that only reads, by its SHA-1 digest in 40 hexadecimal \
             digits. keys and args are its tables KEYS and ARGV.",
        )
        .statuses(FAILURES)],
    ),
    runs(
        "EVAL_RO",
        "7.0.0",
        Read,
        &[Bytes("script"), NUMKEYS, KEY_LIST, ARGUMENTS],
        "Runs a Lua script that only reads.",
        &[Function::words(
            "eval_ro",
            WITH_SOURCE,
            SOURCE_WORDS,
            script_out("what the script returns"),
            "EVAL_RO: runs a Lua script that only reads. keys and args are its tables KEYS and \
             ARGV.",
        )
        .statuses(FAILURES)],
    ),
    runs(
        "FCALL",
        "7.0.0",
        Script,
        &[Bytes("function"), NUMKEYS, KEY_LIST, ARGUMENTS],
        "Runs a function of a library as one command.",
        &[Function::words(
            "fcall",
            WITH_FUNCTION,
            FUNCTION_WORDS,
            script_out("what the function returns"),
            "FCALL: runs a function of a library, which FUNCTION LOAD stored, as one command. keys \
             and args are its two arguments.",
        )
        .statuses(FAILURES)],
    ),
    runs(
        "FCALL_RO",
        "7.0.0",
        Read,
        &[Bytes("function"), NUMKEYS, KEY_LIST, ARGUMENTS],
        "Runs a function of a library that only reads.",
        &[Function::words(
            "fcall_ro",
            WITH_FUNCTION,
            FUNCTION_WORDS,
            script_out("what the function returns"),
            "FCALL_RO: runs a function of a library that only reads. keys and args are its two \
             arguments.",
        )
        .statuses(FAILURES)],
    ),
    Command::new(
        "FUNCTION",
        "7.0.0",
        Script,
        &[OneOf(&[
            &[Word("DELETE"), Bytes("library")],
            &[Word("DUMP")],
            &[Word("FLUSH"), Optional(&[OneOf(&[&[Word("ASYNC")], &[Word("SYNC")]])])],
            &[Word("HELP")],
            &[Word("KILL")],
            &[
                Word("LIST"),
                Optional(&[Word("LIBRARYNAME"), Bytes("pattern")]),
                Optional(&[Word("WITHCODE")]),
            ],
            &[Word("LOAD"), Optional(&[Word("REPLACE")]), Bytes("code")],
            &[
                Word("RESTORE"),
                Bytes("payload"),
                Optional(&[OneOf(&[&[Word("APPEND")], &[Word("FLUSH")], &[Word("REPLACE")]])]),
            ],
            &[Word("STATS")],
        ])],
        ReplyKind::Varies,
        "O(N), N being the number of functions",
        "Stores, lists and removes libraries of functions.",
    )
    .flags(Flags::NO_SCRIPT.and(Flags::ANY_TYPE))
    .parsed_by_hand("each subcommand has its own number of arguments")
    .functions(&[])
    .python_by_hand(),
    Command::new(
        "SCRIPT",
        "2.6.0",
        Read,
        &[OneOf(&[
            &[Word("EXISTS"), Many(&[Bytes("sha1")])],
            &[Word("FLUSH"), Optional(&[OneOf(&[&[Word("ASYNC")], &[Word("SYNC")]])])],
            &[Word("HELP")],
            &[Word("KILL")],
            &[Word("LOAD"), Bytes("script")],
        ])],
        ReplyKind::Varies,
        "O(1)",
        "Stores scripts for EVALSHA, forgets them, or ends one that runs.",
    )
    .flags(Flags::NO_SCRIPT.and(Flags::ANY_TYPE))
    .parsed_by_hand("each subcommand has its own number of arguments")
    .functions(&[Function::words(
        "script_load",
        &[bytes("script")],
        &[Literal("LOAD"), Of("script")],
        bytes_out("the SHA-1 digest of the script in 40 hexadecimal digits"),
        "SCRIPT LOAD: compiles a Lua script and keeps it, so that EVALSHA can run it.",
    )
    .statuses(&["INVALID: the script does not compile"])])
    .python_by_hand(),
];
