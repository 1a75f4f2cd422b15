//! The order of a memtable: addresses sorted by key and then newest first, in runs small enough to
//! insert into by moving memory.
//!
//! Each address comes with eight bytes of its key, so most comparisons touch no entry. They are the
//! first eight bytes after the prefix that all keys share: rows of one collection share its name
//! and version.

use std::cmp::Ordering;
use std::ops::Range;

use super::arena::Address;
use super::entries::{Entries, MemtableEntry};
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag, common_prefix};

/// Largest number of entries in a run.
pub(crate) const RUN: usize = 256;

#[derive(Clone, Copy, Debug)]
struct OrderSlot {
    /// Eight bytes of the key, after the common prefix of all keys.
    prefix: u64,
    address: Address,
}

/// A position in the order: run and index within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderPosition {
    run: usize,
    index: usize,
}

/// Sorted runs; every run is non-empty, and all of one run sorts before all of the next.
#[derive(Debug, Default)]
pub(super) struct Order {
    runs: Vec<Vec<OrderSlot>>,
    len: usize,
    /// A common prefix of all keys, not necessarily the longest.
    common: Vec<u8>,
}

/// A position to search for. Entries sort by key, then by descending sequence number, then with
/// the latest written first.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) key: &'a [u8],
    pub(super) sequence: Sequence,
    pub(super) address: Address,
}

impl<'a> Target<'a> {
    /// A target that sorts before every entry of `key` with a tag of at most `tag`.
    pub(super) fn before(key: &'a [u8], tag: Tag) -> Self {
        Self { key, sequence: tag.sequence(), address: Address::MAX }
    }

    /// The position of the entry itself.
    pub(super) fn entry(found: MemtableEntry<'a>, address: Address) -> Self {
        Self { key: found.key(), sequence: found.tag().sequence(), address }
    }
}

/// The first eight bytes of a key as a big-endian number, padded with zeros.
#[inline]
fn prefix_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0u8; 8];
    for (to, from) in first.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(first)
}

fn compare(
    slot: OrderSlot,
    target_prefix: u64,
    target: &Target<'_>,
    entries: &Entries,
) -> Ordering {
    slot.prefix.cmp(&target_prefix).then_with(|| {
        let found = entries.entry(slot.address);
        found
            .key()
            .cmp(target.key)
            .then_with(|| target.sequence.cmp(&found.tag().sequence()))
            .then_with(|| target.address.cmp(&slot.address))
    })
}

impl Order {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds entries in any order.
    pub(super) fn extend(&mut self, fresh: Vec<Address>, entries: &Entries) {
        let keys = || fresh.iter().map(|address| entries.entry(*address).key());
        if self.len == 0 {
            let first = keys().next().unwrap_or_default();
            let shared = keys().map(|key| common_prefix(first, key)).min().unwrap_or(0);
            self.common = first.get(..shared).unwrap_or_default().to_vec();
        } else {
            keys().for_each(|key| self.share(key, entries));
        }
        self.len += fresh.len();
        // Rebuilding costs a pass over everything, inserting costs a search per entry.
        if fresh.len() * 16 > self.len {
            self.rebuild(fresh, entries);
        } else {
            fresh.into_iter().for_each(|address| self.insert(address, entries));
        }
    }

    fn rebuild(&mut self, fresh: Vec<Address>, entries: &Entries) {
        let mut all: Vec<OrderSlot> =
            std::mem::take(&mut self.runs).into_iter().flatten().collect();
        all.extend(fresh.into_iter().map(|address| self.slot_of(address, entries)));
        all.sort_unstable_by(|a, b| {
            compare(*a, b.prefix, &Target::entry(entries.entry(b.address), b.address), entries)
        });
        // Half-full runs leave room for what is inserted later.
        self.runs = all.chunks(RUN / 2).map(<[OrderSlot]>::to_vec).collect();
    }

    fn slot_of(&self, address: Address, entries: &Entries) -> OrderSlot {
        let key = entries.entry(address).key();
        let prefix = prefix_of(key.get(self.common.len()..).unwrap_or_default());
        OrderSlot { prefix, address }
    }

    /// Shortens `common` to a prefix of `key`, if it is none yet. It shrinks to at most half its
    /// length each time, so that the slots are rarely rebuilt.
    fn share(&mut self, key: &[u8], entries: &Entries) {
        if key.starts_with(&self.common) {
            return;
        }
        self.common.truncate(common_prefix(&self.common, key).min(self.common.len() / 2));
        let mut runs = std::mem::take(&mut self.runs);
        for slot in runs.iter_mut().flatten() {
            *slot = self.slot_of(slot.address, entries);
        }
        self.runs = runs;
    }

    fn insert(&mut self, address: Address, entries: &Entries) {
        let found = entries.entry(address);
        let position = self.first_from(&Target::entry(found, address), entries);
        let slot = self.slot_of(address, entries);
        let at_end = position.run == self.runs.len();
        let run_index = if at_end { position.run.saturating_sub(1) } else { position.run };
        let Some(run) = self.runs.get_mut(run_index) else {
            self.runs.push(vec![slot]);
            return;
        };
        let index = if at_end { run.len() } else { position.index };
        run.insert(index, slot);
        if run.len() > RUN {
            let upper = run.split_off(run.len() / 2);
            self.runs.insert(run_index + 1, upper);
        }
    }

    /// The first position that does not sort before `target`; the end if there is none.
    pub(super) fn first_from(&self, target: &Target<'_>, entries: &Entries) -> OrderPosition {
        let Some(rest) = target.key.strip_prefix(self.common.as_slice()) else {
            // The target lacks the common prefix: it sorts before all keys or after all keys.
            let after = target.key > self.common.as_slice();
            return if after { self.end() } else { self.start() };
        };
        let prefix = prefix_of(rest);
        let before = |slot: &OrderSlot| compare(*slot, prefix, target, entries).is_lt();
        // Runs whose last entry sorts before the target are skipped.
        let run = self.runs.partition_point(|run| run.last().is_some_and(before));
        let index = self.runs.get(run).map_or(0, |run| run.partition_point(before));
        OrderPosition { run, index }
    }

    /// The runs that may hold entries of `[lower, upper)`.
    pub(super) fn runs_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        entries: &Entries,
    ) -> Range<usize> {
        let newest = Tag::newest_at(MAX_SEQUENCE);
        let position = |key| self.first_from(&Target::before(key, newest), entries);
        let first = position(lower).run;
        let end = upper.map(position).map_or(self.runs.len(), |end| end.run + end.index.min(1));
        first..end.min(self.runs.len()).max(first)
    }

    /// The address at `index` of a run, if the run is that long.
    pub(super) fn slot(&self, run: usize, index: usize) -> Option<Address> {
        self.runs.get(run)?.get(index).map(|slot| slot.address)
    }

    /// The position after the last entry.
    pub(super) fn end(&self) -> OrderPosition {
        OrderPosition { run: self.runs.len(), index: 0 }
    }

    /// The position of the first entry.
    pub(super) fn start(&self) -> OrderPosition {
        OrderPosition { run: 0, index: 0 }
    }

    /// Appends up to `limit` addresses from `position` on, ascending.
    pub(super) fn take_from(&self, position: OrderPosition, limit: usize, out: &mut Vec<Address>) {
        let mut skip = position.index;
        for run in self.runs.get(position.run..).unwrap_or_default() {
            let room = limit.saturating_sub(out.len());
            out.extend(run.iter().skip(skip).take(room).map(|slot| slot.address));
            skip = 0;
            if out.len() >= limit {
                return;
            }
        }
    }

    /// Appends up to `limit` addresses before `position`, ascending.
    pub(super) fn take_before(
        &self,
        position: OrderPosition,
        limit: usize,
        out: &mut Vec<Address>,
    ) {
        let head = self.runs.get(position.run).and_then(|run| run.get(..position.index));
        let mut push = |run: &[OrderSlot]| {
            let room = limit.saturating_sub(out.len());
            out.extend(run.iter().rev().take(room).map(|slot| slot.address));
            out.len() >= limit
        };
        if !push(head.unwrap_or_default()) {
            for run in self.runs.get(..position.run).unwrap_or_default().iter().rev() {
                if push(run) {
                    break;
                }
            }
        }
        out.reverse();
    }
}
