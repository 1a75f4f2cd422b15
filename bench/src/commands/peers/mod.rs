//! The stores of Redis structures that are compared.

pub(crate) mod lsmkv;
pub(crate) mod redis;
mod resp;
#[cfg(has_rocksdb)]
pub(crate) mod rocksdb_types;

use serde::{Deserialize, Serialize};

/// Which store, and how it is used.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Lsmkv,
    RocksdbTypes,
    Redis,
    RedisPipelined,
}

impl Kind {
    /// In the order of the table's columns, and of each repeat.
    pub(crate) const ALL: [Self; 4] =
        [Self::Lsmkv, Self::RocksdbTypes, Self::Redis, Self::RedisPipelined];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Lsmkv => "lsmkv",
            Self::RocksdbTypes => "RocksDB-types",
            Self::Redis => "Redis",
            Self::RedisPipelined => "Redis-x16",
        }
    }

    /// Whether it runs in its own process, so that the choice of cores matters.
    pub(crate) fn is_server(self) -> bool {
        matches!(self, Self::Redis | Self::RedisPipelined)
    }

    pub(crate) fn version(self) -> String {
        match self {
            Self::Lsmkv => crate::peers::lsmkv::version(),
            Self::RocksdbTypes => crate::peers::rocksdb::version(),
            Self::Redis | Self::RedisPipelined => {
                redis::version().unwrap_or_else(|| "absent".to_owned())
            }
        }
    }

    /// Why this build or machine lacks the peer, if it does.
    pub(crate) fn absence(self) -> Option<&'static str> {
        match self {
            Self::Lsmkv => crate::peers::lsmkv::ABSENCE,
            Self::RocksdbTypes => crate::peers::rocksdb::ABSENCE,
            Self::Redis | Self::RedisPipelined if redis::version().is_some() => None,
            Self::Redis | Self::RedisPipelined => {
                Some("there is no redis-server (scripts/setup.sh installs it)")
            }
        }
    }
}
