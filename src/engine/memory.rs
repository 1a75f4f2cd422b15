//! Keeps blocks, filters and indexes of tables within their share of the memory budget.
//!
//! Filters and indexes of tables in use stay in memory and are paid for by the block cache: what
//! they take, the cache does not get. When they would take more than three quarters of the share,
//! those not used since the last look are dropped; they are read again when needed.

use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::sstable::Table;

impl Core {
    /// Called after flushes and compactions, and now and then.
    pub(crate) fn adjust_memory(&self) {
        let share = self.limits.table_memory;
        let tables = self.open_tables();
        let mut resident: u64 = tables.iter().map(|table| table.resident_bytes() as u64).sum();
        let most = share / 4 * 3;
        if resident > most {
            resident = self.drop_unused(&tables, resident, most);
        }
        let capacity = share.saturating_sub(resident).max(share / 8);
        // The cache reorganises itself at every change: not for a little.
        if self.cache.capacity().abs_diff(capacity) > share / 64 {
            self.cache.set_capacity(capacity);
        }
    }

    fn open_tables(&self) -> Vec<Arc<Table>> {
        let view = self.view.load();
        let files = view.version.trees.iter().flat_map(|levels| levels.files());
        files.filter_map(|file| file.opened().cloned()).collect()
    }

    /// Drops filters and indexes until `most` is kept, first of tables not used since last time.
    fn drop_unused(&self, tables: &[Arc<Table>], mut resident: u64, most: u64) -> u64 {
        let (used, unused): (Vec<_>, Vec<_>) = tables.iter().partition(|table| table.take_used());
        for table in unused.into_iter().chain(used) {
            if resident <= most {
                break;
            }
            resident = resident.saturating_sub(table.evict_resident() as u64);
        }
        resident
    }
}
