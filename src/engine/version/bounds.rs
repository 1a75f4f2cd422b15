//! The bounds of a table: its smallest and largest user key, as the manifest and the memory keep
//! them.
//!
//! Keys may have half a gigabyte, so a bound is at most the first [`MAX_BOUND_BYTES`] of its key. A
//! key is compared with a shortened bound by its own first bytes. Cutting keeps the order of keys
//! but for ties, so a table may only seem to hold a key.
//!
//! Invariant: in a sorted level, keys that agree in these first bytes are all in one table if its
//! bounds are shortened. A merge does not end a table between two such keys
//! (`TableOutputs::can_end_before`), and takes in every table of its output level that holds one.
//! So the bounds of two tables of a sorted level tie only if both are exact, as stores of format 1
//! have them.

use bytes::Bytes;

use crate::engine::entry::{MAX_BOUND_BYTES, bound};

/// The smallest and largest user key of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    smallest: Bytes,
    largest: Bytes,
    /// Whether they may be cut. Otherwise they are exact.
    shortened: bool,
}

impl KeyBounds {
    /// The bounds of a table with these smallest and largest keys, whole or cut by [`bound`].
    pub fn of(smallest: &[u8], largest: &[u8]) -> Self {
        let (smallest, largest) = (bound(smallest), bound(largest));
        // A bound of the greatest length may be that of a longer key.
        let shortened = smallest.len().max(largest.len()) == MAX_BOUND_BYTES;
        Self::from_stored(smallest, largest, shortened)
    }

    /// The bounds that the manifest of a store has.
    pub fn from_stored(smallest: &[u8], largest: &[u8], shortened: bool) -> Self {
        let [smallest, largest] = [smallest, largest].map(Bytes::copy_from_slice);
        Self { smallest, largest, shortened }
    }

    /// A lower bound of the keys.
    #[inline]
    pub fn smallest(&self) -> &[u8] {
        &self.smallest
    }

    /// The largest key, or its first bytes.
    pub fn largest(&self) -> &[u8] {
        &self.largest
    }

    /// Whether the bounds may be cut.
    pub fn are_shortened(&self) -> bool {
        self.shortened
    }

    #[inline]
    fn comparable<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        if self.shortened { bound(key) } else { key }
    }

    /// Whether all keys are certainly less than `key`.
    #[inline]
    pub fn end_before(&self, key: &[u8]) -> bool {
        *self.largest < *self.comparable(key)
    }

    /// Whether all keys are certainly greater than `key`.
    #[inline]
    pub fn begin_after(&self, key: &[u8]) -> bool {
        *self.smallest > *self.comparable(key)
    }

    /// Whether `key` may be among the keys.
    #[inline]
    pub fn may_hold(&self, key: &[u8]) -> bool {
        !self.end_before(key) && !self.begin_after(key)
    }

    /// Whether a key of `[lower, upper)` may be among the keys; `None` leaves that end open.
    pub fn reach_into(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> bool {
        lower.is_none_or(|lower| !self.end_before(lower))
            && upper.is_none_or(|upper| *self.smallest < *upper)
    }

    /// Whether all keys are certainly in `[lower, upper)`.
    pub fn lie_within(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        *self.smallest >= *lower && upper.is_none_or(|upper| self.end_before(upper))
    }

    /// Whether some keys of both may be equal, or agree in their first [`MAX_BOUND_BYTES`].
    pub fn touch(&self, other: &Self) -> bool {
        bound(&self.smallest) <= bound(&other.largest)
            && bound(&self.largest) >= bound(&other.smallest)
    }

    /// Whether these bounds and the next ones of a sorted level keep its invariant.
    pub fn precede(&self, next: &Self) -> bool {
        match self.shortened || next.shortened {
            true => bound(&self.largest) < bound(&next.smallest),
            false => self.largest < next.smallest,
        }
    }

    /// Bounds that enclose both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let smallest = bound(&self.smallest).min(bound(&other.smallest));
        Self::of(smallest, bound(&self.largest).max(bound(&other.largest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A key: some bytes that all have, then a few that differ.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let length = prop_oneof![Just(0), Just(MAX_BOUND_BYTES - 1), Just(MAX_BOUND_BYTES)];
        (length, prop::collection::vec(0u8..3, 0..4))
            .prop_map(|(common, end)| [vec![1; common], end].concat())
    }

    proptest! {
        /// Whatever is certain of the bounds is true of the keys, and bounds of short keys are exact.
        #[test]
        fn bounds_never_deny_a_key(keys in prop::collection::btree_set(key(), 1..6), probe in key()) {
            let (first, last) = (keys.first().unwrap(), keys.last().unwrap());
            let bounds = KeyBounds::of(first, last);
            prop_assert!(keys.iter().all(|key| bounds.may_hold(key)));
            prop_assert!(!bounds.end_before(&probe) || *last < probe);
            prop_assert!(!bounds.begin_after(&probe) || *first > probe);
            let inside = |key: &Vec<u8>| *key >= probe;
            prop_assert!(!bounds.lie_within(&probe, None) || keys.iter().all(inside));
            let below = |key: &Vec<u8>| *key < probe;
            prop_assert!(!bounds.lie_within(b"", Some(&probe)) || keys.iter().all(below));
            prop_assert!(bounds.reach_into(Some(&probe), None) || !keys.iter().any(inside));
            prop_assert!(bounds.reach_into(None, Some(&probe)) || !keys.iter().any(below));
            if !bounds.are_shortened() {
                prop_assert_eq!(bounds.may_hold(&probe), *first <= probe && probe <= *last);
            }
            prop_assert!(bounds.smallest().len().max(bounds.largest().len()) <= MAX_BOUND_BYTES);
        }

        /// Tables that do not touch precede each other, and tables that share a key touch.
        #[test]
        fn tables_that_do_not_touch_are_in_order(a in key(), b in key(), c in key(), d in key()) {
            let one = KeyBounds::of((&a).min(&b), (&a).max(&b));
            let other = KeyBounds::of((&c).min(&d), (&c).max(&d));
            prop_assert_eq!(one.touch(&other), other.touch(&one));
            if !one.touch(&other) {
                prop_assert!(one.precede(&other) != other.precede(&one));
            }
            for key in [&a, &b] {
                prop_assert!(one.touch(&other) || !other.may_hold(key));
            }
            prop_assert!(one.union(&other).may_hold(&a) && one.union(&other).may_hold(&d));
        }
    }
}
