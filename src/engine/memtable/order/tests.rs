//! How much a call does for the order, counted in entries that it places, sorts or divides.

use std::sync::Arc;

use crate::engine::cursor::Cursor;
use crate::engine::entry::{EntryKind, MAX_SEQUENCE, Tag};
use crate::engine::hash::stable_hash;
use crate::engine::memtable::{Memtable, MemtableCursor};
use crate::io::splitmix::SplitMix64;

const WRITES: u64 = if cfg!(miri) { 2_000 } else { 300_000 };
/// A few runs of 512, and what divides them.
const A_FEW_RUNS: usize = 6 * 512;

/// A write as the committer does it; returns what it did for the order.
fn write(memtable: &Memtable, key: &[u8], sequence: u64) -> usize {
    let before = memtable.moved();
    let tag = Tag::new(sequence, EntryKind::Put);
    memtable.insert(stable_hash(key), key, tag, b"").unwrap();
    memtable.update_order();
    memtable.moved() - before
}

/// A walk over a few entries from `key` on; returns what it did for the order.
fn walk(memtable: &Arc<Memtable>, key: &[u8]) -> usize {
    let before = memtable.moved();
    let mut cursor = MemtableCursor::new(Arc::clone(memtable));
    cursor.seek(key, Tag::newest_at(MAX_SEQUENCE)).unwrap();
    (0..10).for_each(|_| cursor.next().unwrap());
    memtable.moved() - before
}

fn keys_in_order(n: u64) -> Vec<u8> {
    format!("\0\0\0\x01key:{n:012}").into_bytes()
}

fn keys_at_random(n: u64) -> Vec<u8> {
    keys_in_order(SplitMix64::new(n).below(1 << 40))
}

fn one_hot_key(_: u64) -> Vec<u8> {
    keys_in_order(7)
}

/// Rows of sixteen collections, whose names share little.
fn rows_of_collections(n: u64) -> Vec<u8> {
    let drawn = SplitMix64::new(n).below(1 << 40);
    format!("\0\0\0\x01{}:followers\0\x01version:{:010}", (drawn % 16) * 97, drawn >> 4)
        .into_bytes()
}

fn the_work_is_bounded(key: impl Fn(u64) -> Vec<u8>) {
    let memtable = Arc::new(Memtable::new(64 << 20));
    let mut all = 0;
    for n in 0..WRITES {
        let moved = write(&memtable, &key(n), n + 1);
        assert!(moved <= A_FEW_RUNS, "write {n} moved {moved}");
        all += moved;
    }
    assert!(all as u64 <= 6 * WRITES, "{all} for {WRITES} writes");
    let moved = walk(&memtable, &key(WRITES / 3));
    assert!(moved <= A_FEW_RUNS, "the first walk moved {moved}");
    for n in WRITES..WRITES + 100 {
        let moved = write(&memtable, &key(n), n + 1) + walk(&memtable, &key(n / 2));
        assert!(moved <= A_FEW_RUNS, "a write and a walk moved {moved}");
    }
    let again = walk(&memtable, &key((WRITES + 99) / 2));
    assert_eq!(again, 0, "a walk moves nothing where another has been");
}

/// The first walk after 300,000 writes sorted all of them.
#[test]
fn a_write_and_a_walk_sort_a_few_runs_whatever_was_written_before() {
    the_work_is_bounded(keys_at_random);
}

#[test]
fn so_they_do_after_a_fill_in_order() {
    the_work_is_bounded(keys_in_order);
}

#[test]
fn so_they_do_for_a_key_that_is_written_often() {
    the_work_is_bounded(one_hot_key);
}

#[test]
fn so_they_do_for_rows_of_many_collections() {
    the_work_is_bounded(rows_of_collections);
}

/// The common prefix of all splits becomes shorter, which concerns the splits alone.
#[test]
fn a_key_unlike_all_others_moves_no_entries_of_other_runs() {
    let memtable = Arc::new(Memtable::new(64 << 20));
    let fill = 64 * (WRITES / 64);
    (0..fill).for_each(|n| _ = write(&memtable, &keys_at_random(n), n + 1));
    for n in 0..64 {
        let moved = write(&memtable, format!("\0\0\0\x02other:{n}").as_bytes(), fill + n + 1);
        assert!(moved <= A_FEW_RUNS, "{moved}");
    }
    assert!(walk(&memtable, b"\0\0\0\x02") <= A_FEW_RUNS);
}

/// A walk over everything sorts every run once.
#[test]
fn a_whole_walk_sorts_every_entry_once() {
    let memtable = Arc::new(Memtable::new(64 << 20));
    (0..WRITES).for_each(|n| _ = write(&memtable, &keys_at_random(n), n + 1));
    let before = memtable.moved();
    let mut cursor = MemtableCursor::new(Arc::clone(&memtable));
    cursor.seek_to_first().unwrap();
    let mut last = Vec::new();
    let mut found = 0;
    while cursor.valid() {
        assert!(last.as_slice() <= cursor.key());
        last = cursor.key().to_vec();
        found += 1;
        cursor.next().unwrap();
    }
    assert_eq!(found, WRITES);
    let moved = (memtable.moved() - before) as u64;
    assert!(moved <= WRITES + 64, "{moved}");
}
