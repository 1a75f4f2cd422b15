//! A pending write of one physical key, and by how much it changes the number of rows.
//!
//! Rows of hashes, sets and sorted sets are counted: whoever writes one says whether it was there.
//! A key that is written several times before the commit adds up what each write changed. Whatever
//! the order, the sum is what the last write alone changes about the rows at the read point: a row
//! that is set weighs 1 if it was not there and else 0, a row that is removed -1 if it was there and
//! else 0. Other rows and records weigh nothing.

use bytes::Bytes;

use crate::engine::{Batch, TreeId};

/// Roughly the memory that an entry takes beside its bytes.
const ENTRY_BYTES: usize = 64;

/// What a pending write does to its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingWrite {
    /// The new value; `None` for a removal.
    pub(super) value: Option<Bytes>,
    /// By how much the commit changes the number of rows.
    pub(super) weight: i8,
}

impl PendingWrite {
    /// Replaces this write by a later one of the same key, and returns it.
    pub(super) fn replace(&mut self, later: Self) -> Self {
        let weight = self.weight.saturating_add(later.weight);
        std::mem::replace(self, Self { weight, ..later })
    }

    /// Roughly the memory that the write of `key` takes.
    pub(super) fn cost(&self, key: &[u8]) -> usize {
        ENTRY_BYTES + key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }

    /// Adds the write of `key` to a batch.
    pub(super) fn add_to(&self, batch: &mut Batch, tree: TreeId, key: &[u8]) {
        let allowed = if self.value.is_some() { 0..=1 } else { -1..=0 };
        debug_assert!(allowed.contains(&self.weight), "{self:?} of {key:?}");
        match (&self.value, self.weight) {
            (Some(value), 1..) => batch.put_absent(tree, key, value),
            (Some(value), _) => batch.put(tree, key, value),
            (None, ..=-1) => batch.delete_present(tree, key),
            (None, _) => batch.delete(tree, key),
        }
    }
}
