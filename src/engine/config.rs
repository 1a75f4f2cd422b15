//! How an engine is opened, and the limits that follow from it.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::compaction::FilterFactory;
use crate::engine::sstable::Collector;
use crate::options::{Options, SyncMode};

/// Makes the property collectors of a tree's tables.
pub trait CollectorFactory: Send + Sync + std::fmt::Debug {
    /// Collectors for one new table.
    fn collectors(&self) -> Vec<Box<dyn Collector>>;
}

/// One tree of an engine.
#[derive(Clone, Debug)]
pub struct TreeConfig {
    /// Recorded in the manifest; an open with other names is refused.
    pub name: String,
    /// Takes part in this tree's compactions.
    pub filter: Option<Arc<dyn FilterFactory>>,
    /// Adds properties to this tree's tables.
    pub collectors: Option<Arc<dyn CollectorFactory>>,
}

impl TreeConfig {
    /// A tree without filter or collectors.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), filter: None, collectors: None }
    }
}

/// Everything [`crate::engine::Engine::open`] needs beside the place.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The user's settings.
    pub options: Options,
    /// The trees, in the order of their ids.
    pub trees: Vec<TreeConfig>,
}

/// How one batch is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Overrides the store's sync mode.
    pub sync: Option<SyncMode>,
    /// The batch gives back space: on a full disk it may use what is reserved for that.
    pub frees_space: bool,
}

/// Numbers derived from the options, once.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of the active memtables before they are frozen.
    pub(crate) write_buffer: usize,
    /// Frozen memtable sets before writers wait.
    pub(crate) frozen_sets: usize,
    /// Memory for tables: cached blocks, filters and indexes.
    pub(crate) table_memory: u64,
    /// Level-0 files that make a compaction due.
    pub(crate) level0_files: usize,
    /// Level-0 files from which writers are slowed.
    pub(crate) level0_slow: usize,
    /// Level-0 files at which writers wait.
    pub(crate) level0_stop: usize,
    /// Largest size of the base level.
    pub(crate) base_bytes: u64,
    pub(crate) sync_interval: Duration,
}

const FROZEN_SETS: usize = 2;
const LEVEL0_FILES: usize = 4;

impl Limits {
    pub(crate) fn of(options: &Options) -> Self {
        let write_buffer = match options.write_buffer {
            0 => (options.memory_budget / 8).clamp(64 << 10, 1 << 30),
            bytes => bytes,
        };
        // One set is filled while others wait to be flushed.
        let buffers = write_buffer.saturating_mul(FROZEN_SETS as u64 + 1);
        let table_memory = match options.block_cache {
            0 => options.memory_budget.saturating_sub(buffers).max(options.memory_budget / 8),
            bytes => bytes,
        };
        Self {
            write_buffer: usize::try_from(write_buffer).unwrap_or(usize::MAX),
            frozen_sets: FROZEN_SETS,
            table_memory,
            level0_files: LEVEL0_FILES,
            level0_slow: LEVEL0_FILES * 3,
            level0_stop: LEVEL0_FILES * 6,
            base_bytes: write_buffer.saturating_mul(LEVEL0_FILES as u64),
            sync_interval: Duration::from_millis(options.sync_interval_ms.max(1)),
        }
    }
}
