//! Positions among the rows of a collection: how many rows come before one, and which row has a
//! position.
//!
//! The rows of a collection are counted by the engine (`txn::counted`). Two kinds of collections are
//! not, and are walked: packed ones, which are small, and those whose rows were written before the
//! store began to count. The latter are counted as soon as they are rewritten: by RENAME, COPY, or
//! for their tombstones (`rewrite`).

use bytes::Bytes;

use crate::encoding::keys::after_prefix;
use crate::error::Result;
use crate::keyspace::trees::{DATA, SCORE};
use crate::txn::Tx;
use crate::txn::collection::{Collection, RowForm};

/// Steps of a walk that cost less than a search for a position. Fewer in the tests of this crate,
/// which have few members.
pub(crate) const NEAR: u64 = if cfg!(test) { 2 } else { 64 };

impl Collection {
    /// The row form, if its rows are counted.
    fn counted(&self, tx: &Tx<'_>) -> Option<&RowForm> {
        self.rows().filter(|rows| tx.is_counted(rows.version))
    }

    /// Whether the collection has rows that are counted.
    pub(crate) fn is_counted(&self, tx: &Tx<'_>) -> bool {
        self.counted(tx).is_some()
    }

    /// The number of score rows with sub keys in `[lower, upper)`, without `upper` to the end;
    /// `None` if they are not counted.
    pub(crate) fn count_scores(
        &self,
        tx: &Tx<'_>,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<Option<u64>> {
        let Some(rows) = self.counted(tx) else { return Ok(None) };
        let (lower, upper) = rows.score_bounds(lower, upper);
        tx.count_rows(SCORE, &lower, upper.as_deref()).map(Some)
    }

    /// The sub key of the score row in `[lower, upper)` that follows `nth` others, if there are more
    /// than that. The rows must be counted.
    pub(crate) fn select_score(
        &self,
        tx: &Tx<'_>,
        lower: &[u8],
        upper: Option<&[u8]>,
        nth: u64,
    ) -> Result<Option<Bytes>> {
        let Some(rows) = self.counted(tx) else { return Ok(None) };
        let (lower, upper) = rows.score_bounds(lower, upper);
        let row = tx.select_row(SCORE, &lower, upper.as_deref(), nth)?;
        Ok(row.map(|row| row.slice(rows.prefix.len().min(row.len())..)))
    }

    /// The member that follows `nth` others in byte order, if there are more than that. The rows must
    /// be counted.
    pub(crate) fn select_member(&self, tx: &Tx<'_>, nth: u64) -> Result<Option<Bytes>> {
        let Some(rows) = self.counted(tx) else { return Ok(None) };
        let end = after_prefix(&rows.prefix);
        let row = tx.select_row(DATA, &rows.prefix, end.as_deref(), nth)?;
        Ok(row.map(|row| row.slice(rows.prefix.len().min(row.len())..)))
    }
}

#[cfg(test)]
mod tests;
