//! lsmkv in this process, through the methods of `Db`.

use std::ops::Bound;
use std::path::Path;

use lsmkv::types::{By, ZAdd, ZRange};
use lsmkv::{Db, Options, SyncMode};

use crate::Result;
use crate::commands::call::{Answer, Call, Store};
use crate::peers::lsmkv::options;
use crate::plan::Settings;

pub(crate) struct Lsmkv(Db);

impl Store for Lsmkv {
    /// Its log is flushed to the device every second, as that of Redis here is.
    fn open(dir: &Path, settings: &Settings) -> Result<Self> {
        let options = Options { sync: SyncMode::Interval, ..options(settings) };
        Ok(Self(Db::open(dir, options)?))
    }

    fn call(&mut self, call: &Call<'_>, expected: Answer) -> Result<()> {
        self.answer(call)?.check(expected)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.0.compact()?)
    }

    fn close(self) -> Result<()> {
        Ok(self.0.close()?)
    }
}

impl Lsmkv {
    fn answer(&self, call: &Call<'_>) -> lsmkv::Result<Answer> {
        let db = &self.0;
        Ok(match *call {
            Call::Set(key, value) => {
                db.set(key, value)?;
                Answer::Done
            }
            Call::Get(key) => string(db.get(key)?),
            Call::Incr(key) => Answer::Number(db.incr(key)?),
            Call::Hset(key, pairs) => Answer::Number(db.hset(key, pairs)?),
            Call::Hget(key, field) => string(db.hget(key, field)?),
            Call::Hgetall(key) => Answer::Items(2 * db.hgetall(key)?.len()),
            Call::Lpush(key, element) => Answer::Number(db.lpush(key, &[element])?),
            Call::Lpop(key) => string(db.lpop(key)?),
            Call::Lrange(key, first, last) => {
                Answer::Items(db.lrange(key, position(first), position(last))?.len())
            }
            Call::Sadd(key, member) => Answer::Number(db.sadd(key, &[member])?),
            Call::Sismember(key, member) => Answer::Number(db.sismember(key, member)?.into()),
            Call::Spop(key) => string(db.spop(key)?),
            Call::Zadd(key, score, member) => {
                Answer::Number(db.zadd(key, &[(score, member)], ZAdd::default())?)
            }
            Call::Zscore(key, member) => {
                db.zscore(key, member)?.map_or(Answer::Nothing, |_| Answer::Score)
            }
            Call::Zrange(key, first, last) => {
                let ranks = ZRange::of(By::Rank(position(first), position(last)));
                Answer::Items(db.zrange(key, &ranks)?.len())
            }
            Call::Zrangebyscore(key, least, greatest) => {
                let (least, greatest) = (Bound::Included(least), Bound::Included(greatest));
                Answer::Items(db.zrangebyscore(key, least, greatest)?.len())
            }
            Call::Zpopmin(key) => Answer::Items(2 * db.zpopmin(key, 1)?.len()),
            Call::Del(key) => Answer::Number(db.del(&[key])?),
        })
    }
}

fn string(found: Option<impl AsRef<[u8]>>) -> Answer {
    found.map_or(Answer::Nothing, |bytes| Answer::Bytes(bytes.as_ref().len()))
}

fn position(from_front: u64) -> i64 {
    i64::try_from(from_front).unwrap_or(i64::MAX)
}
