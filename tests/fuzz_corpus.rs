//! The corpora of tests/fuzz, run without a fuzzer. Those of private modules run in the tests of
//! `src/engine/fuzzing.rs` and `cli/src/fuzzing.rs`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

#[path = "fuzz/src/damage.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it from another package")]
mod damage;
#[path = "fuzz/src/pairs.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it from another package")]
mod pairs;
#[path = "fuzz/src/targets.rs"]
#[allow(unreachable_pub, reason = "the fuzz targets use it from another package")]
mod targets;

use std::path::Path;

/// Runs every file of a corpus.
fn replay(target: &str, run: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        run(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", dir.display());
}

#[test]
fn records_and_keys() {
    replay("packed_record", targets::packed_record);
    replay("keys", targets::keys);
}

#[test]
fn commands_in_two_stores() {
    replay("commands", pairs::commands);
}

#[test]
fn damaged_stores() {
    replay("store_directory", damage::store_directory);
}
