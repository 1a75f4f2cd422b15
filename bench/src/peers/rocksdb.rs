//! RocksDB, from the system's shared library.

#[cfg(not(has_rocksdb))]
pub(crate) const ABSENCE: Option<&str> =
    Some("librocksdb was not found when the bench was built (scripts/setup-bench.sh installs it)");
#[cfg(has_rocksdb)]
pub(crate) const ABSENCE: Option<&str> = None;

pub(crate) fn version() -> String {
    option_env!("ROCKSDB_VERSION").unwrap_or("absent").to_owned()
}

#[cfg(has_rocksdb)]
pub(crate) use present::{Rocksdb, config};

#[cfg(has_rocksdb)]
mod present {
    use std::path::Path;
    use std::time::Duration;

    use crate::Result;
    use crate::peers::rocksdb_c::{Config, Db};
    use crate::peers::{Peer, buffer_and_cache};
    use crate::plan::{Compression, Settings};

    const POLL: Duration = Duration::from_millis(20);
    const QUIET_POLLS: u32 = 5;
    const BACKGROUND: [&str; 4] = [
        "rocksdb.mem-table-flush-pending",
        "rocksdb.num-running-flushes",
        "rocksdb.compaction-pending",
        "rocksdb.num-running-compactions",
    ];

    pub(crate) struct Rocksdb(Db);

    pub(crate) fn config(settings: &Settings) -> Result<Config> {
        let (write_buffer, cache) = buffer_and_cache(settings);
        Ok(Config {
            write_buffer: usize::try_from(write_buffer)?,
            cache: usize::try_from(cache)?,
            bloom_bits: settings.bloom_bits,
            background_jobs: i32::try_from(settings.background_jobs)?,
            lz4: settings.compression == Compression::Lz4,
            synced: settings.synced,
        })
    }

    impl Peer for Rocksdb {
        fn open(dir: &Path, settings: &Settings, _expected_bytes: u64) -> Result<Self> {
            Ok(Self(Db::open(dir, &config(settings)?)?))
        }

        fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
            self.0.put(key, value)
        }

        fn get(&self, key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool> {
            let Some(value) = self.0.get(key)? else {
                return Ok(false);
            };
            visit(value.bytes());
            Ok(true)
        }

        fn scan(
            &self,
            start: Option<&[u8]>,
            limit: u64,
            mut visit: impl FnMut(&[u8], &[u8]),
        ) -> Result<u64> {
            let mut iter = self.0.iter(start)?;
            let mut seen = 0;
            while seen < limit {
                let Some((key, value)) = iter.entry() else { break };
                visit(key, value);
                seen += 1;
                iter.advance();
            }
            iter.finish()?;
            Ok(seen)
        }

        /// The C API has no call that waits for compactions, so its properties are watched.
        fn settle(&self) -> Result<()> {
            self.0.flush()?;
            let mut quiet = 0;
            while quiet < QUIET_POLLS {
                std::thread::sleep(POLL);
                let busy = BACKGROUND.iter().any(|name| self.0.property(name) != Some(0));
                quiet = if busy { 0 } else { quiet + 1 };
            }
            Ok(())
        }

        fn close(self) -> Result<()> {
            Ok(())
        }
    }
}
