//! Hashes, lists, sets and sorted sets.

use lsmkv::encoding::keys::{MetaKey, Prefix, after_prefix, meta_key, prefix, row_key, score_key};
use lsmkv::encoding::meta::{Body, Header, Type, encode_collection};
use lsmkv::encoding::order::{score_bytes, score_from_bytes};
use lsmkv::encoding::tombstones::TombstoneStats;

use super::{RocksdbTypes, SPACE};
use crate::Result;
use crate::peers::rocksdb_c::families::Family;

/// The index of the first element that a list gets.
const MIDDLE: u64 = 1 << 63;
/// Bytes of a score in a key.
const SCORE_BYTES: usize = 8;

/// A collection that exists or is being made.
struct Loaded {
    meta_key: MetaKey,
    header: Header,
    body: Body,
    prefix: Prefix,
    /// The rows about to be written are known to be new, so none are looked for.
    fresh: bool,
}

impl Loaded {
    /// The number of members, to be changed. Lists have none.
    fn size(&mut self) -> Result<&mut u64> {
        match &mut self.body {
            Body::Members { size, .. } => Ok(size),
            _ => Err("no members where some belong".into()),
        }
    }

    /// Where a list begins and ends, to be changed.
    fn span(&mut self) -> Result<(&mut u64, &mut u64)> {
        match &mut self.body {
            Body::Span { head, tail, .. } => Ok((head, tail)),
            _ => Err("no list where one belongs".into()),
        }
    }
}

impl RocksdbTypes {
    fn load(&self, key: &[u8], kind: Type) -> Result<Option<Loaded>> {
        let meta_key = meta_key(SPACE, key);
        let found = self.typed(&meta_key, kind, |header, record| {
            let body = Body::decode(kind, record).map_err(|malformed| malformed.to_string())?;
            Ok((header, body))
        })?;
        let Some((header, body)) = found else { return Ok(None) };
        let version = body.version().ok_or("a collection without rows")?;
        let prefix = prefix(SPACE, key, version);
        Ok(Some(Loaded { meta_key, header, body, prefix, fresh: false }))
    }

    fn load_or_new(&mut self, key: &[u8], kind: Type) -> Result<Loaded> {
        if let Some(loaded) = self.load(key, kind)? {
            return Ok(loaded);
        }
        self.version += 1;
        let version = self.version;
        let body = match kind {
            Type::List => Body::Span { version, head: MIDDLE, tail: MIDDLE },
            _ => Body::Members { version, size: 0, tombstones: TombstoneStats::default() },
        };
        let header = Header { kind, expire_ms: 0 };
        let prefix = prefix(SPACE, key, version);
        Ok(Loaded { meta_key: meta_key(SPACE, key), header, body, prefix, fresh: true })
    }

    /// Writes the record with everything that is in the batch, or deletes an empty collection's.
    fn save(&mut self, loaded: &Loaded) -> Result<()> {
        let empty = match &loaded.body {
            Body::Members { size, .. } => *size == 0,
            Body::Span { head, tail, .. } => head == tail,
            Body::Packed(_) => return Err("a collection without rows".into()),
        };
        if empty {
            self.batch.delete(self.meta, &loaded.meta_key);
        } else {
            let record = encode_collection(loaded.header, &loaded.body);
            self.batch.put(self.meta, &loaded.meta_key, &record);
        }
        self.db.write(&mut self.batch)
    }

    fn row(&self, loaded: &Loaded, member: &[u8]) -> Result<Option<Vec<u8>>> {
        if loaded.fresh {
            return Ok(None);
        }
        let found = self.db.get(self.data, &row_key(&loaded.prefix, member))?;
        Ok(found.map(|value| value.bytes().to_vec()))
    }

    /// What is stored beside a member, or a field's value.
    pub(super) fn member(&self, key: &[u8], kind: Type, member: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.load(key, kind)? {
            Some(loaded) => self.row(&loaded, member),
            None => Ok(None),
        }
    }

    /// Puts members that are not named twice; how many are new.
    fn put(&mut self, mut loaded: Loaded, pairs: &[(&[u8], &[u8])]) -> Result<i64> {
        let mut new = 0;
        for (member, value) in pairs {
            new += u64::from(self.row(&loaded, member)?.is_none());
            self.batch.put(self.data, &row_key(&loaded.prefix, member), value);
        }
        if new == 0 {
            self.db.write(&mut self.batch)?;
            return Ok(0);
        }
        *loaded.size()? += new;
        self.save(&loaded)?;
        Ok(i64::try_from(new)?)
    }

    pub(super) fn hset(&mut self, key: &[u8], pairs: &[(&[u8], &[u8])]) -> Result<i64> {
        let hash = self.load_or_new(key, Type::Hash)?;
        self.put(hash, pairs)
    }

    pub(super) fn hgetall(&self, key: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let Some(hash) = self.load(key, Type::Hash)? else { return Ok(Vec::new()) };
        self.rows(self.data, &hash.prefix, &hash.prefix, u64::MAX, |sub_key, value| {
            (sub_key.to_vec(), value.to_vec())
        })
    }

    pub(super) fn sadd(&mut self, key: &[u8], member: &[u8]) -> Result<i64> {
        let set = self.load_or_new(key, Type::Set)?;
        if self.row(&set, member)?.is_some() {
            return Ok(0);
        }
        self.put(Loaded { fresh: true, ..set }, &[(member, b"")])
    }

    pub(super) fn lpush(&mut self, key: &[u8], element: &[u8]) -> Result<i64> {
        let mut list = self.load_or_new(key, Type::List)?;
        let (head, tail) = list.span()?;
        *head -= 1;
        let (index, len) = (head.to_be_bytes(), *tail - *head);
        self.batch.put(self.data, &row_key(&list.prefix, &index), element);
        self.save(&list)?;
        Ok(i64::try_from(len)?)
    }

    /// Rows outside the list are dead: only the record is written.
    pub(super) fn lpop(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(mut list) = self.load(key, Type::List)? else { return Ok(None) };
        let (head, _) = list.span()?;
        let index = head.to_be_bytes();
        *head += 1;
        let element = self.row(&list, &index)?;
        self.save(&list)?;
        Ok(element)
    }

    pub(super) fn lrange(&self, key: &[u8], first: u64, last: u64) -> Result<Vec<Vec<u8>>> {
        let Some(mut list) = self.load(key, Type::List)? else { return Ok(Vec::new()) };
        let (head, tail) = list.span()?;
        let start = head.saturating_add(first);
        let end = head.saturating_add(last).saturating_add(1).min(*tail);
        let from = row_key(&list.prefix, &start.to_be_bytes());
        let count = end.saturating_sub(start);
        self.rows(self.data, &list.prefix, &from, count, |_, value| value.to_vec())
    }

    pub(super) fn zadd(&mut self, key: &[u8], score: f64, member: &[u8]) -> Result<i64> {
        let mut zset = self.load_or_new(key, Type::ZSet)?;
        let old = self.row(&zset, member)?;
        let value = score.to_le_bytes();
        if old.as_deref() == Some(&value[..]) {
            return Ok(0);
        }
        self.batch.put(self.data, &row_key(&zset.prefix, member), &value);
        self.batch.put(self.score, &score_key(&zset.prefix, score, member), b"");
        if let Some(old) = old {
            self.batch.delete(self.score, &score_key(&zset.prefix, stored_score(&old)?, member));
            self.db.write(&mut self.batch)?;
            return Ok(0);
        }
        *zset.size()? += 1;
        self.save(&zset)?;
        Ok(1)
    }

    pub(super) fn zscore(&self, key: &[u8], member: &[u8]) -> Result<Option<f64>> {
        let found = self.member(key, Type::ZSet, member)?;
        found.map(|value| stored_score(&value)).transpose()
    }

    pub(super) fn zrange(&self, key: &[u8], first: u64, last: u64) -> Result<Vec<Vec<u8>>> {
        let Some(zset) = self.load(key, Type::ZSet)? else { return Ok(Vec::new()) };
        let end = last.saturating_add(1);
        let mut members =
            self.rows(self.score, &zset.prefix, &zset.prefix, end, |row, _| member_of(row))?;
        Ok(members.split_off(usize::try_from(first)?.min(members.len())))
    }

    pub(super) fn zrangebyscore(
        &self,
        key: &[u8],
        least: f64,
        greatest: f64,
    ) -> Result<Vec<Vec<u8>>> {
        let Some(zset) = self.load(key, Type::ZSet)? else { return Ok(Vec::new()) };
        let from = row_key(&zset.prefix, &score_bytes(least));
        let to = row_key(&zset.prefix, &score_bytes(greatest));
        self.rows_before(self.score, &zset.prefix, &from, &to, u64::MAX, |row, _| member_of(row))
    }

    pub(super) fn zpopmin(&mut self, key: &[u8]) -> Result<Option<(Vec<u8>, f64)>> {
        let Some(mut zset) = self.load(key, Type::ZSet)? else { return Ok(None) };
        let rows = self.rows(self.score, &zset.prefix, &zset.prefix, 1, |row, _| row.to_vec())?;
        let row = rows.first().ok_or("a sorted set without its rows")?;
        let (score, member) = row.split_first_chunk().ok_or("a score row without a score")?;
        self.batch.delete(self.score, &row_key(&zset.prefix, row));
        self.batch.delete(self.data, &row_key(&zset.prefix, member));
        *zset.size()? -= 1;
        self.save(&zset)?;
        Ok(Some((member.to_vec(), score_from_bytes(*score))))
    }

    /// Up to `limit` rows of a collection from `from` on: sub keys and values.
    fn rows<T>(
        &self,
        family: Family,
        prefix: &[u8],
        from: &[u8],
        limit: u64,
        make: impl FnMut(&[u8], &[u8]) -> T,
    ) -> Result<Vec<T>> {
        self.rows_before(family, prefix, from, prefix, limit, make)
    }

    /// Walks up to the last row that begins with `to`.
    fn rows_before<T>(
        &self,
        family: Family,
        prefix: &[u8],
        from: &[u8],
        to: &[u8],
        limit: u64,
        mut make: impl FnMut(&[u8], &[u8]) -> T,
    ) -> Result<Vec<T>> {
        let end = after_prefix(to).ok_or("no key comes after these")?;
        let mut walk = self.db.walk(family, from, end)?;
        let mut made = Vec::new();
        while (made.len() as u64) < limit {
            let Some((key, value)) = walk.iter.entry() else { break };
            made.push(make(key.get(prefix.len()..).unwrap_or_default(), value));
            walk.iter.advance();
        }
        walk.finish()?;
        Ok(made)
    }
}

fn stored_score(value: &[u8]) -> Result<f64> {
    Ok(f64::from_le_bytes(value.try_into()?))
}

fn member_of(row: &[u8]) -> Vec<u8> {
    row.get(SCORE_BYTES..).unwrap_or_default().to_vec()
}
