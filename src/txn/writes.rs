//! The pending writes of a tree, by key.
//!
//! Most commands write one to three keys of a tree, for which a sorted list takes a third of the
//! time of a map. A list that has become a map stays one.

use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use crate::txn::pending_write::PendingWrite;

/// The most writes in a list.
const FEW: usize = 16;

/// Pending writes in the order of their keys.
#[derive(Debug)]
pub(super) enum Writes {
    /// At most [`FEW`], ascending.
    Few(Vec<(Vec<u8>, PendingWrite)>),
    Many(BTreeMap<Vec<u8>, PendingWrite>),
}

impl Default for Writes {
    /// No writes, with room for those of most commands.
    fn default() -> Self {
        Self::Few(Vec::with_capacity(2))
    }
}

/// Walks along pending writes in ascending order.
pub(super) enum Iter<'w> {
    Few(std::slice::Iter<'w, (Vec<u8>, PendingWrite)>),
    Many(btree_map::Range<'w, Vec<u8>, PendingWrite>),
}

impl<'w> Iterator for Iter<'w> {
    type Item = (&'w Vec<u8>, &'w PendingWrite);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(writes) => writes.next().map(|(key, write)| (key, write)),
            Self::Many(writes) => writes.next(),
        }
    }
}

/// The place of a key in a list: where it is, or where it belongs.
#[inline]
fn place(few: &[(Vec<u8>, PendingWrite)], key: &[u8]) -> Result<usize, usize> {
    few.binary_search_by(|(other, _)| other.as_slice().cmp(key))
}

impl Writes {
    /// Number of keys.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(few) => few.len(),
            Self::Many(many) => many.len(),
        }
    }

    /// Whether nothing is pending.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The write of a key.
    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&PendingWrite> {
        match self {
            Self::Few(few) => few.get(place(few, key).ok()?).map(|(_, write)| write),
            Self::Many(many) => many.get(key),
        }
    }

    /// Adds a write, and returns the one of the same key that it replaces. `may_hold` is false if
    /// there is certainly none.
    #[inline]
    pub(super) fn add(
        &mut self,
        key: &[u8],
        write: PendingWrite,
        may_hold: bool,
    ) -> Option<PendingWrite> {
        match self {
            Self::Few(few) => match place(few, key) {
                Ok(at) => few.get_mut(at).map(|(_, old)| old.replace(write)),
                Err(at) if few.len() < FEW => {
                    few.insert(at, (key.to_vec(), write));
                    None
                }
                Err(_) => {
                    let mut many: BTreeMap<_, _> = std::mem::take(few).into_iter().collect();
                    many.insert(key.to_vec(), write);
                    *self = Self::Many(many);
                    None
                }
            },
            Self::Many(many) => match if may_hold { many.get_mut(key) } else { None } {
                Some(old) => Some(old.replace(write)),
                None => many.insert(key.to_vec(), write),
            },
        }
    }

    /// Sets the write of a key to what it was before.
    pub(super) fn restore(&mut self, key: Vec<u8>, write: PendingWrite) {
        match self {
            Self::Few(few) => match place(few, &key) {
                Ok(at) => {
                    if let Some(place) = few.get_mut(at) {
                        place.1 = write;
                    }
                }
                Err(at) => few.insert(at, (key, write)),
            },
            Self::Many(many) => {
                many.insert(key, write);
            }
        }
    }

    /// Removes the write of a key.
    pub(super) fn remove(&mut self, key: &[u8]) {
        match self {
            Self::Few(few) => {
                if let Ok(at) = place(few, key) {
                    few.remove(at);
                }
            }
            Self::Many(many) => {
                many.remove(key);
            }
        }
    }

    /// All writes.
    #[inline]
    pub(super) fn iter(&self) -> Iter<'_> {
        match self {
            Self::Few(few) => Iter::Few(few.iter()),
            Self::Many(many) => Iter::Many(many.range::<[u8], _>(..)),
        }
    }

    /// The keys of all writes.
    #[inline]
    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.iter().map(|(key, _)| key.as_slice())
    }

    /// The writes of the keys within bounds that are not inverted.
    pub(super) fn range(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Iter<'_> {
        match self {
            Self::Few(few) => {
                let (first, last) = bounds;
                let is_before = |key: &[u8]| match first {
                    Bound::Included(first) => key < first,
                    Bound::Excluded(first) => key <= first,
                    Bound::Unbounded => false,
                };
                let from = few.partition_point(|(key, _)| is_before(key));
                let rest = few.get(from..).unwrap_or_default();
                let is_within = |key: &[u8]| match last {
                    Bound::Included(last) => key <= last,
                    Bound::Excluded(end) => key < end,
                    Bound::Unbounded => true,
                };
                let count = rest.partition_point(|(key, _)| is_within(key));
                Iter::Few(rest.get(..count).unwrap_or_default().iter())
            }
            Self::Many(many) => Iter::Many(many.range::<[u8], _>(bounds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn write(n: u8) -> PendingWrite {
        PendingWrite { value: Some(Bytes::copy_from_slice(&[n])), weight: 0 }
    }

    proptest! {
        #[test]
        fn a_list_and_the_map_that_it_becomes_are_a_map(
            steps in prop::collection::vec((any::<bool>(), 0u8..40, any::<u8>()), 0..80),
            (low, high) in (0u8..45, 0u8..45),
        ) {
            let (mut writes, mut model) = (Writes::default(), BTreeMap::new());
            for (inserts, key, n) in steps {
                let key = vec![key];
                if inserts && n % 5 == 0 {
                    writes.restore(key.clone(), write(n));
                    model.insert(key, write(n));
                } else if inserts {
                    let may_hold = n % 2 == 0 || model.contains_key(&key);
                    prop_assert_eq!(
                        writes.add(&key, write(n), may_hold),
                        model.insert(key.clone(), write(n))
                    );
                } else {
                    writes.remove(&key);
                    model.remove(&key);
                }
                prop_assert_eq!((writes.len(), writes.is_empty()), (model.len(), model.is_empty()));
            }
            prop_assert!(writes.iter().eq(model.iter()));
            prop_assert!(writes.keys().eq(model.keys()));
            for key in 0..45u8 {
                prop_assert_eq!(writes.get(&[key]), model.get(&vec![key]));
            }
            let (low, high) = ([low.min(high)], [low.max(high)]);
            let (low, high) = (&low[..], &high[..]);
            let ends = [Bound::Excluded(high), Bound::Included(high), Bound::Unbounded];
            for end in ends {
                let found = writes.range((Bound::Included(low), end));
                prop_assert!(found.eq(model.range::<[u8], _>((Bound::Included(low), end))));
            }
        }
    }
}
