//! Collections that go from their record to rows, in stores that are opened with one packing and
//! then another.

mod cursors;
mod damage;
mod power_cut;
mod snapshots;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::encoding::keys::row_key;
use crate::encoding::meta::Type;
use crate::engine::MemFs;
use crate::io::clock::ManualClock;
use crate::keyspace::trees::DATA;
use crate::options::{Options, SyncMode};
use crate::txn::Db;
use crate::types::testing::{both, is_packed, unpacked};
use crate::types::{By, ExpireIf, ZAdd, ZRange};

fn on(fs: &Arc<MemFs>, members: u32, bytes: u32) -> Db {
    let (packed_max_members, packed_max_bytes) = (members, bytes);
    let options = Options { packed_max_members, packed_max_bytes, ..Options::default() };
    let clock = Arc::new(ManualClock::at(1_000_000));
    Db::open_on(fs.clone(), Path::new("/db"), options, clock).unwrap()
}

fn fresh(members: u32, bytes: u32) -> Db {
    on(&Arc::new(MemFs::new()), members, bytes)
}

/// Rows of all trees: records, members, scores.
fn rows(db: &Db) -> [u64; 3] {
    db.compact().unwrap();
    let trees = db.engine_stats().trees;
    [0, 1, 2].map(|tree| trees[tree].levels.iter().map(|level| level.entries).sum())
}

#[test]
fn a_small_collection_has_no_rows_and_a_large_one_has_them_all() {
    let db = fresh(3, 1000);
    for n in 0..5u8 {
        db.hset(b"h", &[(&[n], b"v")]).unwrap();
        db.sadd(b"s", &[&[n]]).unwrap();
        db.zadd(b"z", &[(f64::from(n), &[n])], ZAdd::default()).unwrap();
        for key in [&b"h"[..], b"s", b"z"] {
            assert_eq!(is_packed(&db, key), n < 3, "{key:?} of {} members", n + 1);
        }
        let all = u64::from(n) + 1;
        let stored = if n < 3 { [3, 0, 0] } else { [3, 3 * all, all] };
        assert_eq!(rows(&db), stored);
        assert_eq!(db.check().unwrap(), [""; 0]);
    }
    assert_eq!(db.zrevrank(b"z", &[1]).unwrap(), Some(3));
    db.hdel(b"h", &[&[0], &[1], &[2], &[3]]).unwrap();
    assert_eq!(db.hgetall(b"h").unwrap(), [(vec![4].into(), "v".into())]);
}

#[test]
fn bytes_count_as_well_and_an_overwritten_value_makes_room() {
    let db = fresh(100, 64);
    db.hset(b"h", &[(b"f", &[b'x'; 50])]).unwrap();
    for n in 0..10u8 {
        db.hset(b"h", &[(b"f", &[n; 50])]).unwrap();
        assert!(is_packed(&db, b"h"));
    }
    db.hset(b"h", &[(b"g", &[b'x'; 20])]).unwrap();
    assert!(!is_packed(&db, b"h"));
    assert_eq!(db.hget(b"h", b"f").unwrap().unwrap(), [9; 50][..]);
    assert_eq!(db.hlen(b"h").unwrap(), 2);
}

#[test]
fn expiry_goes_along_when_members_get_rows_and_back() {
    let db = fresh(2, 1000);
    db.zadd(b"z", &[(-0.0, b"zero"), (1.5, b"one")], ZAdd::default()).unwrap();
    db.expire(b"z", 1000, ExpireIf::default()).unwrap();
    assert!(is_packed(&db, b"z"));
    db.zadd(b"z", &[(1.5, b"more")], ZAdd::default()).unwrap();
    assert!(!is_packed(&db, b"z"));
    assert_eq!(db.ttl(b"z").unwrap(), 1000);
    db.zrem(b"z", &[b"more"]).unwrap();
    assert!(!is_packed(&db, b"z"), "one on the border does not go to and fro");
    db.rename(b"z", b"y").unwrap();
    assert!(is_packed(&db, b"y"), "written anew, it is where it belongs");
    assert_eq!(db.ttl(b"y").unwrap(), 1000);
    assert!(db.zscore(b"y", b"zero").unwrap().unwrap().is_sign_negative());
    assert_eq!(db.zscore(b"y", b"one").unwrap(), Some(1.5));
    assert_eq!(rows(&db), [1, 0, 0]);
}

#[test]
fn asking_for_many_members_at_once_finds_what_asking_for_each_does() {
    for db in both() {
        for n in (0..60u8).step_by(3) {
            db.hset(b"h", &[(&[n], &[n; 2])]).unwrap();
            db.sadd(b"s", &[&[n]]).unwrap();
            db.zadd(b"z", &[(f64::from(n), &[n])], ZAdd::default()).unwrap();
        }
        let names: Vec<[u8; 1]> = (0..62).rev().chain(0..4).map(|n| [n]).collect();
        for count in [0, 1, 2, 3, names.len()] {
            let asked: Vec<&[u8]> = names[..count].iter().map(|name| &name[..]).collect();
            let values: Vec<_> = asked.iter().map(|it| db.hget(b"h", it).unwrap()).collect();
            assert_eq!(db.hmget(b"h", &asked).unwrap(), values);
            let there: Vec<_> = asked.iter().map(|it| db.sismember(b"s", it).unwrap()).collect();
            assert_eq!(db.smismember(b"s", &asked).unwrap(), there);
            let scores: Vec<_> = asked.iter().map(|it| db.zscore(b"z", it).unwrap()).collect();
            assert_eq!(db.zmscore(b"z", &asked).unwrap(), scores);
            let found = values.iter().flatten().count();
            assert_eq!(found, there.iter().filter(|there| **there).count());
            assert_eq!(found, scores.iter().flatten().count());
            for (name, there) in asked.iter().zip(there) {
                assert_eq!(there, name[0] < 60 && name[0].is_multiple_of(3));
                assert_eq!(db.hexists(b"h", name).unwrap(), there);
                assert_eq!(db.hstrlen(b"h", name).unwrap(), 2 * i64::from(there));
            }
        }
        let sums = db.zinter(&[b"z", b"s"], Default::default()).unwrap();
        assert!(sums.iter().all(|(member, score)| f64::from(member[0]) + 1.0 == *score));
        assert_eq!((sums.len(), db.zdiff(&[b"z", b"s"]).unwrap().len()), (20, 0));
    }
}

#[test]
fn a_copy_has_the_form_that_is_in_force_now() {
    let fs = Arc::new(MemFs::untracked());
    let fill = |db: &Db| {
        for n in 0..3u8 {
            db.hset(b"h", &[(&[n], &[b'v'; 20])]).unwrap();
            db.sadd(b"s", &[&[n]]).unwrap();
            db.zadd(b"z", &[(-f64::from(n), &[n])], ZAdd::default()).unwrap();
        }
        db.expire(b"z", 1000, ExpireIf::default()).unwrap();
    };
    let db = on(&fs, 128, 1024);
    fill(&db);
    db.close().unwrap();
    // Still allowed; too many; too long, but for the set.
    for (members, bytes, packed) in [
        (3, 69, [true; 3]),
        (2, 1024, [false; 3]),
        (0, 1024, [false; 3]),
        (9, 20, [false, true, false]),
    ] {
        let db = on(&fs, members, bytes);
        let other = db.select(1).unwrap();
        for (key, packed) in [b"h", b"s", b"z"].into_iter().zip(packed) {
            assert!(is_packed(&db, key), "it is read as it is");
            assert!(db.copy(key, b"copy", true).unwrap());
            assert!(db.copy_to(key, key, 1, true).unwrap());
            assert_eq!(is_packed(&db, b"copy"), packed, "{key:?} of {members}, {bytes}");
            assert_eq!(is_packed(&other, key), packed);
            assert_eq!(other.ttl(key).unwrap(), db.ttl(key).unwrap());
        }
        assert_eq!(other.hgetall(b"h").unwrap(), db.hgetall(b"h").unwrap());
        assert_eq!(other.smembers(b"s").unwrap(), db.smembers(b"s").unwrap());
        assert_eq!(db.zrevrange(b"copy", 0, -1).unwrap(), [&[0][..], &[1], &[2]]);
        assert_eq!(db.check().unwrap(), [""; 0]);
        other.flushdb().unwrap();
        db.del(&[b"copy"]).unwrap();
        db.close().unwrap();
    }
}

/// A change writes the whole record, so one as large as a transaction could not be changed in it.
#[test]
fn what_a_transaction_could_not_write_again_has_rows() {
    let small = Options { txn_max_bytes: 4 << 10, ..Options::default() };
    let options = Options { packed_max_members: 1024, packed_max_bytes: 16 << 10, ..small };
    let db = Db::open(":memory:", options).unwrap();
    for n in 0..10u8 {
        db.hset(b"h", &[(&[n], &[b'v'; 1000])]).unwrap();
        db.hset(b"small", &[(&[n], &[b'v'; 90])]).unwrap();
    }
    assert!(!is_packed(&db, b"h") && is_packed(&db, b"small"));
    for n in 0..9u8 {
        let txn = db.begin().unwrap();
        txn.hset(b"h", &[(&[n], b"new")]).unwrap();
        txn.hset(b"small", &[(&[n], b"new")]).unwrap();
        txn.commit().unwrap();
        let txn = db.begin().unwrap();
        assert_eq!(txn.hdel(b"h", &[&[n]]).unwrap() + txn.hdel(b"small", &[&[n]]).unwrap(), 2);
        txn.commit().unwrap();
    }
    assert_eq!((db.hlen(b"h").unwrap(), db.hlen(b"small").unwrap()), (1, 1));
}

/// The space reserved for removals on a full disk is a segment of the log.
#[test]
fn members_can_be_removed_on_a_full_disk_however_small_the_log() {
    let fs = Arc::new(MemFs::new());
    let packing = Options { packed_max_members: 1024, packed_max_bytes: 16 << 10, ..unpacked() };
    let options = Options { log_segment_bytes: 4 << 10, sync: SyncMode::Off, ..packing };
    let clock = Arc::new(ManualClock::at(1_000_000));
    let db = Db::open_on(fs.clone(), Path::new("/db"), options, clock).unwrap();
    for n in 0..10u8 {
        db.hset(b"h", &[(&[n], &[b'v'; 1000])]).unwrap();
    }
    fs.set_capacity(fs.bytes_in_use());
    let mut refused = 0;
    for n in 0..10_000u32 {
        refused += u32::from(db.set(&n.to_be_bytes(), &[b'v'; 500]).is_err());
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3, "the disk is full");
    assert_eq!(db.hdel(b"h", &[&[0], &[1]]).unwrap(), 2);
    assert_eq!(db.hlen(b"h").unwrap(), 8);
}

#[test]
fn a_command_that_fails_leaves_it_packed() {
    let db = Db::open(":memory:", Options { max_value_bytes: 100, ..Options::default() }).unwrap();
    db.hset(b"h", &[(b"f", b"v")]).unwrap();
    let long = [b'x'; 101];
    db.hset(b"h", &[(b"g", b"v"), (b"i", &long)]).unwrap_err();
    assert!(is_packed(&db, b"h"));
    assert_eq!(db.hlen(b"h").unwrap(), 1);
}

#[test]
fn members_that_would_be_too_long_by_now_can_still_have_rows() {
    let fs = Arc::new(MemFs::new());
    let db = on(&fs, 128, 1024);
    let long = [b'f'; 900];
    db.hset(b"h", &[(&long, b"v")]).unwrap();
    db.close().unwrap();
    let options = Options { max_key_bytes: 16, max_value_bytes: 100, ..Options::default() };
    let clock = Arc::new(ManualClock::at(1_000_000));
    let db = Db::open_on(fs, Path::new("/db"), options, clock).unwrap();
    for field in [b"a", b"b", b"c"] {
        db.hset(b"h", &[(field, &[b'v'; 90])]).unwrap();
    }
    assert!(!is_packed(&db, b"h"));
    assert_eq!(db.hget(b"h", &long).unwrap().unwrap(), "v");
    assert_eq!(db.hlen(b"h").unwrap(), 4);
}

#[test]
fn members_that_were_lost_stay_lost_and_seen_when_it_is_written_anew() {
    for left in [0..3, 0..2, 0..0] {
        let fs = Arc::new(MemFs::new());
        let db = on(&fs, 0, 1024);
        db.hset(b"h", &[(&[0], b"v"), (&[1], b"v"), (&[2], b"v")]).unwrap();
        db.write(&[b"h"], |tx| {
            let hash = tx.collection(b"h", Type::Hash)?.unwrap();
            for lost in left.end..3u8 {
                tx.remove_row(DATA, &row_key(hash.prefix(), &[lost]));
            }
            Ok(())
        })
        .unwrap();
        db.close().unwrap();
        let db = on(&fs, 128, 1024);
        db.rename(b"h", b"g").unwrap();
        assert_eq!(is_packed(&db, b"g"), left.end == 3);
        assert_eq!(db.check().unwrap().is_empty(), left.end == 3);
        assert_eq!(db.hlen(b"g").unwrap(), 3);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Put(u8, u8, usize),
    Remove(u8, u8),
    Copy(u8, u8),
    Delete(u8),
    /// With which packing.
    Reopen(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0u8..3;
    prop_oneof![
        8 => (key.clone(), 0u8..8, 0usize..30).prop_map(|(k, m, len)| Op::Put(k, m, len)),
        5 => (key.clone(), 0u8..8).prop_map(|(k, m)| Op::Remove(k, m)),
        1 => (key.clone(), key.clone()).prop_map(|(a, b)| Op::Copy(a, b)),
        1 => key.prop_map(Op::Delete),
        2 => (0usize..4).prop_map(Op::Reopen),
    ]
}

type Model = BTreeMap<u8, BTreeMap<u8, usize>>;

/// A hash with values of those lengths, and a sorted set with these as scores.
fn assert_is(db: &Db, model: &Model) {
    for key in 0..3u8 {
        let none = BTreeMap::new();
        let members = model.get(&key).unwrap_or(&none);
        let hash: Vec<_> = db.hgetall(&[b'h', key]).unwrap();
        let hash: Vec<_> = hash.iter().map(|(field, value)| (field[0], value.len())).collect();
        let expected: Vec<_> = members.iter().map(|(member, len)| (*member, *len)).collect();
        assert_eq!(hash, expected);
        let mut by_score: Vec<_> = members.iter().map(|(member, len)| (*len, *member)).collect();
        by_score.sort_unstable();
        let all = ZRange { by: By::Rank(0, -1), reverse: false, offset: 0, count: -1 };
        let all = db.zrange_withscores(&[b'z', key], &all);
        let zset: Vec<_> = all.unwrap().iter().map(|(m, score)| (*score as usize, m[0])).collect();
        assert_eq!(zset, by_score);
        for member in 0..8u8 {
            let score = db.zscore(&[b'z', key], &[member]).unwrap();
            assert_eq!(score, members.get(&member).map(|len| *len as f64));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn whatever_was_written_with_another_packing_is_read_and_changed(
        ops in prop::collection::vec(op(), 1..60)
    ) {
        const PACKINGS: [(u32, u32); 4] = [(128, 1024), (0, 1024), (3, 1024), (100, 40)];
        let (fs, mut model) = (Arc::new(MemFs::new()), Model::new());
        let mut db = on(&fs, 128, 1024);
        for op in ops {
            match op {
                Op::Put(key, member, len) => {
                    db.hset(&[b'h', key], &[(&[member], &vec![b'v'; len])]).unwrap();
                    db.zadd(&[b'z', key], &[(len as f64, &[member])], ZAdd::default()).unwrap();
                    model.entry(key).or_default().insert(member, len);
                }
                Op::Remove(key, member) => {
                    let was = model.get_mut(&key).and_then(|it| it.remove(&member)).is_some();
                    model.retain(|_, members| !members.is_empty());
                    let removed = db.hdel(&[b'h', key], &[&[member]]).unwrap();
                    prop_assert_eq!(removed, i64::from(was));
                    prop_assert_eq!(db.zrem(&[b'z', key], &[&[member]]).unwrap(), i64::from(was));
                }
                Op::Copy(from, to) if from != to => {
                    for kind in [b'h', b'z'] {
                        db.copy(&[kind, from], &[kind, to], true).unwrap();
                    }
                    if let Some(members) = model.get(&from).cloned() {
                        model.insert(to, members);
                    }
                }
                Op::Copy(..) => {}
                Op::Delete(key) => {
                    db.del(&[&[b'h', key], &[b'z', key]]).unwrap();
                    model.remove(&key);
                }
                Op::Reopen(packing) => {
                    db.close().unwrap();
                    let (members, bytes) = PACKINGS[packing];
                    db = on(&fs, members, bytes);
                }
            }
            assert_is(&db, &model);
        }
        prop_assert_eq!(db.check().unwrap(), Vec::<String>::new());
        db.compact().unwrap();
        assert_is(&db, &model);
        db.close().unwrap();
    }
}
