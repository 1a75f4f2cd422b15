//! Tells which entries of a merge some reader can still see.
//!
//! Snapshots divide the sequence numbers into stripes. A reader at a snapshot sees the newest
//! version of a key in its stripe or an older one. So of the versions of a key in one stripe only
//! the newest can be visible. The stripe after the last snapshot belongs to future readers.

use crate::engine::entry::{Sequence, Tag};

/// Decides visibility entry by entry, in internal order.
#[derive(Debug)]
pub struct Visibility {
    /// Live snapshots, ascending.
    snapshots: Vec<Sequence>,
    key: Vec<u8>,
    /// Stripe of the last entry of `key`; `None` before the first entry.
    stripe: Option<usize>,
}

impl Visibility {
    /// Visibility for the readers at `snapshots`, which ascend, and future readers.
    pub fn new(snapshots: Vec<Sequence>) -> Self {
        debug_assert!(snapshots.is_sorted());
        Self { snapshots, key: Vec::new(), stripe: None }
    }

    /// Whether the entry is the newest version of its key in its stripe.
    #[inline]
    pub fn is_visible(&mut self, key: &[u8], tag: Tag) -> bool {
        let stripe = self.stripe_of(tag.sequence());
        if self.stripe == Some(stripe) && self.key == key {
            return false;
        }
        if self.stripe.is_none() || self.key != key {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        self.stripe = Some(stripe);
        true
    }

    #[inline]
    fn stripe_of(&self, sequence: Sequence) -> usize {
        if self.snapshots.is_empty() {
            return 0;
        }
        self.snapshots.partition_point(|snapshot| *snapshot < sequence)
    }

    /// Whether every reader sees a tombstone with this tag, so that no older version of its key
    /// among the inputs is visible.
    #[inline]
    pub fn is_visible_to_all(&self, tag: Tag) -> bool {
        self.snapshots.first().is_none_or(|oldest| tag.sequence() <= *oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::EntryKind;
    use proptest::prelude::*;

    proptest! {
        /// Every reader, at any snapshot or at the newest sequence, sees the same as before.
        #[test]
        fn no_reader_sees_a_difference(
            mut snapshots in prop::collection::vec(0u64..40, 0..5),
            mut versions in prop::collection::vec((0u8..3, 1u64..40), 0..40),
        ) {
            snapshots.sort_unstable();
            snapshots.dedup();
            versions.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
            versions.dedup();
            let mut survival = Visibility::new(snapshots.clone());
            let kept: Vec<_> = versions
                .iter()
                .filter(|(key, seq)| survival.is_visible(&[*key], Tag::new(*seq, EntryKind::Put)))
                .copied()
                .collect();
            let see = |all: &[(u8, u64)], key, at| {
                all.iter().find(|(k, seq)| *k == key && *seq <= at).copied()
            };
            for at in snapshots.iter().copied().chain([100]) {
                for key in 0..3 {
                    prop_assert_eq!(see(&kept, key, at), see(&versions, key, at));
                }
            }
            prop_assert!(kept.len() <= 3 * (snapshots.len() + 1), "nothing unseen is kept");
        }
    }
}
