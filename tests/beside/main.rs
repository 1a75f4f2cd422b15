//! A store that is read while another handle or another process writes to it.
//!
//! - `moments`: what one reader sees, step by step, beside a writer of the same process;
//! - `processes`: readers that refresh all the time beside a writer process that writes, flushes,
//!   compacts, empties and swaps databases, and is killed;
//! - `resources`: descriptors, memory, permissions, and what a writer is told that finds it busy.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod moments;
mod processes;
mod resources;

use std::path::Path;

use lsmkv::{Db, Options};

/// Everything so small that a few hundred writes reach several levels and log segments.
fn tiny() -> Options {
    Options {
        write_buffer: 64 << 10,
        table_bytes: 16 << 10,
        block_bytes: 1024,
        memory_budget: 4 << 20,
        log_segment_bytes: 32 << 10,
        sync: lsmkv::SyncMode::Off,
        ..Options::default()
    }
}

fn writer(dir: &Path) -> Db {
    Db::open(dir, tiny()).unwrap()
}

/// A reader of a store that is open elsewhere.
fn reader(dir: &Path) -> Db {
    Db::open(dir, Options { read_only: true, ..tiny() }).unwrap()
}

fn get(db: &Db, key: &str) -> Option<String> {
    db.get(key.as_bytes()).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}
