//! lsmkv's own engine.

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::{Batch, Engine, EngineConfig, IterOptions, TreeConfig, TreeId, WriteOptions};
use lsmkv::io::real::RealFs;
use lsmkv::{Options, SyncMode};

use crate::Result;
use crate::peers::Peer;
use crate::plan::{Compression, Settings};

pub(crate) fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

pub(crate) const ABSENCE: Option<&str> = None;

const TREE: TreeId = TreeId(0);

pub(crate) struct Lsmkv {
    engine: Engine,
}

impl Peer for Lsmkv {
    fn open(dir: &Path, settings: &Settings, _expected_bytes: u64) -> Result<Self> {
        let config =
            EngineConfig { options: options(settings), trees: vec![TreeConfig::named("default")] };
        Ok(Self { engine: Engine::open(Arc::new(RealFs), dir, config)? })
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(TREE, key, value);
        self.engine.write(&mut batch, WriteOptions::default())?;
        Ok(())
    }

    fn get(&self, key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool> {
        let Some(value) = self.engine.get(TREE, key)? else {
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
        let mut iter = self.engine.iter(TREE, IterOptions::default())?;
        match start {
            Some(key) => iter.seek(key)?,
            None => iter.seek_to_first()?,
        }
        let mut seen = 0;
        while seen < limit && iter.valid() {
            visit(iter.key(), iter.value());
            seen += 1;
            iter.next()?;
        }
        Ok(seen)
    }

    fn settle(&self) -> Result<()> {
        self.engine.flush()?;
        self.engine.wait_idle()?;
        Ok(())
    }

    fn block_reads(&self) -> Option<u64> {
        Some(self.engine.stats().block_reads())
    }

    fn close(self) -> Result<()> {
        self.engine.close()?;
        Ok(())
    }
}

pub(crate) fn options(settings: &Settings) -> Options {
    let defaults = Options::default();
    // Unsynced is `Off`, not the default `Interval`: the peers sync nothing by themselves.
    let sync = if settings.synced { SyncMode::Always } else { SyncMode::Off };
    let compression = match settings.compression {
        Compression::None => lsmkv::Compression::None,
        Compression::Lz4 => lsmkv::Compression::Lz4,
    };
    let (memory_budget, write_buffer, block_cache) = match settings.memory_budget {
        Some(budget) => (budget, 0, 0),
        None => {
            // Room for memtables that wait for their flush: the parts decide, not the budget.
            let parts = settings.write_buffer.saturating_mul(4).saturating_add(settings.cache);
            (parts.max(defaults.memory_budget), settings.write_buffer, settings.cache)
        }
    };
    Options {
        sync,
        memory_budget,
        write_buffer,
        block_cache,
        compression,
        bloom_bits: settings.bloom_bits,
        // One of the jobs is the thread that flushes.
        background_threads: settings.background_jobs.saturating_sub(1).max(1),
        ..defaults
    }
}
