//! CONFIG: what a program that expects a server asks for, answered for a store in this process.
//!
//! The names are Redis's and the values those that `lsmkv serve` would give. Options of the store
//! are set when it is opened; key events can be turned on and off.

use bytes::Bytes;

use super::connection::{Connection, invalid};
use crate::commands::args::{Args, quoted, wrong_number};
use crate::commands::reply::Reply;
use crate::error::Result;
use crate::options::SyncMode;
use crate::types::glob_matches;

const EVENTS: &str = "notify-keyspace-events";

/// The parameters that are the same for every store.
const FIXED: &[(&str, &str)] = &[
    ("appendonly", "yes"),
    ("bind", ""),
    ("busy-reply-threshold", "5000"),
    ("hz", "10"),
    ("lua-time-limit", "5000"),
    ("maxclients", "10000"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("port", "0"),
    ("proto-max-bulk-len", "536870912"),
    ("requirepass", ""),
    ("save", ""),
    ("stop-writes-on-bgsave-error", "yes"),
    ("tcp-keepalive", "300"),
    ("timeout", "0"),
    ("unixsocket", ""),
];

impl Connection {
    /// Runs CONFIG.
    pub(super) fn config(&mut self, mut args: Args<'_>) -> Result<Reply> {
        let word = args.bytes()?;
        let rest = args.all();
        match (word.to_ascii_lowercase().as_slice(), rest.len()) {
            (b"get", 1..) => Ok(self.config_get(rest)),
            (b"set", 2..) if rest.len().is_multiple_of(2) => self.config_set(rest),
            (b"resetstat", 0) => Ok(Reply::OK),
            (b"rewrite", 0) => Err(invalid("ERR The server is running without a config file")),
            (b"get" | b"set" | b"resetstat" | b"rewrite", _) => {
                let name = String::from_utf8_lossy(word).to_ascii_lowercase();
                Err(wrong_number(&format!("config|{name}")))
            }
            _ => {
                let word = quoted(word);
                Err(invalid(format!("ERR unknown subcommand '{word}'. Try CONFIG HELP.")))
            }
        }
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let store = self.home.store();
        let fsync = match self.home.durability() {
            SyncMode::Always => "always",
            SyncMode::Interval => "everysec",
            SyncMode::Off => "no",
        };
        let mut all: Vec<_> =
            FIXED.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        all.push(("appendfsync", fsync.to_owned()));
        all.push(("databases", store.spaces().count().to_string()));
        all.push((EVENTS, self.home.keyspace_events()));
        all.sort_unstable();
        all
    }

    fn config_get(&self, patterns: &[&[u8]]) -> Reply {
        let patterns: Vec<_> = patterns.iter().map(|text| text.to_ascii_lowercase()).collect();
        let wanted = |name: &str| patterns.iter().any(|text| glob_matches(text, name.as_bytes()));
        let found = self.parameters().into_iter().filter(|(name, _)| wanted(name));
        let bulk = |text: String| Reply::Bulk(Bytes::from(text));
        Reply::Map(found.map(|(name, value)| (bulk(name.to_owned()), bulk(value))).collect())
    }

    fn config_set(&mut self, words: &[&[u8]]) -> Result<Reply> {
        let known = self.parameters();
        let failed = |name: &[u8], why: &str| {
            let name = quoted(name);
            invalid(format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"
            ))
        };
        let mut events = None;
        for pair in words.chunks(2) {
            let [name, value] = pair else { return Err(wrong_number("config|set")) };
            let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
            match known.iter().find(|(known, _)| is(known)) {
                None => {
                    let text = "ERR Unknown option or number of arguments for CONFIG SET - ";
                    return Err(invalid(format!("{text}'{}'", quoted(name))));
                }
                Some((name, _)) if *name == EVENTS => {
                    let letters = std::str::from_utf8(value).ok();
                    let letters =
                        letters.filter(|it| crate::messages::normalized_event_classes(it).is_ok());
                    let why = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
                    events = Some(letters.ok_or_else(|| failed(name.as_bytes(), why))?);
                }
                Some((_, current)) if current.as_bytes() == *value => {}
                Some(_) => {
                    let why = "the option is set when the store is opened";
                    return Err(failed(name, why));
                }
            }
        }
        if let Some(letters) = events {
            self.home.set_keyspace_events(letters)?;
        }
        Ok(Reply::OK)
    }
}
