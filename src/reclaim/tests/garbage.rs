//! Garbage estimation: which tables are dropped unread, which are rewritten, and what must stay
//! while other threads write.

use crate::encoding::keys::{prefix, row_key};
use crate::encoding::tombstones::TombstoneStats;
use crate::engine::{Batch, Stats, WriteOptions};

use super::*;

fn stats(db: &Db) -> Stats {
    db.engine_stats()
}

/// What reclaim did: files dropped, merges, and blocks read from tables of rows.
fn reclaim(db: &Db) -> (u64, u64, u64) {
    let before = stats(db);
    db.reclaim().unwrap();
    let after = stats(db);
    let reads = |stats: &Stats| stats.trees[DATA.index()].block_reads;
    (after.drops - before.drops, after.merges - before.merges, reads(&after) - reads(&before))
}

/// Few keys in each table, and several levels.
fn small(setting: &mut Setting) {
    setting.options.write_buffer = 64 << 10;
    setting.options.table_bytes = 8 << 10;
    setting.options.memory_budget = 1 << 20;
}

#[test]
fn the_tables_of_a_deleted_collection_go_unread() {
    let mut setting = Setting::new();
    small(&mut setting);
    let db = setting.open();
    add(&db, b"big", 0..20_000);
    add(&db, b"other", 0..10);
    db.compact().unwrap();
    let files = stats(&db).trees[DATA.index()].levels[6].files;
    assert!(files > 10, "{files}");
    assert_eq!(reclaim(&db), (0, 0, 0), "all is alive");
    db.del(&[b"big"]).unwrap();
    let (dropped, merges, read) = reclaim(&db);
    assert!(dropped >= files - 2, "{dropped} of {files}");
    assert!(merges <= 1 && read < 20, "at most the table with the other: {merges}, {read}");
    assert_eq!(members_now(&db, b"other").unwrap().len(), 10);
    assert!(entries(&db, DATA) < 600, "{:?}", entries(&db, DATA));
    sound(&db);
    db.close().unwrap();
    let db = setting.open();
    assert_eq!(members_now(&db, b"big"), None);
    assert_eq!(members_now(&db, b"other").unwrap().len(), 10);
    sound(&db);
}

#[test]
fn a_sorted_set_goes_unread_from_both_its_trees() {
    let setting = Setting::new();
    let db = setting.open();
    let command = |line: &str| {
        db.command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()).unwrap();
    };
    for n in 0..100 {
        command(&format!("ZADD z {n} m{n}"));
    }
    db.compact().unwrap();
    assert_eq!(reclaim(&db).0, 0);
    command("SET z string");
    db.flush().unwrap();
    assert_eq!(reclaim(&db).0, 2);
    assert_eq!(all_entries(&db)[1..], [0, 0]);
    assert_eq!(db.get(b"z").unwrap().as_deref(), Some(&b"string"[..]));
}

#[test]
fn a_snapshot_keeps_tables_from_being_dropped() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..100);
    db.compact().unwrap();
    let snapshot = db.store().engine().snapshot().unwrap();
    db.del(&[b"h"]).unwrap();
    let later = db.store().engine().snapshot().unwrap();
    assert_eq!(reclaim(&db).0, 0);
    assert_eq!(members(&db, &snapshot.reader().unwrap(), b"h").unwrap().len(), 100);
    drop(snapshot);
    assert_eq!(reclaim(&db), (1, 0, 0), "the later one does not see it");
    assert_eq!(entries(&db, DATA), 0);
    drop(later);
    sound(&db);
}

#[test]
fn rows_of_a_version_being_built_are_not_dropped_unread() {
    let setting = Setting::new();
    let db = setting.open();
    for finished in [true, false] {
        let result = db.write(&[b"big"], |tx| {
            let version = tx.new_version();
            let rows = prefix(tx.space(), b"big", version);
            let mut batch = Batch::new();
            for member in 0..10u32 {
                batch.put_absent(DATA, &row_key(&rows, &member.to_be_bytes()), b"");
            }
            db.store().engine().write(&mut batch, WriteOptions::default())?;
            db.flush()?;
            assert_eq!(reclaim(&db).0, 0);
            if !finished {
                return crate::types::number::parse_integer(b"given up").map(|_| ());
            }
            let header = Header { kind: Type::Hash, expire_ms: 0 };
            let body = Body::Members { version, size: 10, tombstones: TombstoneStats::default() };
            tx.put_record(b"big", crate::encoding::meta::encode_collection(header, &body))
        });
        assert_eq!(result.is_ok(), finished);
        assert_eq!(reclaim(&db).0, u64::from(!finished));
        assert_eq!(members_now(&db, b"big").unwrap(), (0..10).collect());
    }
    sound(&db);
}

#[test]
fn what_is_written_during_an_estimation_stays() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..10);
    db.compact().unwrap();
    let other = db.clone();
    db.store().removed().set_interlude(move || {
        other.del(&[b"h"]).unwrap();
        add(&other, b"h", 50..53);
        other.flush().unwrap();
    });
    db.reclaim().unwrap();
    assert!(db.store().removed().interlude_is_over(), "it happened");
    assert_eq!(members_now(&db, b"h").unwrap(), (50..53).collect());
    assert_eq!(reclaim(&db).0, 1, "the first life");
    assert_eq!(members_now(&db, b"h").unwrap(), (50..53).collect());
    assert_eq!(entries(&db, DATA), 3);
    sound(&db);
}

#[test]
fn expired_records_go_unread_and_their_rows_after_them() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..100);
    expire_at(&db, b"h", 1000);
    db.compact().unwrap();
    setting.clock.set(999);
    assert_eq!(reclaim(&db), (0, 0, 0));
    setting.clock.set(1000);
    let reads = stats(&db).block_reads();
    assert_eq!(reclaim(&db), (2, 0, 0), "the record, and then the rows that it named");
    assert_eq!(stats(&db).block_reads(), reads);
    assert_eq!(all_entries(&db), [0, 0, 0]);
    db.close().unwrap();
    assert_eq!(setting.open().exists(&[b"h"]).unwrap(), 0);
}

/// Dropping the newer table, because all in it has expired, would show the older value.
#[test]
fn an_expired_table_above_older_values_is_merged_not_dropped() {
    for compacted in [true, false] {
        let setting = Setting::new();
        let db = setting.open();
        for key in [b"a", b"b", b"c"] {
            db.set(key, b"old").unwrap();
        }
        if compacted {
            db.compact().unwrap();
        } else {
            db.flush().unwrap();
        }
        db.write(&[b"b"], |tx| tx.put_string(b"b", b"new", 1000)).unwrap();
        db.flush().unwrap();
        setting.clock.set(1000);
        db.reclaim().unwrap();
        assert_eq!(stats(&db).drops, 0);
        for open in 0..2 {
            let db = if open == 0 { db.clone() } else { setting.open() };
            assert_eq!(db.get(b"b").unwrap(), None, "older data must not show");
            assert_eq!(db.exists(&[b"a", b"c"]).unwrap(), 2);
            assert_eq!(entries(&db, META), 2, "merged with what it covers");
            db.close().unwrap();
        }
    }
}

#[test]
fn a_persist_that_stalls_across_expiry_and_reclaim_keeps_every_member() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..50);
    expire_at(&db, b"h", 1000);
    db.compact().unwrap();
    db.write(&[b"h"], |tx| {
        let record = tx.record(b"h")?.expect("it is alive at the time of this command");
        setting.clock.set(5000);
        assert_eq!(reclaim(&db), (0, 0, 0));
        tx.put_record(b"h", with_expiry(&record.bytes, 0).unwrap())
    })
    .unwrap();
    db.reclaim().unwrap();
    assert_eq!(members_now(&db, b"h").unwrap().len(), 50);
    assert_eq!(db.exists(&[b"h"]).unwrap(), 1);
    sound(&db);
}

#[test]
fn an_expiry_that_was_moved_in_time_keeps_the_rows() {
    // The table of records says that the key has expired; a newer record, elsewhere, says not yet.
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..50);
    expire_at(&db, b"h", 1000);
    db.compact().unwrap();
    setting.clock.set(999);
    assert!(expire_at(&db, b"h", 3000));
    setting.clock.set(1000);
    assert_eq!(reclaim(&db), (1, 0, 0), "the old record");
    assert_eq!(members_now(&db, b"h").unwrap().len(), 50);
    setting.clock.set(3000);
    db.flush().unwrap();
    assert_eq!(reclaim(&db), (2, 0, 0));
    assert_eq!(all_entries(&db), [0, 0, 0]);
}

#[test]
fn what_was_dropped_unread_never_comes_back_with_the_clock() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..50);
    expire_at(&db, b"h", 1000);
    db.compact().unwrap();
    add(&db, b"late", 0..5);
    expire_at(&db, b"late", 900);
    setting.clock.set(1000);
    assert_eq!(reclaim(&db).0, 2);
    setting.clock.set(10);
    assert!(!expire_at(&db, b"late", 0), "it has expired for everyone since");
    assert_eq!(db.exists(&[b"h", b"late"]).unwrap(), 0);
}

#[test]
fn an_emptied_database_goes_unread_and_its_neighbours_stay() {
    let mut setting = Setting::new();
    small(&mut setting);
    let db = setting.open();
    let neighbour = db.select(1).unwrap();
    for (db, key) in [(&db, b"a"), (&neighbour, b"b")] {
        add(db, key, 0..5000);
        for n in 0..2000u32 {
            db.set(&n.to_be_bytes(), &[7; 50]).unwrap();
        }
    }
    db.compact().unwrap();
    let [records, rows, _] = all_entries(&db);
    db.flushdb().unwrap();
    db.flush().unwrap();
    let (dropped, _, _) = reclaim(&db);
    assert!(dropped > 20, "{dropped}");
    let [records_left, rows_left, _] = all_entries(&db);
    assert!(records_left < records * 6 / 10 && rows_left < rows * 6 / 10);
    assert_eq!(neighbour.dbsize().unwrap(), 2001);
    assert_eq!(neighbour.hlen(b"b").unwrap(), 5000);
    assert_eq!(db.dbsize().unwrap(), 0);
    sound(&db);
}

#[test]
fn a_table_of_many_collections_is_rewritten_when_half_of_them_are_gone() {
    let setting = Setting::new();
    let db = setting.open();
    let key = |n: u32| n.wrapping_mul(0x9e37_79b1).to_be_bytes();
    for n in 0..3000 {
        add(&db, &key(n), 0..3);
    }
    db.compact().unwrap();
    for n in 0..600 {
        db.del(&[&key(n)]).unwrap();
    }
    let garbage = || stats(&db).garbage_bytes as f64 / stats(&db).trees[1].levels[6].bytes as f64;
    assert_eq!(reclaim(&db).1, 0, "a fifth is not worth it");
    assert!((0.05..0.4).contains(&garbage()), "{}", garbage());
    for n in 600..2400 {
        db.del(&[&key(n)]).unwrap();
    }
    assert_eq!(reclaim(&db).1, 1, "most of it is");
    assert_eq!(entries(&db, DATA), 1800);
    assert_eq!(stats(&db).garbage_bytes, 0);
    assert_eq!(reclaim(&db).1, 0, "once");
    sound(&db);
}

/// The table lists a sample of its collections: that all of these are dead says nothing of the rest.
#[test]
fn a_sample_of_dead_collections_drops_no_table() {
    let setting = Setting::new();
    let db = setting.open();
    for n in 0..3000u32 {
        add(&db, &n.to_be_bytes(), 0..3);
    }
    db.compact().unwrap();
    let survives = |n: u32| n % 1000 == 3;
    for n in (0..3000).filter(|n| !survives(*n)) {
        db.del(&[&n.to_be_bytes()]).unwrap();
    }
    assert_eq!(stats(&db).drops, 0);
    db.reclaim().unwrap();
    for n in (0..3000).filter(|n| survives(*n)) {
        assert_eq!(members_now(&db, &n.to_be_bytes()).unwrap().len(), 3);
    }
    assert_eq!(entries(&db, DATA), 9);
    sound(&db);
}

#[test]
fn the_tables_of_a_queue_go_unread_as_it_is_consumed() {
    let mut setting = Setting::new();
    small(&mut setting);
    let db = setting.open();
    let elements: Vec<[u8; 4]> = (0..20_000u32).map(u32::to_be_bytes).collect();
    for some in elements.chunks(500) {
        db.rpush(b"q", &some.iter().map(|it| &it[..]).collect::<Vec<_>>()).unwrap();
    }
    db.compact().unwrap();
    let before = entries(&db, DATA);
    db.lpop_many(b"q", 15_000).unwrap();
    let (dropped, merges, read) = reclaim(&db);
    assert!(dropped > 10 && merges <= 1 && read < 20, "{dropped}, {merges}, {read}");
    let left = entries(&db, DATA);
    assert!(left >= 5000 && left < 5000 + before / 20, "{left}");
    assert_eq!(db.lpop(b"q").unwrap().unwrap(), &elements[15_000][..]);
    assert_eq!(db.llen(b"q").unwrap(), 4999);
    sound(&db);
}

/// Tables that follow one another are moved, not merged: a filter never sees them.
#[test]
fn garbage_is_found_before_a_table_is_moved() {
    let mut setting = Setting::new();
    small(&mut setting);
    let db = setting.open();
    for n in 0..20_000u32 {
        db.rpush(b"q", &[&n.to_be_bytes()]).unwrap();
        if n >= 10 {
            db.lpop(b"q").unwrap();
        }
    }
    db.flush().unwrap();
    db.store().engine().wait_idle().unwrap();
    let after = stats(&db);
    assert!(after.drops > 0 && after.moves == 0, "{after:?}");
    // What level 0 holds is not due yet.
    let deeper: u64 = after.trees[DATA.index()].levels[1..].iter().map(|it| it.entries).sum();
    assert!(deeper < 2000, "{deeper} of 20000 were moved");
    assert_eq!(db.llen(b"q").unwrap(), 10);
    sound(&db);
}

#[test]
fn rows_of_a_record_that_this_version_cannot_read_are_not_waste() {
    let setting = Setting::new();
    let db = setting.open();
    add(&db, b"h", 0..5);
    db.write(&[b"h"], |tx| {
        let mut record = tx.record(b"h")?.unwrap().bytes.to_vec();
        record[0] |= 0x20;
        tx.put_record(b"h", record)
    })
    .unwrap();
    db.flush().unwrap();
    assert_eq!(reclaim(&db), (0, 0, 0));
    assert_eq!(all_entries(&db), [1, 5, 0]);
}

#[test]
fn threads_estimate_by_themselves_within_the_interval() {
    let mut setting = Setting::new();
    setting.options.reclaim_interval_s = 1;
    let db = setting.open();
    add(&db, b"h", 0..1000);
    db.compact().unwrap();
    db.del(&[b"h"]).unwrap();
    until("no table was estimated", || stats(&db).drops == 1);
    assert_eq!(entries(&db, DATA), 0);
    assert!(stats(&db).garbage_estimate_age_ms < 30_000);
    db.close().unwrap();
}

#[test]
fn without_an_interval_nothing_is_estimated_unasked() {
    let mut setting = Setting::new();
    setting.options.reclaim_interval_s = 0;
    let db = setting.open();
    for n in 0..8u32 {
        add(&db, b"h", n * 10..n * 10 + 5);
        db.flush().unwrap();
    }
    db.store().engine().wait_idle().unwrap();
    db.del(&[b"h"]).unwrap();
    assert_eq!(stats(&db).garbage_bytes, 0);
    db.reclaim().unwrap();
    assert_eq!(entries(&db, DATA), 0);
}
