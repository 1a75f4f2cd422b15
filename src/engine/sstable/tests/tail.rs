//! What opening a table and the first lookup read: the tail of the file in one go.

use super::support::{Entry, PLAIN, TestFile, open, put, write};
use crate::engine::entry::MAX_SEQUENCE;
use crate::engine::hash::{HashSeed, HashedKey};
use crate::engine::sstable::frame::TAIL_BYTES;
use crate::engine::sstable::{CacheFill, Table};
use crate::error::{ErrorKind, Result};

fn numbered(count: u32, len: usize) -> Vec<Entry> {
    (0..count).map(|i| put(format!("key{i:08}").as_bytes(), 5, &vec![b'v'; len])).collect()
}

fn get(table: &Table, key: &str) -> Result<Option<usize>> {
    let key = HashedKey::new(key.as_bytes(), HashSeed::NONE);
    let hit = table.get(&key, MAX_SEQUENCE, CacheFill::Fill)?;
    Ok(hit.map(|hit| hit.value().len()))
}

#[test]
fn a_table_whose_blocks_are_in_the_cache_is_not_read_again() {
    let (file, _) = write(&numbered(20, 100), PLAIN, Vec::new());
    let table = open(&file).unwrap();
    assert_eq!((file.reads(), table.counters.block_reads.sum()), (1, 0));
    table.fill_cache().unwrap();
    assert_eq!((file.reads(), table.counters.block_reads.sum()), (1, 1));
    assert_eq!(get(&table, "key00000007").unwrap(), Some(100));
    assert_eq!(get(&table, "absent").unwrap(), None);
    assert_eq!((file.reads(), table.counters.cache_hits.sum()), (0, 1));
}

#[test]
fn index_and_filter_within_the_tail_need_no_read() {
    let (file, summary) = write(&numbered(1000, 100), PLAIN, Vec::new());
    assert!(summary.file_size > 2 * TAIL_BYTES as u64);
    let table = open(&file).unwrap();
    assert_eq!(file.reads(), 1);
    assert_eq!(get(&table, "absent").unwrap(), None);
    assert_eq!(file.reads(), 0);
    assert_eq!(get(&table, "key00000500").unwrap(), Some(100));
    assert_eq!(file.reads(), 1, "the block");
    assert_eq!((table.counters.cache_misses.sum(), table.counters.block_reads.sum()), (1, 1));
}

#[test]
fn a_filter_beyond_the_tail_is_read_when_it_is_needed() {
    let (file, _) = write(&numbered(40_000, 1), PLAIN, Vec::new());
    let table = open(&file).unwrap();
    assert_eq!((file.reads(), table.resident_bytes()), (1, 0));
    assert_eq!(get(&table, "key00000500").unwrap(), Some(1));
    assert_eq!(file.reads(), 3, "index, filter and block");
}

/// Before the tail was read in one go, a bad sector beside footer and properties kept nobody from
/// the rest of the table.
#[test]
fn a_bad_sector_in_the_tail_costs_what_is_in_it() {
    let (file, summary) = write(&numbered(100, 100), PLAIN, Vec::new());
    *file.unreadable.lock() = 0..10;
    let table = open(&file).unwrap();
    assert_eq!(get(&table, "key00000000").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(get(&table, "key00000099").unwrap(), Some(100));
    *file.unreadable.lock() = summary.file_size - 1..summary.file_size;
    assert_eq!(open(&file).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn damage_in_the_tail_is_told_by_who_needs_it() {
    let (file, _) = write(&numbered(100, 100), PLAIN, Vec::new());
    let footer = open(&file).unwrap().footer;
    for at in [10, footer.filter.offset, footer.index.offset + 9] {
        let damaged = TestFile::holding(&file.bytes.lock());
        damaged.bytes.lock()[usize::try_from(at).unwrap()] ^= 0x55;
        let table = open(&damaged).unwrap();
        assert_eq!(get(&table, "key00000000").unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
