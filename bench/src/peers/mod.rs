//! The stores that are compared, behind one interface.
//!
//! Workloads are generic over [`Peer`], so that no peer pays for dynamic dispatch. A peer that
//! this build lacks says why: the table shows the reason instead of figures.

mod fjall;
mod lmdb;
pub(crate) mod lsmkv;
pub(crate) mod rocksdb;
#[cfg(has_rocksdb)]
pub(crate) mod rocksdb_c;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::plan::Settings;

/// A store under measurement. Every call may come from several threads at once.
pub(crate) trait Peer: Send + Sync + Sized {
    /// Opens the store in `dir`, creating it if there is none. `expected_bytes` of keys and
    /// values is a hint for peers that must reserve address space.
    fn open(dir: &Path, settings: &Settings, expected_bytes: u64) -> Result<Self>;

    /// One write of its own, durable on return if the store was opened `synced`.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Shows the newest value of `key` to `visit`; whether there was one.
    fn get(&self, key: &[u8], visit: impl FnMut(&[u8])) -> Result<bool>;

    /// Shows up to `limit` entries from `start` (or the first) on, in order; how many there were.
    fn scan(
        &self,
        start: Option<&[u8]>,
        limit: u64,
        visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64>;

    /// Flushes what is buffered and waits until background work is done.
    fn settle(&self) -> Result<()>;

    /// Table blocks read from files so far, where the peer counts them.
    fn block_reads(&self) -> Option<u64> {
        None
    }

    /// Closes the store and waits for its threads.
    fn close(self) -> Result<()>;
}

/// Which store.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Lsmkv,
    Rocksdb,
    Fjall,
    Lmdb,
}

impl Kind {
    /// In the order of the table's columns, and of each repeat.
    pub(crate) const ALL: [Self; 4] = [Self::Lsmkv, Self::Rocksdb, Self::Fjall, Self::Lmdb];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Lsmkv => "lsmkv",
            Self::Rocksdb => "RocksDB",
            Self::Fjall => "fjall",
            Self::Lmdb => "LMDB",
        }
    }

    pub(crate) fn version(self) -> String {
        match self {
            Self::Lsmkv => lsmkv::version(),
            Self::Rocksdb => rocksdb::version(),
            Self::Fjall => fjall::version(),
            Self::Lmdb => lmdb::version(),
        }
    }

    /// Why this build lacks the peer, if it does.
    pub(crate) fn absence(self) -> Option<&'static str> {
        match self {
            Self::Lsmkv => lsmkv::ABSENCE,
            Self::Rocksdb => rocksdb::ABSENCE,
            Self::Fjall | Self::Lmdb => None,
        }
    }
}

/// Work that runs on whichever peer is chosen.
pub(crate) trait Job {
    type Output;

    fn run<P: Peer>(self) -> Result<Self::Output>;
}

/// Runs `job` on the peer of that kind.
pub(crate) fn dispatch<J: Job>(kind: Kind, job: J) -> Result<J::Output> {
    if let Some(reason) = kind.absence() {
        return Err(format!("{} is not in this build: {reason}", kind.title()).into());
    }
    match kind {
        Kind::Lsmkv => job.run::<lsmkv::Lsmkv>(),
        #[cfg(has_rocksdb)]
        Kind::Rocksdb => job.run::<rocksdb::Rocksdb>(),
        #[cfg(not(has_rocksdb))]
        Kind::Rocksdb => Err("not built".into()),
        Kind::Fjall => job.run::<fjall::Fjall>(),
        Kind::Lmdb => job.run::<lmdb::Lmdb>(),
    }
}

/// Write buffer and cache of a peer that knows no overall budget.
fn buffer_and_cache(settings: &Settings) -> (u64, u64) {
    match settings.memory_budget {
        Some(budget) => (budget / 4, budget / 2),
        None => (settings.write_buffer, settings.cache),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::stored;
    use crate::plan::Compression;

    /// What every workload relies on; run on each peer of the build, synced and not.
    struct Contract {
        compression: Compression,
        synced: bool,
    }

    impl Job for Contract {
        type Output = ();

        fn run<P: Peer>(self) -> Result<()> {
            let dir = tempfile::tempdir()?;
            let settings = Settings {
                write_buffer: 1 << 20,
                cache: 1 << 20,
                memory_budget: None,
                bloom_bits: 10,
                background_jobs: 2,
                compression: self.compression,
                synced: self.synced,
            };
            let peer = P::open(dir.path(), &settings, 1 << 20)?;
            for i in (0..200).rev() {
                peer.put(&stored(i), b"old")?;
            }
            peer.put(&stored(7), b"new")?;
            check(&peer)?;
            peer.settle()?;
            check(&peer)?;
            peer.close()?;
            let peer = P::open(dir.path(), &settings, 1 << 20)?;
            check(&peer)?;
            peer.close()
        }
    }

    fn check<P: Peer>(peer: &P) -> Result<()> {
        let mut found = Vec::new();
        assert!(peer.get(&stored(7), |value| found.extend_from_slice(value))?);
        assert_eq!(found, b"new");
        assert!(!peer.get(&crate::keys::absent(7), |_| panic!("nothing to show"))?);

        assert_eq!(peer.scan(None, u64::MAX, |_, _| ())?, 200);
        let mut keys = Vec::new();
        let seen = peer.scan(Some(&crate::keys::absent(9)), 3, |key, value| {
            assert_eq!(value, b"old");
            keys.push(key.to_vec());
        })?;
        assert_eq!(seen, 3);
        assert_eq!(keys, [10, 11, 12].map(stored));
        assert_eq!(peer.scan(Some(&stored(199)), 100, |_, _| ())?, 1);
        Ok(())
    }

    #[test]
    fn every_peer_of_the_build_stores_finds_and_scans_alike() {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.absence().is_none()) {
            for (compression, synced) in [(Compression::None, false), (Compression::Lz4, true)] {
                dispatch(kind, Contract { compression, synced }).unwrap();
            }
        }
    }

    #[test]
    fn a_peer_that_is_not_built_in_says_why() {
        for kind in Kind::ALL {
            let Some(reason) = kind.absence() else { continue };
            let refused =
                dispatch(kind, Contract { compression: Compression::None, synced: false });
            assert!(refused.unwrap_err().to_string().contains(reason));
        }
    }
}
