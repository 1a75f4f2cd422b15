//! Tables whose smallest key was raised: what comes before does not count, and its blocks are gone.

use std::sync::Arc;

use bytes::Bytes;

use super::support::{Entry, PLAIN, open, put, write};
use crate::engine::cursor::Cursor;
use crate::engine::entry::{EntryKind, MAX_SEQUENCE, Tag};
use crate::engine::sstable::{CacheFill, Table, TableCursor, TableSalvage};

const COUNT: u32 = 400;

fn key(n: u32) -> Vec<u8> {
    format!("key{n:08}").into_bytes()
}

/// A table of `COUNT` entries that begins with `lower`, without the blocks before it.
fn raised(lower: &[u8]) -> (Arc<super::support::TestFile>, Arc<Table>) {
    let entries: Vec<Entry> = (0..COUNT).map(|n| put(&key(n), 5, &[b'v'; 100])).collect();
    let (file, _) = write(&entries, PLAIN, Vec::new());
    let gone = open(&file).unwrap().approximate_offset(lower).unwrap();
    file.bytes.lock()[..usize::try_from(gone).unwrap()].fill(0);
    let table = Arc::into_inner(open(&file).unwrap()).unwrap();
    (file, Arc::new(table.starting_at(Some(Bytes::copy_from_slice(lower)))))
}

fn forward(cursor: &mut TableCursor) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while cursor.valid() {
        keys.push(cursor.key().to_vec());
        cursor.next().unwrap();
    }
    keys
}

fn backward(cursor: &mut TableCursor) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while cursor.valid() {
        keys.push(cursor.key().to_vec());
        cursor.prev().unwrap();
    }
    keys.reverse();
    keys
}

#[test]
fn walks_in_both_directions_and_seeks_never_touch_what_is_gone() {
    let newest = Tag::newest_at(MAX_SEQUENCE);
    for lower in [0, 1, 39, 40, 41, 200, COUNT - 1] {
        let (file, table) = raised(&key(lower));
        let expected: Vec<_> = (lower..COUNT).map(key).collect();
        for cache_fill in [CacheFill::Fill, CacheFill::Skip] {
            let mut cursor = table.cursor(cache_fill);
            cursor.seek_to_first().unwrap();
            assert_eq!(forward(&mut cursor), expected, "from {lower}");
            cursor.seek_to_last().unwrap();
            assert_eq!(backward(&mut cursor), expected, "back to {lower}");
            for at in (0..COUNT).step_by(7) {
                cursor.seek(&key(at), newest).unwrap();
                assert_eq!(cursor.key(), key(at.max(lower)), "seek {at} from {lower}");
                cursor.seek_before(&key(at), newest).unwrap();
                let before = at.checked_sub(1).filter(|before| *before >= lower);
                assert_eq!(cursor.valid().then(|| cursor.key().to_vec()), before.map(key));
            }
        }
        table.verify().unwrap();
        let blocks = table.live_blocks().unwrap();
        assert_eq!(blocks, table.blocks_between(b"", None).unwrap());
        for part in [0, u64::MAX / 2, u64::MAX] {
            assert!(!table.peek_entries(part, 4).unwrap().is_empty());
        }
        let salvage = TableSalvage::open(file, super::support::path(), table.number()).unwrap();
        let mut salvage = salvage.starting_at(Some(key(lower).into()));
        let mut keys = Vec::new();
        while salvage.advance() {
            keys.extend(salvage.entry().map(|(key, _, _)| key.to_vec()));
        }
        assert_eq!(keys, expected);
        assert!(salvage.take_unreadable().is_empty(), "what was given back is not lost");
    }
}

#[test]
fn weights_before_the_smallest_key_do_not_count() {
    let weighing = |n: u32| {
        let kind = if n % 5 == 4 { EntryKind::DeletePresent } else { EntryKind::PutAbsent };
        Tag::new(5 + u64::from(n % 7), kind)
    };
    let entries: Vec<Entry> = (0..COUNT).map(|n| (key(n), weighing(n), vec![b'v'; 100])).collect();
    let (file, _) = write(&entries, PLAIN, Vec::new());
    for lower in [0, 1, 39, 40, 41, 200, COUNT - 1] {
        let table = Arc::into_inner(open(&file).unwrap()).unwrap();
        let table = table.starting_at(Some(Bytes::from(key(lower))));
        for (from, to) in [(0, COUNT), (0, 40), (lower, lower + 1), (39, 201), (200, 100)] {
            for sequence in [4, 7, 11, MAX_SEQUENCE] {
                let seen = (from.max(lower)..to.min(COUNT)).map(weighing);
                let seen = seen.filter(|tag| tag.sequence() <= sequence);
                let expected: i64 = seen.map(Tag::weight).sum();
                let (first, end) = (key(from), key(to));
                let sum = table.weight_between(&first, Some(&end), sequence, CacheFill::Fill);
                assert_eq!(sum.unwrap(), expected, "{from}..{to} from {lower} at {sequence}");
            }
        }
    }
}
