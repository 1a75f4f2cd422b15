//! Snapshots of a collection that goes from rows to its record and back, with the rows of each
//! version gone when nobody can see them, and not before.

use std::sync::Arc;

use super::{fresh, on};
use crate::engine::MemFs;
use crate::txn::Db;
use crate::types::testing::is_packed;
use crate::types::{By, ZAdd, ZRange};

fn put(db: &Db, members: std::ops::Range<u8>, score: f64) {
    for n in members {
        db.hset(b"h", &[(&[n], score.to_string().as_bytes())]).unwrap();
        db.zadd(b"z", &[(score, &[n])], ZAdd::default()).unwrap();
    }
}

/// The members of both, all of which have this score.
fn members(db: &Db, score: f64) -> Vec<u8> {
    let hash = db.hgetall(b"h").unwrap();
    let all = ZRange::of(By::Rank(0, -1));
    let zset = db.zrange_withscores(b"z", &all).unwrap();
    for ((field, value), (member, its)) in hash.iter().zip(&zset) {
        assert_eq!((field, *its), (member, score));
        assert_eq!(value, score.to_string().as_bytes());
        assert_eq!(db.zscore(b"z", member).unwrap(), Some(score));
        assert_eq!(db.hget(b"h", field).unwrap().as_ref(), Some(value));
    }
    assert_eq!(hash.len(), zset.len());
    assert_eq!(db.zcard(b"z").unwrap(), hash.len() as i64);
    hash.iter().map(|(field, _)| field[0]).collect()
}

/// Entries in the tables of members and of scores.
fn entries(db: &Db) -> [u64; 2] {
    let trees = db.engine_stats().trees;
    [1, 2].map(|tree| trees[tree].levels.iter().map(|level| level.entries).sum())
}

fn there_and_back(db: &Db) {
    for key in [b"h", b"z"] {
        db.rename(key, b"away").unwrap();
        assert!(is_packed(db, b"away"));
        db.rename(b"away", key).unwrap();
    }
}

#[test]
fn each_snapshot_sees_the_form_of_its_read_point_until_it_is_dropped() {
    let fs = Arc::new(MemFs::untracked());
    let db = on(&fs, 3, 1024);
    put(&db, 0..5, 1.0);
    db.hdel(b"h", &[&[0], &[1]]).unwrap();
    db.zrem(b"z", &[&[0], &[1]]).unwrap();
    assert!(!is_packed(&db, b"h") && !is_packed(&db, b"z"));
    let a = db.snapshot().unwrap();
    there_and_back(&db);
    let b = db.snapshot().unwrap();
    put(&db, 2..8, 2.0);
    assert!(!is_packed(&db, b"h") && !is_packed(&db, b"z"));
    for reclaim in [Db::compact, Db::reclaim, Db::compact] {
        reclaim(&db).unwrap();
        assert_eq!(members(&db, 2.0), [2, 3, 4, 5, 6, 7]);
        assert_eq!(members(&a, 1.0), [2, 3, 4]);
        assert_eq!(members(&b, 1.0), [2, 3, 4]);
    }
    assert_eq!(entries(&db), [2 * (3 + 6), 3 + 6], "the rows of two versions");
    assert!(!is_packed(&a, b"h") && is_packed(&b, b"h") && is_packed(&b, b"z"));
    drop(a);
    db.compact().unwrap();
    assert_eq!(entries(&db), [2 * 6, 6], "the rows of the last version");
    assert_eq!(members(&db, 2.0), [2, 3, 4, 5, 6, 7]);
    assert_eq!(members(&b, 1.0), [2, 3, 4]);
    drop(b);
    db.reclaim().unwrap();
    assert_eq!(members(&db, 2.0), [2, 3, 4, 5, 6, 7]);
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.close().unwrap();
    assert_eq!(members(&on(&fs, 3, 1024), 2.0), [2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_snapshot_of_the_record_does_not_keep_rows_that_came_and_went() {
    let db = fresh(3, 1024);
    put(&db, 0..2, 1.0);
    let before = db.snapshot().unwrap();
    put(&db, 0..6, 2.0);
    db.flush().unwrap();
    db.hdel(b"h", &[&[3], &[4], &[5]]).unwrap();
    db.zrem(b"z", &[&[3], &[4], &[5]]).unwrap();
    there_and_back(&db);
    db.compact().unwrap();
    assert_eq!(entries(&db), [0, 0]);
    assert_eq!(members(&before, 1.0), [0, 1]);
    assert_eq!(members(&db, 2.0), [0, 1, 2]);
    assert_eq!(db.check().unwrap(), [""; 0]);
}
