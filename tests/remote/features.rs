//! Which features a place offers, by the stories in C: a feature is the functions that only it needs.
//!
//! A story that a place skips counts against the feature of the function that refused. A story that
//! passes counts for the features of all functions that it expects to succeed. What docs/SCALING.md
//! promises by hand is compared with that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::calls::{Calls, calls_of_stories, is_of_name};
use crate::suites::Outcomes;

/// What a place may offer or not.
struct Feature {
    name: &'static str,
    /// Functions that are there where the feature is.
    calls: &'static [&'static str],
    /// Functions that refuse where it is missing, but succeed without it elsewhere.
    refusals: &'static [&'static str],
    /// The story that alone tells of it, where the functions are those of another feature.
    story: Option<&'static str>,
}

const fn feature(name: &'static str, calls: &'static [&'static str]) -> Feature {
    Feature { name, calls, refusals: &[], story: None }
}

/// Functions whose stories name keys of several slots.
const SEVERAL_SLOTS: &[&str] = &[
    "bitop",
    "blpop",
    "copy",
    "lcs",
    "lmove",
    "msetnx_many",
    "rename",
    "sdiff_many",
    "smove",
    "sort_ro",
    "zdiff",
    "zmpop",
    "zrangestore",
];

const FEATURES: &[Feature] = &[
    feature("commands by name", &["command"]),
    feature("commands newer than Redis 7.0", &["hgetdel", "hgetdel_many"]),
    Feature {
        refusals: SEVERAL_SLOTS,
        ..feature("keys of several slots", &["mget_many", "mset_many", "del_many", "exists_many"])
    },
    feature("several commands in one call", &["command_packed"]),
    Feature { refusals: &["set_opt"], ..feature("batches", &["batch"]) },
    feature("priorities in a batch", &["batch_priority"]),
    feature("sessions", &["session"]),
    feature("messages", &["session_wait", "session_fd"]),
    feature(
        "blocking pops",
        &["blpop", "brpop", "blmove", "blmpop", "bzpopmin", "bzpopmax", "bzmpop"],
    ),
    feature("blocking pops that do not wait", &["command_nowait"]),
    feature("numbered databases", &["select"]),
    feature("scripts", &["eval", "evalsha", "script_load", "fcall"]),
    feature("transactions", &["begin"]),
    feature("snapshots", &["snapshot"]),
    Feature {
        story: Some("tests/c/handles.c: snapshots_and_transactions_have_sessions"),
        ..feature("sessions on snapshots and transactions", &["session"])
    },
    feature("iterators", &["iter_new", "iter_next", "iter_next_chunk"]),
    feature("tickets", &["commit_async", "wait"]),
    feature("flush, compact", &["flush", "compact"]),
    feature("checkpoint", &["checkpoint"]),
    feature("check, statistics", &["check", "stats"]),
    feature("sync mode per handle", &["with_sync"]),
    feature("key events, message limits", &["set_keyspace_events", "set_message_limits"]),
];

/// The rows that docs/SCALING.md promises by hand, and the features that each is about. A row about how,
/// not whether, has none.
const PROMISES: &[(&str, &[&str])] = &[
    ("every command, typed or by name", &["commands by name"]),
    ("commands with keys of several slots", &["keys of several slots"]),
    ("MSET is atomic", &[]),
    ("DBSIZE, KEYS, SCAN, FLUSHALL, FLUSHDB, RANDOMKEY", &[]),
    ("several commands in one call", &["several commands in one call"]),
    ("batch", &["batches"]),
    ("session: MULTI, WATCH", &["sessions"]),
    ("session: subscriptions", &["messages"]),
    ("blocking pops", &["blocking pops"]),
    ("numbered databases", &["numbered databases"]),
    ("scripts", &["scripts"]),
    ("transaction, snapshot, iterator", &["transactions", "snapshots", "iterators"]),
    ("session on a transaction or snapshot", &["sessions on snapshots and transactions"]),
    ("ticket", &["tickets"]),
    (
        "compact, checkpoint, check, statistics",
        &["flush, compact", "checkpoint", "check, statistics"],
    ),
    ("sync mode per handle, `lsmkv_serve`", &["sync mode per handle"]),
    ("key events and message limits by function", &["key events, message limits"]),
];

/// The columns of the promises, each with the places that it speaks of.
const COLUMNS: [&[usize]; 4] = [&[0, 1], &[2], &[3, 4], &[5]];

/// A row for each feature, a column for each place.
pub(crate) fn table(places: &[(&str, Outcomes)]) -> String {
    let known = calls_of_stories();
    let mut text = String::from("| feature | functions |");
    for (name, _) in places {
        write!(text, " {name} |").unwrap();
    }
    text += "\n|---|---|";
    text += &"---|".repeat(places.len());
    text.push('\n');
    for feature in FEATURES {
        let calls: Vec<String> =
            feature.calls.iter().map(|call| format!("`lsmkv_{call}`")).collect();
        write!(text, "| {} | {} |", feature.name, calls.join(", ")).unwrap();
        for (_, outcomes) in places {
            write!(text, " {} |", verdict(feature, outcomes, &known)).unwrap();
        }
        text.push('\n');
    }
    text
}

/// The function of C that a story was skipped for, without its prefix.
fn refusal(reason: &str) -> Option<&str> {
    reason.strip_prefix("`lsmkv_")?.strip_suffix('`')
}

fn verdict(feature: &Feature, outcomes: &Outcomes, known: &Calls) -> &'static str {
    if let Some(story) = feature.story {
        return if outcomes.passed.contains(story) { "yes" } else { "no" };
    }
    let about = |call: &str| feature.calls.contains(&call) || feature.refusals.contains(&call);
    let told_apart = |story: &str| FEATURES.iter().any(|it| it.story == Some(story));
    let skips = outcomes.skips.iter().filter(|(story, _)| !told_apart(story));
    let refused = skips.filter_map(|(_, reason)| refusal(reason)).any(about);
    let needs = |story: &String| {
        known.get(story).is_some_and(|calls| feature.calls.iter().any(|it| calls.contains(*it)))
    };
    match (outcomes.passed.iter().any(needs), refused) {
        (true, false) => "yes",
        (true, true) => "in part",
        // Not even tried: what the stories need before it is missing.
        (false, _) => "no",
    }
}

/// Panics if a skip belongs to no feature, or if the promises contradict the outcomes.
pub(crate) fn check_promises(page: &str, places: &[(&str, Outcomes)]) {
    for (place, outcomes) in places {
        for (story, reason) in &outcomes.skips {
            let Some(call) = refusal(reason) else { continue };
            let is_known =
                FEATURES.iter().any(|it| it.calls.contains(&call) || it.refusals.contains(&call));
            assert!(is_known, "{story} is skipped on {place} for lsmkv_{call}: of which feature?");
        }
    }
    let known = calls_of_stories();
    let contradictions: Vec<String> = promises(page)
        .iter()
        .flat_map(|(row, cells)| contradictions(row, cells, places, &known))
        .collect();
    assert!(contradictions.is_empty(), "docs/SCALING.md:\n{}", contradictions.join("\n"));
}

/// The rows of "What each promises" with their cells.
fn promises(page: &str) -> Vec<(String, Vec<String>)> {
    let section = page.split("## What each promises").nth(1).unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2).map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        (cells.next().unwrap(), cells.collect())
    });
    rows.collect()
}

/// What a row says otherwise than the stories: "no" is never, "yes" alone always, all else at times.
fn contradictions(
    row: &str,
    cells: &[String],
    places: &[(&str, Outcomes)],
    known: &Calls,
) -> Vec<String> {
    let (_, names) = PROMISES
        .iter()
        .find(|(known, _)| *known == row)
        .unwrap_or_else(|| panic!("the row '{row}' is about which features?"));
    let features = FEATURES.iter().filter(|feature| names.contains(&feature.name));
    let mut found = Vec::new();
    for feature in features {
        for (cell, columns) in cells.iter().zip(COLUMNS) {
            for (place, outcomes) in columns.iter().map(|column| &places[*column]) {
                let verdict = verdict(feature, outcomes, known);
                let is_so = match (cell.as_str(), cell.split(|c| !is_of_name(c)).next()) {
                    (_, Some("no")) => verdict == "no",
                    ("yes", _) => verdict == "yes",
                    _ => verdict != "no",
                };
                if !is_so {
                    let name = feature.name;
                    found.push(format!("'{row}' is '{cell}', but on {place} {name}: {verdict}"));
                }
            }
        }
    }
    found
}

#[test]
fn a_promise_that_the_stories_contradict_is_told() {
    // Nothing passed anywhere, so nothing is offered.
    let place = |name| (name, Outcomes { skips: BTreeMap::new(), passed: BTreeSet::new() });
    let places = ["here", "holder", "client", "served", "redis", "cluster"].map(place);
    let told = |cells: [&str; 4]| {
        let cells = cells.map(str::to_owned);
        contradictions("ticket", &cells, &places, &Calls::new()).len()
    };
    assert_eq!(told(["no", "no", "no: nowhere", "no"]), 0);
    assert_eq!(told(["yes", "yes, until it ends", "no", "those of the server"]), 4);
}
