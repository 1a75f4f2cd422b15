//! A command, its answer, and the stores that take the one and give the other.

use std::path::Path;

use super::peers::Kind;
use super::peers::lsmkv::Lsmkv;
use super::peers::redis::Redis;
#[cfg(has_rocksdb)]
use super::peers::rocksdb_types::RocksdbTypes;
use super::placement::Placement;
use crate::Result;
use crate::plan::Settings;

/// A command with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'a> {
    Set(&'a [u8], &'a [u8]),
    Get(&'a [u8]),
    Incr(&'a [u8]),
    /// No field is named twice.
    Hset(&'a [u8], &'a [(&'a [u8], &'a [u8])]),
    Hget(&'a [u8], &'a [u8]),
    Hgetall(&'a [u8]),
    Lpush(&'a [u8], &'a [u8]),
    Lpop(&'a [u8]),
    /// First and last position, both from the front.
    Lrange(&'a [u8], u64, u64),
    Sadd(&'a [u8], &'a [u8]),
    Sismember(&'a [u8], &'a [u8]),
    Spop(&'a [u8]),
    Zadd(&'a [u8], f64, &'a [u8]),
    Zscore(&'a [u8], &'a [u8]),
    /// First and last position, both from the front.
    Zrange(&'a [u8], u64, u64),
    /// Least and greatest score, both included.
    Zrangebyscore(&'a [u8], f64, f64),
    Zpopmin(&'a [u8]),
    Del(&'a [u8]),
}

/// What can be told of an answer without keeping it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// There is none to tell: the command was done.
    Done,
    Number(i64),
    /// A string of so many bytes.
    Bytes(usize),
    /// A score, whatever it is.
    Score,
    /// So many strings; a field with its value, or a member with its score, are two.
    Items(usize),
    Nothing,
}

impl Answer {
    /// Fails for an answer that is not the one expected: a figure for wrong answers is worth
    /// nothing.
    pub(crate) fn check(self, expected: Self) -> Result<()> {
        if self == expected {
            return Ok(());
        }
        Err(format!("wrong answers: {self:?} instead of {expected:?}").into())
    }
}

/// A store of Redis structures under measurement, used by one thread.
pub(crate) trait Store: Sized {
    /// Opens an empty store in `dir`.
    fn open(dir: &Path, settings: &Settings) -> Result<Self>;

    /// Binds server and client to cores; a store in process needs no binding.
    fn place(&mut self, _placement: Placement) -> Result<()> {
        Ok(())
    }

    /// Whether it can do the command at all.
    fn can(_call: &Call<'_>) -> bool {
        true
    }

    /// Runs a command. The answer may be checked later, at the latest by [`Store::finish`].
    fn call(&mut self, call: &Call<'_>, expected: Answer) -> Result<()>;

    /// Waits for all answers.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    /// Says whether the next commands are untimed; a store may then run them in a faster way.
    fn hurry(&mut self, _on: bool) {}

    /// Brings the store to rest: everything in tables, merged.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(self) -> Result<()>;
}

/// Work that runs on whichever store is chosen.
pub(crate) trait Job {
    fn run<S: Store>(self) -> Result<()>;
}

/// Runs `job` on the store of that kind.
pub(crate) fn dispatch(kind: Kind, job: impl Job) -> Result<()> {
    match kind {
        Kind::Lsmkv => job.run::<Lsmkv>(),
        #[cfg(has_rocksdb)]
        Kind::RocksdbTypes => job.run::<RocksdbTypes>(),
        #[cfg(not(has_rocksdb))]
        Kind::RocksdbTypes => Err("RocksDB is not in this build".into()),
        Kind::Redis => job.run::<Redis<1>>(),
        Kind::RedisPipelined => job.run::<Redis<16>>(),
    }
}
