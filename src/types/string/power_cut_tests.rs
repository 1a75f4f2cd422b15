//! Changes of a large string in place, and large values that are set: when the power goes, the string
//! is as before the change or as after it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::engine::{CrashMode, MemFs};
use crate::io::clock::ManualClock;
use crate::options::{Options, SyncMode};
use crate::txn::Db;
use crate::types::BitOp;

fn open(fs: &MemFs, sync: SyncMode) -> Db {
    // A string of more than 64 bytes has a row for every 16, and a memtable takes a few changes.
    let (inline_max_bytes, chunk_bytes, write_buffer) = (64, 16, 64 << 10);
    let options = Options {
        sync,
        write_buffer,
        inline_max_bytes,
        chunk_bytes,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    };
    let clock = Arc::new(ManualClock::at(1000));
    let db = Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, clock).unwrap();
    // Builds are spilled in commits of 2 KiB.
    db.store().spills().spill_at(2 << 10);
    db
}

fn value(db: &Db) -> Vec<u8> {
    db.get(b"s").unwrap().unwrap_or_default().to_vec()
}

/// Bytes that no other change writes.
fn bytes(of: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| of.wrapping_mul(31).wrapping_add((at / 5 % 200) as u8) | 1).collect()
}

/// Each changes the string in one command.
const CHANGES: [fn(&Db); 16] = [
    |db| db.set(b"s", &bytes(1, 5000)).unwrap(),
    |db| assert_eq!(db.setrange(b"s", 1003, &bytes(2, 150)).unwrap(), 5000),
    |db| assert_eq!(db.append(b"s", &bytes(3, 100)).unwrap(), 5100),
    |db| assert!(db.setbit(b"s", 8 * 77 + 7, false).unwrap()),
    // Behind a hole.
    |db| assert!(!db.setbit(b"s", 8 * 9000, true).unwrap()),
    |db| assert_eq!(db.setrange(b"s", 8990, &bytes(4, 4000)).unwrap(), 12_990),
    |db| db.set(b"s", &bytes(5, 7000)).unwrap(),
    // Into what its first spill has flushed.
    |db| assert_eq!(db.setrange(b"s", 0, &bytes(6, 3000)).unwrap(), 7000),
    |db| assert_eq!(db.bitop(BitOp::Not, b"s", &[b"s"]).unwrap(), 7000),
    |db| db.set(b"s", b"short").unwrap(),
    |db| assert_eq!(db.append(b"s", &bytes(7, 30)).unwrap(), 35),
    // A whole string moves into rows.
    |db| assert_eq!(db.append(b"s", &bytes(8, 3000)).unwrap(), 3035),
    |db| assert_eq!(db.del(&[b"s"]).unwrap(), 1),
    |db| assert_eq!(db.setrange(b"s", 20_000, b"far away").unwrap(), 20_008),
    |db| assert_eq!(db.append(b"s", &bytes(9, 9000)).unwrap(), 29_008),
    |db| assert_eq!(db.setrange(b"s", 3, &bytes(10, 20_000)).unwrap(), 29_008),
];

/// A copy of the file system, the number of changes that must have survived, and of those that may.
struct Photograph {
    fs: MemFs,
    durable: usize,
    begun: usize,
}

/// Where the changes have got to.
#[derive(Default)]
struct Position {
    durable: AtomicUsize,
    begun: AtomicUsize,
    album: Mutex<Vec<Photograph>>,
}

impl Position {
    fn photograph(&self, fs: &MemFs) {
        let durable = self.durable.load(Ordering::SeqCst);
        let fs = fs.deep_clone();
        let begun = self.begun.load(Ordering::SeqCst);
        self.album.lock().push(Photograph { fs, durable, begun });
    }
}

/// Makes all changes, and takes photographs at every sync and every spill. The values after none, one
/// and so on.
fn photographed(sync: SyncMode) -> (Vec<Vec<u8>>, Vec<Photograph>) {
    let fs = MemFs::new();
    let db = open(&fs, sync);
    let position = Arc::new(Position::default());
    let at = Arc::clone(&position);
    fs.on_sync(move |fs, _| at.photograph(fs));
    let (at, of, other) = (Arc::clone(&position), fs.clone(), db.clone());
    db.store().spills().after_spills(move |spills| {
        at.photograph(&of);
        if spills % 3 == 0 {
            other.flush().unwrap();
        }
    });
    let mut values = vec![value(&db)];
    for (change, number) in CHANGES.iter().zip(1..) {
        position.begun.store(number, Ordering::SeqCst);
        change(&db);
        values.push(value(&db));
        if number % 4 == 0 {
            db.flush().unwrap();
            db.sync().unwrap();
        }
        if sync == SyncMode::Always || number % 4 == 0 {
            position.durable.store(number, Ordering::SeqCst);
        }
    }
    assert!(db.store().spills().count() > 10, "values were too short to be spilled");
    db.close().unwrap();
    let album = std::mem::take(&mut *position.album.lock());
    (values, album)
}

#[test]
fn after_a_power_cut_a_large_string_is_as_before_or_as_after_a_change() {
    for (sync, seed) in [(SyncMode::Off, 1), (SyncMode::Always, 2)] {
        let (values, album) = photographed(sync);
        assert!(album.len() > 40, "{} photographs", album.len());
        let (mut before, mut after) = (0, 0);
        for (number, Photograph { fs, durable, begun }) in album.iter().enumerate() {
            let crashes = [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Chaotic];
            for mode in crashes {
                let db = open(&fs.crash_clone(seed, mode), sync);
                let found = value(&db);
                let may_be = values.get(*durable..=*begun).unwrap();
                let Some(at) = may_be.iter().position(|value| *value == found) else {
                    let len = found.len();
                    panic!("{number} {mode:?}: {len} bytes, changes {durable} to {begun}");
                };
                before += usize::from(durable < begun && at == 0);
                after += usize::from(durable < begun && at == begun - durable);
                assert_eq!(db.check().unwrap(), [""; 0]);
            }
        }
        assert!(before > 10 && after > 10, "{before} before, {after} after");
    }
}
