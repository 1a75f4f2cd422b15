//! Space that comes back, as a user sees it: deletes, expiry, queues, and power cuts in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]
#![allow(clippy::indexing_slicing, reason = "a test may")]

use std::path::Path;
use std::sync::Arc;

use lsmkv::engine::{MemFs, TreeStats};
use lsmkv::io::clock::ManualClock;
use lsmkv::io::mem::CrashMode;
use lsmkv::types::ExpireIf;
use lsmkv::{Db, Options, Reply, SyncMode};
use parking_lot::Mutex;

/// Without a cleaner, and with rows for every collection, however small: it is about rows.
fn quiet() -> Options {
    Options { ttl_cleaner_interval_s: 0, packed_max_members: 0, ..Options::default() }
}

fn open(fs: &MemFs, options: &Options) -> Db {
    open_at(fs, options, &Arc::new(ManualClock::at(1000)))
}

fn open_at(fs: &MemFs, options: &Options, clock: &Arc<ManualClock>) -> Db {
    let fs = Arc::new(fs.clone());
    Db::open_on(fs, Path::new("/db"), options.clone(), clock.clone()).unwrap()
}

/// Runs a command of which only the effect matters.
fn run(db: &Db, command: &str) {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let reply = db.command(&words).unwrap();
    assert!(!matches!(reply, Reply::Error(_)), "{command}: {reply:?}");
}

/// Entries in the tables of each tree.
fn entries(db: &Db) -> Vec<u64> {
    let stats = db.engine_stats();
    let of = |tree: &TreeStats| tree.levels.iter().map(|level| level.entries).sum();
    stats.trees.iter().map(of).collect()
}

/// Bytes and entries in the tables of all trees.
fn tables(db: &Db) -> (u64, u64) {
    let stats = db.engine_stats();
    let levels = || stats.trees.iter().flat_map(|tree| &tree.levels);
    (levels().map(|level| level.bytes).sum(), levels().map(|level| level.entries).sum())
}

fn stat(db: &Db, name: &str) -> f64 {
    let stats = db.stats().unwrap();
    stats.iter().find(|stat| stat.name == name).unwrap_or_else(|| panic!("{name}")).value.as_f64()
}

fn sound(db: &Db) {
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn a_deleted_collection_of_100_000_leaves_less_than_a_hundredth() {
    let fs = MemFs::untracked();
    let db = open(&fs, &quiet());
    let elements: Vec<Vec<u8>> = (0..100_000u32).map(|n| n.to_string().into_bytes()).collect();
    for some in elements.chunks(1000) {
        let some: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
        db.rpush(b"big", &some).unwrap();
    }
    db.set(b"small", b"value").unwrap();
    db.compact().unwrap();
    let (before, entries) = tables(&db);
    assert_eq!(entries, 100_002);
    assert_eq!(db.del(&[b"big"]).unwrap(), 1);
    db.compact().unwrap();
    let (after, entries) = tables(&db);
    assert!(after * 100 < before, "{before} bytes before, {after} after");
    assert_eq!(entries, 1);
    assert_eq!(stat(&db, "rows_removed"), 100_000.0);
    sound(&db);
}

#[test]
fn a_queue_of_any_length_leaves_only_what_is_in_it() {
    let fs = MemFs::untracked();
    let options = Options { write_buffer: 64 << 10, table_bytes: 16 << 10, ..quiet() };
    let db = open(&fs, &options);
    for n in 0..20_000u32 {
        db.rpush(b"queue", &[&n.to_be_bytes()]).unwrap();
        if n >= 10 {
            let popped = db.lpop(b"queue").unwrap().unwrap();
            assert_eq!(popped[..], (n - 10).to_be_bytes());
        }
    }
    db.compact().unwrap();
    assert_eq!(tables(&db).1, 1 + 10);
    sound(&db);
}

/// Without a sync before the result is installed: the DEL is in an unsynced log, the rows are
/// dropped and that is durable, the power goes: the list is back without its elements.
#[test]
fn after_a_power_cut_a_deleted_list_is_gone_or_whole() {
    let fs = MemFs::new();
    let options = Options { sync: SyncMode::Off, ..quiet() };
    let db = open(&fs, &options);
    for n in 0..20u32 {
        db.rpush(b"deleted", &[&n.to_be_bytes()]).unwrap();
        db.rpush(b"trimmed", &[&n.to_be_bytes()]).unwrap();
    }
    db.flush().unwrap();
    db.sync().unwrap();
    db.del(&[b"deleted"]).unwrap();
    db.lpop_many(b"trimmed", 15).unwrap();
    let cuts = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&cuts);
    fs.on_sync(move |fs, _| taken.lock().push(fs.deep_clone()));
    db.compact().unwrap();
    assert_eq!(tables(&db).1, 1 + 5, "the story needs rows to be dropped");
    cuts.lock().push(fs.deep_clone());
    let (mut whole, mut gone) = (0, 0);
    for cut in cuts.lock().iter() {
        for (seed, mode) in (0..4).flat_map(|seed| CrashMode::ALL.map(|mode| (seed, mode))) {
            let db = open(&cut.crash_clone(seed, mode), &options);
            sound(&db);
            match db.llen(b"deleted").unwrap() {
                0 => gone += 1,
                20 => whole += 1,
                length => panic!("{length} of 20 elements"),
            }
            let length = db.llen(b"trimmed").unwrap();
            assert!(length == 20 || length == 5, "{length}");
        }
    }
    assert!(whole > 0 && gone > 0, "{whole} whole, {gone} gone");
}

/// A table that is dropped unread is not merged, so no filter syncs the deletes that allow it.
#[test]
fn after_a_power_cut_a_list_whose_table_was_dropped_is_gone_or_whole() {
    for sync in [SyncMode::Off, SyncMode::Interval] {
        let fs = MemFs::new();
        let options = Options { sync, sync_interval_ms: 3_600_000, ..quiet() };
        let db = open(&fs, &options);
        for n in 0..20u32 {
            db.rpush(b"deleted", &[&n.to_be_bytes()]).unwrap();
        }
        db.compact().unwrap();
        db.sync().unwrap();
        db.del(&[b"deleted"]).unwrap();
        let cut = open(&fs.crash_clone(0, CrashMode::DropUnsynced), &options);
        assert_eq!(cut.llen(b"deleted").unwrap(), 20, "the story needs the DEL to be unsynced");
        let cuts = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&cuts);
        fs.on_sync(move |fs, _| taken.lock().push(fs.deep_clone()));
        db.reclaim().unwrap();
        assert_eq!(stat(&db, "files_dropped_unread"), 1.0);
        cuts.lock().push(fs.deep_clone());
        let (mut whole, mut gone) = (0, 0);
        for cut in cuts.lock().iter() {
            for (seed, mode) in (0..4).flat_map(|seed| CrashMode::ALL.map(|mode| (seed, mode))) {
                let db = open(&cut.crash_clone(seed, mode), &options);
                sound(&db);
                match db.llen(b"deleted").unwrap() {
                    0 => gone += 1,
                    20 => whole += 1,
                    length => panic!("{length} of 20 elements"),
                }
            }
        }
        assert!(whole > 0 && gone > 0, "{whole} whole, {gone} gone");
        let cut = open(&fs.crash_clone(0, CrashMode::DropUnsynced), &options);
        assert_eq!(cut.exists(&[b"deleted"]).unwrap(), 0, "what was installed is durable");
    }
}

#[test]
fn a_million_keys_that_lived_a_second_leave_without_being_read() {
    let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1_000_000)));
    let options = Options { memory_budget: 64 << 20, table_bytes: 2 << 20, ..quiet() };
    let db = open_at(&fs, &options, &clock);
    let key = |n: u32| [&b"k"[..], &n.wrapping_mul(0x9e37_79b1).to_be_bytes()].concat();
    let count = 1_000_000;
    db.set(b"lives on", b"v").unwrap();
    db.compact().unwrap();
    for n in 0..count {
        db.setex(&key(n), 1, b"value").unwrap();
    }
    db.flush().unwrap();
    db.reclaim().unwrap();
    let (before, entries) = tables(&db);
    assert_eq!(entries, u64::from(count) + 1, "all alive: nothing may go");
    assert_eq!(stat(&db, "expired_keys_estimated"), 0.0);
    clock.set(1_000_999);
    let alive = (0..count).step_by(100_000).filter(|n| db.get(&key(*n)).unwrap().is_some());
    assert_eq!(alive.count(), 10);
    clock.set(1_001_000);
    assert!((0..count).step_by(7).all(|n| db.get(&key(n)).unwrap().is_none()), "invisible on time");
    assert_eq!(stat(&db, "expired_keys_estimated"), f64::from(count));
    assert!(stat(&db, "expired_bytes_ratio") > 0.99);
    let reads = stat(&db, "block_reads");
    db.reclaim().unwrap();
    let (dropped, after) = (stat(&db, "files_dropped_unread"), tables(&db));
    assert!(dropped > 5.0 && after.0 * 50 < before, "{dropped} files, {before} then {after:?}");
    assert_eq!(stat(&db, "block_reads"), reads, "no block was read");
    assert_eq!(stat(&db, "entries_dropped_unread"), f64::from(count));
    assert_eq!(after.1, 1);
    assert_eq!(stat(&db, "expired_keys_estimated"), 0.0);
    assert_eq!(stat(&db, "garbage_bytes_estimated"), 0.0);
    assert_eq!(db.dbsize().unwrap(), 1);
    db.close().unwrap();
    let db = open_at(&fs, &options, &clock);
    assert_eq!(db.dbsize().unwrap(), 1);
    assert_eq!(db.get(b"lives on").unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn the_bytes_of_a_big_hash_come_back_without_a_compact() {
    let fs = MemFs::untracked();
    let options = Options { write_buffer: 1 << 20, table_bytes: 256 << 10, ..quiet() };
    let db = open(&fs, &options);
    run(&db, "HSET small a 1 b 2");
    for n in 0..200_000u32 {
        db.hset(b"big", &[(&n.to_be_bytes(), b"some value")]).unwrap();
    }
    db.flush().unwrap();
    db.reclaim().unwrap();
    let (before, entries) = tables(&db);
    assert!(entries >= 200_000);
    db.del(&[b"big"]).unwrap();
    let (merged, read) = (stat(&db, "merge_read_bytes"), stat(&db, "block_reads"));
    db.reclaim().unwrap();
    let (after, _) = tables(&db);
    assert!(after * 100 < before, "{before} bytes before, {after} after");
    assert!(stat(&db, "merge_read_bytes") - merged < before as f64 / 10.0, "most went unread");
    assert!(stat(&db, "block_reads") - read < 300.0);
    assert!(stat(&db, "entries_dropped_unread") > 150_000.0);
    sound(&db);
}

#[test]
fn garbage_is_counted_before_it_is_worth_a_merge() {
    let db = open(&MemFs::untracked(), &quiet());
    for n in 0..1000u32 {
        run(&db, &format!("HSET h{n} a 1 b 2"));
    }
    db.compact().unwrap();
    for n in 0..300u32 {
        db.del(&[format!("h{n}").as_bytes()]).unwrap();
    }
    let at_once = stat(&db, "garbage_bytes_ratio");
    assert!((0.1..0.4).contains(&at_once), "{at_once} of the tables");
    db.reclaim().unwrap();
    let ratio = stat(&db, "garbage_bytes_ratio");
    assert!((0.1..0.4).contains(&ratio), "{ratio} of the tables");
    assert!(stat(&db, "reclaim_lag_ms") < 60_000.0);
    db.compact().unwrap();
    assert_eq!(stat(&db, "garbage_bytes_estimated"), 0.0);
}

#[test]
fn what_a_store_says_of_itself_has_names() {
    let db = open(&MemFs::untracked(), &quiet());
    for n in 0..100u32 {
        db.set(&n.to_be_bytes(), b"value").unwrap();
    }
    assert_eq!(stat(&db, "keys_estimated"), 100.0);
    db.compact().unwrap();
    assert_eq!(stat(&db, "keys_estimated"), 100.0);
    assert_eq!(stat(&db, "expired_keys_estimated"), 0.0);
    assert_eq!(stat(&db, "table_entries"), 100.0);
    let stats = db.stats().unwrap();
    let names: std::collections::HashSet<_> = stats.iter().map(|stat| stat.name).collect();
    assert_eq!(names.len(), stats.len(), "each name once");
    for name in [
        "keys_estimated",
        "expired_keys_estimated",
        "expired_keys_ratio",
        "expired_bytes_estimated",
        "expired_bytes_ratio",
        "rows_removed",
        "garbage_bytes_estimated",
        "garbage_bytes_ratio",
        "cleaner_deleted",
        "cleaner_last_deleted",
        "cleaner_last_ms",
        "reclaim_lag_ms",
        "files_dropped_unread",
    ] {
        assert!(names.contains(name), "{name}");
    }
}

#[test]
fn expired_collections_of_every_type_go_with_their_rows() {
    let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1000)));
    let db = open_at(&fs, &quiet(), &clock);
    for round in ["gone", "kept"] {
        run(&db, &format!("HSET h:{round} f1 v f2 v f3 v"));
        run(&db, &format!("SADD s:{round} a b"));
        run(&db, &format!("ZADD z:{round} 1 a 2 b 3 c 4 d"));
        run(&db, &format!("RPUSH l:{round} a b c d e"));
        run(&db, &format!("SET t:{round} v"));
    }
    for key in ["h:gone", "s:gone", "z:gone", "l:gone", "t:gone"] {
        run(&db, &format!("PEXPIREAT {key} 2000"));
    }
    db.compact().unwrap();
    assert_eq!(entries(&db), [10, 28, 8]);
    sound(&db);
    assert_eq!(stat(&db, "expired_keys_estimated"), 0.0);
    clock.set(2000);
    assert_eq!(stat(&db, "expired_keys_estimated"), 5.0);
    assert!((0.2..0.8).contains(&stat(&db, "expired_bytes_ratio")));
    db.compact().unwrap();
    assert_eq!(entries(&db), [5, 14, 4]);
    assert_eq!(stat(&db, "expired_keys_estimated"), 0.0);
    sound(&db);
    // A member that is removed, or scored anew, leaves no rows either.
    run(&db, "ZADD z:kept 9 a");
    run(&db, "ZREM z:kept b");
    run(&db, "HDEL h:kept f1");
    run(&db, "SET s:kept now-a-string");
    run(&db, "RENAME h:kept h:other");
    db.compact().unwrap();
    assert_eq!(entries(&db), [5, 2 + 3 + 5, 3]);
    sound(&db);
    run(&db, "FLUSHALL");
    db.compact().unwrap();
    assert_eq!(entries(&db)[1..], [0, 0]);
    db.close().unwrap();
    let db = open_at(&fs, &quiet(), &clock);
    assert_eq!(db.dbsize().unwrap(), 0);
    sound(&db);
}

/// A filter that dropped expired records, rather than deleting them, would bring back what lies
/// deeper: here every key has an older value that never expires.
#[test]
fn an_older_value_never_shows_again_wherever_the_filter_ran() {
    let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1000)));
    let options = Options {
        write_buffer: 64 << 10,
        table_bytes: 8 << 10,
        level_ratio: 2,
        memory_budget: 1 << 20,
        ..quiet()
    };
    let db = open_at(&fs, &options, &clock);
    let key = |n: u32| format!("key{:05}", n.wrapping_mul(7919) % 20_000).into_bytes();
    let old = [b'o'; 60];
    for n in 0..20_000 {
        db.set(&key(n), &old).unwrap();
    }
    db.compact().unwrap();
    let expires = |n: u32| n.is_multiple_of(7);
    for n in (0..20_000).filter(|n| expires(*n)) {
        let key = String::from_utf8(key(n)).unwrap();
        run(&db, &format!("SET {key} new"));
        run(&db, &format!("PEXPIREAT {key} 2000"));
    }
    clock.set(2000);
    let check = |db: &Db| {
        for n in 0..20_000 {
            let found = db.get(&key(n)).unwrap();
            assert_eq!(found.as_deref(), (!expires(n)).then_some(&old[..]), "{n}");
        }
    };
    // More writes push the expired records down, level by level.
    for n in 0..4000u32 {
        db.set(format!("key{:05}x", n * 5).as_bytes(), &[b'x'; 100]).unwrap();
    }
    db.flush().unwrap();
    check(&db);
    assert!(stat(&db, "records_removed") > 0.0, "the story needs a filter to have run");
    db.close().unwrap();
    let db = open_at(&fs, &options, &clock);
    check(&db);
    db.compact().unwrap();
    check(&db);
    assert_eq!(stat(&db, "table_tombstones"), 0.0);
    sound(&db);
}

#[test]
fn a_sound_store_has_nothing_to_report() {
    let db = open(&MemFs::untracked(), &quiet());
    for command in
        ["HSET h a 1 b 2", "SADD s a b", "ZADD z 1 a -0 b inf c", "RPUSH l a b c", "SET t v"]
    {
        run(&db, command);
    }
    sound(&db);
    run(&db, "LPOP l");
    run(&db, "ZINCRBY z -5 a");
    db.flush().unwrap();
    sound(&db);
}

/// EXPIRE while a compaction takes away what has expired: it comes in time for the whole key, or
/// too late for all of it.
#[test]
fn an_expire_that_races_a_compaction_keeps_every_member_or_none() {
    let (fs, clock) = (MemFs::untracked(), Arc::new(ManualClock::at(1000)));
    let db = open_at(&fs, &quiet(), &clock);
    let mut kept = Vec::new();
    for round in 0..150u64 {
        let key = format!("hash:{round}").into_bytes();
        let fields: Vec<String> = (0..20).map(|n| format!("field:{n}")).collect();
        let pairs: Vec<_> = fields.iter().map(|name| (name.as_bytes(), &b"v"[..])).collect();
        db.hset(&key, &pairs).unwrap();
        assert!(db.pexpire(&key, 5, ExpireIf::ALWAYS).unwrap());
        db.flush().unwrap();
        let in_time = std::thread::scope(|scope| {
            scope.spawn(|| {
                clock.advance(5);
                db.compact().unwrap();
            });
            // Sometimes before, sometimes after, sometimes in the middle of it.
            std::thread::sleep(std::time::Duration::from_micros(round % 15 * 40));
            db.pexpire(&key, 1_000_000_000, ExpireIf::ALWAYS).unwrap()
        });
        db.compact().unwrap();
        let expected = if in_time { 20 } else { 0 };
        assert_eq!(db.hgetall(&key).unwrap().len(), expected, "round {round}");
        if in_time {
            kept.push(key);
        }
    }
    sound(&db);
    db.close().unwrap();
    let db = open_at(&fs, &quiet(), &clock);
    assert!(kept.iter().all(|key| db.hlen(key).unwrap() == 20));
    assert_eq!(usize::try_from(db.dbsize().unwrap()), Ok(kept.len()));
}
