//! COMMAND: the catalogue, as clients ask for it.

use lsmkv::KeyPositions;
use lsmkv::types::glob_matches;

use super::Call;
use crate::resp::Writer;
use crate::server::catalog::{Entry, Kind};

pub(super) fn command(call: &mut Call<'_, '_>) {
    match (call.word(1).as_str(), call.argv.len()) {
        ("", 1) => {
            let entries = sorted(call);
            call.out.array(entries.len());
            entries.iter().for_each(|entry| describe(call.out, entry));
        }
        ("COUNT", 2) => {
            let count = call.server.catalog.entries().count();
            call.out.integer(i64::try_from(count).unwrap_or(i64::MAX));
        }
        ("LIST", 2 | 5) => list(call),
        ("INFO", _) => info(call),
        ("DOCS", _) => docs(call),
        ("GETKEYS", 4..) => getkeys(call),
        ("COUNT" | "GETKEYS", _) => call.wrong_number(),
        ("LIST", _) => call.out.error("ERR syntax error"),
        _ => call.unknown_subcommand(),
    }
}

fn sorted<'a>(call: &Call<'a, '_>) -> Vec<&'a Entry> {
    let mut entries: Vec<_> = call.server.catalog.entries().collect();
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    entries
}

fn list(call: &mut Call<'_, '_>) {
    let mut entries = sorted(call);
    if call.argv.len() == 5 {
        match (call.word(2).as_str(), call.word(3).as_str()) {
            ("FILTERBY", "PATTERN") => {
                let pattern = call.arg(4).to_ascii_lowercase();
                entries.retain(|entry| glob_matches(&pattern, entry.name.as_bytes()));
            }
            ("FILTERBY", "MODULE") => entries.clear(),
            ("FILTERBY", "ACLCAT") => {
                let category = String::from_utf8_lossy(call.arg(4)).to_ascii_lowercase();
                entries.retain(|entry| flags(entry).contains(&category.as_str()));
            }
            _ => return call.out.error("ERR syntax error"),
        }
    }
    call.out.array(entries.len());
    entries.iter().for_each(|entry| call.out.bulk(entry.name.as_bytes()));
}

fn info(call: &mut Call<'_, '_>) {
    if call.argv.len() == 2 {
        let entries = sorted(call);
        call.out.array(entries.len());
        return entries.iter().for_each(|entry| describe(call.out, entry));
    }
    call.out.array(call.rest(2).len());
    for name in call.rest(2) {
        match call.server.catalog.find(name) {
            Some(entry) => describe(call.out, entry),
            None => call.out.nil(),
        }
    }
}

fn flags(entry: &Entry) -> Vec<&'static str> {
    let mut flags = vec![match entry.kind {
        Kind::Own(_) | Kind::Session(_) => "admin",
        _ if entry.writes => "write",
        _ => "readonly",
    }];
    if matches!(entry.kind, Kind::Blocking(_)) {
        flags.push("blocking");
    }
    if matches!(entry.keys, KeyPositions::Counted { .. }) {
        flags.push("movablekeys");
    }
    if matches!(entry.kind, Kind::Own(own) if own.before_auth) {
        flags.push("no_auth");
    }
    flags
}

/// A row of COMMAND INFO.
fn describe(out: &mut Writer<'_>, entry: &Entry) {
    out.array(10);
    out.bulk(entry.name.as_bytes());
    out.integer(entry.arity as i64);
    let flags = flags(entry);
    out.set(flags.len());
    flags.iter().for_each(|flag| out.status(flag));
    let (first, last, step) = match entry.keys {
        KeyPositions::Range { first, last, step } => (first, last, step),
        _ => (0, 0, 0),
    };
    for number in [first as i64, last as i64, step as i64] {
        out.integer(number);
    }
    // Categories, tips, key specifications, subcommands.
    out.set(0);
    out.array(0);
    out.array(0);
    out.array(0);
}

fn docs(call: &mut Call<'_, '_>) {
    let entries = match call.rest(2) {
        [] => sorted(call),
        names => names.iter().filter_map(|name| call.server.catalog.find(name)).collect(),
    };
    call.out.map(entries.len());
    for entry in entries {
        call.out.bulk(entry.name.as_bytes());
        let fields = [
            ("summary", entry.doc),
            ("since", "1.0.0"),
            ("group", entry.group),
            ("syntax", entry.syntax.as_str()),
        ];
        call.out.map(fields.len());
        for (name, text) in fields {
            call.out.bulk(name.as_bytes());
            call.out.bulk(text.as_bytes());
        }
    }
}

fn getkeys(call: &mut Call<'_, '_>) {
    let argv = call.rest(2);
    let Some(entry) = call.server.catalog.find(call.arg(2)) else {
        return call.out.error("ERR Invalid command specified");
    };
    if entry.keys == KeyPositions::None {
        return call.out.error("ERR The command has no key arguments");
    }
    if !entry.fits(argv.len()) {
        return call.out.error("ERR Invalid number of arguments specified for command");
    }
    let keys = entry.keys_in(argv);
    if keys.is_empty() {
        return call.out.error("ERR Invalid arguments specified for command");
    }
    call.out.array(keys.len());
    keys.iter().for_each(|key| call.out.bulk(key));
}
