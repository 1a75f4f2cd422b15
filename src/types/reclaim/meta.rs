//! The filter of the meta tree.
//!
//! A record that has expired for every present and future observer becomes a delete with its own
//! sequence; when that may go, the engine decides as for any delete. Dropping it instead, above
//! older data, would let an old value show again. A record of a dead space is dropped: whatever
//! shows again there, no one can see.

use std::sync::Arc;

use super::spaces::LiveSpaces;
use super::{Reclaim, Removed};
use crate::encoding::keys::{Space, split_meta_key};
use crate::encoding::meta::Header;
use crate::engine::{Decision, Filter, FilterJob, Sequence, Tag};
use crate::error::Result;

/// See the module's documentation.
pub(super) struct MetaFilter {
    reclaim: Arc<Reclaim>,
    expired_through: u64,
    current: Sequence,
    live: LiveSpaces,
    removed: Removed,
}

impl MetaFilter {
    pub(super) fn new(reclaim: &Arc<Reclaim>, job: &FilterJob, live: LiveSpaces) -> Self {
        Self {
            reclaim: Arc::clone(reclaim),
            expired_through: reclaim.times.expire(),
            current: job.current(),
            live,
            removed: Removed::default(),
        }
    }

    fn judge(&self, key: &[u8], tag: Tag, value: &[u8]) -> Decision {
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

impl Filter for MetaFilter {
    fn decide(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<Decision> {
        let decision = self.judge(key, tag, value);
        self.removed.records += u64::from(decision != Decision::Keep);
        Ok(decision)
    }
}

impl Drop for MetaFilter {
    fn drop(&mut self) {
        self.reclaim.count(self.removed);
    }
}
