//! The rows of the table of commands and their goals.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Row {
    Set,
    Get,
    Incr,
    HsetNew,
    HsetOverwrite,
    HgetBig,
    Hgetall10,
    Hgetall100,
    HsetSmall,
    HgetSmall,
    Hgetall5,
    HsetSmallOverwrite,
    Lpush,
    Lpop,
    Lrange100,
    Sadd,
    Sismember,
    Spop,
    ZaddNew,
    ZaddUpdate,
    Zscore,
    Zrange10,
    Zrangebyscore100,
    Zpopmin,
    DelBig,
}

/// What is asked for: multiples of a peer's throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Goals {
    pub(crate) rocksdb_types: f64,
    pub(crate) redis_pipelined: f64,
}

/// The longest that deleting a large hash may take, in microseconds.
pub(crate) const DEL_LIMIT_US: f64 = 10.0;

impl Row {
    /// Every row, in the order of the table.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// How the table names it.
    pub(crate) fn title(self) -> &'static str {
        self.spec().0
    }

    pub(crate) fn goals(self) -> Option<Goals> {
        let (rocksdb_types, redis_pipelined) = self.spec().1?;
        Some(Goals { rocksdb_types, redis_pipelined })
    }

    const fn spec(self) -> (&'static str, Option<(f64, f64)>) {
        match self {
            Self::Set => ("SET", Some((4.0, 2.0))),
            Self::Get => ("GET", Some((4.0, 2.0))),
            Self::Incr => ("INCR", Some((6.0, 2.0))),
            Self::HsetNew => ("HSET, new field of one hash", Some((4.0, 2.0))),
            Self::HsetOverwrite => ("HSET, overwrite", Some((5.0, 2.0))),
            Self::HgetBig => ("HGET, big hash", Some((4.0, 1.2))),
            Self::Hgetall10 => ("HGETALL 10", Some((8.0, 2.0))),
            Self::Hgetall100 => ("HGETALL 100", Some((8.0, 4.0))),
            Self::HsetSmall => ("HSET 5 fields, new small hash", Some((3.0, 3.0))),
            Self::HgetSmall => ("HGET, small hash", Some((8.0, 2.0))),
            Self::Hgetall5 => ("HGETALL 5", Some((10.0, 2.0))),
            Self::HsetSmallOverwrite => ("HSET small hash, overwrite", Some((8.0, 1.5))),
            Self::Lpush => ("LPUSH", Some((5.0, 2.0))),
            Self::Lpop => ("LPOP", Some((6.0, 2.0))),
            Self::Lrange100 => ("LRANGE 100", Some((8.0, 5.0))),
            Self::Sadd => ("SADD", Some((4.0, 1.5))),
            Self::Sismember => ("SISMEMBER", Some((3.0, 1.5))),
            Self::Spop => ("SPOP", None),
            Self::ZaddNew => ("ZADD, new member", Some((4.0, 2.0))),
            Self::ZaddUpdate => ("ZADD, new score", Some((4.0, 2.0))),
            Self::Zscore => ("ZSCORE", Some((3.0, 2.0))),
            Self::Zrange10 => ("ZRANGE 0 9", Some((5.0, 2.0))),
            Self::Zrangebyscore100 => ("ZRANGEBYSCORE 100", Some((6.0, 5.0))),
            Self::Zpopmin => ("ZPOPMIN", None),
            Self::DelBig => ("DEL of a large hash", None),
        }
    }
}
