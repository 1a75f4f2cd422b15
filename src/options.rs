//! Every setting of a store: typed fields for Rust, names and values as text for the C ABI.

/// When a write is flushed to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Before the write returns; concurrent writers share a flush.
    Always,
    /// In the background, every [`Options::sync_interval_ms`].
    Interval,
    /// When the operating system likes to.
    Off,
}

/// Block compression of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Blocks are stored as they are.
    None,
    /// Blocks are stored as LZ4 where that makes them smaller.
    Lz4,
}

/// How to open a store. `Options::default()` suits most uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// When a write is flushed to the device.
    pub sync: SyncMode,
    /// Period of background flushes in [`SyncMode::Interval`].
    pub sync_interval_ms: u64,
    /// Memory for buffers, cache, filters and indexes together.
    pub memory_budget: u64,
    /// Bytes of all trees' memtables before they are flushed; 0 derives it from the budget.
    pub write_buffer: u64,
    /// Bytes of the block cache; 0 derives it from the budget.
    pub block_cache: u64,
    /// Block compression of tables.
    pub compression: Compression,
    /// Whether to create a store where there is none.
    pub create_if_missing: bool,
    /// Whether to fail if there is one already.
    pub error_if_exists: bool,
    /// Whether to refuse writes and change nothing on disk.
    pub read_only: bool,
    /// Threads for compaction, beside the one that flushes.
    pub background_threads: u32,
    /// Longest key accepted.
    pub max_key_bytes: u64,
    /// Longest value accepted.
    pub max_value_bytes: u64,
    /// Filter bits a key; 0 turns filters off.
    pub bloom_bits: u32,
    /// Size of a level relative to the one above it.
    pub level_ratio: u32,
    /// Bytes a second that compaction may write; 0 for no limit.
    pub compaction_rate_limit: u64,
    /// Bytes of a table file before the next one is begun.
    pub table_bytes: u64,
    /// Bytes of a data block before compression.
    pub block_bytes: u32,
    /// Largest log segment; the first ones are smaller.
    pub log_segment_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sync: SyncMode::Interval,
            sync_interval_ms: 1000,
            memory_budget: 256 << 20,
            write_buffer: 0,
            block_cache: 0,
            compression: Compression::None,
            create_if_missing: true,
            error_if_exists: false,
            read_only: false,
            background_threads: 1,
            max_key_bytes: 512 << 20,
            max_value_bytes: 512 << 20,
            bloom_bits: 10,
            level_ratio: 10,
            compaction_rate_limit: 0,
            table_bytes: 32 << 20,
            block_bytes: 4096,
            log_segment_bytes: 16 << 20,
        }
    }
}
