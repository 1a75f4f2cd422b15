//! Which functions the stories in C call and expect to succeed, read from their sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::suites::PROGRAMS;
use crate::toolchain::root;

/// The functions that each story in C expects to succeed, without their prefix.
pub(crate) type Calls = BTreeMap<String, BTreeSet<String>>;

/// Reads the sources of all programs in C.
pub(crate) fn calls_of_stories() -> Calls {
    let read = |source: &str| std::fs::read_to_string(root().join("tests").join(source)).unwrap();
    let common = read("c/redis.h");
    let mut found = Calls::new();
    for source in PROGRAMS.iter().filter(|source| source.ends_with(".c")) {
        let mut helpers = Calls::new();
        for (name, body, is_story) in definitions(&common).chain(definitions(&read(source))) {
            let names: BTreeSet<&str> = body.split(|c: char| !is_of_name(c)).collect();
            let mentioned = helpers.iter().filter(|(name, _)| names.contains(name.as_str()));
            let mut calls: BTreeSet<String> =
                mentioned.flat_map(|(_, calls)| calls.iter().cloned()).collect();
            if is_story {
                calls.extend(body.split(';').filter_map(succeeds));
                found.insert(format!("tests/{source}: {name}"), calls);
            } else {
                calls.extend(names.iter().filter_map(|it| Some(it.strip_prefix("lsmkv_")?.into())));
                helpers.insert(name, calls);
            }
        }
    }
    found
}

/// The functions of a source in C: the name, the body, and whether it is a story. A definition ends with
/// the first brace at the beginning of a line.
fn definitions(text: &str) -> impl Iterator<Item = (String, String, bool)> {
    text.split("\n}").filter_map(|definition| {
        let is_head = |line: &&str| {
            line.starts_with("STORY(") || line.starts_with("static ") && line.contains('(')
        };
        let head = definition.lines().rev().find(is_head)?;
        let body = definition.rsplit_once(head)?.1.to_owned();
        let (before, after) = head.split_once('(')?;
        let is_story = before == "STORY";
        let name = match is_story {
            true => after.split(')').next()?,
            false => before.rsplit(|c: char| !is_of_name(c)).next()?,
        };
        Some((name.to_owned(), body, is_story))
    })
}

/// Whether names in C have this character.
pub(crate) fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The function that a statement calls and expects to succeed on every place.
fn succeeds(statement: &str) -> Option<String> {
    let (before, call) = statement.split_once("(lsmkv_")?;
    let expects = before.rsplit(|c: char| !is_of_name(c)).next()?;
    let is_ok = match expects {
        "NUMBER" | "REPLY" | "BYTES" | "LEFT" => true,
        "STATUS" => statement.trim_end().ends_with("LSMKV_OK)"),
        _ => false,
    };
    let name = call.split(|c: char| !is_of_name(c)).next()?;
    (is_ok && !before.contains("check_store")).then(|| name.to_owned())
}
