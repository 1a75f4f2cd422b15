//! What a store has done and holds, by tree and level.

use crate::engine::core::Core;
use crate::engine::counter::Counter;
use crate::engine::version::LEVELS;

/// Counted since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) commits: Counter,
    pub(crate) gets: Counter,
    pub(crate) flushes: Counter,
    pub(crate) flushed_bytes: Counter,
    pub(crate) merges: Counter,
    pub(crate) merges_for_tombstones: Counter,
    pub(crate) merges_for_waste: Counter,
    pub(crate) merge_read_bytes: Counter,
    pub(crate) merge_written_bytes: Counter,
    pub(crate) moves: Counter,
    pub(crate) drops: Counter,
    pub(crate) dropped_bytes: Counter,
    pub(crate) dropped_entries: Counter,
    pub(crate) preemptions: Counter,
    pub(crate) shadowed: Counter,
    pub(crate) filtered: Counter,
    pub(crate) elided: Counter,
    pub(crate) stalls: Counter,
    pub(crate) stalled_ns: Counter,
    pub(crate) slowed_ns: Counter,
}

/// One level of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// Number of tables.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their entries, all versions counted.
    pub entries: u64,
    /// Entries that are deletes.
    pub tombstones: u64,
}

/// One tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeStats {
    /// Its name.
    pub name: String,
    /// Entries of its memtables, all versions counted.
    pub memtable_entries: u64,
    /// By level.
    pub levels: [LevelStats; LEVELS],
    /// Blocks read from files.
    pub block_reads: u64,
    /// Bytes of them.
    pub block_read_bytes: u64,
    /// Blocks found in the cache, by reads that fill it.
    pub cache_hits: u64,
    /// Blocks such reads looked for in the cache in vain.
    pub cache_misses: u64,
    /// Filters asked.
    pub filter_checks: u64,
    /// Filters that said no and saved a look into the table.
    pub filter_negatives: u64,
    /// Filters that said maybe about a key that was not there.
    pub filter_false_positives: u64,
}

/// A store: what it holds, what it has done since it was opened, what memory it uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// By tree.
    pub trees: Vec<TreeStats>,
    /// Batches committed.
    pub commits: u64,
    /// Point reads.
    pub gets: u64,
    /// Memtable sets flushed.
    pub flushes: u64,
    /// Bytes of tables written by flushes.
    pub flushed_bytes: u64,
    /// Compactions that merged.
    pub merges: u64,
    /// Of these, made because a file was mostly tombstones.
    pub merges_for_tombstones: u64,
    /// Of these, made because much of a file was what the filter would let go.
    pub merges_for_waste: u64,
    /// Bytes read by merges.
    pub merge_read_bytes: u64,
    /// Bytes written by merges.
    pub merge_written_bytes: u64,
    /// Tables given to a deeper level unread.
    pub moves: u64,
    /// Tables dropped unread.
    pub drops: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Their entries.
    pub dropped_entries: u64,
    /// Bytes of tables that their filters would let go, by the last judgement of each.
    pub waste_bytes: u64,
    /// Milliseconds since the table was judged, or made, whose turn was longest ago.
    pub judged_ms_ago: u64,
    /// Merges interrupted by a more urgent one.
    pub preemptions: u64,
    /// Entries dropped by merges because a newer version hid them.
    pub shadowed: u64,
    /// Entries dropped or deleted by filters.
    pub filtered: u64,
    /// Tombstones dropped at the bottom.
    pub elided: u64,
    /// Times a writer had to wait.
    pub stalls: u64,
    /// Nanoseconds writers waited.
    pub stalled_ns: u64,
    /// Nanoseconds writers were slowed down.
    pub slowed_ns: u64,
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Log segments on disk.
    pub log_segments: u64,
    /// Flushes of the device by the log.
    pub syncs: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Bytes of cached blocks.
    pub cache_bytes: u64,
    /// Bytes of filters and indexes in memory.
    pub resident_bytes: u64,
    /// Live snapshots.
    pub snapshots: u64,
    /// Reserved numbers.
    pub reserved: u64,
    /// The newest visible sequence.
    pub sequence: u64,
    /// Table bytes written for each byte flushed: 1 when nothing was rewritten.
    pub write_amplification: f64,
    /// Table blocks read from files for each point read.
    pub read_amplification: f64,
}

impl Stats {
    /// Blocks read from files, all trees.
    pub fn block_reads(&self) -> u64 {
        self.trees.iter().map(|tree| tree.block_reads).sum()
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

impl Core {
    fn tree_stats(&self) -> Vec<TreeStats> {
        let view = self.view.load();
        let pairs = self.trees.iter().zip(&view.version.trees).enumerate();
        pairs
            .map(|(index, (tree, levels))| {
                let mut stats =
                    TreeStats { name: tree.config.name.clone(), ..TreeStats::default() };
                let sets = std::iter::once(&view.active).chain(&view.frozen);
                let memtables = sets.filter_map(|set| set.trees.get(index));
                stats.memtable_entries = memtables.map(|memtable| memtable.len() as u64).sum();
                for (level, (_, files)) in stats.levels.iter_mut().zip(levels.iter()) {
                    for meta in files.iter().map(|file| file.meta()) {
                        level.files += 1;
                        level.bytes += meta.size;
                        level.entries += meta.entries;
                        level.tombstones += meta.tombstones;
                    }
                }
                let counters = &tree.counters;
                stats.block_reads = counters.block_reads.sum();
                stats.block_read_bytes = counters.block_read_bytes.sum();
                stats.cache_hits = counters.cache_hits.sum();
                stats.cache_misses = counters.cache_misses.sum();
                stats.filter_checks = counters.filter_checks.sum();
                stats.filter_negatives = counters.filter_negatives.sum();
                stats.filter_false_positives = counters.filter_false_positives.sum();
                stats
            })
            .collect()
    }

    pub(crate) fn stats(&self) -> Stats {
        let view = self.view.load_full();
        let a = &self.activity;
        let sets = std::iter::once(&view.active).chain(&view.frozen);
        let files = view.version.trees.iter().flat_map(|levels| levels.files());
        let resident =
            files.filter_map(|file| file.opened()).map(|table| table.resident_bytes() as u64);
        let (snapshots, reserved) = self.sequences.counts();
        let (waste_bytes, judged_ago) = self.waste_known();
        let mut stats = Stats {
            trees: self.tree_stats(),
            commits: a.commits.sum(),
            gets: a.gets.sum(),
            flushes: a.flushes.sum(),
            flushed_bytes: a.flushed_bytes.sum(),
            merges: a.merges.sum(),
            merges_for_tombstones: a.merges_for_tombstones.sum(),
            merges_for_waste: a.merges_for_waste.sum(),
            merge_read_bytes: a.merge_read_bytes.sum(),
            merge_written_bytes: a.merge_written_bytes.sum(),
            moves: a.moves.sum(),
            drops: a.drops.sum(),
            dropped_bytes: a.dropped_bytes.sum(),
            dropped_entries: a.dropped_entries.sum(),
            waste_bytes,
            judged_ms_ago: u64::try_from(judged_ago.as_millis()).unwrap_or(u64::MAX),
            preemptions: a.preemptions.sum(),
            shadowed: a.shadowed.sum(),
            filtered: a.filtered.sum(),
            elided: a.elided.sum(),
            stalls: a.stalls.sum(),
            stalled_ns: a.stalled_ns.sum(),
            slowed_ns: a.slowed_ns.sum(),
            log_bytes: self.log.as_ref().map_or(0, super::wal::log::Log::bytes_appended),
            log_segments: self.log.as_ref().map_or(0, |log| log.segments().len() as u64),
            syncs: self.log.as_ref().map_or(0, super::wal::log::Log::sync_count),
            memtable_bytes: sets.map(|set| set.bytes() as u64).sum(),
            cache_bytes: self.cache.used(),
            resident_bytes: resident.sum(),
            snapshots: snapshots as u64,
            reserved: reserved as u64,
            sequence: self.sequences.visible(),
            ..Stats::default()
        };
        let written = stats.flushed_bytes + stats.merge_written_bytes;
        stats.write_amplification = ratio(written, stats.flushed_bytes);
        stats.read_amplification = ratio(stats.block_reads(), stats.gets);
        stats
    }
}
