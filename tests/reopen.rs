//! Stores that are left without a close and opened again: stories of bugs that were.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod support;

use lsmkv::Options;
use lsmkv::engine::MemFs;
use support::{META, Reads, open, put, tiny};

/// The bug: a flush made the log start in a segment that was still empty. The next life recorded
/// that nothing in it counts and removed it, and the life after that refused to open, because the
/// segment the log starts in was missing.
#[test]
fn a_store_whose_log_starts_in_an_empty_segment_opens_again_and_again() {
    for background_threads in [0, 1] {
        let options = Options { background_threads, ..tiny() };
        let fs = MemFs::new();
        put(&open(&fs, &options), META, b"k", b"first");
        open(&fs, &options).flush().unwrap();
        put(&open(&fs, &options), META, b"k", b"second");
        for _ in 0..3 {
            assert_eq!(open(&fs, &options).read(META, b"k").as_deref(), Some(&b"second"[..]));
        }
    }
}
