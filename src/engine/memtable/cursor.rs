//! A cursor over a memtable, which may grow meanwhile. Entries written after the cursor was made
//! have later sequence numbers than its reader sees, so it does not matter whether the cursor
//! passes them.
//!
//! The cursor copies a window of addresses out of the order and holds no lock between calls.

use std::sync::Arc;

use bytes::Bytes;

use super::arena::Address;
use super::current_entry::CurrentEntry;
use super::entries::Entries;
use super::order::{Order, OrderPosition, Sorted, Target};
use super::table::Memtable;
use crate::engine::cursor::Cursor;
use crate::engine::entry::Tag;
use crate::error::Result;

const FIRST_WINDOW: usize = 8;
const LARGEST_WINDOW: usize = 256;

/// A position in a memtable.
#[derive(Debug)]
pub struct MemtableCursor {
    /// The entry at index `at` of the window.
    current: CurrentEntry,
    window: Vec<Address>,
    /// Index into the window; outside of it when the cursor is not valid.
    at: usize,
    window_size: usize,
}

impl MemtableCursor {
    /// A cursor without a position. A seek gives it one.
    pub fn new(memtable: Arc<Memtable>) -> Self {
        let current = CurrentEntry::unpositioned(memtable);
        Self { current, window: Vec::new(), at: 0, window_size: FIRST_WINDOW }
    }

    /// Moves to index `at` of the window.
    #[inline]
    fn move_to(&mut self, at: usize) {
        self.at = at;
        self.current.move_to(self.window.get(at).copied());
    }

    /// Fills the window with entries from the position that `find` returns, and moves to the
    /// first of them.
    fn forward_from(&mut self, find: impl Fn(&Order, &Entries) -> Sorted<OrderPosition>) {
        let (window, size) = (&mut self.window, self.window_size);
        self.current.memtable().with_order(|order, entries| {
            window.clear();
            order.take_from(find(order, entries)?, size, window)
        });
        self.move_to(0);
    }

    /// Fills the window with entries before the position that `find` returns, and moves to the
    /// last of them.
    fn backward_from(&mut self, find: impl Fn(&Order, &Entries) -> Sorted<OrderPosition>) {
        let (window, size) = (&mut self.window, self.window_size);
        self.current.memtable().with_order(|order, entries| {
            window.clear();
            order.take_before(find(order, entries)?, size, window)
        });
        // With an empty window the index wraps around, and the cursor is not valid.
        self.move_to(self.window.len().wrapping_sub(1));
    }

    fn widen(&mut self) {
        self.window_size = (self.window_size * 4).min(LARGEST_WINDOW);
    }
}

impl Cursor for MemtableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.current.is_valid()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current.key()
    }

    #[inline]
    fn tag(&self) -> Tag {
        self.current.tag()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current.value()
    }

    fn value_bytes(&self) -> Bytes {
        self.current.value_bytes()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.forward_from(|order, _| Ok(order.start()));
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.backward_from(|order, _| Ok(order.end()));
        Ok(())
    }

    fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.window_size = FIRST_WINDOW;
        self.forward_from(|order, entries| order.first_from(&Target::before(key, tag), entries));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.window_size = FIRST_WINDOW;
        self.backward_from(|order, entries| order.first_from(&Target::before(key, tag), entries));
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        let Some(&address) = self.window.get(self.at) else { return Ok(()) };
        self.move_to(self.at + 1);
        if !self.valid() {
            self.widen();
            self.forward_from(|order, entries| {
                // The entry with the next smaller address sorts right after this one.
                let mut target = Target::entry(entries.entry(address), address);
                target.address = address.wrapping_sub(1);
                order.first_from(&target, entries)
            });
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let Some(&address) = self.window.get(self.at) else { return Ok(()) };
        self.move_to(self.at.wrapping_sub(1));
        if !self.valid() {
            self.widen();
            self.backward_from(|order, entries| {
                order.first_from(&Target::entry(entries.entry(address), address), entries)
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::{EntryKind, MAX_SEQUENCE};
    use crate::engine::hash::stable_hash;
    use proptest::prelude::*;

    fn filled(entries: &[(Vec<u8>, u64)]) -> Arc<Memtable> {
        let m = Arc::new(Memtable::new(1 << 16));
        for (key, sequence) in entries {
            let tag = Tag::new(*sequence, EntryKind::Put);
            m.insert(stable_hash(key), key, tag, &sequence.to_le_bytes()).unwrap();
        }
        m
    }

    fn sorted(entries: &[(Vec<u8>, u64)]) -> Vec<(Vec<u8>, u64)> {
        let mut all = entries.to_vec();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        all
    }

    fn at(cursor: &MemtableCursor) -> (Vec<u8>, u64) {
        (cursor.key().to_vec(), cursor.tag().sequence())
    }

    proptest! {
        #[test]
        fn both_directions_and_seeks_follow_the_internal_order(
            keys in prop::collection::vec(prop::collection::vec(0u8..4, 0..12), 0..700),
            probe in prop::collection::vec(0u8..4, 0..12),
            split in 0usize..700,
        ) {
            let entries: Vec<_> = keys.into_iter().zip(1u64..).collect();
            let (early, late) = entries.split_at(split.min(entries.len()));
            let m = filled(early);
            // A scan in between builds the order early, so that the rest is inserted into it.
            MemtableCursor::new(Arc::clone(&m)).seek_to_first().unwrap();
            for (key, sequence) in late {
                m.insert(stable_hash(key), key, Tag::new(*sequence, EntryKind::Put), &sequence.to_le_bytes()).unwrap();
                m.update_order();
            }
            let expected = sorted(&entries);
            let mut cursor = MemtableCursor::new(m);
            let mut forward = Vec::new();
            cursor.seek_to_first().unwrap();
            while cursor.valid() {
                forward.push(at(&cursor));
                cursor.next().unwrap();
            }
            prop_assert_eq!(&forward, &expected);
            let mut backward = Vec::new();
            cursor.seek_to_last().unwrap();
            while cursor.valid() {
                backward.push(at(&cursor));
                cursor.prev().unwrap();
            }
            backward.reverse();
            prop_assert_eq!(&backward, &expected);
            cursor.seek(&probe, Tag::newest_at(MAX_SEQUENCE)).unwrap();
            let first = expected.iter().find(|(key, _)| *key >= probe);
            prop_assert_eq!(cursor.valid().then(|| at(&cursor)), first.cloned());
            cursor.seek_before(&probe, Tag::newest_at(MAX_SEQUENCE)).unwrap();
            let last = expected.iter().rev().find(|(key, _)| *key < probe);
            prop_assert_eq!(cursor.valid().then(|| at(&cursor)), last.cloned());
        }
    }
}
