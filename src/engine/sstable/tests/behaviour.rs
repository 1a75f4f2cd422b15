//! What tables do beside answering: resident parts, counters, order, sizes.

use std::sync::Arc;

use super::support::{Entry, PLAIN, TestFile, open, open_cached, path, put, table_of, write};
use crate::engine::cursor::Cursor;
use crate::engine::entry::{EntryKind, MAX_SEQUENCE, Tag};
use crate::engine::hash::{HashSeed, HashedKey};
use crate::engine::sstable::{
    CacheFill, Collector, Table, TableCursor, TableWriter, WriterOptions,
};
use crate::error::ErrorKind;
use crate::options::Compression;

fn numbered(count: u32) -> Vec<Entry> {
    (0..count).map(|i| put(format!("key{i:08}").as_bytes(), 5, &[b'v'; 100])).collect()
}

#[test]
fn evicted_parts_come_back_on_demand() {
    let table = table_of(&numbered(1000), PLAIN);
    let key = b"key00000500";
    table.evict_resident();
    assert_eq!((table.resident_bytes(), table.take_used()), (0, false));
    let get = || {
        table
            .get(&HashedKey::new(key, HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill)
            .unwrap()
            .unwrap()
            .value()
            .len()
    };
    assert_eq!(get(), 100);
    assert!(table.take_used() && !table.take_used());
    let held = table.resident_bytes();
    assert!(held > 1000 * 10 / 8, "{held}");
    let mut cursor = table.cursor(CacheFill::Fill);
    cursor.seek_to_first().unwrap();
    assert_eq!(table.evict_resident(), held);
    assert_eq!((table.resident_bytes(), table.evict_resident()), (0, 0));
    let mut seen = 0;
    while cursor.valid() {
        seen += 1;
        cursor.next().unwrap();
    }
    assert_eq!((seen, table.resident_bytes()), (1000, 0));
    assert_eq!((get(), table.resident_bytes()), (100, held));
}

#[test]
fn parts_that_cannot_be_read_fail_the_read_and_not_the_table() {
    let (file, _) = write(&numbered(10), PLAIN, Vec::new());
    let table = open(&file).unwrap();
    table.evict_resident();
    *file.broken.lock() = true;
    let key = b"key00000003";
    let get = || table.get(&HashedKey::new(key, HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill);
    assert_eq!(get().unwrap_err().kind(), ErrorKind::Io);
    *file.broken.lock() = false;
    assert!(get().unwrap().is_some());
}

#[test]
fn the_counters_tell_filter_cache_and_file_apart() {
    let table = table_of(&numbered(1000), PLAIN);
    let counters = Arc::clone(&table.counters);
    let key = b"key00000500";
    for _ in 0..3 {
        assert!(
            table
                .get(&HashedKey::new(key, HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill)
                .unwrap()
                .is_some()
        );
    }
    assert_eq!((counters.cache_misses.sum(), counters.cache_hits.sum()), (1, 2));
    assert_eq!((counters.block_reads.sum(), counters.filter_checks.sum()), (1, 3));
    assert!((3500..4200).contains(&counters.block_read_bytes.sum()));
    for i in 0..1000 {
        let absent = format!("key{i:08}x");
        let absent = HashedKey::new(absent.as_bytes(), HashSeed::NONE);
        assert!(table.get(&absent, MAX_SEQUENCE, CacheFill::Fill).unwrap().is_none());
    }
    let (denied, passed) = (counters.filter_negatives.sum(), counters.filter_false_positives.sum());
    assert_eq!(denied + passed, 1000);
    assert!(passed < 30, "{passed} of 1000 absent keys passed the filter");
}

#[test]
fn a_read_that_does_not_fill_the_cache_leaves_it_alone() {
    let (file, summary) = write(&numbered(1000), PLAIN, Vec::new());
    let table = open_cached(&file, summary.file_size, 1 << 20).unwrap();
    let key = b"key00000500";
    for _ in 0..2 {
        table.get(&HashedKey::new(key, HashSeed::NONE), MAX_SEQUENCE, CacheFill::Skip).unwrap();
    }
    assert_eq!(table.counters.block_reads.sum(), 2, "the second found it in the cache");
    let mut cursor = table.cursor(CacheFill::Skip);
    cursor.seek_to_first().unwrap();
    while cursor.valid() {
        cursor.next().unwrap();
    }
    table.get(&HashedKey::new(key, HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill).unwrap();
    assert_eq!((table.counters.cache_hits.sum(), table.counters.cache_misses.sum()), (0, 1));
}

#[test]
fn entries_out_of_order_are_an_error_and_change_nothing() {
    let file = Arc::new(TestFile::default());
    let mut writer = TableWriter::new(Arc::clone(&file) as _, path(), 7, PLAIN, Vec::new());
    let tag = Tag::new(5, EntryKind::Put);
    writer.add(b"b", tag, b"1").unwrap();
    for (key, tag) in [(&b"a"[..], tag), (b"b", tag), (b"b", Tag::new(6, EntryKind::Delete))] {
        assert_eq!(writer.add(key, tag, b"x").unwrap_err().kind(), ErrorKind::Misuse);
    }
    writer.add(b"b", Tag::new(4, EntryKind::Put), b"2").unwrap();
    assert_eq!(writer.finish().unwrap().entries, 2);
    open(&file).unwrap().verify().unwrap();
}

#[test]
fn an_empty_table_cannot_be_finished() {
    let writer = TableWriter::new(Arc::new(TestFile::default()), path(), 7, PLAIN, Vec::new());
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Misuse);
}

#[test]
fn a_failed_write_fails_the_writer_for_good() {
    let file = Arc::new(TestFile::default());
    let mut writer = TableWriter::new(Arc::clone(&file) as _, path(), 7, PLAIN, Vec::new());
    *file.broken.lock() = true;
    let large = vec![1; 600_000];
    writer.add(b"a", Tag::new(1, EntryKind::Put), &large).unwrap();
    assert_eq!(
        writer.add(b"b", Tag::new(1, EntryKind::Put), &large).unwrap_err().kind(),
        ErrorKind::Io
    );
    *file.broken.lock() = false;
    assert_eq!(
        writer.add(b"c", Tag::new(1, EntryKind::Put), &large).unwrap_err().kind(),
        ErrorKind::Io
    );
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Io);
}

#[derive(Default)]
struct LongestValue(usize);

impl Collector for LongestValue {
    fn add(&mut self, _key: &[u8], _tag: Tag, value: &[u8]) {
        self.0 = self.0.max(value.len());
    }

    fn finish(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        vec![(b"longest".to_vec(), self.0.to_le_bytes().to_vec())]
    }
}

#[test]
fn collectors_leave_properties_that_need_no_data_block() {
    let mut entries = numbered(50);
    entries[17].2 = vec![0; 777];
    let (file, _) = write(&entries, PLAIN, vec![Box::new(LongestValue::default())]);
    let table = open(&file).unwrap();
    let stored = table.properties().collected(b"longest");
    assert_eq!(stored, Some(&777usize.to_le_bytes()[..]));
    assert_eq!((file.reads(), table.counters.cache_misses.sum()), (1, 0));
}

#[test]
fn a_large_value_gets_a_block_of_its_own_and_is_handed_out_pinned() {
    let mut entries = numbered(100);
    entries[50].2 = vec![7; 3 << 20];
    let plain = table_of(&entries, PLAIN);
    let packed = table_of(&entries, WriterOptions { compression: Compression::Lz4, ..PLAIN });
    assert!(packed.file_size() < 100_000 && plain.file_size() > 3 << 20);
    for table in [plain, packed] {
        table.verify().unwrap();
        let key = &entries[50].0;
        let hit = table
            .get(&HashedKey::new(key, HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill)
            .unwrap()
            .unwrap();
        let (value, bytes) = (hit.value().as_ptr(), hit.to_bytes());
        assert_eq!(bytes.len(), 3 << 20);
        assert_eq!(bytes.as_ptr(), value, "pinned, not copied");
        drop((hit, table));
        assert!(bytes.iter().all(|&b| b == 7));
    }
}

#[test]
fn offsets_grow_with_keys_and_the_estimate_is_near_the_file() {
    let entries = numbered(2000);
    let file = Arc::new(TestFile::default());
    let mut writer = TableWriter::new(Arc::clone(&file) as _, path(), 7, PLAIN, Vec::new());
    for (key, tag, value) in &entries {
        writer.add(key, *tag, value).unwrap();
    }
    let estimate = writer.estimated_size();
    let summary = writer.finish().unwrap();
    assert!(summary.file_size.abs_diff(estimate) < summary.file_size / 50, "{estimate}");
    let table = open(&file).unwrap();
    let offsets: Vec<_> = entries.iter().map(|e| table.approximate_offset(&e.0).unwrap()).collect();
    assert!(offsets.is_sorted() && offsets[0] == 0);
    let middle = offsets[1000] as f64 / summary.file_size as f64;
    assert!((0.45..0.55).contains(&middle), "{middle}");
    assert_eq!(table.approximate_offset(b"z").unwrap(), table.footer.data_end());
}

#[test]
fn threads_read_one_table_while_its_parts_are_evicted() {
    let entries = numbered(3000);
    let table = table_of(&entries, PLAIN);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for (key, _, value) in &entries {
                    let hit = table
                        .get(&HashedKey::new(key, HashSeed::NONE), MAX_SEQUENCE, CacheFill::Fill)
                        .unwrap()
                        .unwrap();
                    assert_eq!(hit.value(), value);
                }
            });
        }
        (0..200).for_each(|_| {
            table.evict_resident();
            std::thread::yield_now();
        });
    });
}

#[test]
fn writers_and_cursors_move_between_threads_and_tables_are_shared() {
    fn movable<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    movable::<TableWriter>();
    movable::<TableCursor>();
    shared::<Table>();
}
