//! Rows that are counted: how many there are in a range and which is the nth, without a walk.
//!
//! The engine counts the rows at the read point by sums of weights. Pending writes of the range know
//! by how much they change that number (`pending_write`), so they are added. Rows of a version from
//! before the store began to count are not counted: whoever asks looks at [`Tx::is_counted`] first.

use bytes::Bytes;

use crate::engine::{Reader, TreeId};
use crate::error::Result;
use crate::txn::Tx;
use crate::txn::pending_write::PendingWrite;

/// A pending write in the range that is asked about.
struct PendingRow<'t> {
    key: &'t [u8],
    is_set: bool,
    /// By how much the pending writes before it change the number of rows.
    change_before: i64,
}

/// The pending writes around a position.
struct Neighbours<'p, 't> {
    /// The last write that no more rows precede than the position says, and their number.
    before: Option<(&'p PendingRow<'t>, u64)>,
    /// The first write that more rows precede.
    after: Option<&'p PendingRow<'t>>,
}

impl Tx<'_> {
    /// Whether the rows of a collection with this version are counted.
    #[inline]
    pub(crate) fn is_counted(&self, version: u64) -> bool {
        version >= self.store().counted_from()
    }

    /// Sets a counted row; `exists` tells whether it is there.
    #[inline]
    pub(crate) fn put_counted(
        &mut self,
        tree: TreeId,
        key: &[u8],
        value: impl Into<Bytes>,
        exists: bool,
    ) {
        self.overlay_mut().write_counted(tree, key, Some(value.into()), i8::from(!exists));
    }

    /// Removes a counted row that is there.
    #[inline]
    pub(crate) fn remove_counted(&mut self, tree: TreeId, key: &[u8]) {
        self.overlay_mut().write_counted(tree, key, None, -1);
    }

    /// The number of rows in `[lower, upper)`, all of which are counted; without `upper` to the end
    /// of the tree.
    pub(crate) fn count_rows(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<u64> {
        if upper.is_some_and(|upper| upper <= lower) {
            return Ok(0);
        }
        let stored = self.reader_for(lower)?.count(tree, lower, upper.unwrap_or_default())?;
        let pending = self.pending_in(tree, lower, upper);
        Ok(stored.saturating_add_signed(pending.map(|(_, write)| i64::from(write.weight)).sum()))
    }

    /// The key of the row of `[lower, upper)` that follows `nth` others, if there are more than that.
    /// All rows of the range are counted. Without `upper` it ends with the tree.
    pub(crate) fn select_row(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        nth: u64,
    ) -> Result<Option<Bytes>> {
        if upper.is_some_and(|upper| upper <= lower) {
            return Ok(None);
        }
        let (reader, end) = (self.reader_for(lower)?, upper.unwrap_or_default());
        let pending = self.pending_changes(tree, lower, upper);
        let around = Neighbours::of(&reader, tree, lower, nth, &pending)?;
        let end = around.after.map_or(end, |row| row.key);
        let Some((row, count_before)) = around.before else {
            return reader.select(tree, lower, end, nth);
        };
        match nth.checked_sub(count_before) {
            Some(0) if row.is_set => Ok(Some(Bytes::copy_from_slice(row.key))),
            Some(rest) => {
                let rest = rest.saturating_sub(u64::from(row.is_set));
                reader.select(tree, &[row.key, &[0]].concat(), end, rest)
            }
            None => Ok(None),
        }
    }

    fn pending_changes(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Vec<PendingRow<'_>> {
        let mut change_before = 0;
        let row = |(key, write): (_, &PendingWrite)| {
            let row = PendingRow { key, is_set: write.value.is_some(), change_before };
            change_before += i64::from(write.weight);
            row
        };
        self.pending_in(tree, lower, upper).map(row).collect()
    }
}

impl<'p, 't> Neighbours<'p, 't> {
    /// Searches pending writes in key order for those around position `nth` of the rows from `lower`.
    fn of(
        reader: &Reader,
        tree: TreeId,
        lower: &[u8],
        nth: u64,
        pending: &'p [PendingRow<'t>],
    ) -> Result<Self> {
        let (mut around, mut left) = (Self { before: None, after: None }, pending);
        while let Some(row) = left.get(left.len() / 2) {
            let stored = reader.count(tree, lower, row.key)?;
            let count = stored.saturating_add_signed(row.change_before);
            let (smaller, greater) = left.split_at(left.len() / 2);
            if count <= nth {
                around.before = Some((row, count));
                left = greater.get(1..).unwrap_or_default();
            } else {
                around.after = Some(row);
                left = smaller;
            }
        }
        Ok(around)
    }
}
