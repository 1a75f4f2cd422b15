//! Makes a new store from what can be read of a damaged one.
//!
//! The new store is sound for the engine: every byte of it has its checksum. A collection or a large
//! string may still be incomplete: rows may be lost while the record says how many there were. [`Db::check`]
//! finds such keys; a repair copies what is there into a fresh store.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::encoding::chunked::{Chunks, is_chunked};
use crate::encoding::expiry::PROPERTY;
use crate::encoding::keys::{Row, split_meta_key, split_row_key};
use crate::encoding::meta::{Body, Header, Type};
use crate::engine::{
    EngineConfig, Loss, Observer, Properties, RealFs, Salvaged, Sequence, TreeId, salvage,
};
use crate::error::Result;
use crate::io::clock::RealClock;
use crate::keyspace::limits::Limits;
use crate::keyspace::read_clock::ReadClock;
use crate::keyspace::trees::{DATA, META};
use crate::options::Options;
use crate::reclaim::filters::Reclaim;
use crate::txn::Db;
use crate::types::StringValue;

struct Watcher<F> {
    progress: F,
    /// The versions of sorted sets.
    scored: HashSet<u64>,
    /// The versions of lists and of strings in chunks, whose rows are not counted.
    uncounted: HashSet<u64>,
}

impl<F: FnMut(u64, u64) -> Result<()>> Observer for Watcher<F> {
    /// Takes tables of the score tree for tables of the data tree: the rows of a set look the same.
    fn tree_of(&self, properties: &Properties) -> TreeId {
        if properties.collected(PROPERTY).is_some() { META } else { DATA }
    }

    /// Tells the two apart: a version belongs to one key, and the members of a sorted set have a
    /// value, the score.
    fn belongs(&mut self, tree: TreeId, key: &[u8], value: &[u8]) -> bool {
        if tree == META {
            self.note_version(value);
        }
        let is_score = || split_row_key(key).is_some_and(|row| self.scored.contains(&row.version));
        tree != DATA || !value.is_empty() || !is_score()
    }

    /// Counts the rows of hashes, sets and sorted sets. Their versions are older than the new store.
    fn is_counted(&mut self, tree: TreeId, key: &[u8], _value: &[u8]) -> bool {
        let is_uncounted = |row: Row<'_>| self.uncounted.contains(&row.version);
        tree != META && !split_row_key(key).is_some_and(is_uncounted)
    }

    fn counted_from(&self, _newest: Sequence) -> Sequence {
        0
    }

    fn progress(&mut self, done: u64, total: u64) -> Result<()> {
        (self.progress)(done, total)
    }
}

impl<F> Watcher<F> {
    /// Notes the version that a record names.
    fn note_version(&mut self, record: &[u8]) {
        let Ok(header) = Header::decode(record) else { return };
        let version = || Body::decode(header.kind, record).ok().and_then(|body| body.version());
        match header.kind {
            Type::ZSet => self.scored.extend(version()),
            Type::List => self.uncounted.extend(version()),
            Type::String if is_chunked(record) => {
                self.uncounted.extend(Chunks::decode(record).map(|chunks| chunks.version));
            }
            _ => {}
        }
    }
}

impl Db {
    /// Makes a store in `out`, which must not exist, of everything that can be read in `dir`, and
    /// reports what could not. The damaged store is only read. Where the newest version of a key
    /// was lost, an older one may reappear. `progress` is told the bytes read so far and in all; if
    /// it fails, the work ends and nothing is left of `out`.
    ///
    /// Collections may have lost members; [`Db::check`] finds them.
    pub fn salvage(
        dir: impl AsRef<Path>,
        out: impl AsRef<Path>,
        options: Options,
        progress: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<Salvaged> {
        options.validate()?;
        let limits = Limits { key: options.max_key_bytes, value: options.max_value_bytes };
        let reclaim = Arc::new(Reclaim::new(Arc::new(ReadClock::new(Arc::new(RealClock)))));
        let config = EngineConfig { options: limits.widen(options), trees: reclaim.trees() };
        let fs: Arc<dyn crate::engine::FileSystem> = Arc::new(RealFs);
        let mut watcher = Watcher { progress, scored: HashSet::new(), uncounted: HashSet::new() };
        salvage(&fs, dir.as_ref(), out.as_ref(), &config, &mut watcher)
    }
}

impl Db {
    /// The value of a string with zeros for the chunks that were lost, and the number of those;
    /// `None` if there is no such string. [`Db::get`] fails if a chunk was lost.
    pub fn salvaged_string(&self, key: &[u8]) -> Result<Option<(Bytes, u64)>> {
        self.read(|tx| match tx.string(key)? {
            Some(StringValue::Chunked(string)) => string.read_remains(tx).map(Some),
            Some(StringValue::Whole(value)) => Ok(Some((value, 0))),
            None => Ok(None),
        })
    }
}

impl Loss {
    /// The user keys between which something was lost, as far as they are known.
    pub fn user_keys(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let user_key = |key: &Option<Vec<u8>>| {
            let key = key.as_deref()?;
            match self.tree {
                Some(META) => split_meta_key(key).map(|(_, user_key)| user_key.to_vec()),
                _ => split_row_key(key).map(|row| row.user_key),
            }
        };
        (user_key(&self.between.0), user_key(&self.between.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::keys::{after_prefix, prefix};
    use crate::types::testing::unpacked;
    use crate::types::{By, ZAdd, ZRange};

    fn fill(db: &Db) {
        db.set(b"string", &vec![b'x'; 200_000]).unwrap();
        for round in 0..3u32 {
            for n in 0..200u32 {
                let (name, score) = (format!("member:{n:03}"), f64::from(n * 7 % 50 + round));
                db.zadd(b"zset", &[(score, name.as_bytes())], ZAdd::default()).unwrap();
                db.hset(b"hash", &[(name.as_bytes(), b"value")]).unwrap();
                db.sadd(b"set", &[name.as_bytes()]).unwrap();
                db.rpush(b"list", &[name.as_bytes()]).unwrap();
                if n % 9 == round {
                    db.zrem(b"zset", &[name.as_bytes()]).unwrap();
                    db.hdel(b"hash", &[name.as_bytes()]).unwrap();
                    db.srem(b"set", &[name.as_bytes()]).unwrap();
                }
            }
            match round {
                0 => db.compact().unwrap(),
                1 => db.flush().unwrap(),
                _ => {}
            }
        }
    }

    /// What the engine counts of the rows of the list and of the string in chunks.
    fn uncounted_rows(db: &Db) -> u64 {
        db.read(|tx| {
            let list = tx.record(b"list")?.unwrap().body(b"list")?.version().unwrap();
            let string = Chunks::decode(&tx.record(b"string")?.unwrap().bytes).unwrap().version;
            let count = |key: &[u8], version| {
                let rows = prefix(tx.space(), key, version);
                tx.count_rows(DATA, &rows, after_prefix(&rows).as_deref())
            };
            Ok(count(b"list", list)? + count(b"string", string)?)
        })
        .unwrap()
    }

    /// Whether every rank is right and every collection is counted.
    fn check_ranks(db: &Db, keys: [&[u8]; 3]) {
        let all = db.zrange(keys[0], &ZRange::of(By::Rank(0, -1))).unwrap();
        assert!(!all.is_empty());
        for (rank, member) in (0..).zip(&all) {
            assert_eq!(db.zrank(keys[0], member).unwrap(), Some(rank));
        }
        for (key, kind) in keys.into_iter().zip([Type::ZSet, Type::Hash, Type::Set]) {
            db.read(|tx| {
                let collection = tx.collection(key, kind)?.unwrap();
                assert!(collection.is_counted(tx));
                let last = collection.len() - 1;
                assert!(collection.select_member(tx, last)?.is_some());
                assert_eq!(collection.select_member(tx, last + 1)?, None);
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(db.check().unwrap(), [""; 0]);
    }

    #[test]
    fn a_salvaged_store_counts_its_rows_whether_the_damaged_one_did_or_not() {
        let scratch = tempfile::tempdir().unwrap();
        let new = scratch.path().join("new");
        let db = Db::open(&new, unpacked()).unwrap();
        fill(&db);
        db.close().unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let old = root.join("tests/testdata/stores/format-2-closed");
        let of_old: [&[u8]; 3] = [b"large:zset", b"large:hash", b"large:set"];
        let cases = [(new, [&b"zset"[..], b"hash", b"set"]), (old, of_old)];
        for (n, (dir, keys)) in cases.into_iter().enumerate() {
            let copy = scratch.path().join(format!("copy{n}"));
            std::fs::create_dir(&copy).unwrap();
            for file in std::fs::read_dir(dir).unwrap().map(std::result::Result::unwrap) {
                std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
            }
            let out = scratch.path().join(format!("out{n}"));
            let salvaged = Db::salvage(&copy, &out, unpacked(), |_, _| Ok(())).unwrap();
            assert_eq!(salvaged.losses, []);
            let db = Db::open(&out, unpacked()).unwrap();
            check_ranks(&db, keys);
            if keys[0] == b"zset" {
                assert_eq!(uncounted_rows(&db), 0);
            }
            // Writes go on from there.
            for n in 0..100u32 {
                db.zadd(keys[0], &[(1.5, &n.to_be_bytes())], ZAdd::default()).unwrap();
                db.zpopmin(keys[0], 1).unwrap();
            }
            check_ranks(&db, keys);
            db.compact().unwrap();
            check_ranks(&db, keys);
        }
    }
}
