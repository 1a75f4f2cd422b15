//! Random commands on a sorted set and on a sorted list of (score, member), which must agree
//! after every one of them, also after the store was flushed, compacted or opened again, and
//! whether the members have rows, are in the record, or go from one to the other.

use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;

use super::tests::{check_rows, on};
use super::{By, Combine, End, Scored, ZAdd, ZRange};
use crate::engine::MemFs;
use crate::options::Options;
use crate::txn::Db;

const KEY: &[u8] = b"z\0key";
const OTHER: &[u8] = b"other";

/// Most members and most bytes in a record: none, all that come here, and some.
const PACKINGS: [(u32, u32); 3] = [(0, 1024), (128, 1024), (3, 64)];

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<(f64, u8)>, ZAdd),
    Increment(f64, u8, ZAdd),
    Remove(Vec<u8>),
    RemoveRanks(i64, i64),
    RemoveScores(Bound<f64>, Bound<f64>),
    Pop(End, u64),
    ByScore(Bound<f64>, Bound<f64>, bool, i64, i64),
    ByRank(i64, i64, bool),
    UnionWithOther,
    KeepRange(i64, i64),
    Delete,
    Flush,
    Compact,
    /// With which packing.
    Reopen(usize),
}

/// Few members and few scores, so that they meet; both zeros and both infinities among them.
fn score() -> impl Strategy<Value = f64> {
    let scores =
        vec![-0.0, 0.0, 1.0, -1.0, 2.5, 10.0, 100.0, -7.5, f64::INFINITY, f64::NEG_INFINITY];
    prop::sample::select(scores)
}

fn packing() -> impl Strategy<Value = usize> {
    0..PACKINGS.len()
}

fn packed(fs: &Arc<MemFs>, packing: usize) -> Db {
    let (packed_max_members, packed_max_bytes) = PACKINGS[packing];
    on(fs, Options { packed_max_members, packed_max_bytes, ..Options::default() })
}

fn bound() -> impl Strategy<Value = Bound<f64>> {
    prop_oneof![
        score().prop_map(Bound::Included),
        score().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}

fn options() -> impl Strategy<Value = ZAdd> {
    let none = ZAdd::default();
    let some = vec![
        none,
        none,
        none,
        ZAdd { nx: true, ..none },
        ZAdd { xx: true, ch: true, ..none },
        ZAdd { gt: true, ch: true, ..none },
        ZAdd { lt: true, ..none },
        ZAdd { xx: true, gt: true, ..none },
    ];
    prop::sample::select(some)
}

fn step() -> impl Strategy<Value = Step> {
    let member = 0..12u8;
    let at = || -8..8i64;
    let end = prop::sample::select(vec![End::Min, End::Max]);
    prop_oneof![
        8 => (prop::collection::vec((score(), member.clone()), 1..6), options())
            .prop_map(|(pairs, options)| Step::Add(pairs, options)),
        3 => (score(), member.clone(), options()).prop_map(|(s, m, o)| Step::Increment(s, m, o)),
        2 => prop::collection::vec(member, 1..4).prop_map(Step::Remove),
        1 => (at(), at()).prop_map(|(a, b)| Step::RemoveRanks(a, b)),
        1 => (bound(), bound()).prop_map(|(a, b)| Step::RemoveScores(a, b)),
        2 => (end, 0..4u64).prop_map(|(end, count)| Step::Pop(end, count)),
        4 => (bound(), bound(), any::<bool>(), -1..4i64, -1..4i64)
            .prop_map(|(a, b, reverse, offset, count)| Step::ByScore(a, b, reverse, offset, count)),
        3 => (at(), at(), any::<bool>()).prop_map(|(a, b, reverse)| Step::ByRank(a, b, reverse)),
        1 => Just(Step::UnionWithOther),
        1 => (at(), at()).prop_map(|(a, b)| Step::KeepRange(a, b)),
        1 => Just(Step::Delete),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => packing().prop_map(Step::Reopen),
    ]
}

fn name(member: u8) -> Vec<u8> {
    // Some are prefixes of others, and some hold the bytes that delimit.
    [&b"m\0\xff\x01"[..usize::from(member) % 5], &[member / 3]].concat()
}

/// Sorted by score, then by member.
#[derive(Clone, Debug, Default)]
struct Model(Vec<(f64, Vec<u8>)>);

impl Model {
    fn score(&self, member: &[u8]) -> Option<f64> {
        self.0.iter().find(|(_, m)| m == member).map(|(score, _)| *score)
    }

    fn put(&mut self, member: &[u8], score: f64) {
        self.0.retain(|(_, m)| m != member);
        self.0.push((score, member.to_vec()));
        self.0.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap().then_with(|| a.1.cmp(&b.1)));
    }

    /// Whether the member is new, changed, or untouched; `None` for NaN.
    fn add(&mut self, member: &[u8], score: f64, options: ZAdd) -> Option<(bool, bool)> {
        let old = self.score(member);
        let allowed = match old {
            None => !options.xx,
            Some(_) if options.nx => false,
            Some(old) => !(options.gt && score <= old || options.lt && score >= old),
        };
        if score.is_nan() {
            return if old.is_some() && options.nx { Some((false, false)) } else { None };
        }
        let changes = allowed && old != Some(score);
        if changes {
            self.put(member, score);
        }
        Some((changes && old.is_none(), changes && old.is_some()))
    }

    /// The positions of a range among the members.
    fn slice(&self, start: i64, stop: i64) -> std::ops::Range<usize> {
        let len = self.0.len() as i64;
        let clamp = |at: i64| if at < 0 { (at + len).max(-1) } else { at };
        let (start, stop) = (clamp(start).max(0), clamp(stop).min(len - 1));
        if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
    }

    fn within(score: f64, min: Bound<f64>, max: Bound<f64>) -> bool {
        let above = match min {
            Bound::Included(min) => score >= min,
            Bound::Excluded(min) => score > min,
            Bound::Unbounded => true,
        };
        let below = match max {
            Bound::Included(max) => score <= max,
            Bound::Excluded(max) => score < max,
            Bound::Unbounded => true,
        };
        above && below
    }
}

type Plain = Vec<(u64, Vec<u8>)>;

/// Bits, so that a zero's sign counts.
fn plain(members: Scored) -> Plain {
    members.into_iter().map(|(member, score)| (score.to_bits(), member.to_vec())).collect()
}

fn bits(members: &[(f64, Vec<u8>)]) -> Plain {
    members.iter().map(|(score, member)| (score.to_bits(), member.clone())).collect()
}

fn names(members: &[u8]) -> Vec<Vec<u8>> {
    members.iter().map(|member| name(*member)).collect()
}

fn write(db: &Db, model: &mut Model, step: &Step) {
    match step {
        Step::Add(pairs, options) => {
            let named: Vec<_> = pairs.iter().map(|(score, m)| (*score, name(*m))).collect();
            let pairs: Vec<_> = named.iter().map(|(score, m)| (*score, &m[..])).collect();
            let mut counted = 0;
            for (score, member) in &pairs {
                let (added, changed) = model.add(member, *score, *options).unwrap();
                counted += i64::from(added) + i64::from(changed && options.ch);
            }
            assert_eq!(db.zadd(KEY, &pairs, *options).unwrap(), counted);
        }
        Step::Increment(by, member, options) => {
            let member = name(*member);
            let score = model.score(&member).map_or(*by, |old| old + by);
            let before = model.score(&member);
            let answer = db.zadd_incr(KEY, *by, &member, *options);
            match model.add(&member, score, *options) {
                None => assert!(answer.is_err()),
                Some(_) if before.is_some() && before == Some(score) => {
                    let forbidden = options.nx || options.gt || options.lt;
                    assert_eq!(answer.unwrap(), (!forbidden).then_some(score));
                }
                Some((added, changed)) => {
                    assert_eq!(answer.unwrap(), (added || changed).then_some(score));
                }
            }
        }
        Step::Remove(members) => {
            let members = names(members);
            let before = model.0.len();
            model.0.retain(|(_, member)| !members.contains(member));
            let members: Vec<_> = members.iter().map(|m| &m[..]).collect();
            assert_eq!(db.zrem(KEY, &members).unwrap(), (before - model.0.len()) as i64);
        }
        Step::RemoveRanks(start, stop) => {
            let gone = model.0.drain(model.slice(*start, *stop)).count();
            assert_eq!(db.zremrangebyrank(KEY, *start, *stop).unwrap(), gone as i64);
        }
        Step::RemoveScores(min, max) => {
            let before = model.0.len();
            model.0.retain(|(score, _)| !Model::within(*score, *min, *max));
            let gone = (before - model.0.len()) as i64;
            assert_eq!(db.zremrangebyscore(KEY, *min, *max).unwrap(), gone);
        }
        Step::Pop(end, count) => {
            let count = model.0.len().min(*count as usize);
            let (expected, popped) = if *end == End::Min {
                let gone: Vec<_> = model.0.drain(..count).collect();
                (gone, db.zpopmin(KEY, count as u64))
            } else {
                let gone: Vec<_> = model.0.drain(model.0.len() - count..).rev().collect();
                (gone, db.zpopmax(KEY, count as u64))
            };
            assert_eq!(plain(popped.unwrap()), bits(&expected));
        }
        Step::UnionWithOther => {
            for (score, member) in [(3.0, name(1)), (-2.0, name(5))] {
                let score = model.score(&member).map_or(score, |old| old + score);
                model.put(&member, score);
            }
            let size = db.zunionstore(KEY, &[KEY, OTHER], Combine::default()).unwrap();
            assert_eq!(size, model.0.len() as i64);
        }
        Step::KeepRange(start, stop) => {
            model.0 = model.0[model.slice(*start, *stop)].to_vec();
            let range = ZRange::of(By::Rank(*start, *stop));
            assert_eq!(db.zrangestore(KEY, KEY, &range).unwrap(), model.0.len() as i64);
        }
        Step::Delete => {
            assert_eq!(db.del(&[KEY]).unwrap(), i64::from(!model.0.is_empty()));
            model.0.clear();
        }
        _ => {}
    }
}

fn read(db: &Db, model: &Model, step: &Step) {
    match step {
        Step::ByScore(min, max, reverse, offset, count) => {
            let inside = |(score, _): &&(f64, Vec<u8>)| Model::within(*score, *min, *max);
            let mut inside: Vec<_> = model.0.iter().filter(inside).cloned().collect();
            assert_eq!(db.zcount(KEY, *min, *max).unwrap(), inside.len() as i64);
            if *reverse {
                inside.reverse();
            }
            let skipped = usize::try_from(*offset).unwrap_or(usize::MAX);
            let most = usize::try_from(*count).unwrap_or(usize::MAX);
            let expected: Vec<_> = inside.into_iter().skip(skipped).take(most).collect();
            let range = ZRange::of(By::Score(*min, *max)).limited(*offset, *count);
            let range = ZRange { reverse: *reverse, ..range };
            assert_eq!(plain(db.zrange_withscores(KEY, &range).unwrap()), bits(&expected));
        }
        Step::ByRank(start, stop, reverse) => {
            let mut turned = model.clone();
            if *reverse {
                turned.0.reverse();
            }
            let expected = bits(&turned.0[turned.slice(*start, *stop)]);
            let range = ZRange { reverse: *reverse, ..ZRange::of(By::Rank(*start, *stop)) };
            assert_eq!(plain(db.zrange_withscores(KEY, &range).unwrap()), expected);
        }
        _ => {}
    }
}

fn compare(db: &Db, model: &Model) {
    check_rows(db, KEY);
    let all = ZRange::of(By::Rank(0, -1));
    assert_eq!(plain(db.zrange_withscores(KEY, &all).unwrap()), bits(&model.0));
    assert_eq!(db.zcard(KEY).unwrap(), model.0.len() as i64);
    assert_eq!(db.exists(&[KEY]).unwrap(), i64::from(!model.0.is_empty()));
    for (rank, (score, member)) in (0i64..).zip(&model.0) {
        assert_eq!(db.zrank(KEY, member).unwrap(), Some(rank));
        assert_eq!(db.zscore(KEY, member).unwrap().map(f64::to_bits), Some(score.to_bits()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_sorted_set_is_a_sorted_list_of_score_and_member(
        first_packing in packing(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let fs = Arc::new(MemFs::untracked());
        let mut db = packed(&fs, first_packing);
        let mut model = Model::default();
        let (first, second) = (name(1), name(5));
        db.zadd(OTHER, &[(3.0, &first), (-2.0, &second)], ZAdd::default()).unwrap();
        for step in &steps {
            match step {
                Step::Flush => db.flush().unwrap(),
                Step::Compact => db.compact().unwrap(),
                Step::Reopen(packing) => {
                    db.close().unwrap();
                    db = packed(&fs, *packing);
                }
                step => {
                    write(&db, &mut model, step);
                    read(&db, &model, step);
                }
            }
            compare(&db, &model);
        }
        prop_assert_eq!(db.check().unwrap(), Vec::<String>::new());
        db.close().unwrap();
    }
}
