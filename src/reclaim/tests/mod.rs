//! Tests of reclaim that control timing, the clock and versions, which commands do not show. Those
//! that need only commands are in tests/reclaim.rs.

mod cleaning;
mod garbage;
mod model;
mod space;
mod stories;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::encoding::keys::{after_prefix, meta_key, prefix};
use crate::encoding::meta::{Body, Header, with_expiry};
use crate::engine::{CacheFill, IterOptions, MemFs, Reader, TreeId};
use crate::io::clock::ManualClock;
use crate::keyspace::trees::{DATA, META, SCORE};
use crate::options::Options;
use crate::txn::Db;
use crate::types::Type;
use crate::types::testing::unpacked;

/// A store on a file system that outlives it, with a clock that is set by hand.
struct Setting {
    fs: MemFs,
    clock: Arc<ManualClock>,
    options: Options,
}

impl Setting {
    fn new() -> Self {
        let options = Options { ttl_cleaner_interval_s: 0, ..unpacked() };
        Self { fs: MemFs::untracked(), clock: Arc::new(ManualClock::at(500)), options }
    }

    fn open(&self) -> Db {
        let fs = Arc::new(self.fs.clone());
        Db::open_on(fs, Path::new("/db"), self.options.clone(), self.clock.clone()).unwrap()
    }
}

/// Adds members to the hash at `key`.
fn add(db: &Db, key: &[u8], members: std::ops::Range<u32>) {
    db.write(&[key], |tx| {
        let mut hash = tx.collection_or_new(key, Type::Hash)?;
        for member in members.clone() {
            hash.put(tx, &member.to_be_bytes(), b"value".to_vec())?;
        }
        tx.save(hash)
    })
    .unwrap();
}

/// Sets the expiry of a key that exists; whether it does.
fn expire_at(db: &Db, key: &[u8], expire_ms: u64) -> bool {
    db.write(&[key], |tx| {
        let Some(record) = tx.record(key)? else { return Ok(false) };
        tx.put_record(key, with_expiry(&record.bytes, expire_ms).unwrap())?;
        Ok(true)
    })
    .unwrap()
}

fn version_of(db: &Db, key: &[u8]) -> u64 {
    db.read(|tx| {
        let record = tx.record(key)?.unwrap();
        Ok(record.body(key)?.version().unwrap())
    })
    .unwrap()
}

/// The members a reader finds in the hash at `key` of database 0, expired or not; `None` if there
/// is no record. The record's size must be their number.
fn members(db: &Db, reader: &Reader, key: &[u8]) -> Option<BTreeSet<u32>> {
    let space = db.store().spaces().of(0).unwrap();
    let record = reader.get(META, &meta_key(space, key)).unwrap()?;
    assert_eq!(Header::decode(&record).unwrap().kind, Type::Hash);
    let Ok(Body::Members { version, size, .. }) = Body::decode(Type::Hash, &record) else {
        panic!()
    };
    let prefix = prefix(space, key, version);
    let options = IterOptions {
        lower: Some(prefix.to_vec().into()),
        upper: after_prefix(&prefix).map(Into::into),
        cache_fill: CacheFill::Skip,
    };
    let mut rows = reader.iter(DATA, options).unwrap();
    let mut found = BTreeSet::new();
    rows.seek_to_first().unwrap();
    while rows.valid() {
        found.insert(u32::from_be_bytes(rows.key()[prefix.len()..].try_into().unwrap()));
        rows.next().unwrap();
    }
    assert_eq!(found.len() as u64, size, "{key:?}");
    Some(found)
}

fn members_now(db: &Db, key: &[u8]) -> Option<BTreeSet<u32>> {
    members(db, &db.store().engine().reader().unwrap(), key)
}

/// Entries in the tables of a tree.
fn entries(db: &Db, tree: TreeId) -> u64 {
    db.engine_stats().trees[tree.index()].levels.iter().map(|level| level.entries).sum()
}

fn all_entries(db: &Db) -> [u64; 3] {
    [META, DATA, SCORE].map(|tree| entries(db, tree))
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn sound(db: &Db) {
    assert_eq!(db.check().unwrap(), [""; 0]);
}
