//! A store that several processes share (`shared=true`): commands, take-over, death and silence of the
//! holder, and what goes wrong.
#![cfg(all(feature = "remote", feature = "server"))]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "a test may"
)]

mod hostile;
mod kills;
mod losses;
mod places;
mod views;
mod worker;

use std::time::{Duration, Instant};

use lsmkv::{Options, Reply, SharedStore};

/// Waits until something is so. A loaded machine may take long.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn run(store: &SharedStore, line: &str) -> Reply {
    let argv: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    store.command(&argv).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.to_owned().into())
}

fn open(dir: &std::path::Path) -> SharedStore {
    SharedStore::open(dir, &Options::default()).unwrap()
}
