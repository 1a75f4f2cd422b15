//! Statistics: what a store holds, by tree and level, and what it has done.

use crate::engine::core::Core;
use crate::engine::handle::Engine;
use crate::engine::version::{LEVELS, Levels};
use crate::engine::view::View;
use crate::engine::wal::Log;
use crate::error::Result;

/// Statistics of one level of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// Number of tables.
    pub files: u64,
    /// Size of the tables in bytes.
    pub bytes: u64,
    /// Entries in the tables, all versions counted.
    pub entries: u64,
    /// Entries that are tombstones.
    pub tombstones: u64,
}

/// Statistics of one tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Name of the tree.
    pub name: String,
    /// Entries in the memtables, all versions counted.
    pub memtable_entries: u64,
    /// Statistics by level.
    pub levels: [LevelStats; LEVELS],
    /// Data blocks read from files.
    pub block_reads: u64,
    /// Data blocks read from files by point reads.
    pub get_block_reads: u64,
    /// Bytes of data blocks read from files.
    pub block_read_bytes: u64,
    /// Blocks found in the cache. Only reads that fill the cache count.
    pub cache_hits: u64,
    /// Blocks not found in the cache. Only reads that fill the cache count.
    pub cache_misses: u64,
    /// Lookups that consulted a Bloom filter.
    pub filter_checks: u64,
    /// Lookups that a Bloom filter ended, since the key is not in the table.
    pub filter_negatives: u64,
    /// Lookups that a Bloom filter let pass although the table had nothing to show.
    pub filter_false_positives: u64,
}

/// Statistics of a store: what it holds, what it has done since it was opened, and the memory it
/// uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Statistics by tree.
    pub trees: Vec<TreeStats>,
    /// Committed batches.
    pub commits: u64,
    /// Point reads: lookups of one key in one tree by commands. Lookups by merges do not count.
    pub gets: u64,
    /// Flushed memtable sets.
    pub flushes: u64,
    /// Bytes of tables written by flushes.
    pub flushed_bytes: u64,
    /// Compactions that merged tables.
    pub merges: u64,
    /// Merges of a file that was mostly tombstones.
    pub merges_for_tombstones: u64,
    /// Merges of a file that was mostly garbage.
    pub merges_for_garbage: u64,
    /// Bytes read by merges.
    pub merge_read_bytes: u64,
    /// Bytes written by merges.
    pub merge_written_bytes: u64,
    /// Tables moved to a deeper level without being read.
    pub moves: u64,
    /// Tables dropped without being read.
    pub drops: u64,
    /// Bytes of the dropped tables.
    pub dropped_bytes: u64,
    /// Entries of the dropped tables.
    pub dropped_entries: u64,
    /// Estimated garbage in tables, in bytes, by the latest estimate of each.
    pub garbage_bytes: u64,
    /// Age of the oldest garbage estimate in milliseconds. A new table counts as estimated.
    pub garbage_estimate_age_ms: u64,
    /// Merges that were interrupted by a more urgent compaction.
    pub preemptions: u64,
    /// Entries that merges dropped because a newer version shadows them.
    pub shadowed: u64,
    /// Entries that compaction filters dropped or turned into tombstones.
    pub filtered: u64,
    /// Tombstones dropped because nothing older is below them.
    pub elided: u64,
    /// How often a writer had to stop.
    pub stalls: u64,
    /// Nanoseconds for which writers were stopped.
    pub stalled_ns: u64,
    /// Nanoseconds by which writers were slowed down.
    pub slowed_ns: u64,
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Log segments in use.
    pub log_segments: u64,
    /// Syncs of the log.
    pub syncs: u64,
    /// Memory of the memtables in bytes.
    pub memtable_bytes: u64,
    /// Memory of cached blocks in bytes.
    pub cache_bytes: u64,
    /// Memory of filters and indexes in bytes.
    pub resident_bytes: u64,
    /// Live snapshots.
    pub snapshots: u64,
    /// Reserved numbers.
    pub reserved: u64,
    /// The newest visible sequence number.
    pub sequence: u64,
    /// Table bytes written per byte flushed; 1 if nothing was rewritten.
    pub write_amplification: f64,
    /// Data blocks that point reads read from files, per point read.
    pub read_amplification: f64,
}

impl Stats {
    /// Data blocks of all trees read from files.
    pub fn block_reads(&self) -> u64 {
        self.trees.iter().map(|tree| tree.block_reads).sum()
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

impl Core {
    fn tree_stats(&self, view: &View) -> Vec<TreeStats> {
        let pairs = self.trees.iter().zip(&view.version.trees).enumerate();
        pairs
            .map(|(index, (tree, levels))| {
                let memtables = view.memtable_sets().filter_map(|set| set.trees.get(index));
                let counters = &tree.counters;
                TreeStats {
                    name: tree.config.name.clone(),
                    memtable_entries: memtables.map(|memtable| memtable.len() as u64).sum(),
                    levels: level_stats(levels),
                    block_reads: counters.block_reads.sum(),
                    get_block_reads: counters.get_block_reads.sum(),
                    block_read_bytes: counters.block_read_bytes.sum(),
                    cache_hits: counters.cache_hits.sum(),
                    cache_misses: counters.cache_misses.sum(),
                    filter_checks: counters.filter_checks.sum(),
                    filter_negatives: counters.filter_negatives.sum(),
                    filter_false_positives: counters.filter_false_positives.sum(),
                }
            })
            .collect()
    }
}

fn level_stats(levels: &Levels) -> [LevelStats; LEVELS] {
    let mut stats = [LevelStats::default(); LEVELS];
    for (level, (_, files)) in stats.iter_mut().zip(levels.iter()) {
        for meta in files.iter().map(|file| file.meta()) {
            level.files += 1;
            level.bytes += meta.size;
            level.entries += meta.entries;
            level.tombstones += meta.tombstones;
        }
    }
    stats
}

impl Engine {
    /// Estimates the bytes of the tables that a compaction of everything would remove now.
    pub fn garbage_bytes(&self) -> Result<u64> {
        self.core.current_garbage()
    }

    /// What the store holds and has done.
    pub fn stats(&self) -> Stats {
        let core = &self.core;
        let view = core.view.load_full();
        let a = &core.activity;
        let opened = view.version.files().filter_map(|file| file.opened());
        let (snapshots, reserved) = core.sequences.counts();
        let (garbage_bytes, estimate_age) = core.estimated_garbage();
        let mut stats = Stats {
            trees: core.tree_stats(&view),
            commits: a.commits.sum(),
            gets: view.gets.sum(),
            flushes: a.flushes.sum(),
            flushed_bytes: a.flushed_bytes.sum(),
            merges: a.merges.sum(),
            merges_for_tombstones: a.merges_for_tombstones.sum(),
            merges_for_garbage: a.merges_for_garbage.sum(),
            merge_read_bytes: a.merge_read_bytes.sum(),
            merge_written_bytes: a.merge_written_bytes.sum(),
            moves: a.moves.sum(),
            drops: a.drops.sum(),
            dropped_bytes: a.dropped_bytes.sum(),
            dropped_entries: a.dropped_entries.sum(),
            garbage_bytes,
            garbage_estimate_age_ms: u64::try_from(estimate_age.as_millis()).unwrap_or(u64::MAX),
            preemptions: a.preemptions.sum(),
            shadowed: a.shadowed.sum(),
            filtered: a.filtered.sum(),
            elided: a.elided.sum(),
            stalls: a.stalls.sum(),
            stalled_ns: a.stalled_ns.sum(),
            slowed_ns: a.slowed_ns.sum(),
            log_bytes: core.log.as_ref().map_or(0, Log::bytes_appended),
            log_segments: core.log.as_ref().map_or(0, |log| log.segments().len() as u64),
            syncs: core.log.as_ref().map_or(0, Log::sync_count),
            memtable_bytes: view.memtable_sets().map(|set| set.bytes() as u64).sum(),
            cache_bytes: core.cache.used(),
            resident_bytes: opened.map(|table| table.resident_bytes() as u64).sum(),
            snapshots: snapshots as u64,
            reserved: reserved as u64,
            sequence: core.sequences.visible(),
            ..Stats::default()
        };
        let written = stats.flushed_bytes + stats.merge_written_bytes;
        stats.write_amplification = ratio(written, stats.flushed_bytes);
        let read = stats.trees.iter().map(|tree| tree.get_block_reads).sum();
        stats.read_amplification = ratio(read, stats.gets);
        stats
    }
}
