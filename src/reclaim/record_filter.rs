//! The compaction filter of the meta tree.
//!
//! A record that has expired for every present and future reader becomes a tombstone with its own
//! sequence; the engine decides when that may go. Dropping the record instead, above older data,
//! would make an old value visible again. A record in a dead space is dropped: nobody can see what
//! becomes visible there.

use std::sync::Arc;

use crate::encoding::keys::{Space, split_meta_key};
use crate::encoding::meta::Header;
use crate::engine::{Decision, Filter, FilterJob, Sequence, Tag};
use crate::error::Result;
use crate::keyspace::reclaimed::{Removed, RemovedTotals};
use crate::reclaim::live_spaces::LiveSpaces;

/// Filters the records of one compaction.
pub(super) struct RecordFilter {
    totals: Arc<RemovedTotals>,
    expired_through: u64,
    current: Sequence,
    live: LiveSpaces,
    removed: Removed,
}

impl RecordFilter {
    pub(super) fn new(
        totals: &Arc<RemovedTotals>,
        expired_through: u64,
        job: &FilterJob,
        live: LiveSpaces,
    ) -> Self {
        Self {
            totals: Arc::clone(totals),
            expired_through,
            current: job.current(),
            live,
            removed: Removed::default(),
        }
    }

    fn decision(&self, key: &[u8], tag: Tag, value: &[u8]) -> Decision {
        match split_meta_key(key) {
            None | Some((Space::RESERVED, _)) => return Decision::Keep,
            Some((space, _)) if tag.sequence() <= self.current && !self.live.is_alive(space) => {
                return Decision::Drop;
            }
            Some(_) => {}
        }
        let expired = !tag.is_delete()
            && Header::decode(value).is_ok_and(|header| header.expired(self.expired_through));
        if expired { Decision::Tombstone } else { Decision::Keep }
    }
}

impl Filter for RecordFilter {
    fn decide(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<Decision> {
        let decision = self.decision(key, tag, value);
        self.removed.records += u64::from(decision != Decision::Keep);
        Ok(decision)
    }
}

impl Drop for RecordFilter {
    fn drop(&mut self) {
        self.totals.add(self.removed);
    }
}
