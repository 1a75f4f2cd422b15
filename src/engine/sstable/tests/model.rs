//! Tables of random entries against a sorted list.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::support::{Entry, open, write};
use crate::engine::cursor::Cursor;
use crate::engine::entry::{EntryKind, MAX_SEQUENCE, Tag, compare};
use crate::engine::hash::{HashSeed, HashedKey};
use crate::engine::sstable::{CacheFill, Table, WriterOptions};
use crate::options::Compression;
use std::sync::Arc;

/// Short keys over few bytes, so that prefixes and versions pile up; some long, some empty.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let few = || proptest::sample::select(vec![0u8, b'a', b'b', 0xff]);
    prop_oneof![
        6 => proptest::collection::vec(few(), 0..6),
        2 => proptest::collection::vec(few(), 0..3)
            .prop_map(|tail| [b"a long common beginning:".as_slice(), &tail].concat()),
        1 => proptest::collection::vec(any::<u8>(), 100..300),
    ]
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let versions = proptest::collection::btree_map(
        prop_oneof![4 => 1u64..40, 1 => 0u64..=MAX_SEQUENCE],
        (any::<bool>(), 0usize..40, any::<u8>()),
        1..12,
    );
    let many = proptest::collection::btree_map(key(), versions, 1..40);
    many.prop_map(|keys| {
        let versions_of = |(key, versions): (Vec<u8>, std::collections::BTreeMap<_, _>)| {
            let entry = move |(sequence, (live, length, fill)): (u64, (bool, usize, u8))| {
                let kind = if live { EntryKind::Put } else { EntryKind::Delete };
                (key.clone(), Tag::new(sequence, kind), vec![fill; if live { length } else { 0 }])
            };
            versions.into_iter().rev().map(entry)
        };
        keys.into_iter().flat_map(versions_of).collect()
    })
}

fn options() -> impl Strategy<Value = WriterOptions> {
    let size = proptest::sample::select(vec![1u32, 64, 256, 4096, 65_536]);
    let compression = proptest::sample::select(vec![Compression::None, Compression::Lz4]);
    (size, proptest::sample::select(vec![0u32, 1, 10]), compression).prop_map(
        |(block_bytes, bloom_bits, compression)| WriterOptions {
            block_bytes,
            bloom_bits,
            compression,
            hash_seed: HashSeed::NONE,
        },
    )
}

fn current(cursor: &impl Cursor) -> Option<Entry> {
    let entry = || (cursor.key().to_vec(), cursor.tag(), cursor.value().to_vec());
    cursor.valid().then(|| {
        assert_eq!(cursor.value_bytes(), cursor.value());
        entry()
    })
}

fn first_at(model: &[Entry], key: &[u8], tag: Tag) -> usize {
    model.partition_point(|(k, t, _)| compare(k, *t, key, tag).is_lt())
}

fn check_lookups(table: &Table, model: &[Entry], key: &[u8]) {
    let mut sequences = BTreeSet::from([0, 20, MAX_SEQUENCE]);
    for (_, tag, _) in model.iter().filter(|e| e.0 == key) {
        let at = tag.sequence();
        sequences.extend([at.saturating_sub(1), at, (at + 1).min(MAX_SEQUENCE)]);
    }
    for sequence in sequences {
        let expected = model.iter().find(|e| e.0 == key && e.1.sequence() <= sequence);
        let hit = table
            .get(
                &HashedKey::new(key, HashSeed::NONE),
                sequence,
                CacheFill::skip_if(sequence % 2 != 0),
            )
            .unwrap();
        let found = hit.map(|hit| {
            assert_eq!(hit.to_bytes(), hit.value());
            (key.to_vec(), hit.tag, hit.value().to_vec())
        });
        assert_eq!(found.as_ref(), expected, "{key:?} at {sequence}");
    }
}

fn check_scans(table: &Arc<Table>, model: &[Entry], cache_fill: CacheFill) {
    let mut cursor = table.cursor(cache_fill);
    assert!(!cursor.valid());
    cursor.seek_to_first().unwrap();
    for expected in model {
        assert_eq!(current(&cursor).as_ref(), Some(expected));
        cursor.next().unwrap();
    }
    assert!(!cursor.valid());
    cursor.next().unwrap();
    assert!(!cursor.valid());
    cursor.seek_to_last().unwrap();
    for expected in model.iter().rev() {
        assert_eq!(current(&cursor).as_ref(), Some(expected));
        cursor.prev().unwrap();
    }
    assert!(!cursor.valid());
}

/// A seek, then a walk of turns in both directions.
fn check_seek(
    table: &Arc<Table>,
    model: &[Entry],
    key: &[u8],
    tag: Tag,
    before: bool,
    walk: &[bool],
) {
    let mut cursor = table.cursor(CacheFill::skip_if(!walk.len().is_multiple_of(2)));
    let at = first_at(model, key, tag);
    let mut at = if before {
        cursor.seek_before(key, tag).unwrap();
        at.checked_sub(1)
    } else {
        cursor.seek(key, tag).unwrap();
        (at < model.len()).then_some(at)
    };
    for forward in walk {
        assert_eq!(current(&cursor), at.map(|at| model[at].clone()));
        if *forward {
            cursor.next().unwrap();
            at = at.map(|at| at + 1).filter(|&at| at < model.len());
        } else {
            cursor.prev().unwrap();
            at = at.and_then(|at| at.checked_sub(1));
        }
    }
    assert_eq!(current(&cursor), at.map(|at| model[at].clone()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_table_answers_like_the_list_it_was_made_of(
        model in entries(),
        options in options(),
        others in proptest::collection::vec(key(), 10),
        walk in proptest::collection::vec(any::<bool>(), 0..30),
    ) {
        let (file, summary) = write(&model, options, Vec::new());
        let table = open(&file).unwrap();
        table.verify().unwrap();
        let distinct: BTreeSet<_> = model.iter().map(|e| e.0.clone()).chain(others).collect();
        for key in &distinct {
            check_lookups(&table, &model, key);
            for tag in [Tag::newest_at(MAX_SEQUENCE), Tag::newest_at(20), Tag::new(0, EntryKind::Delete)] {
                check_seek(&table, &model, key, tag, false, &walk);
                check_seek(&table, &model, key, tag, true, &walk);
            }
        }
        for (key, tag, _) in &model {
            check_seek(&table, &model, key, *tag, false, &[]);
            check_seek(&table, &model, key, *tag, true, &[]);
        }
        check_scans(&table, &model, CacheFill::Fill);
        check_scans(&table, &model, CacheFill::Skip);
        let count = |f: &dyn Fn(&Entry) -> usize| model.iter().map(|e| f(e) as u64).sum::<u64>();
        prop_assert_eq!(summary.file_size, file.bytes.lock().len() as u64);
        prop_assert_eq!(summary.number, 7);
        prop_assert_eq!(summary.entries, model.len() as u64);
        prop_assert_eq!(summary.tombstones, count(&|e| usize::from(e.1.is_delete())));
        prop_assert_eq!(summary.key_bytes, count(&|e| e.0.len()));
        prop_assert_eq!(summary.value_bytes, count(&|e| e.2.len()));
        prop_assert_eq!(Some(&summary.smallest), model.first().map(|e| &e.0));
        prop_assert_eq!(Some(&summary.largest), model.last().map(|e| &e.0));
        prop_assert_eq!(Some(summary.min_seq), model.iter().map(|e| e.1.sequence()).min());
        prop_assert_eq!(Some(summary.max_seq), model.iter().map(|e| e.1.sequence()).max());
        prop_assert_eq!(table.properties().entries, summary.entries);
        prop_assert_eq!(&table.properties().smallest, &summary.smallest);
        prop_assert_eq!(&table.properties().largest, &summary.largest);
    }
}
