//! Small collections from which much was removed are written anew.
//!
//! A queue, a pool, a window of time or a board of scores that changes all day has few members at
//! any moment, but a tombstone in the trees for each that ever was, until compaction comes by; and
//! every walk, every draw at random, steps over them. So when a collection has lost many times as
//! many rows as it has, its members are written again under a new version, in the same commit. The
//! old rows are then dead as a whole, as after DEL, and no walk meets them.
//!
//! The work is a fraction of a row for each removed one, and bounded for a single command by
//! [`MOST_MEMBERS`] and `Store::spare_bytes`.

use crate::encoding::meta::Type;
use crate::error::Result;
use crate::types::collection::Collection;
use crate::types::txn::Tx;
use crate::types::zset::rows::stored_score;

/// Removals that are always put up with. Few in the tests of this crate, whose models make short
/// histories.
const LEAST_REMOVED: u64 = if cfg!(test) { 4 } else { 64 };
/// Removals for each member that are put up with.
const REMOVED_PER_MEMBER: u64 = if cfg!(test) { 1 } else { 8 };
/// Larger collections are left to compaction.
const MOST_MEMBERS: u64 = 4096;

impl Collection {
    /// Whether it shall be written anew.
    pub(crate) fn is_worn(&self) -> bool {
        let put_up_with = LEAST_REMOVED + REMOVED_PER_MEMBER * self.len();
        self.len() <= MOST_MEMBERS && self.wear().removed() > put_up_with
    }
}

impl Tx<'_> {
    /// Writes the members again under a new version, and the record; whether it did: not if that
    /// is more than a command should write, nor if a row is damaged or longer than is allowed by
    /// now, which is no reason for a command to fail that does not touch it.
    pub(crate) fn renew(&mut self, worn: &Collection) -> Result<bool> {
        let mut build = self.build(worn.key())?;
        let limits = self.store().limits();
        let mut walk = worn.walk(self)?;
        while walk.advance()? {
            let (member, value) = (worn.sub_key(walk.key()), walk.value());
            let allowed = limits.check_value(member).and_then(|()| limits.check_value(value));
            let bytes = build.bytes() + 2 * walk.key().len() + value.len();
            if allowed.is_err() || bytes > self.store().spare_bytes() {
                return Ok(false);
            }
            match (worn.header().kind, stored_score(value)) {
                (Type::ZSet, Err(_)) => return Ok(false),
                (Type::ZSet, Ok(score)) => build.put_scored(member, score)?,
                _ => build.put_member(member, value)?,
            }
        }
        build.finish_members(self, worn.key(), worn.header(), worn.len())?;
        Ok(true)
    }

    /// Whether there is room for rows that no one asked to be written: not on a full disk, where
    /// commands that remove must go through, nor in a transaction of limited size, nor if much is
    /// to be written anyhow.
    pub(crate) fn has_room_to_renew(&self) -> bool {
        let little = self.bytes_aside() <= self.store().spare_bytes();
        self.unlimited() && little && !self.store().engine().is_short_of_space()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::types::testing::unpacked;
    use crate::types::{Db, ZAdd};

    fn db() -> Db {
        Db::open(":memory:", unpacked()).unwrap()
    }

    /// Removals that the record of `key` counts, and its version.
    fn removed(db: &Db, key: &[u8], kind: Type) -> (u64, u64) {
        db.read(|tx| {
            let record = tx.record(key)?.unwrap();
            let collection = tx.collection(key, kind)?.unwrap();
            Ok((collection.wear().removed(), tx.body(key, &record)?.version().unwrap()))
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
            db.spop(b"set").unwrap();
            db.hdel(b"hash", &[&(n - 20).to_be_bytes()]).unwrap();
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
