//! The positions of scans whose cursor is a number.
//!
//! In Rust and C the cursor of a scan is the bytes at which it continues. Redis clients expect a
//! number, below 2^53 for those that keep numbers as doubles. The number names an entry of this
//! table, which drops the oldest entry when it is full. A number that the table does not know, or
//! that belongs to another scan, starts from the beginning: elements may come twice, none is left
//! out.
//!
//! A clean close saves the newest entries, and the next open knows their numbers. New numbers begin
//! at a random place in each open store: a number from a store that was not closed cleanly is
//! unknown, and no number is given for two positions. So reloading the table of an earlier clean
//! close does no harm.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use crate::encoding::cursors::{Cursor, decode, encode};
use crate::encoding::keys::{MetaKey, Space, meta_key};
use crate::engine::{Batch, Engine, WriteOptions};
use crate::error::Result;
use crate::keyspace::trees::META;

/// The most entries.
const MOST_ENTRIES: usize = 4096;
/// The most bytes of positions. The newest entry is kept in any case.
const MOST_BYTES: usize = 16 << 20;
/// The most bytes of positions that a close saves.
const MOST_SAVED: usize = 1 << 20;

/// The cursors of one open store.
#[derive(Debug)]
pub(crate) struct ScanCursors(Mutex<CursorTable>);

#[derive(Debug)]
struct CursorTable {
    entries: HashMap<u64, Cursor>,
    /// The numbers of the entries, oldest first.
    order: VecDeque<u64>,
    next: u64,
    bytes: usize,
    /// Whether there are entries that no close has saved.
    changed: bool,
}

/// The key of the record that a clean close writes.
fn record() -> MetaKey {
    meta_key(Space::RESERVED, b"cursors")
}

impl ScanCursors {
    pub(crate) fn new() -> Self {
        // Half of the numbers below 2^53 lie ahead: more than any process uses.
        let next = (random() >> 12).max(1);
        let (entries, order) = (HashMap::new(), VecDeque::new());
        Self(Mutex::new(CursorTable { entries, order, next, bytes: 0, changed: false }))
    }

    /// Loads what the last clean close saved.
    pub(crate) fn load(engine: &Engine) -> Result<Self> {
        let cursors = Self::new();
        if let Some(saved) = engine.get(META, &record())? {
            let mut table = cursors.0.lock();
            decode(&saved).into_iter().for_each(|cursor| table.add(cursor));
            drop(table);
        }
        Ok(cursors)
    }

    /// Saves the newest entries for the next open.
    pub(crate) fn save(&self, engine: &Engine) -> Result<()> {
        let mut batch = Batch::new();
        {
            let mut table = self.0.lock();
            if !table.changed {
                return Ok(());
            }
            batch.put(META, &record(), &table.newest(MOST_SAVED));
            table.changed = false;
        }
        engine.commit(&mut batch, WriteOptions::default()).map(|_| ())
    }

    /// Returns a number for this position; `scope` is a hash of what is scanned.
    pub(crate) fn remember(&self, scope: u64, position: Vec<u8>) -> u64 {
        let mut table = self.0.lock();
        let number = table.next;
        table.next += 1;
        table.changed = true;
        table.add(Cursor { number, scope, position });
        number
    }

    /// The position of a number; empty, the beginning, for a number that was not given for this
    /// scope.
    pub(crate) fn recall(&self, scope: u64, number: u64) -> Vec<u8> {
        let table = self.0.lock();
        let entry = table.entries.get(&number).filter(|entry| entry.scope == scope);
        entry.map_or_else(Vec::new, |entry| entry.position.clone())
    }
}

impl CursorTable {
    fn add(&mut self, cursor: Cursor) {
        self.bytes += cursor.position.len();
        self.order.push_back(cursor.number);
        self.entries.insert(cursor.number, cursor);
        while self.order.len() > MOST_ENTRIES || (self.bytes > MOST_BYTES && self.order.len() > 1) {
            let oldest = self.order.pop_front().and_then(|number| self.entries.remove(&number));
            self.bytes -= oldest.map_or(0, |entry| entry.position.len());
        }
    }

    /// Encodes the newest entries with at most this many bytes of positions.
    fn newest(&self, most: usize) -> Vec<u8> {
        let mut left = most;
        let newest_first = self.order.iter().rev().filter_map(|number| self.entries.get(number));
        let mut kept: Vec<&Cursor> = newest_first
            .take_while(|entry| {
                let rest = left.checked_sub(entry.position.len());
                left = rest.unwrap_or(0);
                rest.is_some()
            })
            .collect();
        kept.reverse();
        encode(kept.into_iter())
    }
}

/// 64 unpredictable bits.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(0u8)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::engine::MemFs;
    use crate::io::clock::ManualClock;
    use crate::options::Options;
    use crate::txn::Db;
    use crate::types::ScanOptions;

    #[test]
    fn a_number_leads_back_to_its_position_as_often_as_asked_but_only_in_its_scope() {
        let cursors = ScanCursors::new();
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
        let cursors = ScanCursors::new();
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

    #[test]
    fn what_is_saved_is_the_newest_within_its_bound() {
        let cursors = ScanCursors::new();
        let old = cursors.remember(1, vec![1; MOST_SAVED / 2]);
        let kept = [cursors.remember(1, vec![2; MOST_SAVED / 2]), cursors.remember(2, vec![3; 9])];
        let record = cursors.0.lock().newest(MOST_SAVED);
        let saved: Vec<u64> = decode(&record).iter().map(|cursor| cursor.number).collect();
        assert_eq!(saved, kept);
        assert!(record.len() < MOST_SAVED + 100 && !saved.contains(&old));
    }

    fn open(fs: &MemFs) -> Db {
        let clock = Arc::new(ManualClock::at(1000));
        Db::open_on(Arc::new(fs.clone()), Path::new("/db"), Options::default(), clock).unwrap()
    }

    /// A number for a position in the scan of the database.
    fn begin_scan(db: &Db) -> u64 {
        db.read(|tx| {
            let (next, _) = tx.scan(b"", &ScanOptions::default())?;
            Ok(tx.cursor_number(None, next))
        })
        .unwrap()
    }

    fn position(db: &Db, number: u64) -> Vec<u8> {
        db.read(|tx| Ok(tx.cursor_position(None, number))).unwrap()
    }

    #[test]
    fn a_number_is_good_after_a_clean_close_and_unknown_after_another_end() {
        let fs = MemFs::untracked();
        let db = open(&fs);
        for n in 10..40u8 {
            db.set(&[b'k', n], b"v").unwrap();
        }
        let first = begin_scan(&db);
        assert_eq!(position(&db, first), [b'k', 20]);
        db.close().unwrap();
        let db = open(&fs);
        assert_eq!(position(&db, first), [b'k', 20]);
        let second = begin_scan(&db);
        drop(db);
        let db = open(&fs);
        assert_eq!((position(&db, first), position(&db, second)), (vec![b'k', 20], vec![]));
        let third = begin_scan(&db);
        db.close().unwrap();
        let db = open(&fs);
        assert_eq!((position(&db, first), position(&db, third)), (vec![b'k', 20], vec![b'k', 20]));
        assert_eq!(db.check().unwrap(), [""; 0]);
        db.flushall().unwrap();
        db.compact().unwrap();
        db.close().unwrap();
        assert_eq!(position(&open(&fs), first), [b'k', 20]);
    }
}
