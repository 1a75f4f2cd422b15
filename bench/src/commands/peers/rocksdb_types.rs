//! lsmkv's own encoding of Redis structures on RocksDB, in this process: what a careful hand-made
//! layer over RocksDB does for each command.
//!
//! A command reads the meta record (type, expiry, version, size), reads the rows it needs, and
//! writes rows and record in one batch. Deleting touches the record only. Two things are left out,
//! both in its favour: locks (one thread uses it), and telling versions across a reopen. It has no
//! SPOP: nothing in the encoding finds a member at random without a walk over all.

mod collections;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use lsmkv::encoding::keys::{MetaKey, Space, meta_key};
use lsmkv::encoding::meta::{HEADER_BYTES, Header, Type, encode_string};

use crate::Result;
use crate::commands::call::{Answer, Call, Store};
use crate::peers::rocksdb::config;
use crate::peers::rocksdb_c::families::{Batch, Families, Family};
use crate::plan::Settings;

const SPACE: Space = Space::of_database(0);

pub(crate) struct RocksdbTypes {
    /// Empty between commands.
    batch: Batch,
    /// The newest version given to a collection.
    version: u64,
    meta: Family,
    data: Family,
    score: Family,
    db: Families<3>,
}

impl Store for RocksdbTypes {
    fn open(dir: &Path, settings: &Settings) -> Result<Self> {
        let db = Families::open(dir, &config(settings)?, ["default", "data", "score"])?;
        let [meta, data, score] = db.all();
        Ok(Self { batch: Batch::new()?, version: 0, meta, data, score, db })
    }

    fn can(call: &Call<'_>) -> bool {
        !matches!(call, Call::Spop(_))
    }

    fn call(&mut self, call: &Call<'_>, expected: Answer) -> Result<()> {
        self.answer(call)?.check(expected)
    }

    fn settle(&mut self) -> Result<()> {
        self.db.compact();
        Ok(())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

impl RocksdbTypes {
    fn answer(&mut self, call: &Call<'_>) -> Result<Answer> {
        match *call {
            Call::Set(key, value) => self.set(key, value).map(|()| Answer::Done),
            Call::Get(key) => Ok(string(self.get(key)?)),
            Call::Incr(key) => self.incr(key).map(Answer::Number),
            Call::Hset(key, pairs) => self.hset(key, pairs).map(Answer::Number),
            Call::Hget(key, field) => Ok(string(self.member(key, Type::Hash, field)?)),
            Call::Hgetall(key) => Ok(Answer::Items(2 * self.hgetall(key)?.len())),
            Call::Lpush(key, element) => self.lpush(key, element).map(Answer::Number),
            Call::Lpop(key) => Ok(string(self.lpop(key)?)),
            Call::Lrange(key, first, last) => {
                Ok(Answer::Items(self.lrange(key, first, last)?.len()))
            }
            Call::Sadd(key, member) => self.sadd(key, member).map(Answer::Number),
            Call::Sismember(key, member) => {
                Ok(Answer::Number(self.member(key, Type::Set, member)?.is_some().into()))
            }
            Call::Spop(_) => Err("RocksDB-types has no SPOP".into()),
            Call::Zadd(key, score, member) => self.zadd(key, score, member).map(Answer::Number),
            Call::Zscore(key, member) => {
                Ok(self.zscore(key, member)?.map_or(Answer::Nothing, |_| Answer::Score))
            }
            Call::Zrange(key, first, last) => {
                Ok(Answer::Items(self.zrange(key, first, last)?.len()))
            }
            Call::Zrangebyscore(key, least, greatest) => {
                Ok(Answer::Items(self.zrangebyscore(key, least, greatest)?.len()))
            }
            Call::Zpopmin(key) => {
                Ok(self.zpopmin(key)?.map_or(Answer::Nothing, |_| Answer::Items(2)))
            }
            Call::Del(key) => self.del(key).map(Answer::Number),
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.put(self.meta, &meta_key(SPACE, key), &encode_string(value, 0));
        self.db.write(&mut self.batch)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.typed(&meta_key(SPACE, key), Type::String, |_, record| {
            Ok(record.get(HEADER_BYTES..).unwrap_or_default().to_vec())
        })
    }

    fn incr(&mut self, key: &[u8]) -> Result<i64> {
        let meta_key = meta_key(SPACE, key);
        let old = self.typed(&meta_key, Type::String, |header, record| {
            let text = record.get(HEADER_BYTES..).unwrap_or_default();
            Ok((header.expire_ms, std::str::from_utf8(text)?.parse::<i64>()?))
        })?;
        let (expire_ms, number) = old.unwrap_or((0, 0));
        let sum = number.checked_add(1).ok_or("increment would overflow")?;
        self.batch.put(self.meta, &meta_key, &encode_string(sum.to_string().as_bytes(), expire_ms));
        self.db.write(&mut self.batch)?;
        Ok(sum)
    }

    fn del(&mut self, key: &[u8]) -> Result<i64> {
        let meta_key = meta_key(SPACE, key);
        let Some(record) = self.db.get(self.meta, &meta_key)? else { return Ok(0) };
        if expired(decoded(record.bytes())?)? {
            return Ok(0);
        }
        drop(record);
        self.batch.delete(self.meta, &meta_key);
        self.db.write(&mut self.batch)?;
        Ok(1)
    }

    /// What `read` makes of the record of a key that exists; an error if it is of another type.
    fn typed<T>(
        &self,
        meta_key: &MetaKey,
        kind: Type,
        read: impl FnOnce(Header, &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(record) = self.db.get(self.meta, meta_key)? else { return Ok(None) };
        let header = decoded(record.bytes())?;
        if expired(header)? {
            return Ok(None);
        }
        if header.kind != kind {
            return Err("Operation against a key holding the wrong kind of value".into());
        }
        read(header, record.bytes()).map(Some)
    }
}

fn decoded(record: &[u8]) -> Result<Header> {
    Header::decode(record).map_err(|malformed| malformed.to_string().into())
}

/// The clock is only asked where it matters.
fn expired(header: Header) -> Result<bool> {
    if header.expire_ms == 0 {
        return Ok(false);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    Ok(header.expired(u64::try_from(now)?))
}

fn string(found: Option<Vec<u8>>) -> Answer {
    found.map_or(Answer::Nothing, |bytes| Answer::Bytes(bytes.len()))
}
