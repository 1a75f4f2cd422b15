//! Sums of the weights of a memtable's entries. The order has the sum of every run, so a sum over a
//! range of keys looks at the runs at its ends, and at the entries that the reader does not see:
//! the active memtable always has younger ones, even such as are not published yet.

use super::arena::Address;
use super::entries::Entries;
use super::order::Order;
use super::table::Memtable;
use crate::engine::entry::{Sequence, Tag};

/// Younger entries per run that are cheaper to look up one by one than to find in their runs.
const FEW_PER_RUN: usize = 8;

/// The entries of an order that a reader does not see.
struct Younger {
    /// All from this address on.
    first: Address,
    /// Their addresses, if they are few.
    few: Option<Vec<Address>>,
}

impl Memtable {
    /// The sum of the weights of the entries of `[lower, upper)` that are visible at `sequence`.
    pub(crate) fn weight_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        sequence: Sequence,
    ) -> i64 {
        if upper.is_some_and(|upper| upper <= lower) {
            return 0;
        }
        self.with_order(|order, entries| {
            if !order.weighs() {
                return Ok(0);
            }
            let runs = order.runs_between(lower, upper, entries).len();
            let Younger { first, few } =
                self.younger(order.len(), sequence, runs.saturating_mul(FEW_PER_RUN));
            let Some(few) = few else {
                return order.weight_between(lower, upper, Some(first), entries);
            };
            let all = order.weight_between(lower, upper, None, entries)?;
            let within = |key: &[u8]| lower <= key && upper.is_none_or(|upper| key < upper);
            let weight = |address: &Address| {
                let (key, tag, _) = entries.place(*address);
                if tag.weight() != 0 && within(key) { tag.weight() } else { 0 }
            };
            Ok(all - few.iter().map(weight).sum::<i64>())
        })
    }

    /// Of the first `len` entries written, those after `sequence`. Entries are written in the order
    /// of their sequence numbers.
    fn younger(&self, len: usize, sequence: Sequence, most: usize) -> Younger {
        let writer = self.writer.lock();
        let written = writer.append_order.get(..len).unwrap_or(&writer.append_order);
        let is_seen =
            |address: &Address| self.entries.place(*address).1 <= Tag::newest_at(sequence);
        // Most readers miss few entries, so look from the end, in steps that double.
        let (mut from, mut step) = (written.len(), 1);
        while from > 0 && !written.get(from - 1).is_some_and(is_seen) {
            from = from.saturating_sub(step);
            step *= 2;
        }
        let seen = from + written.get(from..).unwrap_or_default().partition_point(is_seen);
        let younger = written.get(seen..).unwrap_or_default();
        let first = younger.first().copied().unwrap_or(Address::MAX);
        Younger { first, few: (younger.len() <= most).then(|| younger.to_vec()) }
    }

    /// An estimate of the sum of the weights of the entries of `[lower, upper)`: runs at the ends
    /// count half, recent entries may be missing, and readers are not told apart.
    pub(crate) fn estimate_between(&self, lower: &[u8], upper: &[u8]) -> i64 {
        self.with_placed(|order, entries| order.estimate_between(lower, upper, entries))
    }

    /// A key strictly between `lower` and `upper` with about as many runs of that range before it
    /// as after it, and the number of such keys to choose from; `None` if there is none.
    pub(crate) fn split_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Option<(usize, Vec<u8>)> {
        self.with_placed(|order, entries| order.split_between(lower, upper, entries))
    }

    /// Runs `look` on the order as it is, which may lack recent entries.
    fn with_placed<T>(&self, look: impl FnOnce(&Order, &Entries) -> T) -> T {
        look(&self.order.read(), &self.entries)
    }
}
