//! LMDB: a B+ tree in a memory map.
//!
//! It has no cache of its own (the page cache serves it, whatever the row), no log, no filters
//! and no compression. Unsynced rows use `MDB_NOSYNC` and `MDB_WRITEMAP`: about four times as fast
//! as without the map, but a power cut may corrupt the store, which is more than the peers'
//! unsynced writes risk. Synced rows use neither: they are faster without the map. Each read and
//! write is a transaction of its own.

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions};

use crate::Result;
use crate::peers::Peer;
use crate::plan::Settings;

/// Address space only: pages that are not used cost nothing.
const MAP_FACTOR: u64 = 8;
const MAP_MARGIN: u64 = 1 << 30;
/// LMDB wants whole pages, of whatever size.
const MAP_UNIT: u64 = 1 << 20;

pub(crate) fn version() -> String {
    let lmdb = heed::lmdb_version();
    format!("{}.{}.{} (heed {})", lmdb.major, lmdb.minor, lmdb.patch, env!("HEED_VERSION"))
}

pub(crate) struct Lmdb {
    env: Env,
    database: Database<'static, Bytes, Bytes>,
}

impl Peer for Lmdb {
    fn open(dir: &Path, settings: &Settings, expected_bytes: u64) -> Result<Self> {
        let map = expected_bytes.saturating_mul(MAP_FACTOR).saturating_add(MAP_MARGIN);
        let map = map / MAP_UNIT * MAP_UNIT;
        let env = open_env(dir, usize::try_from(map)?, settings.synced)?;
        let txn = env.write_txn()?;
        let created = env.create_databases_and_commit(txn, |opener, txn| {
            opener.create_database(txn, None).map(CommitOrAbort::<_, ()>::Commit)
        });
        let database = created?.unwrap_commit();
        Ok(Self { env, database })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        self.database.put(&mut txn, key, value)?;
        txn.commit()?;
        Ok(())
    }

    fn get(&self, key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool> {
        let txn = self.env.read_txn()?;
        let Some(value) = self.database.get(&txn, key)? else {
            return Ok(false);
        };
        visit(value);
        Ok(true)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        limit: u64,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let txn = self.env.read_txn()?;
        let mut seen = 0;
        let mut each = |entry: heed::Result<(&[u8], &[u8])>| -> Result<()> {
            let (key, value) = entry?;
            visit(key, value);
            seen += 1;
            Ok(())
        };
        let limit = usize::try_from(limit)?;
        match start {
            Some(key) => {
                let range = (Bound::Included(key), Bound::Unbounded);
                self.database.range(&txn, &range)?.take(limit).try_for_each(&mut each)?;
            }
            None => self.database.iter(&txn)?.take(limit).try_for_each(&mut each)?,
        }
        Ok(seen)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.env.force_sync()?)
    }

    fn close(self) -> Result<()> {
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

#[expect(unsafe_code, reason = "heed leaves the rules of a memory map to the caller")]
fn open_env(dir: &Path, map: usize, synced: bool) -> Result<Env> {
    let unsynced = EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP;
    let flags = if synced { EnvFlags::empty() } else { unsynced };
    let mut options = EnvOpenOptions::new();
    options.map_size(map).max_readers(64);
    // SAFETY: NO_SYNC gives up durability, which the unsynced rows do without; WRITE_MAP asks
    // that nothing else writes into the map, and only heed knows its address; no flag that turns
    // off locking is set. The directory was made for this process alone, so nobody else changes
    // or cuts the mapped file.
    unsafe {
        options.flags(flags);
        Ok(options.open(dir)?)
    }
}
