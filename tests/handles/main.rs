//! Handles under load: transactions, sessions, batches and snapshots of many threads, and after
//! crashes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "a test may")]

mod bank;
mod checker;
mod flushes;
#[cfg(feature = "scripting")]
mod functions;
mod histories;
mod kill;
mod power_cut;
mod snapshots;

use std::sync::atomic::{AtomicBool, Ordering};

use lsmkv::{Db, Options};

/// Tells the other threads of a test to end, also when it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn memory() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

/// A number from the environment, to run a test for longer than CI does.
fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The integer a key holds.
fn integer(db: &Db, key: &[u8]) -> i64 {
    let value = db.get(key).unwrap();
    value.map_or(0, |value| String::from_utf8_lossy(&value).parse().unwrap())
}

/// Runs a command given as a line.
fn say(session: &mut lsmkv::Session, line: &str) -> lsmkv::Reply {
    let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    session.command(&argv).unwrap()
}
