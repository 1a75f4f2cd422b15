//! The power goes before and after every sync: a transaction of all five types is there whole, or
//! not at all.

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::MemFs;
use lsmkv::io::clock::RealClock;
use lsmkv::io::mem::CrashMode;
use lsmkv::types::ZAdd;
use lsmkv::{Db, Options, Result, SyncMode};
use parking_lot::Mutex;

const TRANSACTIONS: u64 = 40;
const MODES: [CrashMode; 3] = [CrashMode::DropUnsynced, CrashMode::Ordered, CrashMode::Chaotic];

fn open(fs: &MemFs) -> Result<Db> {
    let options = Options {
        sync: SyncMode::Off,
        write_buffer: 64 << 10,
        table_bytes: 4 << 10,
        memory_budget: 2 << 20,
        log_segment_bytes: 4 << 10,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    };
    Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, Arc::new(RealClock))
}

/// Copies of the file system, each with the number of transactions begun and promised by then.
#[derive(Default)]
struct Album {
    begun: u64,
    promised: u64,
    photographs: Vec<(MemFs, u64, u64)>,
}

/// Transaction `n`: every type gets a row for it, and one row that all of them overwrite.
fn write(txn: &Db, n: u64) -> Result<()> {
    let text = n.to_string();
    let text = text.as_bytes();
    txn.set(b"string", text)?;
    if n.is_multiple_of(7) {
        txn.del(&[b"hash", b"set"])?;
    }
    txn.hset(b"hash", &[(b"last", text), (text, b"v")])?;
    txn.rpush(b"list", &[text])?;
    txn.lset(b"list", 0, text)?;
    txn.sadd(b"set", &[text])?;
    txn.zadd(b"zset", &[(n as f64, text), (n as f64, b"last")], ZAdd::default())?;
    Ok(())
}

/// How many transactions the store holds; all five types must agree.
fn held(db: &Db) -> u64 {
    let number = |bytes: Option<bytes::Bytes>| -> u64 {
        bytes.map_or(0, |bytes| String::from_utf8_lossy(&bytes).parse().unwrap())
    };
    let n = number(db.get(b"string").unwrap());
    let since = n - n % 7;
    let members = if n < 7 { n } else { n - since + 1 };
    assert_eq!(number(db.hget(b"hash", b"last").unwrap()), n);
    assert_eq!(db.hlen(b"hash").unwrap(), (members + u64::from(n > 0)) as i64);
    assert_eq!(db.scard(b"set").unwrap(), members as i64);
    assert_eq!(db.llen(b"list").unwrap(), n as i64);
    assert_eq!(number(db.lindex(b"list", 0).unwrap()), n);
    assert_eq!(number(db.lindex(b"list", -1).unwrap()), n);
    assert_eq!(db.zscore(b"zset", b"last").unwrap().unwrap_or(0.0), n as f64);
    assert_eq!(db.zcard(b"zset").unwrap(), (n + u64::from(n > 0)) as i64);
    assert_eq!(db.check().unwrap(), [""; 0]);
    n
}

fn photograph_a_life() -> Vec<(MemFs, u64, u64)> {
    let (fs, album) = (MemFs::new(), Arc::new(Mutex::new(Album::default())));
    let shared = Arc::clone(&album);
    fs.on_sync(move |fs, _| {
        let mut album = shared.lock();
        let photograph = (fs.deep_clone(), album.begun, album.promised);
        album.photographs.push(photograph);
    });
    let db = open(&fs).unwrap();
    for n in 1..=TRANSACTIONS {
        album.lock().begun = n;
        let durable = n % 3 == 0;
        let mode = if durable { SyncMode::Always } else { SyncMode::Off };
        let txn = db.with_sync(mode).begin().unwrap();
        write(&txn, n).unwrap();
        if n % 5 == 0 {
            let ticket = txn.commit_async().unwrap();
            assert!(db.wait(ticket, None).unwrap());
        } else {
            txn.commit().unwrap();
        }
        if durable || n % 5 == 0 {
            album.lock().promised = n;
        }
        match n % 13 {
            4 => db.flush().unwrap(),
            9 => db.compact().unwrap(),
            _ => {}
        }
    }
    db.close().unwrap();
    std::mem::take(&mut album.lock().photographs)
}

#[test]
fn a_transaction_of_all_types_is_whole_or_absent_after_a_power_cut_at_every_sync() {
    let photographs = photograph_a_life();
    assert!(photographs.len() > 60, "{}", photographs.len());
    for (at, (fs, begun, promised)) in photographs.into_iter().enumerate() {
        for mode in MODES {
            let left = fs.crash_clone(at as u64, mode);
            let db = open(&left).unwrap_or_else(|error| panic!("sync {at}, {mode:?}: {error:?}"));
            let found = held(&db);
            assert!((promised..=begun).contains(&found), "{found} not in {promised}..={begun}");
            let txn = db.begin().unwrap();
            write(&txn, found + 1).unwrap();
            txn.commit().unwrap();
            assert_eq!(held(&db), found + 1);
        }
    }
}
