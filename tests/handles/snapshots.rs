//! A thousand snapshots under load leave nothing behind.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use lsmkv::StatValue;
use lsmkv::{Db, Options};

use super::{Ends, integer};

fn stat(db: &Db, name: &str) -> u64 {
    let stats = db.stats().unwrap();
    match stats.iter().find(|stat| stat.name == name).unwrap().value {
        StatValue::Count(count) => count,
        StatValue::Ratio(_) => panic!("{name} is no count"),
    }
}

/// Table files on disk.
fn tables(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|it| it == "table")).count() as u64
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_thousand_snapshots_under_load_leak_no_files_memory_or_pins() {
    let scratch = tempfile::tempdir().unwrap();
    let options = Options {
        write_buffer: 64 << 10,
        table_bytes: 32 << 10,
        memory_budget: 4 << 20,
        ..Options::default()
    };
    let db = Db::open(scratch.path().join("store"), options).unwrap();
    let over = AtomicBool::new(false);
    let value = [b'v'; 100];
    std::thread::scope(|scope| {
        let _ends = Ends(&over);
        scope.spawn(|| {
            for n in 0u64.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                db.transact(|txn| {
                    txn.set(b"a", n.to_string().as_bytes())?;
                    txn.set(b"b", n.to_string().as_bytes())
                })
                .unwrap();
                db.set(format!("key{:03}", n % 500).as_bytes(), &value).unwrap();
                db.rpush(b"queue", &[&value]).unwrap();
                db.lpop(b"queue").unwrap();
            }
        });
        let mut open = VecDeque::new();
        for _ in 0..1000 {
            let then = db.snapshot().unwrap();
            let seen = integer(&then, b"a");
            assert_eq!(integer(&then, b"b"), seen);
            open.push_back((then, seen));
            if open.len() > 40 {
                let (then, seen) = open.pop_front().unwrap();
                assert_eq!((integer(&then, b"a"), integer(&then, b"b")), (seen, seen));
            }
        }
        // A compaction has some of its own.
        assert!(db.engine_stats().snapshots >= 40);
    });
    db.compact().unwrap();
    let stats = db.engine_stats();
    assert_eq!((stats.snapshots, stats.reserved), (0, 0));
    assert_eq!(stat(&db, "transactions_and_watches") + stat(&db, "changes_noted"), 0);
    let dir = scratch.path().join("store");
    assert_eq!(tables(&dir), stat(&db, "table_files"));
    // What the snapshots kept is gone: the store is as large as its contents.
    let live = 500 * 150;
    assert!(stat(&db, "table_bytes") < 3 * live, "{}", stat(&db, "table_bytes"));
    let before = descriptors();
    for _ in 0..1000 {
        let then = db.snapshot().unwrap();
        then.get(b"key001").unwrap();
    }
    assert!(descriptors() <= before + 2);
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.close().unwrap();
}
