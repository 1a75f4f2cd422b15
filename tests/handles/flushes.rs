//! How often the device is flushed for writes that must be durable.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::RealClock;
use lsmkv::io::mem::SyncStage;
use lsmkv::{Db, Options, SyncMode};

use super::integer;

/// A store that syncs always, on a device whose flush takes so long.
pub(crate) fn slow_device(flush: Duration) -> Db {
    let fs = MemFs::untracked();
    let options = Options { sync: SyncMode::Always, ..Options::default() };
    let db = Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, Arc::new(RealClock));
    fs.on_sync(move |_, point| {
        if point.stage == SyncStage::Before {
            std::thread::sleep(flush);
        }
    });
    db.unwrap()
}

#[test]
fn eight_threads_that_increment_one_key_durably_share_flushes() {
    let db = slow_device(Duration::from_millis(1));
    let before = db.engine_stats().syncs;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|_| _ = db.incr(b"k").unwrap()));
        }
    });
    assert_eq!(integer(&db, b"k"), 400);
    let flushes = db.engine_stats().syncs - before;
    assert!(flushes <= 200, "{flushes} flushes for 400 writes");
}

#[test]
fn sixty_four_tickets_of_one_thread_need_two_flushes_at_most() {
    let db = slow_device(Duration::from_millis(1));
    let before = db.engine_stats().syncs;
    let tickets: Vec<_> = (0..64u32)
        .map(|n| {
            let mut batch = db.batch();
            batch.put(&n.to_be_bytes(), b"value").unwrap();
            batch.command(&[b"INCR", b"k"]).unwrap();
            batch.commit_async().unwrap()
        })
        .collect();
    assert!(tickets.iter().all(|ticket| db.wait(*ticket, None).unwrap()));
    let flushes = db.engine_stats().syncs - before;
    assert!(flushes <= 2, "{flushes} flushes for 64 writes");
}
