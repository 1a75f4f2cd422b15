//! Keeps the blocks, filters and indexes of tables within their share of the memory budget.
//!
//! The filters and indexes of tables in use stay in memory, and the block cache gets what they
//! leave. If they exceed three quarters of the share, those not used since the last check are
//! evicted. They are read again when needed.

use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::sstable::Table;

impl Core {
    /// Adapts the block cache to the memory that filters and indexes take, and to how large blocks
    /// are. Called after compactions, and periodically.
    pub(crate) fn adjust_memory(&self) {
        let share = self.limits.table_memory;
        let tables = self.open_tables();
        let mut resident: u64 = tables.iter().map(|table| table.resident_bytes() as u64).sum();
        let most = share / 4 * 3;
        if resident > most {
            resident = self.drop_unused(&tables, resident, most);
        }
        let capacity = share.saturating_sub(resident).max(share / 8);
        // Each change makes the cache reorganise itself, so small changes are skipped.
        if self.cache.capacity().abs_diff(capacity) > share / 64 {
            self.cache.set_capacity(capacity);
        }
    }

    fn open_tables(&self) -> Vec<Arc<Table>> {
        let view = self.view.load();
        view.version.files().filter_map(|file| file.opened().cloned()).collect()
    }

    /// Evicts filters and indexes until at most `most` bytes remain, beginning with tables that
    /// were not used since the last call.
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
