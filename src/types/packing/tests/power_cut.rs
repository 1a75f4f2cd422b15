//! The power goes before and after every sync of commands that change a collection's form: it is
//! as before or as after, and sound.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::{CrashMode, MemFs};
use crate::io::clock::ManualClock;
use crate::options::{Options, SyncMode};
use crate::txn::Db;
use crate::types::testing::is_packed;
use crate::types::{By, ZAdd, ZRange};

fn open(fs: &MemFs, sync: SyncMode) -> Db {
    let packing = Options { packed_max_members: 3, packed_max_bytes: 1024, ..Options::default() };
    let options = Options { sync, ttl_cleaner_interval_s: 0, ..packing };
    let clock = Arc::new(ManualClock::at(1000));
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, clock).unwrap()
}

type Members = Vec<(Vec<u8>, Vec<u8>)>;

/// The hash, the sorted set, and the copies of both.
fn shown(db: &Db) -> [Members; 4] {
    let hash = |key| db.hgetall(key).unwrap();
    let zset = |key| db.zrange_withscores(key, &ZRange::of(By::Rank(0, -1))).unwrap();
    let pair = |a: &[u8], b: &[u8]| (a.to_vec(), b.to_vec());
    let of_hash = |key| hash(key).iter().map(|(field, value)| pair(field, value)).collect();
    let of_zset =
        |key| zset(key).iter().map(|(member, score)| pair(member, &score.to_be_bytes())).collect();
    [of_hash(b"h"), of_zset(b"z"), of_hash(b"hc"), of_zset(b"zc")]
}

/// What is done, one commit each, in the order of [`shown`] and then again.
const STEPS: [fn(&Db); 8] = [
    |db| put(db, b"h", &[(b"c", b"3"), (b"a", b"one"), (b"d", b"4")]),
    |db| score(db, b"z", &[(3.0, b"c"), (9.0, b"a"), (4.0, b"d")]),
    |db| assert_eq!(db.hdel(b"h", &[b"b", b"c"]).unwrap(), 2),
    |db| assert_eq!(db.zrem(b"z", &[b"b", b"c"]).unwrap(), 2),
    |db| assert!(db.copy(b"h", b"hc", true).unwrap()),
    |db| assert!(db.copy(b"z", b"zc", true).unwrap()),
    |db| put(db, b"hc", &[(b"x", b"5"), (b"y", b"6")]),
    |db| score(db, b"zc", &[(0.5, b"x"), (2.0, b"a"), (7.0, b"y")]),
];

fn put(db: &Db, key: &[u8], pairs: &[(&[u8], &[u8])]) {
    assert_eq!(db.hset(key, pairs).unwrap(), 2);
}

fn score(db: &Db, key: &[u8], pairs: &[(f64, &[u8])]) {
    assert_eq!(db.zadd(key, pairs, ZAdd::default()).unwrap(), 2);
}

#[test]
fn after_a_power_cut_a_conversion_is_there_whole_or_not_at_all() {
    for (sync, seed) in [(SyncMode::Off, 1), (SyncMode::Always, 2)] {
        let fs = MemFs::new();
        let db = open(&fs, sync);
        db.hset(b"h", &[(b"a", b"1"), (b"b", b"2")]).unwrap();
        db.zadd(b"z", &[(1.0, b"a"), (2.0, b"b")], ZAdd::default()).unwrap();
        db.sync().unwrap();
        // Each with how many steps were durable, and how many had begun.
        let photographs: Arc<Mutex<Vec<(MemFs, usize, usize)>>> = Arc::default();
        let progress = Arc::new(Mutex::new((0, 0)));
        let (album, at) = (Arc::clone(&photographs), Arc::clone(&progress));
        fs.on_sync(move |fs, _| {
            let durable = at.lock().0;
            let photograph = fs.deep_clone();
            album.lock().push((photograph, durable, at.lock().1));
        });
        let mut states = vec![shown(&db)];
        for (n, step) in STEPS.iter().enumerate() {
            progress.lock().1 = n + 1;
            step(&db);
            states.push(shown(&db));
            match n % 3 {
                0 => db.flush().unwrap(),
                1 => db.sync().unwrap(),
                _ => db.compact().unwrap(),
            }
            progress.lock().0 = n + 1;
        }
        assert!(!is_packed(&db, b"h") && !is_packed(&db, b"hc") && !is_packed(&db, b"zc"));
        drop(db);
        let photographs: Vec<_> = photographs.lock().drain(..).collect();
        assert!(photographs.len() > 2 * STEPS.len(), "{} photographs", photographs.len());
        for (photograph, durable, begun) in photographs {
            for mode in [CrashMode::DropUnsynced, CrashMode::Chaotic] {
                let db = open(&photograph.crash_clone(seed, mode), SyncMode::Off);
                let left = shown(&db);
                assert!(states[durable..=begun].contains(&left), "{durable} to {begun}: {left:?}");
                assert_eq!(db.check().unwrap(), [""; 0]);
                db.compact().unwrap();
                assert_eq!(shown(&db), left);
            }
        }
    }
}
