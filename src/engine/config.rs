//! The configuration of an engine, and the limits derived from it.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::compaction::FilterFactory;
use crate::engine::sstable::CollectorFactory;
use crate::options::{Options, SyncMode};

/// The configuration of one tree.
#[derive(Clone, Debug)]
pub struct TreeConfig {
    /// Name of the tree. The manifest records it, and an open with other names is refused.
    pub name: String,
    /// Creates the compaction filters of the tree.
    pub filter: Option<Arc<dyn FilterFactory>>,
    /// Creates collectors that add properties to the tables of the tree.
    pub collectors: Option<Arc<dyn CollectorFactory>>,
}

impl TreeConfig {
    /// A tree without filter or collectors.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), filter: None, collectors: None }
    }
}

/// The configuration that [`Engine::open`] takes.
///
/// [`Engine::open`]: crate::engine::Engine::open
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The options of the store.
    pub options: Options,
    /// The trees, in the order of their ids.
    pub trees: Vec<TreeConfig>,
}

/// Options of one write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Overrides the sync mode of the store.
    pub sync: Option<SyncMode>,
    /// The batch frees space. On a full disk it may use the reserved space.
    pub frees_space: bool,
}

/// Limits derived from the options.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of the active memtables before they are frozen.
    pub(crate) write_buffer: usize,
    /// Number of immutable memtable sets at which writers wait.
    pub(crate) immutable_sets: usize,
    /// Memory for cached blocks, filters and indexes of tables.
    pub(crate) table_memory: u64,
    /// Number of level-0 files at which a compaction is due.
    pub(crate) level0_files: usize,
    /// Number of level-0 files at which writers are slowed down.
    pub(crate) level0_slow: usize,
    /// Number of level-0 files at which writers wait.
    pub(crate) level0_stop: usize,
    /// Largest size of the base level, in bytes.
    pub(crate) base_bytes: u64,
    pub(crate) sync_interval: Duration,
}

const IMMUTABLE_SETS: usize = 2;
const LEVEL0_FILES: usize = 4;

impl Limits {
    pub(crate) fn of(options: &Options) -> Self {
        let write_buffer = match options.write_buffer {
            0 => (options.memory_budget / 8).clamp(64 << 10, 1 << 30),
            bytes => bytes,
        };
        // One set is filled while the others wait to be flushed.
        let buffers = write_buffer.saturating_mul(IMMUTABLE_SETS as u64 + 1);
        // What flushes, merges, the log and answers work with.
        let work = options.memory_budget / 32;
        let used = buffers.saturating_add(work);
        let table_memory = match options.block_cache {
            0 => options.memory_budget.saturating_sub(used).max(options.memory_budget / 8),
            bytes => bytes,
        };
        Self {
            write_buffer: usize::try_from(write_buffer).unwrap_or(usize::MAX),
            immutable_sets: IMMUTABLE_SETS,
            table_memory,
            level0_files: LEVEL0_FILES,
            level0_slow: LEVEL0_FILES * 3,
            level0_stop: LEVEL0_FILES * 6,
            base_bytes: write_buffer.saturating_mul(LEVEL0_FILES as u64),
            sync_interval: Duration::from_millis(options.sync_interval_ms.max(1)),
        }
    }
}
