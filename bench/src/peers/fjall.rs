//! fjall: an LSM store in Rust.
//!
//! Every insert reaches the operating system before it returns; `synced` adds an `fdatasync`.
//! Filters are its defaults: 10 bits per key, more in level 0.

use std::path::Path;
use std::time::Duration;

use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::Result;
use crate::peers::{Peer, buffer_and_cache};
use crate::plan::{Compression, Settings};

/// How often the background work is polled, and after how many idle polls it counts as done.
const POLL: Duration = Duration::from_millis(20);
const QUIET_POLLS: u32 = 10;

pub(crate) fn version() -> String {
    env!("FJALL_VERSION").to_owned()
}

pub(crate) struct Fjall {
    database: Database,
    keyspace: Keyspace,
    synced: bool,
}

impl Peer for Fjall {
    fn open(dir: &Path, settings: &Settings, _expected_bytes: u64) -> Result<Self> {
        let (write_buffer, cache) = buffer_and_cache(settings);
        let compression = match settings.compression {
            Compression::None => CompressionType::None,
            Compression::Lz4 => CompressionType::Lz4,
        };
        let database = Database::builder(dir)
            .cache_size(cache)
            .journal_compression(CompressionType::None)
            .worker_threads(usize::try_from(settings.background_jobs.max(1))?)
            .open()?;
        let keyspace = database.keyspace("default", || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(write_buffer)
                .data_block_compression_policy(CompressionPolicy::all(compression))
        })?;
        Ok(Self { database, keyspace, synced: settings.synced })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace.insert(key, value)?;
        if self.synced {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn get(&self, key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool> {
        let Some(value) = self.keyspace.get(key)? else {
            return Ok(false);
        };
        visit(&value);
        Ok(true)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        limit: u64,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<u64> {
        let mut entries = match start {
            Some(key) => self.keyspace.range(key..),
            None => self.keyspace.iter(),
        };
        let mut seen = 0;
        while seen < limit {
            let Some(entry) = entries.next() else { break };
            let (key, value) = entry.into_inner()?;
            visit(&key, &value);
            seen += 1;
        }
        Ok(seen)
    }

    /// fjall has no call that waits for compactions, so its counters are watched until they rest.
    fn settle(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait()?;
        let mut quiet = 0;
        let mut completed = self.database.compactions_completed();
        while quiet < QUIET_POLLS {
            std::thread::sleep(POLL);
            let now = self.database.compactions_completed();
            let busy = self.database.outstanding_flushes() + self.database.active_compactions() > 0;
            quiet = if busy || now != completed { 0 } else { quiet + 1 };
            completed = now;
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}
