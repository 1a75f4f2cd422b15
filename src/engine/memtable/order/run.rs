//! A run of the order: the addresses of entries of one stretch of keys. They are appended as they
//! come, and sorted when a walk needs them.
//!
//! Each address comes with seven bytes of its key, so most comparisons touch no entry. They are the
//! first bytes after a prefix that all keys of the run share: neighbours share the name and
//! version of their collection, and often the beginning of their member. It also comes with the
//! weight of its entry, so that a sum touches no entry at all.

use std::cmp::Ordering;
use std::ops::Range;

use smallvec::SmallVec;

use super::Target;
use super::splits::head_from;
use crate::engine::entry::common_prefix;
use crate::engine::memtable::arena::Address;
use crate::engine::memtable::entries::Entries;

/// Number of slots by which the middle of a run is estimated.
const SAMPLES: usize = 15;

/// In twelve bytes, since a memtable has one for every entry.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Slot {
    /// Seven bytes of the key, after the common prefix of the run, and the weight in the last byte.
    bytes: u64,
    address: Address,
}

impl Slot {
    #[inline]
    fn new(prefix: u64, weight: i8, address: Address) -> Self {
        Self { bytes: prefix | u64::from(weight.cast_unsigned()), address }
    }

    /// The bytes of the key as a big-endian number; the last byte is zero.
    #[inline]
    fn prefix(self) -> u64 {
        self.bytes & !0xff
    }

    #[inline]
    fn weight(self) -> i8 {
        let [weight, ..] = self.bytes.to_le_bytes();
        weight.cast_signed()
    }
}

/// Entries of a stretch of keys. The first `sorted` slots are in order.
#[derive(Debug, Default)]
pub(super) struct Run {
    slots: Vec<Slot>,
    sorted: usize,
    /// A common prefix of all keys, not necessarily the longest.
    common: Vec<u8>,
    /// Whether all entries are versions of the key `common`.
    one_key: bool,
}

/// The seven bytes of a key from an offset on, as a big-endian number, padded with zeros.
#[inline]
fn short_prefix_from(key: &[u8], offset: usize) -> u64 {
    head_from(key, offset) & !0xff
}

/// Compares two slots of a run. Of one key, later written entries come first: their sequence numbers
/// are not smaller.
#[inline]
fn compare_slots(a: Slot, b: Slot, one_key: bool, entries: &Entries) -> Ordering {
    if one_key {
        return b.address.cmp(&a.address);
    }
    a.prefix().cmp(&b.prefix()).then_with(|| {
        let key = entries.entry(a.address).key().cmp(entries.entry(b.address).key());
        key.then_with(|| b.address.cmp(&a.address))
    })
}

/// Adds a slot to some of which the first `sorted` are in order. Ascending keys, as of a fill in order,
/// stay sorted without a comparison of keys.
#[inline]
fn append(slots: &mut Vec<Slot>, sorted: &mut usize, slot: Slot) {
    if *sorted == slots.len() && slots.last().is_none_or(|last| last.prefix() < slot.prefix()) {
        *sorted += 1;
    }
    slots.push(slot);
}

impl Run {
    /// Adds an entry.
    #[inline]
    pub(super) fn push(&mut self, key: &[u8], address: Address, weight: i8, entries: &Entries) {
        if self.slots.is_empty() {
            (self.common, self.one_key) = (key.to_vec(), true);
        } else if !key.starts_with(&self.common) {
            self.share(key, entries);
        } else if self.one_key {
            self.one_key = key.len() == self.common.len();
        }
        let slot = Slot::new(self.prefix(key), weight, address);
        append(&mut self.slots, &mut self.sorted, slot);
    }

    #[inline]
    fn prefix(&self, key: &[u8]) -> u64 {
        short_prefix_from(key, self.common.len())
    }

    /// Shortens `common` to a prefix of `key`.
    #[cold]
    fn share(&mut self, key: &[u8], entries: &Entries) {
        self.common.truncate(common_prefix(&self.common, key));
        self.one_key = false;
        self.refresh(entries);
    }

    /// Takes the prefixes of all slots from their keys again.
    fn refresh(&mut self, entries: &Entries) {
        let mut slots = std::mem::take(&mut self.slots);
        for slot in &mut slots {
            let prefix = self.prefix(entries.entry(slot.address).key());
            *slot = Slot::new(prefix, slot.weight(), slot.address);
        }
        self.slots = slots;
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn is_sorted(&self) -> bool {
        self.sorted == self.slots.len()
    }

    /// Sorts the run.
    pub(super) fn sort(&mut self, entries: &Entries) {
        // The sort finds the part that is in order already, and merges.
        let one_key = self.one_key;
        self.slots.sort_by(|a, b| compare_slots(*a, *b, one_key, entries));
        self.sorted = self.slots.len();
    }

    /// Moves the upper part, about half, to a new run, and returns it with the address of its first
    /// entry.
    pub(super) fn split(&mut self, entries: &Entries) -> (Self, Address) {
        let half = self.slots.len() / 2;
        let (slots, sorted, first) = if self.is_sorted() {
            let slots = self.slots.split_off(half);
            self.sorted = self.slots.len();
            let (sorted, first) = (slots.len(), slots.first().copied());
            (slots, sorted, first)
        } else if self.is_descending(entries) {
            // The elements of a list that is pushed to at its head, or versions of one key.
            let lower = self.slots.split_off(half);
            let slots = std::mem::replace(&mut self.slots, lower);
            self.sorted = 1;
            let first = slots.last().copied();
            (slots, 1, first)
        } else {
            self.split_unsorted(entries)
        };
        let mut upper = Self { slots, sorted, common: self.common.clone(), one_key: self.one_key };
        self.refine(entries);
        upper.refine(entries);
        (upper, first.map_or(0, |first| first.address))
    }

    /// Whether every slot sorts before the one added before it.
    fn is_descending(&self, entries: &Entries) -> bool {
        let one_key = self.one_key;
        let order = |a: &Slot, b: &Slot| compare_slots(*a, *b, one_key, entries);
        self.slots.is_sorted_by(|a, b| order(b, a).is_lt())
    }

    /// Takes out the slots from the middle one on, in the order in which they were added, with the
    /// number of those that are in order, and the middle one. Where two streams of ascending keys
    /// met in a run, each is in order again.
    fn split_unsorted(&mut self, entries: &Entries) -> (Vec<Slot>, usize, Option<Slot>) {
        let one_key = self.one_key;
        let order = |a: &Slot, b: &Slot| compare_slots(*a, *b, one_key, entries);
        let mut some: SmallVec<[Slot; SAMPLES + 1]> =
            self.slots.iter().step_by((self.slots.len() / SAMPLES).max(1)).copied().collect();
        some.sort_unstable_by(order);
        let middle = some.get(some.len() / 2).copied();
        if let Some(middle) = middle {
            let (upper, sorted) = self.take_from(middle, entries);
            // The median of a few may be far from that of all.
            let quarter = (self.slots.len() + upper.len()) / 4;
            if self.slots.len() >= quarter && upper.len() >= quarter {
                return (upper, sorted, Some(middle));
            }
            self.slots.extend(upper);
        }
        let (mut all, half) = (self.slots.clone(), self.slots.len() / 2);
        if half == 0 {
            return (Vec::new(), 0, None);
        }
        let middle = *all.select_nth_unstable_by(half, order).1;
        let (upper, sorted) = self.take_from(middle, entries);
        (upper, sorted, Some(middle))
    }

    /// Takes out the slots that do not sort before `middle`, with the number of those in order.
    fn take_from(&mut self, middle: Slot, entries: &Entries) -> (Vec<Slot>, usize) {
        let (one_key, capacity) = (self.one_key, self.slots.capacity());
        let all = std::mem::replace(&mut self.slots, Vec::with_capacity(capacity));
        self.sorted = 0;
        let (mut upper, mut sorted) = (Vec::with_capacity(capacity), 0);
        for slot in all {
            match compare_slots(slot, middle, one_key, entries).is_lt() {
                true => append(&mut self.slots, &mut self.sorted, slot),
                false => append(&mut upper, &mut sorted, slot),
            }
        }
        (upper, sorted)
    }

    /// Lengthens the common prefix if the slots have few bytes left that differ.
    fn refine(&mut self, entries: &Entries) {
        let bits = |first| self.slots.iter().fold(0, |all, slot| all | (slot.prefix() ^ first));
        let differ = |first: &Slot| bits(first.prefix()) >> 32 != 0;
        if self.one_key || self.slots.first().is_none_or(differ) {
            return;
        }
        let mut keys = self.slots.iter().map(|slot| entries.entry(slot.address).key());
        let first = keys.next().unwrap_or_default();
        let (mut shared, mut longest) = (first.len(), first.len());
        for key in keys {
            (shared, longest) = (shared.min(common_prefix(first, key)), longest.max(key.len()));
        }
        self.one_key = shared == longest;
        if shared > self.common.len() {
            self.common = first.get(..shared).unwrap_or_default().to_vec();
            self.refresh(entries);
        }
    }

    /// The index of the first slot that does not sort before `target`. The run must be sorted.
    pub(super) fn first_from(&self, target: &Target<'_>, entries: &Entries) -> usize {
        if !target.key.starts_with(&self.common) {
            // The target lacks the common prefix: it sorts before all keys or after all keys.
            return if target.key > self.common.as_slice() { self.len() } else { 0 };
        }
        let prefix = self.prefix(target.key);
        self.slots.partition_point(|slot| {
            slot.prefix().cmp(&prefix).then_with(|| target.compare(slot.address, entries)).is_lt()
        })
    }

    /// The address at `index`, if the run is that long.
    pub(super) fn address(&self, index: usize) -> Option<Address> {
        self.slots.get(index).map(|slot| slot.address)
    }

    /// The sum of the weights of all entries.
    pub(super) fn weight(&self) -> i32 {
        self.slots.iter().map(|slot| i32::from(slot.weight())).sum()
    }

    /// The sum of the weights of the entries of `range` that were written before `end`.
    pub(super) fn weight_of(&self, range: Range<usize>, end: Address) -> i32 {
        let slots = self.slots.get(range).unwrap_or_default();
        let weight = |slot: &Slot| if slot.address < end { i32::from(slot.weight()) } else { 0 };
        slots.iter().map(weight).sum()
    }

    /// The addresses of all entries.
    pub(super) fn addresses(&self) -> impl DoubleEndedIterator<Item = Address> + ExactSizeIterator {
        self.slots.iter().map(|slot| slot.address)
    }
}
