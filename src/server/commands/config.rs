//! CONFIG: reads and changes the settings.

use crate::types::glob_matches;

use super::Call;
use super::subcommand::Subcommand;
use crate::server::counters::Counters;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand::at_least("GET", 3, get),
    Subcommand::new("RESETSTAT", 2, 2, resetstat),
    Subcommand::new("REWRITE", 2, 2, rewrite),
    Subcommand::at_least("SET", 4, set),
];

pub(super) fn config(call: &mut Call<'_, '_>) {
    call.subcommand(SUBCOMMANDS);
}

fn resetstat(call: &mut Call<'_, '_>) {
    call.server.counters.iter().for_each(Counters::reset);
    call.out.ok();
}

fn rewrite(call: &mut Call<'_, '_>) {
    call.out.error("ERR The server is running without a config file");
}

fn get(call: &mut Call<'_, '_>) {
    let patterns: Vec<_> = call.rest(2).iter().map(|text| text.to_ascii_lowercase()).collect();
    let wanted = |name: &str| patterns.iter().any(|text| glob_matches(text, name.as_bytes()));
    let mut found = call.server.settings.all();
    found.retain(|(name, _)| wanted(name));
    call.out.map(found.len());
    for (name, value) in found {
        call.out.bulk(name.as_bytes());
        call.out.bulk(value.as_bytes());
    }
}

fn set(call: &mut Call<'_, '_>) {
    let pair = |pair: &[&'_ [u8]]| match pair {
        [name, value] => Some((name.to_vec(), value.to_vec())),
        _ => None,
    };
    let Some(pairs) = call.rest(2).chunks(2).map(pair).collect::<Option<Vec<_>>>() else {
        return call.wrong_number();
    };
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a.as_slice(), b.as_slice())).collect();
    match call.server.settings.set(&pairs) {
        Ok(names) => {
            call.server.apply_settings(&names);
            call.out.ok();
        }
        Err(text) => call.out.error(&text),
    }
}
