//! The order of a memtable: addresses by key and then newest first, in runs of bounded length.
//!
//! Every entry is assigned to its run soon after it was written; that is a search among the first
//! keys of the runs. A run is sorted when a walk reaches it. So neither a write nor the first walk
//! after many writes does more than a bounded amount of work, and a memtable that is never walked
//! is sorted only by its flush, run by run in the processor's cache.
//!
//! Invariants: all of one run sorts before all of the next. A run has at most [`RUN`] entries, and is
//! not empty. `splits` has the first possible entry of every run but the first.

use std::cmp::Ordering;
use std::ops::Range;

use smallvec::SmallVec;

use super::arena::Address;
use super::entries::{Entries, MemtableEntry};
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag};
use run::Run;
use splits::Splits;

mod run;
mod splits;
mod weights;

/// Largest number of entries in a run.
pub(crate) const RUN: usize = 512;

/// Number of entries that are placed together. A run is divided once it has that many less than
/// [`RUN`], so that it never has more.
const GROUP: usize = 64;

/// A position in the order: run and index within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderPosition {
    run: usize,
    index: usize,
}

/// The index of a run that must be sorted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsorted(usize);

/// What was found, if all runs that it depends on are sorted.
pub(super) type Sorted<T> = Result<T, Unsorted>;

/// Runs of entries.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Boxed, since a new run moves all later ones.
    #[expect(clippy::vec_box, reason = "see above")]
    runs: Vec<Box<Run>>,
    splits: Splits,
    /// The sum of the weights of every run.
    weights: Vec<i32>,
    weighs: bool,
    len: usize,
    /// Entries that were placed, sorted or divided so far.
    #[cfg(test)]
    pub(super) moved: usize,
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

    /// Compares the entry at `address` with the target.
    fn compare(&self, address: Address, entries: &Entries) -> Ordering {
        let found = entries.entry(address);
        found
            .key()
            .cmp(self.key)
            .then_with(|| self.sequence.cmp(&found.tag().sequence()))
            .then_with(|| self.address.cmp(&address))
    }
}

impl Order {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds entries in any order.
    pub(super) fn extend(&mut self, fresh: &[Address], entries: &Entries) {
        if self.runs.is_empty() {
            self.runs.push(Box::default());
            self.weights.push(0);
        }
        for group in fresh.chunks(GROUP) {
            self.place(group, entries);
        }
        self.len += fresh.len();
        self.count_moved(fresh.len());
    }

    #[cfg(test)]
    fn count_moved(&mut self, entries: usize) {
        self.moved += entries;
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests count")]
    fn count_moved(&mut self, _: usize) {}

    /// Appends entries to their runs. All are assigned before the first is appended, so that the
    /// processor waits for the memory of several runs at a time.
    fn place(&mut self, group: &[Address], entries: &Entries) {
        let mut placed: [(&[u8], usize, i8); GROUP] = [(&[], 0, 0); GROUP];
        // The empty key, as if it were the last one, belongs to the first run.
        let (mut last_hash, mut last): (u32, (&[u8], usize)) = (0, (&[], 0));
        for (place, address) in placed.iter_mut().zip(group) {
            let (key, tag, hash) = entries.place(*address);
            let sequence = tag.sequence();
            // A new version comes right before the one before it. They part only where a run begins
            // between them.
            let run = match hash == last_hash
                && last.0 == key
                && !self.begins_with(last.1, key, entries)
            {
                true => last.1,
                false => self.splits.run_of(&Target { key, sequence, address: *address }, entries),
            };
            *place = (key, run, tag.small_weight());
            (last_hash, last) = (hash, (key, run));
        }
        let mut full: SmallVec<[usize; GROUP]> = SmallVec::new();
        for ((key, at, weight), address) in placed.iter().zip(group) {
            let Some(run) = self.runs.get_mut(*at) else { continue };
            run.push(key, *address, *weight, entries);
            if run.len() == RUN - GROUP {
                full.push(*at);
            }
            if *weight != 0
                && let Some(sum) = self.weights.get_mut(*at)
            {
                *sum += i32::from(*weight);
                self.weighs = true;
            }
        }
        // From the last one on, since a split moves the runs after it.
        full.sort_unstable();
        for at in full.into_iter().rev() {
            self.split(at, entries);
        }
    }

    /// Whether the first possible entry of a run is one of `key`.
    fn begins_with(&self, run: usize, key: &[u8], entries: &Entries) -> bool {
        self.splits.before(run).is_some_and(|address| entries.entry(address).key() == key)
    }

    fn split(&mut self, at: usize, entries: &Entries) {
        let Some(run) = self.runs.get_mut(at) else { return };
        let (upper, first) = run.split(entries);
        let weights = [run.weight(), upper.weight()];
        self.weights.splice(at..=at, weights);
        self.runs.insert(at + 1, Box::new(upper));
        let seen = self.splits.insert(at, first, entries);
        self.count_moved(RUN + seen);
    }

    /// Sorts a run.
    pub(super) fn sort(&mut self, Unsorted(run): Unsorted, entries: &Entries) {
        if let Some(run) = self.runs.get_mut(run) {
            run.sort(entries);
            let moved = run.len();
            self.count_moved(moved);
        }
    }

    /// The run at an index, once it is sorted; `None` beyond the last.
    fn sorted_run(&self, index: usize) -> Sorted<Option<&Run>> {
        match self.runs.get(index) {
            Some(run) if !run.is_sorted() => Err(Unsorted(index)),
            found => Ok(found.map(|run| &**run)),
        }
    }

    /// The first position that does not sort before `target`; the end if there is none.
    pub(super) fn first_from(
        &self,
        target: &Target<'_>,
        entries: &Entries,
    ) -> Sorted<OrderPosition> {
        let run = self.splits.run_of(target, entries);
        let index = self.sorted_run(run)?.map_or(0, |run| run.first_from(target, entries));
        Ok(OrderPosition { run, index })
    }

    /// The runs that may hold entries of `[lower, upper)`.
    pub(super) fn runs_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        entries: &Entries,
    ) -> Range<usize> {
        let newest = Tag::newest_at(MAX_SEQUENCE);
        let run = |key| self.splits.run_of(&Target::before(key, newest), entries);
        let end = upper.map(run).map_or(self.runs.len(), |last| last + 1);
        let first = run(lower);
        first..end.min(self.runs.len()).max(first)
    }

    /// The address at `index` of a run, if the run is that long.
    pub(super) fn slot(&self, run: usize, index: usize) -> Option<Address> {
        self.runs.get(run)?.address(index)
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
    pub(super) fn take_from(
        &self,
        position: OrderPosition,
        limit: usize,
        out: &mut Vec<Address>,
    ) -> Sorted<()> {
        let OrderPosition { run: mut at, index: mut skip } = position;
        while out.len() < limit
            && let Some(run) = self.sorted_run(at)?
        {
            out.extend(run.addresses().skip(skip).take(limit - out.len()));
            (at, skip) = (at + 1, 0);
        }
        Ok(())
    }

    /// Appends up to `limit` addresses before `position`, ascending.
    pub(super) fn take_before(
        &self,
        position: OrderPosition,
        limit: usize,
        out: &mut Vec<Address>,
    ) -> Sorted<()> {
        let OrderPosition { run: mut at, index: mut before } = position;
        loop {
            // The position after the last entry is in no run.
            if let Some(run) = self.sorted_run(at)? {
                let skip = run.len().saturating_sub(before);
                out.extend(run.addresses().rev().skip(skip).take(limit - out.len()));
            }
            if out.len() >= limit || at == 0 {
                break;
            }
            (at, before) = (at - 1, usize::MAX);
        }
        out.reverse();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
