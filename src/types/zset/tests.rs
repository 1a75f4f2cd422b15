//! The traps of sorted sets, and that both rows of each member agree.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::rows::score_sub_key;
use super::span::Span;
use super::{Aggregate, By, Combine, End, ZAdd, ZRange};
use crate::encoding::keys::{after_prefix, split_row_key};
use crate::encoding::order::score_bytes;
use crate::engine::MemFs;
use crate::error::ErrorKind;
use crate::io::clock::ManualClock;
use crate::keyspace::trees::{DATA, SCORE};
use crate::options::Options;
use crate::txn::Db;
use crate::types::Type;
use crate::types::scores::stored_score;
use crate::types::testing::{both, unpacked};

const ALL: ZRange<'_> = ZRange { by: By::Rank(0, -1), reverse: false, offset: 0, count: -1 };
const PLAIN: ZAdd = ZAdd { nx: false, xx: false, gt: false, lt: false, ch: false };

pub(super) fn on(fs: &Arc<MemFs>, options: Options) -> Db {
    let clock = Arc::new(ManualClock::at(1_000_000));
    Db::open_on(fs.clone(), Path::new("/store"), options, clock).unwrap()
}

fn names(members: &[Bytes]) -> String {
    let texts: Vec<_> = members.iter().map(|m| String::from_utf8_lossy(m)).collect();
    texts.join(" ")
}

fn scored(members: &[(Bytes, f64)]) -> String {
    let text =
        |(member, score): &(Bytes, f64)| format!("{}={score}", String::from_utf8_lossy(member));
    members.iter().map(text).collect::<Vec<_>>().join(" ")
}

fn all(db: &Db, key: &[u8]) -> String {
    scored(&db.zrange_withscores(key, &ALL).unwrap())
}

/// Fails unless every member has its one score row, no score row is without its member, and the
/// record counts them.
pub(super) fn check_rows(db: &Db, key: &[u8]) {
    db.read(|tx| {
        let Some(zset) = tx.zset(key)? else { return Ok(()) };
        let mut by_member = Vec::new();
        let mut rows = zset.rows().walk(tx)?;
        while rows.advance()? {
            let score = stored_score(rows.value())?;
            by_member.push((score_bytes(score), zset.rows().sub_key(rows.key()).to_vec()));
        }
        by_member.sort();
        let mut by_score = Vec::new();
        let mut rows = zset.walk(tx, &Span::all(), false)?;
        while rows.advance()? {
            let (score, member) = rows.row()?;
            by_score.push((score_bytes(score), member.to_vec()));
        }
        assert_eq!(by_score, by_member);
        assert_eq!(zset.len(), by_member.len() as u64);
        Ok(())
    })
    .unwrap();
}

#[test]
fn members_lie_in_the_order_of_scores_and_then_of_bytes() {
    for db in both() {
        let members: [(f64, &[u8]); 6] =
            [(10.5, b"x"), (100.0, b"y"), (-3.0, b"n"), (2.0, b"b"), (2.0, b"a"), (-20.0, b"m")];
        assert_eq!(db.zadd(b"z", &members, PLAIN).unwrap(), 6);
        assert_eq!(all(&db, b"z"), "m=-20 n=-3 a=2 b=2 x=10.5 y=100");
        check_rows(&db, b"z");
    }
}

#[test]
fn a_member_named_twice_in_one_call_counts_once_and_has_one_score_row() {
    for db in both() {
        assert_eq!(db.zadd(b"z", &[(1.0, b"m"), (2.0, b"m"), (3.0, b"m")], PLAIN).unwrap(), 1);
        assert_eq!(all(&db, b"z"), "m=3");
        check_rows(&db, b"z");
        assert_eq!(db.zrem(b"z", &[b"m", b"m"]).unwrap(), 1);
        assert_eq!(db.kind(b"z").unwrap(), None);
    }
}

#[test]
fn both_zeros_are_one_score_and_each_keeps_its_sign() {
    for db in both() {
        db.zadd(b"z", &[(-0.0, b"m"), (0.0, b"n")], PLAIN).unwrap();
        assert_eq!(db.zcount(b"z", Included(0.0), Included(0.0)).unwrap(), 2);
        assert_eq!(db.zcount(b"z", Included(-0.0), Included(-0.0)).unwrap(), 2);
        assert_eq!(db.zcount(b"z", Excluded(-0.0), Included(1.0)).unwrap(), 0);
        assert_eq!(all(&db, b"z"), "m=-0 n=0");
        // An equal score is no change, and so the sign stays.
        let changed = db.zadd(b"z", &[(0.0, b"m"), (-0.0, b"n")], ZAdd { ch: true, ..PLAIN });
        assert_eq!(changed.unwrap(), 0);
        assert_eq!(all(&db, b"z"), "m=-0 n=0");
        assert!(db.zpopmin(b"z", 1).unwrap()[0].1.is_sign_negative());
        check_rows(&db, b"z");
    }
}

#[test]
fn options_of_zadd_decide_what_is_written() {
    for db in both() {
        let add = |score: f64, member: &[u8], options| db.zadd(b"z", &[(score, member)], options);
        let (nx, xx) = (ZAdd { nx: true, ..PLAIN }, ZAdd { xx: true, ch: true, ..PLAIN });
        let (gt, lt) = (ZAdd { gt: true, ch: true, ..PLAIN }, ZAdd { lt: true, ch: true, ..PLAIN });
        assert_eq!(add(1.0, b"m", xx).unwrap(), 0);
        assert_eq!(db.kind(b"z").unwrap(), None);
        assert_eq!(add(5.0, b"m", nx).unwrap(), 1);
        assert_eq!(add(6.0, b"m", nx).unwrap(), 0);
        assert_eq!(add(4.0, b"m", gt).unwrap(), 0);
        assert_eq!(add(5.0, b"m", gt).unwrap(), 0);
        assert_eq!(add(7.0, b"m", gt).unwrap(), 1);
        assert_eq!(add(8.0, b"m", lt).unwrap(), 0);
        assert_eq!(add(2.0, b"m", lt).unwrap(), 1);
        assert_eq!(add(3.0, b"m", xx).unwrap(), 1);
        assert_eq!(add(1.0, b"new", gt).unwrap(), 1);
        assert_eq!(all(&db, b"z"), "new=1 m=3");
        let both = ZAdd { nx: true, xx: true, ..PLAIN };
        assert_eq!(add(1.0, b"m", both).unwrap_err().kind(), ErrorKind::Syntax);
        assert_eq!(add(1.0, b"m", ZAdd { lt: true, ..gt }).unwrap_err().kind(), ErrorKind::Syntax);
        assert_eq!(add(1.0, b"m", ZAdd { nx: true, ..gt }).unwrap_err().kind(), ErrorKind::Syntax);
        check_rows(&db, b"z");
    }
}

#[test]
fn a_sum_that_is_no_number_is_refused_and_changes_nothing() {
    for db in both() {
        assert_eq!(db.zincrby(b"z", f64::INFINITY, b"m").unwrap(), f64::INFINITY);
        let error = db.zincrby(b"z", f64::NEG_INFINITY, b"m").unwrap_err();
        assert_eq!(error.message(), "ERR resulting score is not a number (NaN)");
        assert_eq!(all(&db, b"z"), "m=inf");
        assert!(db.zadd(b"z", &[(1.0, b"a"), (f64::NAN, b"b")], PLAIN).is_err());
        assert_eq!(all(&db, b"z"), "m=inf");
        assert_eq!(db.zadd_incr(b"z", 1.0, b"m", ZAdd { gt: true, ..PLAIN }).unwrap(), None);
        assert_eq!(db.zadd_incr(b"z", 1.5, b"n", PLAIN).unwrap(), Some(1.5));
        check_rows(&db, b"z");
    }
}

#[test]
fn ranges_by_score_know_whether_their_ends_belong_to_them() {
    for db in both() {
        db.zadd(b"z", &[(1.0, b"a"), (2.0, b"b"), (2.0, b"c"), (3.0, b"d")], PLAIN).unwrap();
        let by_score = |min, max| names(&db.zrangebyscore(b"z", min, max).unwrap());
        assert_eq!(by_score(Included(1.0), Included(2.0)), "a b c");
        assert_eq!(by_score(Excluded(1.0), Excluded(3.0)), "b c");
        assert_eq!(by_score(Excluded(2.0), Unbounded), "d");
        assert_eq!(by_score(Included(3.0), Included(1.0)), "");
        assert_eq!(by_score(Excluded(f64::NEG_INFINITY), Excluded(f64::INFINITY)), "a b c d");
        let reversed = db.zrevrangebyscore(b"z", Included(2.0), Unbounded).unwrap();
        assert_eq!(names(&reversed), "c b a");
        let range = ZRange::of(By::Score(Unbounded, Unbounded));
        let part = |range: ZRange<'_>| names(&db.zrange(b"z", &range).unwrap());
        assert_eq!(part(range.limited(1, 2)), "b c");
        assert_eq!(part(range.reversed().limited(1, -1)), "c b a");
        assert_eq!(part(range.limited(-1, 2)), "");
        assert_eq!(part(range.limited(9, 2)), "");
        assert!(db.zcount(b"none", Included(f64::NAN), Unbounded).is_err());
    }
}

#[test]
fn ranges_by_member_are_those_of_one_score() {
    for db in both() {
        let members: Vec<(f64, &[u8])> =
            vec![(0.0, b"a"), (0.0, b"a\0"), (0.0, b"ab"), (0.0, b"b"), (0.0, b"\xff")];
        db.zadd(b"z", &members, PLAIN).unwrap();
        let count = |min: Bound<&[u8]>, max: Bound<&[u8]>| db.zlexcount(b"z", min, max).unwrap();
        assert_eq!(count(Unbounded, Unbounded), 5);
        assert_eq!(count(Included(b"a"), Excluded(b"b")), 3);
        assert_eq!(count(Excluded(b"a"), Included(b"b")), 3);
        assert_eq!(count(Excluded(b"a"), Excluded(b"a")), 0);
        assert_eq!(count(Excluded(b"a"), Included(b"a\0")), 1);
        assert_eq!(count(Included(b"b"), Included(b"a")), 0);
        let backward = db.zrevrangebylex(b"z", Excluded(b"b"), Unbounded).unwrap();
        assert_eq!(names(&backward), "ab a\0 a");
        assert_eq!(db.zremrangebylex(b"z", Unbounded, Excluded(b"b")).unwrap(), 3);
        assert_eq!(names(&db.zrange(b"z", &ALL).unwrap()[..1]), "b");
        check_rows(&db, b"z");
    }
}

/// What the reference gives here, although it promises nothing.
#[test]
fn a_range_by_member_over_different_scores_goes_from_the_first_inside_to_the_first_outside() {
    for db in both() {
        db.zadd(b"z", &[(1.0, b"c"), (2.0, b"a"), (3.0, b"b")], PLAIN).unwrap();
        let lex = |min, max| names(&db.zrangebylex(b"z", min, max).unwrap());
        assert_eq!(lex(Included(b"b"), Included(b"z")), "c a b");
        assert_eq!(lex(Included(b"a"), Included(b"b")), "");
        let backward = db.zrevrangebylex(b"z", Included(b"c"), Included(b"a")).unwrap();
        assert_eq!(names(&backward), "b a c");
    }
}

#[test]
fn ranks_count_from_either_end() {
    for db in both() {
        let members: Vec<_> = (0..50).map(|n| (f64::from(n), format!("{n:02}"))).collect();
        let pairs: Vec<_> = members.iter().map(|(s, m)| (*s, m.as_bytes())).collect();
        db.zadd(b"z", &pairs, PLAIN).unwrap();
        for (rank, (_, member)) in (0i64..).zip(&pairs) {
            assert_eq!(db.zrank(b"z", member).unwrap(), Some(rank));
            assert_eq!(db.zrevrank(b"z", member).unwrap(), Some(49 - rank));
            let here = db.zrange(b"z", &ZRange::of(By::Rank(rank, rank))).unwrap();
            assert_eq!(here, [Bytes::copy_from_slice(member)]);
        }
        assert_eq!(names(&db.zrevrange(b"z", -2, -1).unwrap()), "01 00");
        assert_eq!(names(&db.zrange(b"z", &ZRange::of(By::Rank(-2, 99))).unwrap()), "48 49");
        assert_eq!(db.zrank(b"z", b"none").unwrap(), None);
        assert_eq!(db.zrank(b"none", b"00").unwrap(), None);
    }
}

#[test]
fn pops_take_from_their_end_and_the_last_one_takes_the_key() {
    for db in both() {
        db.zadd(b"z", &[(1.0, b"a"), (2.0, b"b"), (3.0, b"c"), (4.0, b"d")], PLAIN).unwrap();
        assert_eq!(scored(&db.zpopmin(b"z", 1).unwrap()), "a=1");
        assert_eq!(scored(&db.zpopmax(b"z", 2).unwrap()), "d=4 c=3");
        check_rows(&db, b"z");
        assert_eq!(db.zpopmin(b"z", 0).unwrap(), []);
        let (key, popped) = db.zmpop(&[b"none", b"z"], End::Max, 9).unwrap().unwrap();
        assert_eq!((&key[..], scored(&popped)), (&b"z"[..], "b=2".to_owned()));
        assert_eq!(db.kind(b"z").unwrap(), None);
        assert_eq!(db.zmpop(&[b"none", b"z"], End::Min, 1).unwrap(), None);
    }
}

#[test]
fn a_key_made_again_has_nothing_of_its_former_life() {
    for db in both() {
        db.zadd(b"z", &[(1.0, b"old"), (2.0, b"older")], PLAIN).unwrap();
        assert_eq!(db.zremrangebyrank(b"z", 0, -1).unwrap(), 2);
        db.zadd(b"z", &[(5.0, b"new")], PLAIN).unwrap();
        assert_eq!(all(&db, b"z"), "new=5");
        assert_eq!(db.zscore(b"z", b"old").unwrap(), None);
        check_rows(&db, b"z");
    }
}

#[test]
fn combinations_weigh_and_aggregate_as_the_reference_does() {
    for db in both() {
        db.zadd(b"a", &[(1.0, b"x"), (2.0, b"y")], PLAIN).unwrap();
        db.zadd(b"b", &[(10.0, b"y"), (20.0, b"z"), (30.0, b"w")], PLAIN).unwrap();
        let keys: [&[u8]; 2] = [b"a", b"b"];
        assert_eq!(scored(&db.zunion(&keys, Combine::default()).unwrap()), "x=1 y=12 z=20 w=30");
        let how = Combine { weights: &[3.0, -1.0], aggregate: Aggregate::Max };
        assert_eq!(scored(&db.zunion(&keys, how).unwrap()), "w=-30 z=-20 x=3 y=6");
        let least = Combine { aggregate: Aggregate::Min, ..Combine::default() };
        assert_eq!(scored(&db.zinter(&keys, least).unwrap()), "y=2");
        assert_eq!(scored(&db.zdiff(&keys).unwrap()), "x=1");
        assert_eq!(db.zintercard(&[b"a", b"a", b"a"], 0).unwrap(), 2);
        assert_eq!(db.zintercard(&[b"a", b"a", b"a"], 1).unwrap(), 1);
        assert_eq!(db.zinter(&[b"a", b"none"], Combine::default()).unwrap(), []);
        let wrong = Combine { weights: &[1.0], ..Combine::default() };
        assert_eq!(db.zunion(&keys, wrong).unwrap_err().kind(), ErrorKind::Syntax);
        assert_eq!(db.zunion(&[], Combine::default()).unwrap_err().kind(), ErrorKind::Syntax);
    }
}

#[test]
fn infinities_that_cancel_each_other_give_zero() {
    for db in both() {
        db.zadd(b"a", &[(f64::INFINITY, b"m")], PLAIN).unwrap();
        let cancel = Combine { weights: &[1.0, -1.0], ..Combine::default() };
        assert_eq!(scored(&db.zunion(&[b"a", b"a"], cancel).unwrap()), "m=0");
        let nothing = Combine { weights: &[0.0], ..Combine::default() };
        assert_eq!(scored(&db.zinter(&[b"a"], nothing).unwrap()), "m=0");
    }
}

#[test]
fn plain_sets_take_part_with_the_score_one() {
    for db in both() {
        db.zadd(b"z", &[(5.0, b"x"), (6.0, b"y")], PLAIN).unwrap();
        db.write(&[b"s"], |tx| {
            let mut set = tx.collection_or_new(b"s", Type::Set)?;
            set.put(tx, b"y", Bytes::new())?;
            set.put(tx, b"w", Bytes::new())?;
            tx.save(set)
        })
        .unwrap();
        let how = Combine { weights: &[1.0, 2.0], ..Combine::default() };
        assert_eq!(scored(&db.zunion(&[b"z", b"s"], how).unwrap()), "w=2 x=5 y=8");
        assert_eq!(scored(&db.zinter(&[b"z", b"s"], how).unwrap()), "y=8");
        assert_eq!(scored(&db.zdiff(&[b"z", b"s"]).unwrap()), "x=5");
        db.set(b"string", b"v").unwrap();
        let error = db.zunion(&[b"none", b"string"], Combine::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WrongType);
    }
}

#[test]
fn storing_replaces_what_was_there_and_nothing_stored_is_no_key() {
    for db in both() {
        db.zadd(b"z", &[(1.0, b"a"), (2.0, b"b"), (3.0, b"c")], PLAIN).unwrap();
        db.set(b"d", b"text").unwrap();
        assert_eq!(db.zrangestore(b"d", b"z", &ZRange::of(By::Rank(1, 2))).unwrap(), 2);
        assert_eq!(all(&db, b"d"), "b=2 c=3");
        // Onto one of the sources.
        assert_eq!(db.zunionstore(b"z", &[b"z", b"d"], Combine::default()).unwrap(), 3);
        assert_eq!(all(&db, b"z"), "a=1 b=4 c=6");
        check_rows(&db, b"z");
        assert_eq!(db.zdiffstore(b"d", &[b"z", b"z"]).unwrap(), 0);
        assert_eq!(db.kind(b"d").unwrap(), None);
        assert_eq!(db.zinterstore(b"z", &[b"z", b"none"], Combine::default()).unwrap(), 0);
        assert_eq!(db.kind(b"z").unwrap(), None);
    }
}

#[test]
fn a_key_of_another_type_is_left_alone() {
    for db in both() {
        db.set(b"s", b"v").unwrap();
        let kinds = [
            db.zadd(b"s", &[(1.0, b"m")], PLAIN).unwrap_err().kind(),
            db.zcard(b"s").unwrap_err().kind(),
            db.zrange(b"s", &ALL).unwrap_err().kind(),
            db.zpopmin(b"s", 0).unwrap_err().kind(),
            db.zrangestore(b"d", b"s", &ALL).unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::WrongType; 5]);
        assert_eq!(db.get(b"s").unwrap().as_deref(), Some(&b"v"[..]));
    }
}

#[test]
fn the_rows_of_a_member_are_where_the_format_says_and_are_there_after_reopen() {
    let fs = Arc::new(MemFs::untracked());
    let db = on(&fs, unpacked());
    db.zadd(b"z", &[(1.0, b"m"), (-0.0, b"zero")], PLAIN).unwrap();
    db.close().unwrap();
    let db = on(&fs, unpacked());
    db.read(|tx| {
        let zset = tx.zset(b"z")?.unwrap();
        let prefix = zset.rows().prefix().to_vec();
        let end = after_prefix(&prefix);
        let mut found = Vec::new();
        for tree in [DATA, SCORE] {
            let mut rows = tx.rows(tree, &prefix, end.as_deref(), false)?;
            while rows.advance()? {
                let sub_key = split_row_key(rows.key()).unwrap().sub_key.to_vec();
                found.push((sub_key, rows.value().to_vec()));
            }
        }
        let expected: [(&[u8], &[u8]); 4] = [
            (b"m", &[0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
            (b"zero", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
            (b"\x80\0\0\0\0\0\0\0zero", b""),
            (b"\xbf\xf0\0\0\0\0\0\0m", b""),
        ];
        let found: Vec<(&[u8], &[u8])> = found.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        assert_eq!(found, expected);
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_ends_of_a_large_set_are_known_however_much_was_taken_from_them() {
    let db = Db::open(":memory:", unpacked()).unwrap();
    // More than is written anew, and names longer than a bound in which only the end differs.
    let name = |n: u32| format!("{}{n:06}", "x".repeat(if n.is_multiple_of(2) { 100 } else { 3 }));
    for n in 0..6000 {
        db.zadd(b"z", &[(f64::from(n / 10), name(n).as_bytes())], PLAIN).unwrap();
    }
    let mut taken = [Vec::new(), Vec::new()];
    for round in 0..900 {
        for (end, taken) in [End::Min, End::Max].into_iter().zip(&mut taken) {
            let popped = match end {
                End::Min => db.zpopmin(b"z", 1).unwrap(),
                End::Max => db.zpopmax(b"z", 1).unwrap(),
            };
            let (member, score) = popped.into_iter().next().unwrap();
            taken.push((score, member));
        }
        if round < 8 {
            continue;
        }
        let row = |side: usize| {
            let (score, member) = &taken[side][round - 8];
            score_sub_key(*score, member)
        };
        db.read(|tx| {
            let zset = tx.zset(b"z")?.unwrap();
            let tombstones = &zset.rows().rows().unwrap().tombstones;
            // Bounds are cut off at 64 bytes; the scores alone tell that they keep up.
            assert!(tombstones.not_before(b"")[..8] >= row(0)[..8], "round {round}");
            assert!(tombstones.at_most(None).unwrap()[..8] <= row(1)[..8], "round {round}");
            Ok(())
        })
        .unwrap();
    }
    let sorted: Vec<_> = taken[0].iter().map(|(score, member)| (*score, member.clone())).collect();
    assert!(sorted.is_sorted_by(|a, b| a <= b), "popped in order");
    // What comes back beyond the bounds is found again.
    db.zadd(b"z", &[(-1.0, b"first"), (1e9, b"last")], PLAIN).unwrap();
    assert_eq!(scored(&db.zpopmin(b"z", 1).unwrap()), "first=-1");
    assert_eq!(scored(&db.zpopmax(b"z", 1).unwrap()), "last=1000000000");
    check_rows(&db, b"z");
    assert_eq!(db.check().unwrap(), [""; 0]);
}
