//! Garbage of a table: bytes that a compaction through the tree's filter would remove.
//!
//! An estimate comes from the table's statistics alone; no data block is read for it. The
//! compaction picker uses estimates to choose tables to rewrite, and to drop unread the tables
//! that nobody needs. Every table has an estimate at any time. A new table starts with none,
//! since the merge that wrote it has just applied the filter.

use crate::engine::sstable::{Properties, Table};
use crate::error::Result;
use crate::sync::Instant;

/// Whether anything still needs a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableNeed {
    /// A reader may need it. Only a merge can tell.
    #[default]
    MayBeRead,
    /// No reader needs it, but it shadows older versions of its keys. It may be dropped only where
    /// no older versions exist.
    ShadowsOlder,
    /// Nothing needs it, whatever lies below it.
    Unneeded,
}

/// What an estimate says about a table.
///
/// Garbage never becomes live again, and a table that is not needed stays so: what no reader can
/// reach, no later reader can reach either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Approximate number of bytes of the file that a filtered merge would remove.
    pub bytes: u64,
    /// Whether the table may be dropped unread.
    pub need: TableNeed,
}

/// The statistics of a table from which its garbage is estimated.
#[derive(Debug)]
pub struct TableStats<'a> {
    table: &'a Table,
}

impl<'a> TableStats<'a> {
    /// The statistics of `table`.
    pub(crate) fn new(table: &'a Table) -> Self {
        Self { table }
    }

    /// The properties stored in the table.
    pub fn properties(&self) -> &'a Properties {
        self.table.properties()
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.table.file_size()
    }

    /// Approximate number of bytes that hold keys of `[from, to)`; `None` means to the end. Reads
    /// the table's index if it is not in memory.
    pub fn bytes_between(&self, from: &[u8], to: Option<&[u8]>) -> Result<u64> {
        let end = to.map_or(Ok(self.size()), |to| self.table.approximate_offset(to))?;
        Ok(end.saturating_sub(self.table.approximate_offset(from)?))
    }

    /// The part of the file size that corresponds to `bytes` of keys and values.
    pub fn share(&self, bytes: u64) -> u64 {
        let properties = self.properties();
        let whole = u128::from(properties.key_bytes) + u128::from(properties.value_bytes);
        let share = u128::from(self.size()) * u128::from(bytes) / whole.max(1);
        u64::try_from(share).unwrap_or(u64::MAX).min(self.size())
    }
}

/// The latest estimate of a table's garbage.
#[derive(Clone, Copy, Debug)]
pub struct GarbageEstimate {
    /// When the estimate was made. For a table without one: when it was written or the store was
    /// opened.
    pub(crate) made_at: Instant,
    /// The estimated garbage.
    pub garbage: Garbage,
}

impl GarbageEstimate {
    /// An estimate made now.
    pub fn now(garbage: Garbage) -> Self {
        Self { made_at: Instant::now(), garbage }
    }
}
