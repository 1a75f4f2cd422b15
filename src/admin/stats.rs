//! The statistics of a store by name, for operators.
//!
//! Counts of keys and of expired keys are estimates from table properties and need no scan. Garbage
//! is what a compaction of everything would remove now: expired records, rows that no record names,
//! and entries that newer ones hide. The last are estimated from a few hundred entries.
//! `reclaim_lag_ms` is the age of the oldest estimate by which tables are chosen to be rewritten.

use crate::encoding::expiry::Amount;
use crate::engine::Stats;
use crate::error::Result;
use crate::keyspace::trees::META;
use crate::reclaim::expiries::histogram_of;
use crate::txn::store::Store;
use crate::types::keyspace_sample::keys_estimated;

/// One statistic of [`crate::Db::stats`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stat {
    /// The name, in lower case with underscores.
    pub name: &'static str,
    /// The value.
    pub value: StatValue,
}

/// The value of a [`Stat`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StatValue {
    /// A number of items, bytes or milliseconds.
    Count(u64),
    /// A ratio of two amounts.
    Ratio(f64),
}

impl StatValue {
    /// The value as a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Ratio(ratio) => ratio,
        }
    }
}

fn count(name: &'static str, value: u64) -> Stat {
    Stat { name, value: StatValue::Count(value) }
}

fn ratio(name: &'static str, part: u64, whole: u64) -> Stat {
    let value = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    Stat { name, value: StatValue::Ratio(value) }
}

impl Store {
    pub(crate) fn stats(&self) -> Result<Vec<Stat>> {
        let mut stats = self.stats_but_garbage()?;
        let (garbage, bytes) =
            (self.engine().garbage_bytes()?, table_bytes(&self.engine().stats()));
        stats.push(count("garbage_bytes_estimated", garbage));
        stats.push(ratio("garbage_bytes_ratio", garbage, bytes));
        Ok(stats)
    }

    /// One statistic by name. Those that need no look at the tables cost little.
    pub(crate) fn stat(&self, name: &str) -> Result<Option<Stat>> {
        let stats =
            if name.starts_with("garbage") { self.stats() } else { self.stats_but_garbage() };
        Ok(stats?.into_iter().find(|stat| stat.name == name))
    }

    fn stats_but_garbage(&self) -> Result<Vec<Stat>> {
        let engine = self.engine().stats();
        let mut stats = self.expiry_stats(&engine)?;
        let (removed, cleaned) = (self.removed().total(), self.cleaner().cleaned());
        let (observers, changes) = self.conflicts().counts();
        stats.extend([
            count("rows_removed", removed.rows),
            count("records_removed", removed.records),
            count("cleaner_deleted", cleaned.total),
            count("cleaner_last_deleted", cleaned.last),
            count("cleaner_last_ms", cleaned.last_at_ms),
            count("reclaim_lag_ms", engine.garbage_estimate_age_ms),
            count("files_dropped_unread", engine.drops),
            count("bytes_dropped_unread", engine.dropped_bytes),
            count("entries_dropped_unread", engine.dropped_entries),
            count("transactions_and_watches", observers as u64),
            count("changes_noted", changes as u64),
        ]);
        stats.extend(engine_stats(&engine));
        Ok(stats)
    }

    fn expiry_stats(&self, engine: &Stats) -> Result<Vec<Stat>> {
        let now = self.clock().now();
        let mut expired = Amount::default();
        let mut bytes = 0u64;
        self.engine().reader()?.table_properties(META, |_, properties| {
            bytes = bytes.saturating_add(properties.key_bytes + properties.value_bytes);
            let part = histogram_of(properties).map_or_else(Amount::default, |it| it.expired(now));
            expired.records += part.records;
            expired.bytes = expired.bytes.saturating_add(part.bytes);
        })?;
        let keys = engine.trees.get(META.index()).map_or(0, keys_estimated);
        Ok(vec![
            count("keys_estimated", keys),
            count("expired_keys_estimated", expired.records),
            ratio("expired_keys_ratio", expired.records, keys.max(expired.records)),
            count("expired_bytes_estimated", expired.bytes),
            ratio("expired_bytes_ratio", expired.bytes, bytes),
        ])
    }
}

fn table_bytes(stats: &Stats) -> u64 {
    stats.trees.iter().flat_map(|tree| &tree.levels).map(|level| level.bytes).sum()
}

fn engine_stats(stats: &Stats) -> Vec<Stat> {
    let levels = || stats.trees.iter().flat_map(|tree| &tree.levels);
    vec![
        count("table_files", levels().map(|level| level.files).sum()),
        count("table_bytes", table_bytes(stats)),
        count("table_entries", levels().map(|level| level.entries).sum()),
        count("table_tombstones", levels().map(|level| level.tombstones).sum()),
        count("memtable_bytes", stats.memtable_bytes),
        count("cache_bytes", stats.cache_bytes),
        count("resident_bytes", stats.resident_bytes),
        count("log_bytes", stats.log_bytes),
        count("log_segments", stats.log_segments),
        count("commits", stats.commits),
        count("gets", stats.gets),
        count("syncs", stats.syncs),
        count("flushes", stats.flushes),
        count("flushed_bytes", stats.flushed_bytes),
        count("merges", stats.merges),
        count("merge_read_bytes", stats.merge_read_bytes),
        count("merge_written_bytes", stats.merge_written_bytes),
        count("moves", stats.moves),
        count("merges_for_waste", stats.merges_for_garbage),
        count("entries_shadowed", stats.shadowed),
        count("entries_filtered", stats.filtered),
        count("tombstones_elided", stats.elided),
        count("stalls", stats.stalls),
        count("stalled_ns", stats.stalled_ns),
        count("slowed_ns", stats.slowed_ns),
        count("snapshots", stats.snapshots),
        count("versions_being_built", stats.reserved),
        count("block_reads", stats.block_reads()),
        Stat { name: "write_amplification", value: StatValue::Ratio(stats.write_amplification) },
        Stat { name: "read_amplification", value: StatValue::Ratio(stats.read_amplification) },
    ]
}
