//! Merges several cursors into one, in internal order.
//!
//! Two sources must not hold the same entry `(key, sequence)`. That is so because each sequence
//! number is in exactly one memtable or table. There are few sources (memtables, level-0 files, one
//! per deeper level), so the merge finds the next entry by comparing all of them. While the current
//! source stays ahead of the runner-up, a single comparison suffices.

use std::cmp::Ordering;

use bytes::Bytes;

use super::Cursor;
use crate::engine::entry::{Tag, compare};
use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// A merge of cursors of one type.
#[derive(Debug)]
pub(crate) struct MergeCursor<C> {
    sources: Vec<C>,
    /// Index of the source with the current entry.
    current: Option<usize>,
    /// The source with the next entry after those of the current source. `None` if no other source
    /// is valid.
    runner_up: Option<usize>,
    direction: Direction,
}

impl<C: Cursor> MergeCursor<C> {
    /// A merge without a position. A seek gives it one.
    pub(crate) fn new(sources: Vec<C>) -> Self {
        Self { sources, current: None, runner_up: None, direction: Direction::Forward }
    }

    #[inline]
    fn source(&self) -> Option<&C> {
        self.sources.get(self.current?)
    }

    /// The source with the current entry, for movements that keep it ahead of all others.
    #[inline]
    pub(crate) fn current_mut(&mut self) -> Option<&mut C> {
        self.sources.get_mut(self.current?)
    }

    /// The source with the current entry, and the key of the next entry of another source. Both are
    /// those of a merge that goes forward.
    pub(crate) fn current_and_rival(&mut self) -> Option<(&mut C, Option<&[u8]>)> {
        let current = self.current.filter(|_| self.direction == Direction::Forward)?;
        let Some(rival) = self.runner_up else {
            return Some((self.sources.get_mut(current)?, None));
        };
        let [current, rival] = self.sources.get_disjoint_mut([current, rival]).ok()?;
        Some((current, Some(rival.key())))
    }

    /// Whether `a` comes before `b` in the current direction.
    #[inline]
    fn leads(&self, a: &C, b: &C) -> bool {
        let order = compare(a.key(), a.tag(), b.key(), b.tag());
        match self.direction {
            Direction::Forward => order == Ordering::Less,
            Direction::Backward => order == Ordering::Greater,
        }
    }

    /// Finds the leading source and the one after it.
    fn select(&mut self) {
        let mut first: Option<(usize, &C)> = None;
        let mut second: Option<(usize, &C)> = None;
        for (index, source) in self.sources.iter().enumerate() {
            if !source.valid() {
                continue;
            }
            if first.is_none_or(|(_, best)| self.leads(source, best)) {
                second = first;
                first = Some((index, source));
            } else if second.is_none_or(|(_, best)| self.leads(source, best)) {
                second = Some((index, source));
            }
        }
        let (first, second) = (first.map(|(i, _)| i), second.map(|(i, _)| i));
        (self.current, self.runner_up) = (first, second);
    }

    /// Called after the current source moved: it keeps the lead, or the runner-up takes over.
    #[inline]
    fn reselect(&mut self) {
        let keeps = match (self.source(), self.runner_up.and_then(|i| self.sources.get(i))) {
            (Some(current), None) => current.valid(),
            (Some(current), Some(rival)) => current.valid() && self.leads(current, rival),
            (None, _) => false,
        };
        if !keeps {
            self.select();
        }
    }

    /// Moves every source. After a failure the merge is not valid.
    fn move_all(
        &mut self,
        direction: Direction,
        mut movement: impl FnMut(&mut C) -> Result<()>,
    ) -> Result<()> {
        (self.current, self.runner_up) = (None, None);
        self.direction = direction;
        for source in &mut self.sources {
            movement(source)?;
        }
        self.select();
        Ok(())
    }

    fn move_current(&mut self, movement: impl FnOnce(&mut C) -> Result<()>) -> Result<()> {
        let Some(source) = self.current.and_then(|i| self.sources.get_mut(i)) else {
            return Ok(());
        };
        if let Err(error) = movement(source) {
            (self.current, self.runner_up) = (None, None);
            return Err(error);
        }
        self.reselect();
        Ok(())
    }

    /// Reverses the direction: moves every source to the other side of the current entry.
    fn turn(&mut self, direction: Direction) -> Result<()> {
        let Some(current) = self.current else { return Ok(()) };
        let (key, tag) = (self.key().to_vec(), self.tag());
        (self.current, self.runner_up) = (None, None);
        for (index, source) in self.sources.iter_mut().enumerate() {
            match direction {
                _ if index == current => {}
                Direction::Forward => source.seek(&key, tag)?,
                Direction::Backward => source.seek_before(&key, tag)?,
            }
        }
        self.direction = direction;
        self.current = Some(current);
        self.runner_up = self.best_except(current);
        Ok(())
    }

    fn best_except(&self, skipped: usize) -> Option<usize> {
        let mut best: Option<(usize, &C)> = None;
        for (index, source) in self.sources.iter().enumerate() {
            let better = index != skipped
                && source.valid()
                && best.is_none_or(|(_, so_far)| self.leads(source, so_far));
            if better {
                best = Some((index, source));
            }
        }
        best.map(|(index, _)| index)
    }
}

impl<C: Cursor> Cursor for MergeCursor<C> {
    #[inline]
    fn valid(&self) -> bool {
        self.current.is_some()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.source().map_or(&[], Cursor::key)
    }

    #[inline]
    fn tag(&self) -> Tag {
        self.source().map_or(Tag::newest_at(0), Cursor::tag)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.source().map_or(&[], Cursor::value)
    }

    fn value_bytes(&self) -> Bytes {
        self.source().map_or_else(Bytes::new, Cursor::value_bytes)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.move_all(Direction::Forward, Cursor::seek_to_first)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.move_all(Direction::Backward, Cursor::seek_to_last)
    }

    fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.move_all(Direction::Forward, |source| source.seek(key, tag))
    }

    fn seek_before(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.move_all(Direction::Backward, |source| source.seek_before(key, tag))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.direction == Direction::Backward {
            self.turn(Direction::Forward)?;
        }
        self.move_current(Cursor::next)
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.direction == Direction::Forward {
            self.turn(Direction::Backward)?;
        }
        self.move_current(Cursor::prev)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::EntryKind;
    use crate::engine::hash::stable_hash;
    use crate::engine::memtable::{Memtable, MemtableCursor};
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        /// Entries dealt to several sources, then a random walk compared to a sorted list.
        #[test]
        fn a_walk_over_several_sources_follows_one_sorted_list(
            entries in prop::collection::vec((prop::collection::vec(0u8..3, 0..4), 0usize..4), 1..60),
            walk in prop::collection::vec((0u8..5, prop::collection::vec(0u8..3, 0..4)), 0..60),
        ) {
            let tables: Vec<_> = (0..4).map(|_| Arc::new(Memtable::new(0))).collect();
            let mut model = Vec::new();
            for ((key, home), sequence) in entries.iter().zip(1u64..) {
                let tag = Tag::new(sequence, EntryKind::Put);
                tables[*home].insert(stable_hash(key), key, tag, b"").unwrap();
                model.push((key.clone(), std::cmp::Reverse(tag)));
            }
            model.sort();
            let cursors = tables.into_iter().map(MemtableCursor::new).collect();
            let mut merge = MergeCursor::new(cursors);
            let mut place: Option<usize> = None;
            for (step, key) in &walk {
                let tag = Tag::newest_at(30);
                let from = (key.clone(), std::cmp::Reverse(tag));
                match step {
                    0 => { merge.seek_to_first().unwrap(); place = Some(0); }
                    1 => { merge.seek_to_last().unwrap(); place = Some(model.len() - 1); }
                    2 => {
                        merge.seek(key, tag).unwrap();
                        place = Some(model.partition_point(|e| *e < from)).filter(|p| *p < model.len());
                    }
                    3 => { merge.next().unwrap(); place = place.map(|p| p + 1).filter(|p| *p < model.len()); }
                    _ => { merge.prev().unwrap(); place = place.and_then(|p| p.checked_sub(1)); }
                }
                let expected = place.map(|p| model[p].clone());
                let found = merge.valid().then(|| (merge.key().to_vec(), std::cmp::Reverse(merge.tag())));
                prop_assert_eq!(found, expected);
            }
        }
    }
}
