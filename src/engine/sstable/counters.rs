//! Counters of what reads of tables do. Threads: any number may add at once.

use crate::engine::counter::Counter;

/// Counters of reads, shared by the tables of a tree.
#[derive(Debug, Default)]
pub struct TableCounters {
    /// Data blocks read from files.
    pub block_reads: Counter,
    /// Data blocks read from files by point reads that fill the cache.
    pub get_block_reads: Counter,
    /// Bytes of data blocks read from files, as stored.
    pub block_read_bytes: Counter,
    /// Point reads that consulted a Bloom filter.
    pub filter_checks: Counter,
    /// Point reads that the filter ended, since the key is not in the table.
    pub filter_negatives: Counter,
    /// Point reads that the filter let pass although the table had nothing to show.
    pub filter_false_positives: Counter,
    /// Data blocks found in the cache.
    pub cache_hits: Counter,
    /// Data blocks not found in the cache.
    pub cache_misses: Counter,
}
