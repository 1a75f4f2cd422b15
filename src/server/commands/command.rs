//! COMMAND: the command table, as clients read it.

use crate::commands::KeyPositions;
use crate::types::glob_matches;

use super::Call;
use super::subcommand::Subcommand;
use crate::resp::Writer;
use crate::server::command_table::{CommandEntry, CommandKind};

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::new("COUNT", 2, 2, count),
    Subcommand::at_least("DOCS", 2, docs),
    Subcommand::at_least("GETKEYS", 4, getkeys),
    Subcommand::at_least("INFO", 2, info),
    Subcommand::at_least("LIST", 2, list),
];

pub(super) fn command(call: &mut Call<'_, '_>) {
    match call.argv.len() {
        1 => describe_all(call),
        _ => call.subcommand(SUBCOMMANDS),
    }
}

fn describe_all(call: &mut Call<'_, '_>) {
    let entries = sorted(call);
    call.out.array(entries.len());
    entries.iter().for_each(|entry| describe(call.out, entry));
}

fn count(call: &mut Call<'_, '_>) {
    let count = call.server.commands.entries().count();
    call.out.integer(i64::try_from(count).unwrap_or(i64::MAX));
}

fn sorted<'a>(call: &Call<'a, '_>) -> Vec<&'a CommandEntry> {
    let mut entries: Vec<_> = call.server.commands.entries().collect();
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    entries
}

fn list(call: &mut Call<'_, '_>) {
    let mut entries = sorted(call);
    if call.argv.len() != 2 {
        match (call.word(2).as_str(), call.word(3).as_str()) {
            _ if call.argv.len() != 5 => return call.out.error("ERR syntax error"),
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
        return describe_all(call);
    }
    call.out.array(call.rest(2).len());
    for name in call.rest(2) {
        match call.server.commands.find(name) {
            Some(entry) => describe(call.out, entry),
            None => call.out.nil(),
        }
    }
}

fn flags(entry: &CommandEntry) -> Vec<&'static str> {
    let mut flags = vec![match entry.kind {
        CommandKind::Server(_) | CommandKind::Session(_) => "admin",
        _ if entry.writes => "write",
        _ => "readonly",
    }];
    if entry.refused_in_multi {
        flags.push("no_multi");
    }
    if matches!(entry.kind, CommandKind::BlockingPop) {
        flags.push("blocking");
    }
    if matches!(entry.keys, KeyPositions::Counted { .. }) || entry.name == "sort" {
        flags.push("movablekeys");
    }
    if entry.before_auth {
        flags.push("no_auth");
    }
    flags
}

/// Writes the row of a command in COMMAND INFO.
fn describe(out: &mut Writer<'_>, entry: &CommandEntry) {
    out.array(10);
    out.bulk(entry.name.as_bytes());
    out.integer(entry.arity as i64);
    let flags = flags(entry);
    out.set(flags.len());
    flags.iter().for_each(|flag| out.status(flag));
    let (first, last, step) = match (entry.keys, entry.name.as_str()) {
        (KeyPositions::Range { first, last, step }, _) => (first, last, step),
        // Shard channels are no keys, but clients of a cluster find their slot here.
        (_, "spublish") => (1, 1, 1),
        (_, "ssubscribe" | "sunsubscribe") => (1, -1, 1),
        _ => (0, 0, 0),
    };
    for number in [first as i64, last as i64, step as i64] {
        out.integer(number);
    }
    // ACL categories, tips, key specifications, subcommands.
    out.set(0);
    out.array(0);
    out.array(0);
    out.array(0);
}

fn docs(call: &mut Call<'_, '_>) {
    let entries = match call.rest(2) {
        [] => sorted(call),
        names => names.iter().filter_map(|name| call.server.commands.find(name)).collect(),
    };
    call.out.map(entries.len());
    for entry in entries {
        call.out.bulk(entry.name.as_bytes());
        let fields = [
            ("summary", entry.doc),
            ("since", entry.since),
            ("group", entry.group),
            ("complexity", entry.complexity),
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
    let Some(entry) = call.server.commands.find(call.arg(2)) else {
        return call.out.error("ERR Invalid command specified");
    };
    if entry.keys == KeyPositions::None {
        return call.out.error("ERR The command has no key arguments");
    }
    if !entry.accepts_count(argv.len()) {
        return call.out.error("ERR Invalid number of arguments specified for command");
    }
    let keys = entry.keys_in(argv);
    // Scripts need no keys.
    let is_script = matches!(entry.kind, CommandKind::Store(info) if info.is_script());
    if keys.is_empty() && !is_script {
        return call.out.error("ERR Invalid arguments specified for command");
    }
    call.out.array(keys.len());
    keys.iter().for_each(|key| call.out.bulk(key));
}
