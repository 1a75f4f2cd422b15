//! Statistics of the tombstones of a hash, set or sorted set, as its record holds them.
//!
//! A removed row stays in the trees as a tombstone until compaction removes it, and every walk
//! steps over it. The record therefore counts removals, so that a small collection can be rewritten
//! before walks get slow. For a sorted set it also holds bounds of the live score rows, so that its
//! ends are found at once however many members were removed there.
//!
//! ```text
//! nothing                                    nothing was removed
//! [removed:4 LE][gone:1][first: length, bytes][end: length, bytes]
//!
//! removed        about how many rows were removed under this version
//! gone           bit 0: the row at first was removed; bit 1: the last row before end
//! first          no score row sorts before this; empty: not known
//! end            every score row sorts before this; empty: not known
//! ```

use smallvec::SmallVec;

use crate::encoding::keys::after_prefix;
use crate::io::codec::{Reader, put_bytes, put_u32};

/// The longest bound: a score and the front of a member.
const BOUND_BYTES: usize = 64;

const FIRST_GONE: u8 = 1;
const LAST_GONE: u8 = 2;

/// A bound; most are a score and a short member.
type BoundKey = SmallVec<[u8; 32]>;

/// How many rows were removed, and the bounds of the score rows that are left.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TombstoneStats {
    removed: u32,
    gone: u8,
    first: BoundKey,
    end: BoundKey,
}

impl Clone for TombstoneStats {
    /// Not derived: a `SmallVec` clones itself byte by byte.
    fn clone(&self) -> Self {
        let (first, end) = (BoundKey::from_slice(&self.first), BoundKey::from_slice(&self.end));
        Self { first, end, ..*self }
    }
}

impl TombstoneStats {
    /// About how many rows were removed.
    pub fn removed(&self) -> u64 {
        u64::from(self.removed)
    }

    /// Counts removed rows. Past two billion the count is halved: still more than any collection
    /// tolerates.
    pub fn count_removed(&mut self, rows: u32) {
        self.removed = self.removed.saturating_add(rows);
        if self.removed > u32::MAX / 2 {
            self.removed /= 2;
        }
    }

    /// Restarts the count at zero.
    pub fn forget_removed(&mut self) {
        self.removed = 0;
    }

    /// The greater of `lower` and the lower bound of the score rows.
    pub fn not_before<'a>(&'a self, lower: &'a [u8]) -> &'a [u8] {
        lower.max(&self.first)
    }

    /// The lesser of `upper` and the upper bound of the score rows; `None` if there is neither.
    pub fn at_most<'a>(&'a self, upper: Option<&'a [u8]>) -> Option<&'a [u8]> {
        let end = Some(self.end.as_slice()).filter(|end| !end.is_empty());
        match (upper, end) {
            (Some(upper), Some(end)) => Some(upper.min(end)),
            (upper, end) => upper.or(end),
        }
    }

    /// Notes that this score row is removed; whether that changed the statistics.
    pub fn row_removed(&mut self, sub_key: &[u8]) -> bool {
        let before = self.gone;
        if front(sub_key) == &*self.first {
            self.gone |= FIRST_GONE;
        }
        if self.is_last(sub_key) {
            self.gone |= LAST_GONE;
        }
        self.gone != before
    }

    /// Whether the upper bound was set by this row.
    fn is_last(&self, sub_key: &[u8]) -> bool {
        match sub_key.len() < BOUND_BYTES {
            true => self.end.strip_prefix(sub_key) == Some(&[0]),
            false => !self.end.is_empty() && after(sub_key) == self.end,
        }
    }

    /// Whether the first score row may lie behind the lower bound: the bound is unknown, or its row
    /// was removed.
    pub fn first_is_loose(&self) -> bool {
        self.first.is_empty() || self.gone & FIRST_GONE != 0
    }

    /// Whether the last score row may lie before the upper bound: the bound is unknown, or its row
    /// was removed.
    pub fn end_is_loose(&self) -> bool {
        self.end.is_empty() || self.gone & LAST_GONE != 0
    }

    /// Whether the bounds allow a score row with this sub key.
    pub fn allows(&self, sub_key: &[u8]) -> bool {
        self.allows_before(sub_key) && self.allows_behind(sub_key)
    }

    fn allows_before(&self, sub_key: &[u8]) -> bool {
        self.first.as_slice() <= sub_key
    }

    fn allows_behind(&self, sub_key: &[u8]) -> bool {
        self.end.is_empty() || sub_key < self.end.as_slice()
    }

    /// Widens the bounds for a new score row; whether that changed them.
    pub fn admit(&mut self, sub_key: &[u8]) -> bool {
        if !self.allows_before(sub_key) {
            self.begins_at(sub_key);
            return true;
        }
        if !self.allows_behind(sub_key) {
            self.ends_with(sub_key);
            return true;
        }
        false
    }

    /// Sets the lower bound to the first score row.
    pub fn begins_at(&mut self, first: &[u8]) {
        self.first = BoundKey::from_slice(front(first));
        self.gone &= !FIRST_GONE;
    }

    /// Sets the upper bound behind the last score row.
    pub fn ends_with(&mut self, last: &[u8]) {
        self.end = after(last);
        self.gone &= !LAST_GONE;
    }

    /// The number of bytes that [`TombstoneStats::encode`] appends.
    pub fn encoded_len(&self) -> usize {
        // The lengths of bounds are below 128: a byte each.
        if self.is_nothing() { 0 } else { 7 + self.first.len() + self.end.len() }
    }

    fn is_nothing(&self) -> bool {
        self.removed == 0 && self.first.is_empty() && self.end.is_empty()
    }

    /// Appends the statistics to a record.
    pub fn encode(&self, record: &mut Vec<u8>) {
        if !self.is_nothing() {
            put_u32(record, self.removed);
            record.push(self.gone);
            put_bytes(record, &self.first);
            put_bytes(record, &self.end);
        }
    }

    /// Decodes the statistics at the end of a record.
    pub fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.is_empty() {
            return Some(Self::default());
        }
        let removed = reader.u32()?;
        let gone = reader.u8().filter(|gone| *gone <= FIRST_GONE | LAST_GONE)?;
        let mut bound =
            || reader.bytes().filter(|it| it.len() <= BOUND_BYTES).map(BoundKey::from_slice);
        Some(Self { removed, gone, first: bound()?, end: bound()? })
    }
}

/// A bound that does not sort after the row.
fn front(sub_key: &[u8]) -> &[u8] {
    sub_key.get(..BOUND_BYTES).unwrap_or(sub_key)
}

/// A bound that sorts after the row.
fn after(sub_key: &[u8]) -> BoundKey {
    if sub_key.len() >= BOUND_BYTES {
        return after_prefix(front(sub_key)).map_or_else(BoundKey::new, BoundKey::from_vec);
    }
    let mut bound = BoundKey::from_slice(sub_key);
    bound.push(0);
    bound
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = Vec<Vec<u8>>> {
        // Few different bytes and lengths about the limit: many rows share the front of a bound.
        let row = (prop::collection::vec(0u8..3, 8..12), 0usize..70)
            .prop_map(|(row, zeros)| [row, vec![0xff; zeros]].concat());
        prop::collection::vec(row, 1..20)
    }

    proptest! {
        #[test]
        fn bounds_allow_every_row_they_were_made_of_or_admitted(rows in rows(), more in rows()) {
            let mut tombstones = TombstoneStats::default();
            prop_assert!(rows.iter().all(|row| tombstones.allows(row) && !tombstones.clone().admit(row)));
            let (first, last) = (rows.iter().min().unwrap(), rows.iter().max().unwrap());
            tombstones.begins_at(first);
            tombstones.ends_with(last);
            let mut all = rows.clone();
            for row in more {
                tombstones.admit(&row);
                all.push(row);
                prop_assert!(all.iter().all(|row| tombstones.allows(row)));
                prop_assert!(all.iter().all(|row| tombstones.not_before(b"") <= row.as_slice()));
                prop_assert!(all.iter().all(|row| tombstones.at_most(None).unwrap() > row.as_slice()));
            }
        }

        #[test]
        fn it_reads_back_from_a_record(removed: u32, rows in rows(), tight: bool, gone: bool) {
            let mut tombstones = TombstoneStats::default();
            tombstones.count_removed(removed);
            if tight {
                tombstones.begins_at(rows.iter().min().unwrap());
                tombstones.ends_with(rows.iter().max().unwrap());
                if gone {
                    let changed = rows.iter().map(|row| tombstones.row_removed(row)).fold(false, |a, b| a | b);
                    prop_assert!(changed);
                }
                prop_assert_eq!(tombstones.first_is_loose(), gone);
                prop_assert_eq!(tombstones.end_is_loose(), gone);
            }
            let mut record = Vec::new();
            tombstones.encode(&mut record);
            prop_assert_eq!(record.len(), tombstones.encoded_len());
            let mut reader = Reader::new(&record);
            prop_assert_eq!(TombstoneStats::decode(&mut reader), Some(tombstones));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_bound_keeps_out_what_is_beyond_it() {
        let mut tombstones = TombstoneStats::default();
        tombstones.begins_at(b"bb");
        tombstones.ends_with(b"dd");
        for (row, allowed) in [(b"ba", false), (b"bb", true), (b"dd", true), (b"de", false)] {
            assert_eq!(tombstones.allows(row), allowed, "{row:?}");
        }
        assert_eq!(tombstones.not_before(b"a"), b"bb");
        assert_eq!(tombstones.not_before(b"c"), b"c");
        assert_eq!(tombstones.at_most(Some(b"e")), Some(&b"dd\0"[..]));
        assert_eq!(tombstones.at_most(Some(b"c")), Some(&b"c"[..]));
    }

    #[test]
    fn a_bound_longer_than_any_that_is_written_is_refused() {
        let mut record = vec![0; 5];
        put_bytes(&mut record, &[1; BOUND_BYTES + 1]);
        put_bytes(&mut record, b"");
        assert_eq!(TombstoneStats::decode(&mut Reader::new(&record)), None);
    }
}
