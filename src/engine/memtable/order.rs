//! The ordered index of a memtable: addresses sorted by (key, newest first), in runs small enough
//! to insert into by moving memory.
//!
//! Beside each address stand eight bytes of the key, so most comparisons touch no entry: the first
//! eight after those that all keys share. Rows of one collection share its name and version.

use std::cmp::Ordering;
use std::ops::Range;

use super::arena::Address;
use super::entries::{Found, Memtable};
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag, common_prefix};

/// Most entries of a run.
pub(crate) const RUN: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Of the key, after what is common to all.
    prefix: u64,
    address: Address,
}

/// A position in the order: run and index within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    run: usize,
    index: usize,
}

/// Sorted runs; every run is non-empty, and all of one run sorts before all of the next.
#[derive(Debug, Default)]
pub(super) struct Order {
    runs: Vec<Vec<Slot>>,
    len: usize,
    /// What all keys begin with, or less.
    common: Vec<u8>,
}

/// What is looked for: entries sort by key, then newest sequence first, then latest written first.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) key: &'a [u8],
    pub(super) sequence: Sequence,
    pub(super) address: Address,
}

impl<'a> Target<'a> {
    /// Sorts before every entry of `key` with a tag of at most `tag`.
    pub(super) fn before(key: &'a [u8], tag: Tag) -> Self {
        Self { key, sequence: tag.sequence(), address: Address::MAX }
    }

    /// The entry itself.
    pub(super) fn entry(found: Found<'a>, address: Address) -> Self {
        Self { key: found.key(), sequence: found.tag().sequence(), address }
    }
}

/// The first eight bytes, zeros for those that are missing.
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

fn compare(slot: Slot, target_prefix: u64, target: &Target<'_>, entries: &Memtable) -> Ordering {
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
    pub(super) fn extend(&mut self, fresh: Vec<Address>, entries: &Memtable) {
        let keys = || fresh.iter().map(|address| entries.entry(*address).key());
        if self.len == 0 {
            let first = keys().next().unwrap_or_default();
            let shared = keys().map(|key| common_prefix(first, key)).min().unwrap_or(0);
            self.common = first.get(..shared).unwrap_or_default().to_vec();
        } else {
            keys().for_each(|key| self.share(key, entries));
        }
        self.len += fresh.len();
        // Rebuilding costs a pass over everything, inserting a search an entry.
        if fresh.len() * 16 > self.len {
            self.rebuild(fresh, entries);
        } else {
            fresh.into_iter().for_each(|address| self.insert(address, entries));
        }
    }

    fn rebuild(&mut self, fresh: Vec<Address>, entries: &Memtable) {
        let mut all: Vec<Slot> = std::mem::take(&mut self.runs).into_iter().flatten().collect();
        all.extend(fresh.into_iter().map(|address| self.slot_of(address, entries)));
        all.sort_unstable_by(|a, b| {
            compare(*a, b.prefix, &Target::entry(entries.entry(b.address), b.address), entries)
        });
        // Half-full runs leave room for what is inserted later.
        self.runs = all.chunks(RUN / 2).map(<[Slot]>::to_vec).collect();
    }

    fn slot_of(&self, address: Address, entries: &Memtable) -> Slot {
        let key = entries.entry(address).key();
        let prefix = prefix_of(key.get(self.common.len()..).unwrap_or_default());
        Slot { prefix, address }
    }

    /// Makes `common` something that `key` begins with too. It becomes at most half as long each
    /// time, so that the slots are not made anew often.
    fn share(&mut self, key: &[u8], entries: &Memtable) {
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

    fn insert(&mut self, address: Address, entries: &Memtable) {
        let found = entries.entry(address);
        let place = self.first_from(&Target::entry(found, address), entries);
        let slot = self.slot_of(address, entries);
        let at_end = place.run == self.runs.len();
        let run_index = if at_end { place.run.saturating_sub(1) } else { place.run };
        let Some(run) = self.runs.get_mut(run_index) else {
            self.runs.push(vec![slot]);
            return;
        };
        let index = if at_end { run.len() } else { place.index };
        run.insert(index, slot);
        if run.len() > RUN {
            let upper = run.split_off(run.len() / 2);
            self.runs.insert(run_index + 1, upper);
        }
    }

    /// The first place that does not sort before `target`; one past the end if there is none.
    pub(super) fn first_from(&self, target: &Target<'_>, entries: &Memtable) -> Place {
        let Some(rest) = target.key.strip_prefix(self.common.as_slice()) else {
            // Not among keys that all begin alike: before the first or after the last of them.
            let after = target.key > self.common.as_slice();
            return if after { self.end() } else { self.start() };
        };
        let prefix = prefix_of(rest);
        let before = |slot: &Slot| compare(*slot, prefix, target, entries).is_lt();
        // Runs whose last entry sorts before the target are out.
        let run = self.runs.partition_point(|run| run.last().is_some_and(before));
        let index = self.runs.get(run).map_or(0, |run| run.partition_point(before));
        Place { run, index }
    }

    /// The runs that may hold entries of `[lower, upper)`.
    pub(super) fn runs_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        entries: &Memtable,
    ) -> Range<usize> {
        let newest = Tag::newest_at(MAX_SEQUENCE);
        let place = |key| self.first_from(&Target::before(key, newest), entries);
        let first = place(lower).run;
        let end = upper.map(place).map_or(self.runs.len(), |end| end.run + end.index.min(1));
        first..end.min(self.runs.len()).max(first)
    }

    /// An entry of a run, if it has that many.
    pub(super) fn slot(&self, run: usize, index: usize) -> Option<Address> {
        self.runs.get(run)?.get(index).map(|slot| slot.address)
    }

    /// The place after the last entry.
    pub(super) fn end(&self) -> Place {
        Place { run: self.runs.len(), index: 0 }
    }

    /// The place of the first entry.
    pub(super) fn start(&self) -> Place {
        Place { run: 0, index: 0 }
    }

    /// Up to `limit` addresses from `place` on, ascending.
    pub(super) fn take_from(&self, place: Place, limit: usize, out: &mut Vec<Address>) {
        let mut skip = place.index;
        for run in self.runs.get(place.run..).unwrap_or_default() {
            let room = limit.saturating_sub(out.len());
            out.extend(run.iter().skip(skip).take(room).map(|slot| slot.address));
            skip = 0;
            if out.len() >= limit {
                return;
            }
        }
    }

    /// Up to `limit` addresses before `place`, ascending.
    pub(super) fn take_before(&self, place: Place, limit: usize, out: &mut Vec<Address>) {
        let head = self.runs.get(place.run).and_then(|run| run.get(..place.index));
        let mut push = |run: &[Slot]| {
            let room = limit.saturating_sub(out.len());
            out.extend(run.iter().rev().take(room).map(|slot| slot.address));
            out.len() >= limit
        };
        if !push(head.unwrap_or_default()) {
            for run in self.runs.get(..place.run).unwrap_or_default().iter().rev() {
                if push(run) {
                    break;
                }
            }
        }
        out.reverse();
    }
}
