//! The tables of a store: what each holds, and whether it can be read.

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::encoding::expiry::Amount;
use crate::engine::LiveTable;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::trees::TREES;
use crate::reclaim::expiries::histogram_of;
use crate::txn::Db;

/// Describes one table of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// The name of the tree: `meta` (keys, strings), `data` (members), `score` (sorted sets by
    /// score).
    pub tree: &'static str,
    /// The level; 0 is the newest.
    pub level: u8,
    /// The path of the file.
    pub path: PathBuf,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The number of entries, including old versions and tombstones.
    pub entries: u64,
    /// The number of tombstones.
    pub tombstones: u64,
    /// The number of records of expired keys. Only tables of `meta` have such.
    pub expired: u64,
    /// The bytes of these records.
    pub expired_bytes: u64,
}

impl Db {
    /// Describes every table, by tree and level. Opens all of them, so that they stay readable for
    /// this handle.
    pub fn tables(&self) -> Result<Vec<TableInfo>> {
        let now = self.shared_store().clock().now();
        let tables = self.shared_store().engine().reader()?.tables();
        tables.iter().map(|table| describe(table, now)).collect()
    }

    /// Reads every block of every table and verifies checksums, order, filters and indexes. Returns
    /// one error for each damaged table. `progress` is told the bytes read so far and in all, and
    /// may stop the check by breaking: then this fails with [`ErrorKind::Timeout`].
    pub fn verify(
        &self,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Vec<Error>> {
        let tables = self.shared_store().engine().reader()?.tables();
        let total = tables.iter().map(LiveTable::bytes).sum();
        let mut done = 0;
        let mut wrong = Vec::new();
        for table in &tables {
            if progress(done, total).is_break() {
                return Err(Error::new(ErrorKind::Timeout, "the check was stopped"));
            }
            wrong.extend(table.verify().err());
            done += table.bytes();
        }
        Ok(wrong)
    }
}

fn describe(table: &LiveTable, now: u64) -> Result<TableInfo> {
    let histogram = histogram_of(table.properties()?);
    let expired = histogram.map_or_else(Amount::default, |it| it.expired(now));
    Ok(TableInfo {
        tree: TREES.get(table.tree.index()).copied().unwrap_or("?"),
        level: table.level,
        path: table.path(),
        bytes: table.bytes(),
        entries: table.entries(),
        tombstones: table.tombstones(),
        expired: expired.records,
        expired_bytes: expired.bytes,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::engine::{FileSystem, MemFs};
    use crate::io::clock::ManualClock;
    use crate::types::ExpireIf;
    use crate::types::testing::unpacked;

    fn flip(fs: &dyn FileSystem, path: &Path) {
        let file = fs.open_write(path).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 10).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 10).unwrap();
    }

    #[test]
    fn tables_tell_what_has_expired_and_every_damaged_one_is_listed() {
        let (fs, clock) = (Arc::new(MemFs::new()), Arc::new(ManualClock::at(1000)));
        let open = || {
            let fs: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
            Db::open_on(fs, Path::new("/store"), unpacked(), Arc::clone(&clock) as _).unwrap()
        };
        let db = open();
        db.set(b"stays", b"v").unwrap();
        db.set(b"goes", b"v").unwrap();
        db.pexpire(b"goes", 10, ExpireIf::ALWAYS).unwrap();
        db.hset(b"hash", &[(&b"f"[..], &b"v"[..])]).unwrap();
        db.flush().unwrap();
        let expired = |db: &Db| db.tables().unwrap().iter().map(|it| it.expired).sum::<u64>();
        assert_eq!(expired(&db), 0);
        clock.advance(10);
        assert_eq!(expired(&db), 1);
        let tables = db.tables().unwrap();
        let trees: Vec<_> = tables.iter().map(|table| (table.tree, table.level)).collect();
        assert_eq!(trees, [("meta", 0), ("data", 0)]);
        assert!(db.verify(|_, _| ControlFlow::Continue(())).unwrap().is_empty());
        db.close().unwrap();
        tables.iter().for_each(|table| flip(&*fs, &table.path));
        let db = open();
        let found = db.verify(|done, total| {
            assert!(done < total);
            ControlFlow::Continue(())
        });
        let found = found.unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|error| error.kind() == ErrorKind::Corrupt));
        let stopped = db.verify(|_, _| ControlFlow::Break(()));
        assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Timeout);
    }
}
