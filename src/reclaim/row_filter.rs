//! The compaction filter of the data and score trees.
//!
//! A row (version V, sequence s) is dropped if
//! 1. s is at most the newest sequence visible when the compaction began: later rows are not
//!    examined;
//! 2. V is not under construction: the record that names it is yet to come;
//! 3. no reader at a sequence >= s finds a record that names V and, for a list, whose span holds
//!    the row's index. Whether that record has expired does not count: the filter of the meta tree
//!    decides that, and rows follow.
//!
//! The tombstone of a row is dropped under the same conditions, at any level: an older row that
//! becomes visible below it belongs to no one either.

use std::sync::Arc;

use crate::encoding::keys::{meta_key, split_row_key};
use crate::engine::{Decision, Filter, FilterJob, Sequence, Tag};
use crate::error::Result;
use crate::keyspace::reclaimed::{Removed, RemovedTotals};
use crate::reclaim::live_spaces::LiveSpaces;
use crate::reclaim::owners::Owners;

/// Filters the rows of one compaction.
pub(super) struct RowFilter {
    totals: Arc<RemovedTotals>,
    current: Sequence,
    /// Versions under construction, ascending.
    building: Vec<u64>,
    live: LiveSpaces,
    owners: Owners,
    /// The prefix of the current user key's rows, up to the version.
    group: Vec<u8>,
    /// Whether some reader can reach the space of the current user key.
    reachable: bool,
    removed: Removed,
}

impl RowFilter {
    pub(super) fn new(totals: &Arc<RemovedTotals>, job: &FilterJob, live: LiveSpaces) -> Self {
        Self {
            totals: Arc::clone(totals),
            current: job.current(),
            building: job.pinned.reserved.clone(),
            live,
            owners: Owners::new(job),
            group: Vec::new(),
            reachable: true,
            removed: Removed::default(),
        }
    }

    /// Moves to a row; its version and sub key, or `None` if the key is no row.
    fn enter<'k>(&mut self, key: &'k [u8]) -> Option<(u64, &'k [u8])> {
        // The escaped user key delimits itself, so no other user key's rows begin with the group.
        if self.group.is_empty() || !key.starts_with(&self.group) {
            self.enter_group(key)?;
        }
        let (version, sub_key) = key.get(self.group.len()..)?.split_first_chunk()?;
        Some((u64::from_be_bytes(*version), sub_key))
    }

    fn enter_group(&mut self, key: &[u8]) -> Option<()> {
        self.group.clear();
        let row = split_row_key(key)?;
        let end = key.len().checked_sub(row.sub_key.len() + size_of::<u64>())?;
        self.group.extend_from_slice(key.get(..end)?);
        self.reachable = self.live.holds(key);
        self.owners.turn_to(&meta_key(row.space, &row.user_key));
        Some(())
    }

    fn is_dead(&mut self, key: &[u8], tag: Tag) -> Result<bool> {
        if tag.sequence() > self.current {
            return Ok(false);
        }
        let Some((version, sub_key)) = self.enter(key) else { return Ok(false) };
        if self.building.binary_search(&version).is_ok() {
            return Ok(false);
        }
        Ok(!self.reachable || !self.owners.hold(version, sub_key, tag.sequence())?)
    }
}

impl Filter for RowFilter {
    fn decide(&mut self, key: &[u8], tag: Tag, _: &[u8]) -> Result<Decision> {
        let dead = self.is_dead(key, tag)?;
        self.removed.rows += u64::from(dead);
        Ok(if dead { Decision::Drop } else { Decision::Keep })
    }
}

impl Drop for RowFilter {
    fn drop(&mut self) {
        self.totals.add(self.removed);
    }
}
