//! Where scans that are continued by a number go on.
//!
//! In Rust and C a scan's cursor is the bytes at which it goes on. Redis clients expect a number,
//! below 2^53 for those that keep numbers as doubles: it names an entry of this table, which
//! forgets the oldest when it is full. A number it does not know, or that another scan was given,
//! starts from the beginning: elements may come twice, none is left out. For the same reason the
//! numbers of each open store begin at a random place: one from an earlier life is unknown.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

/// Entries kept.
const MOST_ENTRIES: usize = 4096;
/// Bytes of positions kept, whatever their number; the newest entry is kept in any case.
const MOST_BYTES: usize = 16 << 20;

/// The table of one open store.
#[derive(Debug)]
pub(crate) struct Cursors(Mutex<Table>);

#[derive(Debug)]
struct Table {
    /// Their numbers are consecutive.
    entries: VecDeque<Entry>,
    /// The number of the first entry.
    first: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    /// A hash of what is being scanned.
    scope: u64,
    position: Vec<u8>,
}

impl Cursors {
    pub(crate) fn new() -> Self {
        // Half of the numbers below 2^53 lie ahead: more than any process hands out.
        let first = (random() >> 12).max(1);
        Self(Mutex::new(Table { entries: VecDeque::new(), first, bytes: 0 }))
    }

    /// A number for this position in what `scope` is a hash of.
    pub(crate) fn remember(&self, scope: u64, position: Vec<u8>) -> u64 {
        let mut table = self.0.lock();
        table.bytes += position.len();
        table.entries.push_back(Entry { scope, position });
        while table.entries.len() > MOST_ENTRIES
            || (table.bytes > MOST_BYTES && table.entries.len() > 1)
        {
            let forgotten = table.entries.pop_front().map_or(0, |entry| entry.position.len());
            table.bytes -= forgotten;
            table.first += 1;
        }
        table.first + table.entries.len() as u64 - 1
    }

    /// Where to go on; empty, the beginning, for a number that was not given for this scope.
    pub(crate) fn recall(&self, scope: u64, number: u64) -> Vec<u8> {
        let table = self.0.lock();
        let index = number.checked_sub(table.first).and_then(|index| usize::try_from(index).ok());
        let entry = index.and_then(|index| table.entries.get(index));
        entry.filter(|entry| entry.scope == scope).map_or_else(Vec::new, |e| e.position.clone())
    }
}

/// 64 bits that no one can foresee.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_leads_back_to_its_position_as_often_as_asked_but_only_in_its_scope() {
        let cursors = Cursors::new();
        let (a, b) = (cursors.remember(1, b"a".to_vec()), cursors.remember(2, b"b".to_vec()));
        for _ in 0..2 {
            assert_eq!(cursors.recall(1, a), b"a");
            assert_eq!(cursors.recall(2, b), b"b");
        }
        assert_eq!(cursors.recall(2, a), b"", "of another scan");
        for forged in [0, 1, a - 1, b + 1, u64::MAX] {
            assert_eq!(cursors.recall(1, forged), b"");
        }
        assert!(a > 0 && b < 1 << 53);
    }

    #[test]
    fn the_table_is_bounded_in_entries_and_bytes() {
        let cursors = Cursors::new();
        let first = cursors.remember(1, b"first".to_vec());
        for _ in 1..MOST_ENTRIES {
            cursors.remember(1, b"x".to_vec());
        }
        assert_eq!(cursors.recall(1, first), b"first");
        let next = cursors.remember(1, b"y".to_vec());
        assert_eq!((cursors.recall(1, first), cursors.recall(1, next)), (vec![], b"y".to_vec()));
        let large = cursors.remember(1, vec![7; MOST_BYTES + 1]);
        assert_eq!(cursors.recall(1, large).len(), MOST_BYTES + 1);
        assert_eq!(cursors.0.lock().entries.len(), 1);
    }
}
