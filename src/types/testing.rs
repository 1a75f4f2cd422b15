//! Stores that several tests open.

use std::path::Path;
use std::sync::Arc;

use crate::encoding::meta;
use crate::engine::MemFs;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;

/// Options of a store in which every collection has rows, however small.
pub(crate) fn unpacked() -> Options {
    Options { packed_max_members: 0, ..Options::default() }
}

/// Two empty stores: small collections are in their records in one, and have rows in the other.
pub(crate) fn both() -> [Db; 2] {
    [Options::default(), unpacked()].map(|options| Db::open(":memory:", options).unwrap())
}

/// Whether the members of a collection that exists are in its record.
pub(crate) fn is_packed(db: &Db, key: &[u8]) -> bool {
    db.read(|tx| Ok(meta::is_packed(&tx.record(key)?.unwrap().bytes))).unwrap()
}

/// Opens the same store in memory each time.
pub(crate) fn opener() -> impl Fn(Options) -> Db {
    let fs = Arc::new(MemFs::untracked());
    move |options| {
        let clock = Arc::new(ManualClock::at(1000));
        Db::open_on(fs.clone(), Path::new("/db"), options, clock).unwrap()
    }
}

/// An empty store without a cleaner thread, and its manual clock.
pub(crate) fn with_clock() -> (Db, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(1000));
    let options = Options { ttl_cleaner_interval_s: 0, ..Options::default() };
    let fs = Arc::new(MemFs::untracked());
    (Db::open_on(fs, Path::new("/db"), options, clock.clone()).unwrap(), clock)
}
