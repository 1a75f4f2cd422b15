//! Rewrites small collections that have accumulated many tombstones.
//!
//! A queue, a pool, a time window or a leaderboard has few members at any time, but a tombstone for
//! each former one until compaction removes it; and every walk and every random draw steps over
//! them. So when a collection has lost many times as many rows as it has, its members are written
//! again under a new version, in the same commit. All old rows are then dead, as after DEL, and no
//! walk meets them.
//!
//! The cost is a fraction of a row for each removed one, bounded for a single command by
//! [`MOST_MEMBERS`] and `Store::spare_bytes`.

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::txn::Tx;
use crate::txn::collection::Collection;
use crate::types::scores::stored_score;

/// Removals that never cause a rewrite. Fewer in the tests of this crate, whose models make short
/// histories.
const LEAST_REMOVED: u64 = if cfg!(test) { 4 } else { 64 };
/// Removals per member that cause no rewrite.
const REMOVED_PER_MEMBER: u64 = if cfg!(test) { 1 } else { 8 };
/// The most members of a collection that is rewritten; larger ones are left to compaction.
const MOST_MEMBERS: u64 = 4096;

impl Collection {
    /// Whether the collection has so many tombstones that it should be rewritten.
    pub(crate) fn needs_rewrite(&self) -> bool {
        let tolerated = LEAST_REMOVED + REMOVED_PER_MEMBER * self.len();
        self.len() <= MOST_MEMBERS && self.removed_rows() > tolerated
    }
}

impl Tx<'_> {
    /// Writes the members and the record again under a new version; whether it did. It does not if
    /// that is more than a command should write, or if a row is damaged or longer than the limits
    /// now allow: a command that does not touch the row must not fail for it.
    pub(crate) fn rewrite_collection(&mut self, collection: &Collection) -> Result<bool> {
        let mut build = self.build_collection(&collection.key)?;
        let limits = self.store().limits();
        let mut walk = collection.walk(self)?;
        while walk.advance()? {
            let (member, value) = (collection.sub_key(walk.key()), walk.value());
            let allowed = limits.check_value(member).and_then(|()| limits.check_value(value));
            let bytes = build.bytes() + 2 * walk.key().len() + value.len();
            if allowed.is_err() || bytes > self.store().spare_bytes() {
                return Ok(false);
            }
            match (collection.header.kind, stored_score(value)) {
                (Type::ZSet, Err(_)) => return Ok(false),
                (Type::ZSet, Ok(score)) => build.put_scored(member, score)?,
                _ => build.put_member(member, value)?,
            }
        }
        build.finish_members(self, &collection.key, collection.header, collection.len())?;
        Ok(true)
    }

    /// Whether a command may write rows that no one asked for: not on a full disk, where removals
    /// must succeed, not in a transaction of limited size, and not if much is pending already.
    pub(crate) fn has_room_to_rewrite(&self) -> bool {
        let little = self.pending_bytes() <= self.store().spare_bytes();
        self.is_unlimited() && little && !self.store().engine().is_short_of_space()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::txn::Db;
    use crate::types::ZAdd;
    use crate::types::testing::unpacked;

    fn db() -> Db {
        Db::open(":memory:", unpacked()).unwrap()
    }

    /// Waits until the next log segment is there. Before that nothing is rewritten, and on a busy
    /// machine the thread that makes it comes late.
    fn wait_for_space(db: &Db) {
        let short = || db.read(|tx| Ok(tx.store().engine().is_short_of_space())).unwrap();
        while short() {
            std::thread::yield_now();
        }
    }

    /// Removals that the record of `key` counts, and its version.
    fn removed(db: &Db, key: &[u8], kind: Type) -> (u64, u64) {
        db.read(|tx| {
            let record = tx.record(key)?.unwrap();
            let collection = tx.collection(key, kind)?.unwrap();
            Ok((collection.removed_rows(), record.body(key)?.version().unwrap()))
        })
        .unwrap()
    }

    #[test]
    fn a_pool_that_changes_all_the_time_never_has_many_more_dead_rows_than_live_ones() {
        let db = db();
        let mut versions = std::collections::HashSet::new();
        for n in 0..2000u32 {
            let name = n.to_be_bytes();
            db.sadd(b"set", &[&name]).unwrap();
            db.hset(b"hash", &[(&name, b"value")]).unwrap();
            db.zadd(b"zset", &[(f64::from(n % 7), &name)], ZAdd::default()).unwrap();
            if n < 20 {
                continue;
            }
            wait_for_space(&db);
            db.spop(b"set").unwrap();
            wait_for_space(&db);
            db.hdel(b"hash", &[&(n - 20).to_be_bytes()]).unwrap();
            wait_for_space(&db);
            db.zrem(b"zset", &[&(n - 20).to_be_bytes()]).unwrap();
            for (key, kind) in
                [(&b"set"[..], Type::Set), (b"hash", Type::Hash), (b"zset", Type::ZSet)]
            {
                let (removed, version) = removed(&db, key, kind);
                assert!(removed <= LEAST_REMOVED + 20 * REMOVED_PER_MEMBER, "{removed}");
                versions.insert(version);
            }
        }
        assert!(versions.len() > 3 * 2000 / 40, "{} versions", versions.len());
        assert_eq!(db.scard(b"set").unwrap(), 20);
        let left: Vec<_> = db.hkeys(b"hash").unwrap();
        assert_eq!(left, (1980..2000u32).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>());
        assert_eq!(db.zcard(b"zset").unwrap(), 20);
        assert_eq!(db.check().unwrap(), [""; 0]);
    }

    #[test]
    fn expiry_and_scores_with_their_sign_go_along() {
        let db = db();
        db.zadd(b"z", &[(-0.0, b"zero"), (1.5, b"one")], ZAdd::default()).unwrap();
        db.expire(b"z", 1000, crate::types::ExpireIf::default()).unwrap();
        let before = removed(&db, b"z", Type::ZSet);
        for n in 0..50u32 {
            db.zadd(b"z", &[(9.0, &n.to_be_bytes())], ZAdd::default()).unwrap();
            wait_for_space(&db);
            db.zpopmax(b"z", 1).unwrap();
        }
        assert_ne!(removed(&db, b"z", Type::ZSet).1, before.1, "it was written anew");
        assert!(db.zscore(b"z", b"zero").unwrap().unwrap().is_sign_negative());
        assert_eq!(db.zscore(b"z", b"one").unwrap(), Some(1.5));
        assert!((900..=1000).contains(&db.ttl(b"z").unwrap()));
    }

    #[test]
    fn what_is_too_much_for_a_command_stays_as_it_is() {
        let db = db();
        let large = vec![b'x'; 128 << 10];
        for field in [b"a", b"b", b"c"] {
            db.hset(b"h", &[(field, &large)]).unwrap();
        }
        let version = removed(&db, b"h", Type::Hash).1;
        for n in 0..40u32 {
            db.hset(b"h", &[(&n.to_be_bytes(), b"")]).unwrap();
            db.hdel(b"h", &[&n.to_be_bytes()]).unwrap();
            let (removed, now) = removed(&db, b"h", Type::Hash);
            assert_eq!(now, version);
            assert!(removed <= LEAST_REMOVED + 4 * REMOVED_PER_MEMBER, "{removed}");
        }
        assert_eq!(db.hlen(b"h").unwrap(), 3);
    }

    #[test]
    fn a_row_longer_than_is_allowed_by_now_stops_no_removal() {
        let fs = std::sync::Arc::new(crate::engine::MemFs::new());
        let open = |max_value_bytes| {
            let options = Options { max_value_bytes, ..unpacked() };
            let clock = std::sync::Arc::new(crate::io::clock::ManualClock::at(1));
            Db::open_on(fs.clone(), std::path::Path::new("/store"), options, clock).unwrap()
        };
        let db = open(1 << 20);
        db.hset(b"h", &[(b"long", &vec![b'x'; 1000])]).unwrap();
        db.close().unwrap();
        let db = open(100);
        for n in 0..50u32 {
            db.hset(b"h", &[(&n.to_be_bytes(), b"")]).unwrap();
            assert_eq!(db.hdel(b"h", &[&n.to_be_bytes()]).unwrap(), 1);
        }
        assert_eq!(db.hlen(b"h").unwrap(), 1);
    }
}
