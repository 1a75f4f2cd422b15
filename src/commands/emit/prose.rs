//! What the header says of a generated function: what it does, its output, its statuses.

use super::spec::{Access, Answer, Arg, Row};

/// Names of outputs that say more than `out`.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("added", &["HSET", "SADD"]),
    ("length", &["APPEND", "LPUSH", "LPUSHX", "RPUSH", "RPUSHX", "SETRANGE"]),
    ("deleted", &["DEL", "HDEL", "UNLINK"]),
    ("removed", &["LREM", "SREM", "ZREM", "ZREMRANGEBYRANK"]),
    ("set", &["HSETNX", "MSETNX", "SETNX"]),
    ("ms", &["PTTL"]),
];

/// Statuses of some commands only.
const STATUSES: &[(&str, &[&str])] = &[
    ("NOT_INTEGER: the value is no integer", &["DECR", "DECRBY", "HINCRBY", "INCR", "INCRBY"]),
    ("OVERFLOW", &["DECR", "DECRBY", "HINCRBY", "INCR", "INCRBY"]),
    ("NOT_FLOAT: the value or the increment is no number", &["HINCRBYFLOAT", "INCRBYFLOAT"]),
    ("OVERFLOW: the sum is no number", &["HINCRBYFLOAT", "INCRBYFLOAT"]),
    ("INVALID: the time is not above 0, or too large", &["PSETEX", "SETEX"]),
    ("OUT_OF_RANGE: the offset is negative", &["SETRANGE"]),
    ("NO_SUCH_KEY", &["RENAME", "RENAMENX"]),
];

/// Commands that take keys of any type.
const ANY_TYPE: &[&str] = &[
    "DBSIZE",
    "DEL",
    "EXISTS",
    "EXPIRETIME",
    "KEYS",
    "MGET",
    "MSET",
    "MSETNX",
    "PERSIST",
    "PEXPIRETIME",
    "PSETEX",
    "PTTL",
    "RANDOMKEY",
    "RENAME",
    "RENAMENX",
    "SETEX",
    "SETNX",
    "TOUCH",
    "TTL",
    "UNLINK",
];

/// The name of the output.
pub(super) fn output_name(row: &Row) -> &'static str {
    let named = OUTPUTS.iter().find(|(_, rows)| rows.contains(&row.name));
    named.map_or("out", |(name, _)| name)
}

/// The comment of a function, with its slashes.
pub(super) fn documentation(row: &Row, args: &[Arg], answer: Answer, many: bool) -> String {
    let what = format!("{}: {}", row.name, uncapitalised(row.doc));
    let several = if many { several(args) } else { "" };
    let paragraphs = [format!("{what}{several}{}", output(row, answer)), statuses(row, answer)];
    let wrapped: Vec<String> = paragraphs.iter().map(|text| wrapped(text)).collect();
    wrapped.join("///\n")
}

fn uncapitalised(doc: &str) -> String {
    let mut chars = doc.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

fn several(args: &[Arg]) -> &'static str {
    match args.last() {
        Some(Arg::Keys) => " n keys, at least one.",
        Some(Arg::Pairs("key", _)) => {
            " npairs pairs of a key and a value, so twice as many slices; at least one pair."
        }
        Some(Arg::Pairs(..)) => {
            " npairs pairs of a field and a value, so twice as many slices; at least one pair."
        }
        _ => " n items, at least one.",
    }
}

fn output(row: &Row, answer: Answer) -> String {
    let name = output_name(row);
    let written = row.access != Access::Read;
    let optional = if written { ", which may be NULL," } else { "" };
    match answer {
        Answer::Ok => String::new(),
        Answer::Int => format!(" *{name}, which may be NULL, receives the number."),
        Answer::Flag => format!(" *{name}, which may be NULL, receives 1 for yes or 0 for no."),
        Answer::MaybeInt => format!(" *{name}, which may be NULL, receives the number."),
        Answer::Float | Answer::Double | Answer::MaybeDouble => {
            format!(" *{name}, which may be NULL, receives the number.")
        }
        Answer::Value | Answer::Bulk => {
            format!(" *{name}{optional} receives the bytes, to be released by lsmkv_buf_release.")
        }
        _ => format!(
            " *{name}{optional} receives {}, to be freed by lsmkv_reply_free.",
            reply(answer)
        ),
    }
}

fn reply(answer: Answer) -> &'static str {
    match answer {
        Answer::Map => "a map of fields and values",
        Answer::Set => "a set of byte strings",
        Answer::List => "an array of byte strings",
        Answer::MaybeList => "an array with a byte string or nil for each",
        Answer::MaybeDoubles => "an array with a double or nil for each",
        _ => "an array with 1 or 0 for each",
    }
}

fn statuses(row: &Row, answer: Answer) -> String {
    let missing = matches!(answer, Answer::MaybeInt | Answer::MaybeDouble | Answer::Bulk);
    let mut all = vec!["OK"];
    all.extend(missing.then_some("NOT_FOUND"));
    all.extend((!ANY_TYPE.contains(&row.name)).then_some("WRONGTYPE"));
    all.extend(STATUSES.iter().filter(|(_, rows)| rows.contains(&row.name)).map(|(text, _)| *text));
    let rest = if row.access == Access::Read { "any of a read" } else { "any of a write" };
    format!("{}; {rest}.", all.join("; "))
}

/// Lines of at most 96 characters after `/// `.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= 92 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("/// {line}\n")).collect()
}
