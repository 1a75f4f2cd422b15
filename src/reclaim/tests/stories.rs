//! Expiry, deletes, snapshots and unfinished versions while compactions run.

use crate::encoding::keys::{prefix, row_key};
use crate::encoding::meta::{Body, Header, encode_collection, with_expiry};
use crate::encoding::tombstones::TombstoneStats;
use crate::engine::{Batch, WriteOptions};
use crate::keyspace::trees::{DATA, SCORE};
use crate::types::Type;

use super::*;
use crate::keyspace::reclaimed::Removed;
use crate::reclaim::owners::Owners;

#[test]
fn the_rows_of_an_expired_key_go_with_it_and_not_before() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..100);
    expire_at(&db, b"h", 1000);
    db.set(b"s", b"stays").unwrap();
    setting.clock.set(999);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [2, 100, 0]);
    sound(&db);
    setting.clock.set(1000);
    assert_eq!(db.exists(&[b"h"]).unwrap(), 0);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [1, 0, 0]);
    assert_eq!(db.store().removed().total(), Removed { rows: 100, records: 1 });
    db.close().unwrap();
    let db = setting.open();
    assert_eq!(db.exists(&[b"h", b"s"]).unwrap(), 1);
    assert_eq!(all_entries(&db), [1, 0, 0]);
}

#[test]
fn rows_of_an_expired_key_stay_while_its_record_does() {
    // Presence counts, never expiry: a filter of rows that went by the clock would drop rows
    // whose record a transaction with an earlier time can still make permanent.
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..10);
    expire_at(&db, b"h", 1000);
    let before = db.store().clock().register();
    setting.clock.set(2000);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [1, 10, 0]);
    drop(before);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [0, 0, 0]);
}

#[test]
fn a_persist_that_stalls_across_expiry_and_compaction_keeps_every_member() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..50);
    expire_at(&db, b"h", 1000);
    db.flush().unwrap();
    db.write(&[b"h"], |tx| {
        let record = tx.record(b"h")?.expect("it is alive at the time of this command");
        setting.clock.set(5000);
        db.compact()?;
        db.compact()?;
        tx.put_record(b"h", with_expiry(&record.bytes, 0).unwrap())
    })
    .unwrap();
    db.compact().unwrap();
    assert_eq!(members_now(&db, b"h").unwrap().len(), 50);
    assert_eq!(db.exists(&[b"h"]).unwrap(), 1);
    sound(&db);
}

#[test]
fn what_was_dropped_as_expired_never_comes_back_with_the_clock() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..50);
    expire_at(&db, b"h", 1000);
    setting.clock.set(1000);
    // A record in the memtable is not filtered, but the time is remembered.
    db.flush().unwrap();
    add(&db, b"late", 0..5);
    expire_at(&db, b"late", 900);
    db.compact().unwrap();
    setting.clock.set(10);
    assert!(!expire_at(&db, b"h", 0), "no one can make it permanent now");
    assert_eq!(db.exists(&[b"h", b"late"]).unwrap(), 0);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [0, 0, 0]);
}

#[test]
fn a_snapshot_keeps_what_it_sees_of_a_deleted_and_of_a_replaced_collection() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"deleted", 0..10);
    add(&db, b"replaced", 0..10);
    let snapshot = db.store().engine().snapshot().unwrap();
    db.del(&[b"deleted", b"replaced"]).unwrap();
    add(&db, b"replaced", 100..105);
    for _ in 0..2 {
        db.compact().unwrap();
        let reader = snapshot.reader().unwrap();
        assert_eq!(members(&db, &reader, b"deleted").unwrap(), (0..10).collect());
        assert_eq!(members(&db, &reader, b"replaced").unwrap(), (0..10).collect());
        assert_eq!(members_now(&db, b"deleted"), None);
        assert_eq!(members_now(&db, b"replaced").unwrap(), (100..105).collect());
    }
    assert_eq!(entries(&db, DATA), 25);
    drop(snapshot);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [1, 5, 0]);
    sound(&db);
}

#[test]
fn a_snapshot_between_two_lives_of_a_collection_keeps_neither() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..10);
    db.del(&[b"h"]).unwrap();
    let _snapshot = db.store().engine().snapshot().unwrap();
    add(&db, b"h", 20..25);
    db.compact().unwrap();
    assert_eq!(entries(&db, DATA), 5, "no one sees the first ten");
}

#[test]
fn more_snapshots_than_lanes_each_keep_their_own_rows() {
    let setting = Setting::new();
    let db = setting.open();
    let mut snapshots = Vec::new();
    for life in 0..20 {
        db.del(&[b"h"]).unwrap();
        add(&db, b"h", life * 10..life * 10 + 3);
        snapshots.push((life, db.store().engine().snapshot().unwrap()));
    }
    db.del(&[b"h"]).unwrap();
    while !snapshots.is_empty() {
        db.compact().unwrap();
        for (life, snapshot) in &snapshots {
            let found = members(&db, &snapshot.reader().unwrap(), b"h").unwrap();
            assert_eq!(found, (life * 10..life * 10 + 3).collect());
        }
        assert_eq!(entries(&db, DATA), 3 * snapshots.len() as u64);
        snapshots.remove(snapshots.len() / 2);
    }
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [0, 0, 0]);
}

#[test]
fn what_is_written_while_a_compaction_runs_is_not_filtered_by_it() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"a", 0..10);
    add(&db, b"b", 0..10);
    db.del(&[b"b"]).unwrap();
    let other = db.clone();
    db.store().removed().set_interlude(move || {
        other.del(&[b"a"]).unwrap();
        add(&other, b"a", 50..53);
        add(&other, b"b", 60..63);
        other.flush().unwrap();
    });
    db.compact().unwrap();
    assert!(db.store().removed().interlude_is_over(), "it happened");
    assert_eq!(members_now(&db, b"a").unwrap(), (50..53).collect());
    assert_eq!(members_now(&db, b"b").unwrap(), (60..63).collect());
    assert_eq!(entries(&db, DATA), 16, "of b's first life nothing, of a's everything");
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [2, 6, 0]);
    sound(&db);
}

/// A big command writes rows in commits of their own before the record that names them.
#[test]
fn rows_of_a_version_being_built_stay_and_go_when_it_is_given_up() {
    let setting = Setting::new();
    let db = setting.open();
    for finished in [true, false] {
        let result = db.write(&[b"big"], |tx| {
            let version = tx.new_version();
            let rows = prefix(tx.space(), b"big", version);
            let mut batch = Batch::new();
            for member in 0..10u32 {
                batch.put_absent(DATA, &row_key(&rows, &member.to_be_bytes()), b"");
                batch.put_absent(SCORE, &row_key(&rows, &member.to_be_bytes()), b"");
            }
            db.store().engine().write(&mut batch, WriteOptions::default())?;
            let before = entries(&db, DATA);
            db.compact()?;
            db.compact()?;
            assert_eq!(entries(&db, DATA), before + 10);
            if !finished {
                return crate::types::number::parse_integer(b"given up").map(|_| ());
            }
            let header = Header { kind: Type::Hash, expire_ms: 0 };
            tx.put_record(
                b"big",
                encode_collection(
                    header,
                    &Body::Members { version, size: 10, tombstones: TombstoneStats::default() },
                ),
            )
        });
        assert_eq!(result.is_ok(), finished);
        db.compact().unwrap();
        assert_eq!(members_now(&db, b"big").unwrap(), (0..10).collect());
        assert_eq!(all_entries(&db), [1, 10, 10]);
    }
}

#[test]
fn no_version_is_used_twice_whatever_the_clock_does() {
    let setting = Setting::new();
    let mut versions = Vec::new();
    for life in 0..6u32 {
        let db = setting.open();
        setting.clock.set(if life % 2 == 0 { 1_000_000 } else { 3 });
        for _ in 0..2 {
            db.del(&[b"h"]).unwrap();
            add(&db, b"h", life..life + 1);
            versions.push(version_of(&db, b"h"));
            assert_eq!(members_now(&db, b"h").unwrap(), [life].into(), "no one else's members");
        }
        match life % 3 {
            0 => db.close().unwrap(),
            1 => db.compact().unwrap(),
            _ => {}
        }
    }
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
}

#[test]
fn popped_elements_go_and_the_rest_of_the_list_stays() {
    let setting = Setting::new();
    let db = setting.open();
    for round in 0..100u32 {
        let element = round.to_be_bytes();
        db.rpush(b"q", &[&element, &element]).unwrap();
        db.lpop(b"q").unwrap();
    }
    let snapshot = db.store().engine().snapshot().unwrap();
    db.ltrim(b"q", 90, -1).unwrap();
    db.compact().unwrap();
    assert_eq!(entries(&db, DATA), 100, "the snapshot sees those trimmed, no one those popped");
    drop(snapshot);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [1, 10, 0]);
    assert_eq!(db.llen(b"q").unwrap(), 10);
    assert_eq!(db.lpop(b"q").unwrap().unwrap(), &95u32.to_be_bytes()[..]);
    sound(&db);
}

#[test]
fn a_member_removed_and_a_member_of_a_neighbour_are_told_apart() {
    // Keys that begin alike, hold zero bytes, or end where others go on.
    let setting = Setting::new();
    let db = setting.open();
    let keys: [&[u8]; 7] = [b"", b"a", b"a\0", b"a\0\x01", b"a\x01", b"ab", b"\xff\xff"];
    for (key, count) in keys.iter().zip(1u32..) {
        add(&db, key, 0..count);
    }
    db.compact().unwrap();
    for gone in [2usize, 1, 6, 0] {
        db.del(&[keys[gone]]).unwrap();
        db.compact().unwrap();
        for (key, count) in keys.iter().zip(1u32..) {
            let found = members_now(&db, key);
            assert!(found.is_none() || found == Some((0..count).collect()), "{key:?}");
        }
    }
    assert_eq!(all_entries(&db), [3, 4 + 5 + 6, 0]);
}

#[test]
fn records_that_this_version_cannot_read_keep_their_rows() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..5);
    db.write(&[b"h"], |tx| {
        let mut record = tx.record(b"h")?.unwrap().bytes.to_vec();
        record[0] |= 0x20;
        tx.put_record(b"h", record)
    })
    .unwrap();
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [1, 5, 0]);
}

#[test]
fn the_chunks_of_a_string_stay_with_its_record_and_go_with_it() {
    let mut setting = Setting::new();
    setting.options.inline_max_bytes = 16;
    setting.options.chunk_bytes = 16;
    let db = setting.open();
    let value = vec![b'x'; 1000];
    db.set(b"s", &value).unwrap();
    db.set(b"expires", &value).unwrap();
    expire_at(&db, b"expires", 1000);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [2, 126, 0]);
    assert_eq!(db.get(b"s").unwrap().unwrap(), value);
    // A chunk that is written again has a sequence after its record's.
    db.setrange(b"s", 500, b"other").unwrap();
    db.setbit(b"s", 100_000, true).unwrap();
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [2, 127, 0]);
    assert_eq!(db.getrange(b"s", 498, 506).unwrap(), &b"xxotherxx"[..]);
    sound(&db);
    let then = db.snapshot().unwrap();
    db.set(b"s", &[b'y'; 100]).unwrap();
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [3, 127 + 7, 0], "the snapshot reads both records");
    assert_eq!(then.strlen(b"s").unwrap(), 12_501);
    assert_eq!(
        then.bitcount(b"s", None).unwrap(),
        then.get(b"s")
            .unwrap()
            .map_or(0, |it| { it.iter().map(|byte| i64::from(byte.count_ones())).sum() })
    );
    drop(then);
    setting.clock.set(1000);
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [1, 7, 0]);
    db.set(b"s", b"short").unwrap();
    db.compact().unwrap();
    assert_eq!(all_entries(&db), [1, 0, 0]);
    sound(&db);
}

/// A merge takes longer than a memtable lives. Its filter walks along the tables of records, and a
/// record that became part of a table meanwhile is not in the tables of the beginning.
#[test]
fn owners_are_found_whose_records_become_tables_during_a_merge() {
    let db = Setting::new().open();
    add(&db, b"a", 0..3);
    db.flush().unwrap();
    [&b"b"[..], b"c"].iter().for_each(|key| add(&db, key, 0..3));
    let versions = [&b"a"[..], b"b", b"c"].map(|key| (key, version_of(&db, key)));
    let space = db.store().spaces().of(0).unwrap();
    let mut owners = Owners::new(&db.store().engine().filter_job(DATA));
    for (key, version) in versions {
        owners.turn_to(&meta_key(space, key));
        assert!(owners.hold(version, &0u32.to_be_bytes(), 0).unwrap(), "{key:?}");
        assert!(!owners.hold(version + 1, &0u32.to_be_bytes(), 0).unwrap(), "{key:?}");
        // At the read point of the merge it exists.
        db.del(&[b"c"]).unwrap();
        db.flush().unwrap();
    }
}
