//! A cursor over a memtable, which may grow meanwhile: entries written after the cursor was made
//! have later sequence numbers than its reader looks at, so it does not matter whether they show.
//!
//! The cursor copies a window of addresses out of the order and holds no lock between calls.

use std::sync::Arc;

use bytes::Bytes;

use super::arena::Address;
use super::entries::Memtable;
use super::order::{Order, Place, Target};
use super::standing::Standing;
use crate::engine::entry::Tag;
use crate::engine::iter::cursor::Cursor;
use crate::error::Result;

const FIRST_WINDOW: usize = 8;
const LARGEST_WINDOW: usize = 256;

/// Stands on an entry of a memtable.
#[derive(Debug)]
pub struct MemtableCursor {
    /// On the entry at `at`.
    standing: Standing,
    window: Vec<Address>,
    /// Index into the window; out of it when the cursor is not valid.
    at: usize,
    window_size: usize,
}

impl MemtableCursor {
    /// A cursor that stands nowhere yet.
    pub fn new(memtable: Arc<Memtable>) -> Self {
        let standing = Standing::nowhere(memtable);
        Self { standing, window: Vec::new(), at: 0, window_size: FIRST_WINDOW }
    }

    /// Stands at `at`.
    #[inline]
    fn stand(&mut self, at: usize) {
        self.at = at;
        self.standing.stand_on(self.window.get(at).copied());
    }

    /// Fills the window from the place that `find` returns, forward.
    fn forward_from(&mut self, find: impl FnOnce(&Order, &Memtable) -> Place) {
        self.window.clear();
        {
            let memtable = self.standing.memtable();
            let order = memtable.ordered();
            order.take_from(find(&order, memtable), self.window_size, &mut self.window);
        }
        self.stand(0);
    }

    /// Fills the window with what comes before the place that `find` returns.
    fn backward_from(&mut self, find: impl FnOnce(&Order, &Memtable) -> Place) {
        self.window.clear();
        {
            let memtable = self.standing.memtable();
            let order = memtable.ordered();
            order.take_before(find(&order, memtable), self.window_size, &mut self.window);
        }
        // Wraps to an index outside when the window is empty: not valid.
        self.stand(self.window.len().wrapping_sub(1));
    }

    fn widen(&mut self) {
        self.window_size = (self.window_size * 4).min(LARGEST_WINDOW);
    }
}

impl Cursor for MemtableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.standing.is_somewhere()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.standing.key()
    }

    #[inline]
    fn tag(&self) -> Tag {
        self.standing.tag()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.standing.value()
    }

    fn value_bytes(&self) -> Bytes {
        self.standing.value_bytes()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.forward_from(|order, _| order.start());
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.backward_from(|order, _| order.end());
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
        self.stand(self.at + 1);
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
        self.stand(self.at.wrapping_sub(1));
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
    use crate::engine::entry::{Kind, MAX_SEQUENCE, hash_key};
    use proptest::prelude::*;

    fn filled(entries: &[(Vec<u8>, u64)]) -> Arc<Memtable> {
        let m = Arc::new(Memtable::new(1 << 16, false));
        for (key, sequence) in entries {
            let tag = Tag::new(*sequence, Kind::Put);
            m.insert(hash_key(key), key, tag, &sequence.to_le_bytes()).unwrap();
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
                m.insert(hash_key(key), key, Tag::new(*sequence, Kind::Put), &sequence.to_le_bytes()).unwrap();
                m.index_ahead();
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
