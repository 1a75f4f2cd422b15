//! Where the runs of an order begin, to find the run of a key.
//!
//! A split comes with eight bytes of its key after the prefix that all splits share, and with eight
//! further ones. Splits that agree in the first eight bytes are a *family*, such as the rows of one
//! of several collections; the further bytes follow the prefix that the family shares. So a search
//! compares integers, and few keys.

use std::ops::Range;

use super::Target;
use crate::engine::entry::common_prefix;
use crate::engine::memtable::arena::Address;
use crate::engine::memtable::entries::Entries;

#[derive(Clone, Copy, Debug)]
struct Split {
    /// Eight bytes of the key, after the common prefix of all splits.
    head: u64,
    /// Eight bytes of the key, after the first `shared` bytes.
    tail: u64,
    /// Length of a common prefix of the family.
    shared: usize,
    address: Address,
}

/// The first possible entry of every run but the first, ascending.
#[derive(Debug, Default)]
pub(super) struct Splits {
    splits: Vec<Split>,
    /// A common prefix of all keys, not necessarily the longest.
    common: Vec<u8>,
}

/// The first eight bytes of a key as a big-endian number, padded with zeros.
#[inline]
pub(super) fn head_of(key: &[u8]) -> u64 {
    if let Some(first) = key.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut first = [0u8; 8];
    for (to, from) in first.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(first)
}

/// The eight bytes of a key from an offset on, as a big-endian number, padded with zeros.
#[inline]
pub(super) fn head_from(key: &[u8], offset: usize) -> u64 {
    let rest = key.get(offset..).unwrap_or_default();
    match (rest.first_chunk(), key.last_chunk()) {
        (Some(first), _) => u64::from_be_bytes(*first),
        // The last bytes of a long key without those before the offset: no loop over a few bytes.
        (None, Some(last)) if !rest.is_empty() => {
            u64::from_be_bytes(*last) << (64 - 8 * rest.len())
        }
        _ => head_of(rest),
    }
}

impl Splits {
    /// Number of splits.
    pub(super) fn len(&self) -> usize {
        self.splits.len()
    }

    /// The address of the split before a run; `None` for the first run.
    pub(super) fn before(&self, run: usize) -> Option<Address> {
        self.splits.get(run.checked_sub(1)?).map(|split| split.address)
    }

    /// The index of the run that `target` belongs to.
    pub(super) fn run_of(&self, target: &Target<'_>, entries: &Entries) -> usize {
        let Some(rest) = target.key.strip_prefix(self.common.as_slice()) else {
            // The target lacks the common prefix: it sorts before all splits or after all splits.
            return if target.key > self.common.as_slice() { self.len() } else { 0 };
        };
        let family = self.family(head_from(target.key, target.key.len() - rest.len()));
        let Some(members) = self.splits.get(family.clone()) else { return family.start };
        let Some(first) = members.first() else { return family.start };
        let first_key = entries.entry(first.address).key();
        let shared = first_key.get(..first.shared).unwrap_or_default();
        if !target.key.starts_with(shared) {
            return if target.key > shared { family.end } else { family.start };
        }
        let tail = head_from(target.key, first.shared);
        let is_before = |split: &Split| {
            split.tail.cmp(&tail).then_with(|| target.compare(split.address, entries)).is_le()
        };
        // A new version of a key that is written often comes before all others of the key.
        if !is_before(first) {
            return family.start;
        }
        family.start + members.partition_point(is_before)
    }

    /// The splits whose first eight bytes are `head`.
    fn family(&self, head: u64) -> Range<usize> {
        // Ascending keys belong after all splits.
        if self.splits.last().is_none_or(|last| last.head < head) {
            return self.len()..self.len();
        }
        let start = self.splits.partition_point(|split| split.head < head);
        let rest = self.splits.get(start..).unwrap_or_default();
        // Most families are small, unless there is but one.
        match rest.first() {
            Some(first) if first.head == head => {
                start..start + rest.partition_point(|split| split.head == head)
            }
            _ => start..start,
        }
    }

    /// Inserts a split and returns how many others were looked at for it.
    pub(super) fn insert(&mut self, at: usize, address: Address, entries: &Entries) -> usize {
        let key = entries.entry(address).key();
        let mut seen = 0;
        if self.splits.is_empty() {
            self.common = key.to_vec();
        } else if !key.starts_with(&self.common) {
            self.common.truncate(common_prefix(&self.common, key));
            seen += self.refresh(entries);
        }
        let head = head_from(key, self.common.len());
        let family = self.family(head);
        let shared = self.shorten(family, key, entries, &mut seen);
        let tail = head_from(key, shared);
        self.splits.insert(at, Split { head, tail, shared, address });
        seen
    }

    /// Makes the prefix of a family one of `key` too, and returns its length.
    fn shorten(
        &mut self,
        family: Range<usize>,
        key: &[u8],
        entries: &Entries,
        seen: &mut usize,
    ) -> usize {
        let members = self.splits.get_mut(family).unwrap_or_default();
        let Some(first) = members.first() else { return key.len() };
        let first_key = entries.entry(first.address).key();
        let shared = common_prefix(first_key, key).min(first.shared);
        if shared < first.shared {
            *seen += members.len();
            for split in members {
                (split.shared, split.tail) =
                    (shared, head_from(entries.entry(split.address).key(), shared));
            }
        }
        shared
    }

    /// Takes the numbers of all splits from their keys again, since the common prefix is another.
    fn refresh(&mut self, entries: &Entries) -> usize {
        let common = self.common.len();
        for split in &mut self.splits {
            split.head = head_from(entries.entry(split.address).key(), common);
        }
        let mut start = 0;
        while let Some(first) = self.splits.get(start) {
            let family = self.family(first.head);
            let (end, first_key) = (family.end.max(start + 1), entries.entry(first.address).key());
            let members = self.splits.get_mut(family).unwrap_or_default();
            let last = members.last().map_or(first_key, |last| entries.entry(last.address).key());
            let shared = common_prefix(first_key, last);
            for split in members {
                (split.shared, split.tail) =
                    (shared, head_from(entries.entry(split.address).key(), shared));
            }
            start = end;
        }
        self.splits.len()
    }
}
