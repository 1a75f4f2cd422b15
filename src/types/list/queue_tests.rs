//! Queues for ever. Elsewhere each pop left a tombstone, the next one walked over all of them, and
//! a busy queue fell to tens of operations a second. Counters say that this cannot happen here.

use std::ops::RangeInclusive;

use super::InsertPosition;
use crate::engine::{LevelStats, Stats};
use crate::options::Options;
use crate::txn::Db;

const META: usize = 0;
const DATA: usize = 1;

fn open() -> Db {
    Db::open(":memory:", Options::default()).unwrap()
}

fn sum(stats: &Stats, tree: usize, of: impl Fn(&LevelStats) -> u64) -> u64 {
    stats.trees[tree].levels.iter().map(of).sum()
}

/// Blocks of the data tree accessed so far.
fn blocks(db: &Db) -> u64 {
    let data = &db.engine_stats().trees[DATA];
    data.cache_hits + data.cache_misses
}

/// A command, how many blocks it may access, and its run.
type Step<'a> = (&'a str, RangeInclusive<u64>, &'a dyn Fn());

#[test]
fn a_queue_leaves_no_tombstones() {
    let db = open();
    db.rpush(b"q", &[&b"standing"[..]; 10]).unwrap();
    for round in 0..100_000u32 {
        db.rpush(b"q", &[&round.to_le_bytes()]).unwrap();
        let popped = db.lpop(b"q").unwrap().unwrap();
        if round >= 10 {
            assert_eq!(popped, (round - 10).to_le_bytes()[..]);
        }
        if round == 50_000 {
            db.flush().unwrap();
        }
    }
    db.flush().unwrap();
    let stats = db.engine_stats();
    for tree in 0..stats.trees.len() {
        assert_eq!(sum(&stats, tree, |level| level.tombstones), 0, "{:?}", stats.trees[tree]);
    }
    assert_eq!(stats.elided, 0, "there were none before a merge either");
    assert_eq!(db.llen(b"q").unwrap(), 10);
}

#[test]
fn a_queue_that_runs_empty_leaves_at_most_the_tombstone_of_its_record() {
    let db = open();
    for _ in 0..1000 {
        db.rpush(b"q", &[b"a", b"b"]).unwrap();
        db.lpop(b"q").unwrap();
        db.rpop(b"q").unwrap();
    }
    db.rpush(b"q", &[&b"a"[..]; 100]).unwrap();
    db.ltrim(b"q", 1, 0).unwrap();
    db.flush().unwrap();
    let stats = db.engine_stats();
    assert_eq!(sum(&stats, DATA, |level| level.tombstones), 0);
    assert!(sum(&stats, META, |level| level.tombstones) <= 1);
}

#[test]
fn a_pop_goes_straight_to_its_element_past_any_number_of_dead_ones() {
    let db = open();
    let element = [7u8; 64];
    db.rpush(b"q", &vec![&element[..]; 50_000]).unwrap();
    db.lpop_many(b"q", 25_000).unwrap();
    db.rpop_many(b"q", 24_900).unwrap();
    db.flush().unwrap();
    let data = db.engine_stats();
    assert!(sum(&data, DATA, |level| level.bytes) > 500_000, "the dead rows are there: {data:?}");
    let steps: [Step<'_>; 5] = [
        ("LPOP", 1..=1, &|| drop(db.lpop(b"q").unwrap().unwrap())),
        ("RPOP", 1..=1, &|| drop(db.rpop(b"q").unwrap().unwrap())),
        ("LINDEX", 1..=1, &|| drop(db.lindex(b"q", 0).unwrap().unwrap())),
        ("LRANGE", 1..=2, &|| assert_eq!(db.lrange(b"q", 0, 3).unwrap().len(), 4)),
        ("LLEN", 0..=0, &|| assert_eq!(db.llen(b"q").unwrap(), 98)),
    ];
    for (name, expected, step) in steps {
        let before = blocks(&db);
        step();
        let looked_at = blocks(&db) - before;
        assert!(expected.contains(&looked_at), "{name} looked at {looked_at} blocks");
    }
}

#[test]
fn an_insertion_or_removal_rewrites_the_shorter_side_only() {
    let db = open();
    let numbers: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let elements: Vec<&[u8]> = numbers.iter().map(String::as_bytes).collect();
    db.rpush(b"l", &elements).unwrap();
    db.flush().unwrap();
    let rows = |db: &Db| {
        db.flush().unwrap();
        sum(&db.engine_stats(), DATA, |level| level.entries)
    };
    assert_eq!(rows(&db), 1000);
    db.linsert(b"l", InsertPosition::After, b"2", b"x").unwrap();
    assert!(rows(&db) <= 1000 + 4, "three moved and the new one");
    db.linsert(b"l", InsertPosition::Before, b"998", b"y").unwrap();
    assert!(rows(&db) <= 1004 + 3, "two moved and the new one");
    for removed in [&b"1"[..], b"997"] {
        assert_eq!(db.lrem(b"l", 0, removed).unwrap(), 1);
    }
    assert!(rows(&db) <= 1007 + 4, "0; y, 998 and 999");
    let shown = db.lrange(b"l", 0, 4).unwrap();
    assert_eq!(shown, ["0", "2", "x", "3", "4"]);
    assert_eq!(db.lrange(b"l", -4, -1).unwrap(), ["996", "y", "998", "999"]);
    assert_eq!(db.llen(b"l").unwrap(), 1000);
}
