//! Work in the background does not stop writers.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lsmkv::{Db, Options};

fn key(i: u32) -> Vec<u8> {
    format!("key{:08}", i.wrapping_mul(2_654_435_761) % 100_000).into_bytes()
}

/// The bug: a compaction by hand kept level 0 from being merged. Writers stopped when it was full,
/// until the compaction ended.
#[test]
fn no_write_waits_for_a_compaction_by_hand() {
    let scratch = tempfile::tempdir().unwrap();
    let options = Options {
        memory_budget: 8 << 20,
        compaction_rate_limit: 6 << 20,
        background_threads: 2,
        ..Options::default()
    };
    // Filled without the limit.
    let unlimited = Options { compaction_rate_limit: 0, ..options.clone() };
    let db = Db::open(scratch.path(), unlimited).unwrap();
    for i in 0..30_000 {
        db.set(&key(i), &[7; 1000]).unwrap();
    }
    db.close().unwrap();
    let db = Db::open(scratch.path(), options).unwrap();
    let (compacted, mut longest, mut written) = (AtomicBool::new(false), Duration::ZERO, 0u32);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            db.compact().unwrap();
            compacted.store(true, Ordering::SeqCst);
        });
        while !compacted.load(Ordering::SeqCst) {
            let started = Instant::now();
            db.set(&key(written), &[8; 1000]).unwrap();
            longest = longest.max(started.elapsed());
            written += 1;
            // Faster than the limit, so that level 0 fills.
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    assert!(longest < Duration::from_secs(1), "a write took {longest:?} of {written} writes");
    assert!(written > 30_000, "{written} writes do not fill level 0");
    assert_eq!(db.check().unwrap(), [""; 0]);
}
