//! What removals leave behind in a hash, a set or a sorted set, as its record tells it.
//!
//! A removed row stays in the trees as a tombstone until compaction takes it away, and every walk
//! steps over it. The record therefore counts removals, so that a small collection can be written
//! anew before walks get slow, and says for a sorted set between which score rows the live ones
//! are, so that its ends are found at once however many members were taken from them.
//!
//! ```text
//! nothing                                    nothing was removed
//! [removed:4 LE][first: length, bytes][end: length, bytes]
//!
//! removed        about how many rows were removed under this version
//! first          no score row sorts before this; empty: not known
//! end            every score row sorts before this; empty: not known
//! ```

use crate::encoding::keys::after_prefix;
use crate::io::codec::{Reader, put_bytes, put_u32};

/// Longest bound that is kept: a score and the front of a member.
const BOUND_BYTES: usize = 64;

/// See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    removed: u32,
    first: Vec<u8>,
    end: Vec<u8>,
}

impl Wear {
    /// About how many rows were removed.
    pub fn removed(&self) -> u64 {
        u64::from(self.removed)
    }

    /// Counts rows that were removed.
    pub fn count_removed(&mut self, rows: u32) {
        self.removed = self.removed.saturating_add(rows);
    }

    /// Begins to count again.
    pub fn forget_removed(&mut self) {
        self.removed = 0;
    }

    /// `lower`, or what no score row sorts before if that is more.
    pub fn not_before<'a>(&'a self, lower: &'a [u8]) -> &'a [u8] {
        lower.max(&self.first)
    }

    /// `upper`, or what every score row sorts before if that is less; `None`: no bound.
    pub fn at_most<'a>(&'a self, upper: Option<&'a [u8]>) -> Option<&'a [u8]> {
        let end = Some(self.end.as_slice()).filter(|end| !end.is_empty());
        match (upper, end) {
            (Some(upper), Some(end)) => Some(upper.min(end)),
            (upper, end) => upper.or(end),
        }
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

    /// Widens the bounds for a new score row; whether they had to be.
    pub fn admit(&mut self, sub_key: &[u8]) -> bool {
        if !self.allows_before(sub_key) {
            self.first = at_or_before(sub_key);
            return true;
        }
        if !self.allows_behind(sub_key) {
            self.end = after(sub_key);
            return true;
        }
        false
    }

    /// Sets the bounds by the first and the last score row; whether that changed them.
    pub fn tighten(&mut self, first: &[u8], last: &[u8]) -> bool {
        let (first, end) = (at_or_before(first), after(last));
        let changed = first != self.first || end != self.end;
        (self.first, self.end) = (first, end);
        changed
    }

    /// Appends it to a record.
    pub fn encode(&self, record: &mut Vec<u8>) {
        if *self != Self::default() {
            put_u32(record, self.removed);
            put_bytes(record, &self.first);
            put_bytes(record, &self.end);
        }
    }

    /// Reads it from the end of a record.
    pub fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.is_empty() {
            return Some(Self::default());
        }
        let removed = reader.u32()?;
        let mut bound = || reader.bytes().filter(|it| it.len() <= BOUND_BYTES).map(<[u8]>::to_vec);
        Some(Self { removed, first: bound()?, end: bound()? })
    }
}

/// A bound that is not after the row.
fn at_or_before(sub_key: &[u8]) -> Vec<u8> {
    sub_key.get(..BOUND_BYTES).unwrap_or(sub_key).to_vec()
}

/// A bound that is after the row.
fn after(sub_key: &[u8]) -> Vec<u8> {
    match sub_key.get(..BOUND_BYTES) {
        Some(front) => after_prefix(front).unwrap_or_default(),
        None => [sub_key, &[0]].concat(),
    }
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
            let mut wear = Wear::default();
            prop_assert!(rows.iter().all(|row| wear.allows(row) && !wear.clone().admit(row)));
            let (first, last) = (rows.iter().min().unwrap(), rows.iter().max().unwrap());
            prop_assert!(wear.tighten(first, last));
            prop_assert!(!wear.tighten(first, last));
            let mut all = rows.clone();
            for row in more {
                wear.admit(&row);
                all.push(row);
                prop_assert!(all.iter().all(|row| wear.allows(row)));
                prop_assert!(all.iter().all(|row| wear.not_before(b"") <= row.as_slice()));
                prop_assert!(all.iter().all(|row| wear.at_most(None).unwrap() > row.as_slice()));
            }
        }

        #[test]
        fn it_reads_back_from_a_record(removed: u32, rows in rows(), tight: bool) {
            let mut wear = Wear::default();
            wear.count_removed(removed);
            if tight {
                wear.tighten(rows.iter().min().unwrap(), rows.iter().max().unwrap());
            }
            let mut record = Vec::new();
            wear.encode(&mut record);
            let mut reader = Reader::new(&record);
            prop_assert_eq!(Wear::decode(&mut reader), Some(wear));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_bound_keeps_out_what_is_beyond_it() {
        let mut wear = Wear::default();
        wear.tighten(b"bb", b"dd");
        for (row, allowed) in [(b"ba", false), (b"bb", true), (b"dd", true), (b"de", false)] {
            assert_eq!(wear.allows(row), allowed, "{row:?}");
        }
        assert_eq!(wear.not_before(b"a"), b"bb");
        assert_eq!(wear.not_before(b"c"), b"c");
        assert_eq!(wear.at_most(Some(b"e")), Some(&b"dd\0"[..]));
        assert_eq!(wear.at_most(Some(b"c")), Some(&b"c"[..]));
    }

    #[test]
    fn a_bound_longer_than_any_that_is_written_is_refused() {
        let mut record = vec![0; 4];
        put_bytes(&mut record, &[1; BOUND_BYTES + 1]);
        put_bytes(&mut record, b"");
        assert_eq!(Wear::decode(&mut Reader::new(&record)), None);
    }
}
