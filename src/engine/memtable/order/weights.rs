//! Sums of weights over stretches of the order.

use std::ops::Range;

use super::{Order, RUN, Sorted, Target};
use crate::engine::entry::{MAX_SEQUENCE, Tag};
use crate::engine::memtable::arena::Address;
use crate::engine::memtable::entries::Entries;

impl Order {
    /// Whether any entry weighs.
    pub(in crate::engine::memtable) fn weighs(&self) -> bool {
        self.weighs
    }

    /// The sum of the weights of the entries of `[lower, upper)`, which must not be empty: of those
    /// that were written before `end`, or of all.
    pub(in crate::engine::memtable) fn weight_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        end: Option<Address>,
        entries: &Entries,
    ) -> Sorted<i64> {
        let newest = Tag::newest_at(MAX_SEQUENCE);
        let from = self.first_from(&Target::before(lower, newest), entries)?;
        let to = match upper {
            Some(upper) => self.first_from(&Target::before(upper, newest), entries)?,
            None => self.end(),
        };
        if from.run == to.run {
            return Ok(self.weight_in(from.run, from.index..to.index, end));
        }
        let between = from.run + 1..to.run;
        let between = match end {
            None => self.weight_of_runs(between),
            Some(_) => between.map(|run| self.weight_in(run, 0..RUN, end)).sum(),
        };
        let first = self.weight_in(from.run, from.index..RUN, end);
        Ok(first + between + self.weight_in(to.run, 0..to.index, end))
    }

    /// The sum over a part of a run.
    fn weight_in(&self, run: usize, range: Range<usize>, end: Option<Address>) -> i64 {
        let Some(run) = self.runs.get(run) else { return 0 };
        let range = range.start..range.end.min(run.len());
        i64::from(run.weight_of(range, end.unwrap_or(Address::MAX)))
    }

    fn weight_of_runs(&self, runs: Range<usize>) -> i64 {
        self.weights.get(runs).unwrap_or_default().iter().copied().map(i64::from).sum()
    }

    /// An estimate of the sum of the weights of the entries of `[lower, upper)`: runs at the ends
    /// count half.
    pub(in crate::engine::memtable) fn estimate_between(
        &self,
        lower: &[u8],
        upper: &[u8],
        entries: &Entries,
    ) -> i64 {
        let newest = Tag::newest_at(MAX_SEQUENCE);
        let run = |key| self.splits.run_of(&Target::before(key, newest), entries);
        let (from, to) = (run(lower), run(upper));
        if !self.weighs || to < from {
            return 0;
        }
        let half = |run: usize| self.weight_of_runs(run..run + 1) / 2;
        self.weight_of_runs(from..to) - half(from) + half(to)
    }

    /// A key strictly between `lower` and `upper` at which a run begins, with about as many runs of
    /// that range before it as after it, and the number of such keys; `None` if there is none.
    pub(in crate::engine::memtable) fn split_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        entries: &Entries,
    ) -> Option<(usize, Vec<u8>)> {
        if !self.weighs {
            return None;
        }
        // A run begins at its split, and the first run at none.
        let (newest, oldest) = (Tag::newest_at(MAX_SEQUENCE), Tag::newest_at(0));
        let first = self.splits.run_of(&Target::before(lower, oldest), entries) + 1;
        let end = upper.map_or(self.runs.len(), |upper| {
            self.splits.run_of(&Target::before(upper, newest), entries) + 1
        });
        let runs = first..end.min(self.runs.len());
        let address = self.splits.before(runs.start.midpoint(runs.end.checked_sub(1)?))?;
        let key = entries.entry(address).key();
        let inside = !runs.is_empty() && lower < key && upper.is_none_or(|upper| key < upper);
        inside.then(|| (runs.len(), key.to_vec()))
    }
}
