//! Commands on whole databases.
//!
//! A database is emptied by pointing its number at a space that was never used, and two are swapped
//! by exchanging their spaces: both in constant time. The keys left behind are unreachable;
//! compaction removes them.

use bytes::Bytes;

use crate::encoding::glob;
use crate::encoding::keys::{after_prefix, meta_key, split_meta_key};
use crate::encoding::meta::Header;
use crate::engine::CacheFill;
use crate::error::Result;
use crate::keyspace::key_counts::{CountedAt, KeyCount};
use crate::keyspace::trees::META;
use crate::txn::db::commands;
use crate::txn::{Tx, Walk};

commands! {
    /// FLUSHDB: removes all keys of this database in constant time. Waits until no other write is
    /// running.
    alone fn flushdb() -> ();
    /// FLUSHALL: removes all keys of every database at once, in constant time. Waits until no other
    /// write is running.
    alone fn flushall() -> ();
    /// SWAPDB: exchanges the contents of two databases in constant time. Waits until no other write
    /// is running.
    alone fn swapdb(a: u32, b: u32) -> ();
}

impl Tx<'_> {
    /// The records of the selected database from `first` on, expired ones included.
    pub(crate) fn records(&self, first: &[u8], backward: bool) -> Result<Walk> {
        let end = after_prefix(&self.space().to_bytes());
        let first = meta_key(self.space(), first);
        // A walk over all keys must not evict what commands need from the cache.
        self.rows_cached(META, &first, end.as_deref(), backward, CacheFill::Skip)
    }

    /// The header of the current record of [`Tx::records`], if its key has not expired.
    pub(crate) fn live_header(&self, walk: &Walk) -> Result<Option<Header>> {
        let header = self.header_of(user_key(walk), walk.value())?;
        Ok(Some(header).filter(|header| !header.expired(self.now())))
    }

    pub(crate) fn dbsize(&self) -> Result<i64> {
        let (sizes, last_change) =
            (self.store().key_counts(), self.store().engine().last_change(META));
        let at =
            self.sequence_if_unwritten().map(|sequence| CountedAt { sequence, now: self.now() });
        if let Some(known) = at.and_then(|it| sizes.recall(self.space(), it, last_change)) {
            return Ok(known);
        }
        let (mut keys, mut soonest) = (0, u64::MAX);
        let mut walk = self.records(b"", false)?;
        while walk.advance()? {
            if let Some(header) = self.live_header(&walk)? {
                keys += 1;
                if header.expire_ms != 0 {
                    soonest = soonest.min(header.expire_ms);
                }
            }
        }
        if let Some(at) = at {
            sizes.remember(self.space(), at, last_change, KeyCount { keys, soonest });
        }
        Ok(keys)
    }

    pub(crate) fn keys(&self, pattern: &[u8]) -> Result<Vec<Bytes>> {
        let mut found = Vec::new();
        self.each_key(pattern, &mut |key| {
            found.push(Bytes::copy_from_slice(key));
            Ok(true)
        })?;
        Ok(found)
    }

    /// Visits the keys that match a pattern, until `visit` returns `false`.
    pub(crate) fn each_key(
        &self,
        pattern: &[u8],
        visit: &mut dyn FnMut(&[u8]) -> Result<bool>,
    ) -> Result<()> {
        let mut walk = self.records(b"", false)?;
        while walk.advance()? {
            let key = user_key(&walk);
            let matches = glob::matches(pattern, key) && self.live_header(&walk)?.is_some();
            if matches && !visit(key)? {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn flushdb(&mut self) -> Result<()> {
        self.frees_space();
        self.announce_flush();
        self.empty_database(self.database())
    }

    pub(crate) fn flushall(&mut self) -> Result<()> {
        self.frees_space();
        self.announce_flush();
        (0..self.store().spaces().count()).try_for_each(|number| self.empty_database(number))
    }

    pub(crate) fn swapdb(&mut self, a: u32, b: u32) -> Result<()> {
        let (space_a, space_b) = (self.space_of(a)?, self.space_of(b)?);
        if a != b {
            self.assign_space(a, space_b);
            self.assign_space(b, space_a);
        }
        Ok(())
    }
}

/// The user key of the current record.
pub(crate) fn user_key(walk: &Walk) -> &[u8] {
    split_meta_key(walk.key()).map_or(&[], |(_, key)| key)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;
    use std::sync::Arc;

    use crate::engine::MemFs;
    use crate::io::clock::ManualClock;
    use crate::options::Options;
    use crate::txn::Db;
    use crate::types::{ExpireIf, ScanOptions, ZAdd};

    fn on(fs: &Arc<MemFs>, clock: &Arc<ManualClock>) -> Db {
        let (fs, clock) = (fs.clone(), clock.clone());
        Db::open_on(fs, Path::new("/db"), Options::default(), clock).unwrap()
    }

    #[test]
    fn an_emptied_or_swapped_database_is_so_after_reopening() {
        let (fs, clock) = (Arc::new(MemFs::untracked()), Arc::new(ManualClock::at(1)));
        let db = on(&fs, &clock);
        let one = db.select(1).unwrap();
        db.set(b"a", b"0").unwrap();
        one.set(b"b", b"1").unwrap();
        db.flushdb().unwrap();
        assert_eq!((db.dbsize().unwrap(), one.dbsize().unwrap()), (0, 1));
        db.set(b"c", b"2").unwrap();
        db.swapdb(0, 1).unwrap();
        let check = |db: &Db| {
            let one = db.select(1).unwrap();
            assert_eq!(db.keys(b"*").unwrap(), ["b"]);
            assert_eq!(one.keys(b"*").unwrap(), ["c"]);
            assert_eq!(one.get(b"c").unwrap().as_deref(), Some(&b"2"[..]));
        };
        check(&db);
        db.close().unwrap();
        let db = on(&fs, &clock);
        check(&db);
        db.flushall().unwrap();
        db.close().unwrap();
        let db = on(&fs, &clock);
        for number in 0..16 {
            let db = db.select(number).unwrap();
            assert_eq!(db.keys(b"*").unwrap(), [""; 0]);
            db.set(b"k", number.to_string().as_bytes()).unwrap();
        }
        db.flushdb().unwrap();
        for number in 0..16 {
            let value = db.select(number).unwrap().get(b"k").unwrap();
            assert_eq!(value.is_some(), number > 0, "no two databases share a space");
        }
    }

    #[test]
    fn ids_of_spaces_are_never_used_twice_even_in_one_transaction() {
        let (fs, clock) = (Arc::new(MemFs::untracked()), Arc::new(ManualClock::at(1)));
        let mut seen = HashSet::new();
        for _ in 0..3 {
            let db = on(&fs, &clock);
            db.write_alone(|tx| {
                for _ in 0..3 {
                    tx.set(b"k", b"v")?;
                    assert!(seen.insert(tx.space()));
                    tx.flushdb()?;
                    assert_eq!(tx.dbsize()?, 0);
                }
                tx.swapdb(0, 1)?;
                tx.set(b"k", b"v")
            })
            .unwrap();
            assert_eq!(db.dbsize().unwrap(), 1);
            db.close().unwrap();
        }
    }

    #[test]
    fn what_fails_changes_no_database() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.set(b"k", b"v").unwrap();
        let failed = db.write_alone(|tx| {
            tx.flushall()?;
            tx.swapdb(0, 99)
        });
        assert_eq!(failed.unwrap_err().message(), "ERR DB index is out of range");
        assert_eq!(db.dbsize().unwrap(), 1);
    }

    /// A writer that chose its locks before the database was emptied must not go on with them:
    /// two would then append to the same value, and both reply the same length. Since a value
    /// that got to a length was one byte shorter before, no length may be replied more often than
    /// the one before it.
    #[test]
    fn appends_around_flushes_are_not_lost() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let append = || (0..500).map(|_| db.append(b"k", b"x").unwrap()).collect::<Vec<_>>();
        let replies: Vec<i64> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3).map(|_| scope.spawn(append)).collect();
            for _ in 0..100 {
                db.flushdb().unwrap();
            }
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let times = |length| replies.iter().filter(|reply| **reply == length).count();
        for length in 2..=*replies.iter().max().unwrap() {
            assert!(times(length) <= times(length - 1), "{length}");
        }
        assert_eq!(db.check().unwrap(), [""; 0]);
    }

    #[test]
    fn expired_keys_are_not_counted_listed_or_chosen() {
        let clock = Arc::new(ManualClock::at(1000));
        let db = on(&Arc::new(MemFs::untracked()), &clock);
        for n in 0..6000 {
            let key = format!("key:{n:05}");
            db.set(key.as_bytes(), b"v").unwrap();
            if n != 3000 {
                db.pexpire(key.as_bytes(), 10, ExpireIf::ALWAYS).unwrap();
            }
        }
        assert_eq!(db.dbsize().unwrap(), 6000);
        let chosen: HashSet<_> = (0..20).map(|_| db.randomkey().unwrap().unwrap()).collect();
        assert!(chosen.len() > 5, "{chosen:?}");
        clock.advance(10);
        assert_eq!(db.dbsize().unwrap(), 1);
        assert_eq!(db.keys(b"key:*").unwrap(), ["key:03000"]);
        assert_eq!(db.randomkey().unwrap().as_deref(), Some(&b"key:03000"[..]));
        db.del(&[b"key:03000"]).unwrap();
        assert_eq!(db.randomkey().unwrap(), None);
    }

    #[test]
    fn walks_over_all_keys_leave_the_block_cache_alone() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        for n in 0..6000 {
            db.set(format!("key:{n}").as_bytes(), b"v").unwrap();
        }
        db.zadd(b"z", &[(1.0, b"m")], ZAdd::default()).unwrap();
        db.flush().unwrap();
        let before = db.engine_stats().cache_bytes;
        db.keys(b"*7*").unwrap();
        db.dbsize().unwrap();
        db.randomkey().unwrap();
        db.scan(b"", &ScanOptions::default()).unwrap();
        assert_eq!(db.check().unwrap(), [""; 0]);
        assert_eq!(db.engine_stats().cache_bytes, before);
        db.get(b"key:77").unwrap();
        assert!(db.engine_stats().cache_bytes > before);
    }

    #[test]
    fn every_key_of_a_small_database_is_chosen_sometimes() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        assert_eq!(db.randomkey().unwrap(), None);
        for key in [&b""[..], b"a", b"aa", b"\xff\xff"] {
            db.set(key, b"v").unwrap();
        }
        let chosen: HashSet<_> = (0..200).map(|_| db.randomkey().unwrap().unwrap()).collect();
        assert_eq!(chosen.len(), 4);
    }
}
