//! Random commands on sorted sets, a hash and a set, and on models of them. Every position, count,
//! range and choice by position must agree after each step: on the store, on snapshots, inside
//! transactions that are committed, rolled back or in conflict, and after flushes, compactions and
//! reopens, in collections that are packed, counted, or from before the store began to count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use crate::encoding::meta::Type;
use crate::engine::MemFs;
use crate::error::ErrorKind;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;
use crate::types::{By, Combine, ZAdd, ZRange};

#[derive(Clone, Debug)]
enum Write {
    ZAdd(Vec<(i8, u8)>),
    /// Adds members, then fails.
    ZAddFails(Vec<(i8, u8)>),
    ZRem(Vec<u8>),
    ZRemRanks(i64, i64),
    ZPop(bool, u64),
    ZUnion,
    /// Adds members with the score that all of `l` have.
    LexAdd(Vec<u8>),
    /// Removes those from one member to before another.
    LexRem(u8, u8),
    HSet(Vec<u8>),
    HSetFails(Vec<u8>),
    HDel(Vec<u8>),
    SAdd(Vec<u8>),
    SRem(Vec<u8>),
    SPop(u64),
    SUnion,
    /// Renames each key and back: rows under a new version.
    Rename,
    Delete,
}

#[derive(Clone, Debug)]
enum Step {
    Write(Write),
    /// The commands inside, one by another client meanwhile, and whether to commit.
    Transact(Vec<Write>, Option<Write>, bool),
    /// Commands between MULTI and EXEC, or else in a script.
    Together(Vec<Write>, bool),
    Snapshot,
    Flush,
    Compact,
    /// With this many members in a record.
    Reopen(u32),
}

fn write() -> impl Strategy<Value = Write> {
    let members = || prop::collection::vec(0..40u8, 1..8);
    let scored = || prop::collection::vec((-3..4i8, 0..40u8), 1..12);
    prop_oneof![
        6 => scored().prop_map(Write::ZAdd),
        1 => scored().prop_map(Write::ZAddFails),
        2 => members().prop_map(Write::ZRem),
        1 => (-9..9i64, -9..9i64).prop_map(|(a, b)| Write::ZRemRanks(a, b)),
        1 => (any::<bool>(), 0..3u64).prop_map(|(max, count)| Write::ZPop(max, count)),
        1 => Just(Write::ZUnion),
        4 => members().prop_map(Write::LexAdd),
        1 => (0..40u8, 0..40u8).prop_map(|(a, b)| Write::LexRem(a, b)),
        4 => members().prop_map(Write::HSet),
        1 => members().prop_map(Write::HSetFails),
        2 => members().prop_map(Write::HDel),
        4 => members().prop_map(Write::SAdd),
        2 => members().prop_map(Write::SRem),
        1 => (0..4u64).prop_map(Write::SPop),
        1 => Just(Write::SUnion),
        1 => Just(Write::Rename),
        1 => Just(Write::Delete),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let several = || prop::collection::vec(write(), 1..6);
    prop_oneof![
        10 => write().prop_map(Step::Write),
        3 => (several(), any::<bool>()).prop_map(|(writes, exec)| Step::Together(writes, exec)),
        4 => (several(), prop::option::of(write()), any::<bool>())
            .prop_map(|(inside, outside, commit)| Step::Transact(inside, outside, commit)),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => prop::sample::select(vec![0, 5, 128]).prop_map(Step::Reopen),
    ]
}

fn name(member: u8) -> Vec<u8> {
    // Some are prefixes of others, and some hold the bytes that delimit.
    [&b"m\0\xff\x01"[..usize::from(member) % 5], &[member / 3]].concat()
}

fn names(members: &[u8]) -> Vec<Vec<u8>> {
    members.iter().map(|member| name(*member)).collect()
}

fn refs(names: &[Vec<u8>]) -> Vec<&[u8]> {
    names.iter().map(Vec::as_slice).collect()
}

/// Longer than a value may be.
const TOO_LONG: [u8; 100] = [0; 100];

fn open(fs: &Arc<MemFs>, packed_max_members: u32, counted_from: u64) -> Db {
    let options = Options { packed_max_members, max_value_bytes: 64, ..Options::default() };
    let clock = Arc::new(ManualClock::at(1_000_000));
    let db = Db::open_on(fs.clone(), Path::new("/store"), options, clock).unwrap();
    db.read(|tx| {
        tx.store().spills().spill_at(200);
        tx.store().count_from(counted_from);
        Ok(())
    })
    .unwrap();
    db
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    zset: BTreeMap<Vec<u8>, f64>,
    /// The members of a sorted set in which all have one score.
    lex: BTreeSet<Vec<u8>>,
    hash: BTreeSet<Vec<u8>>,
    set: BTreeSet<Vec<u8>>,
}

impl Model {
    /// Scores and members in order.
    fn ranked(&self) -> Vec<(f64, Vec<u8>)> {
        let mut all: Vec<_> = self.zset.iter().map(|(m, score)| (*score, m.clone())).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        all
    }

    fn positions(&self, start: i64, stop: i64) -> std::ops::Range<usize> {
        let len = self.zset.len() as i64;
        let clamp = |at: i64| if at < 0 { (at + len).max(-1) } else { at };
        let (start, stop) = (clamp(start).max(0), clamp(stop).min(len - 1));
        if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
    }

    /// What another client changed of `base`, but for what this one changed of it.
    fn joined(self, base: &Self, other: Self) -> Self {
        Self {
            zset: if self.zset == base.zset { other.zset } else { self.zset },
            lex: if self.lex == base.lex { other.lex } else { self.lex },
            hash: if self.hash == base.hash { other.hash } else { self.hash },
            set: if self.set == base.set { other.set } else { self.set },
        }
    }
}

fn run(db: &Db, model: &mut Model, write: &Write) {
    match write {
        Write::ZAdd(members) | Write::ZAddFails(members) => {
            let mut named: Vec<_> =
                members.iter().map(|(score, m)| (f64::from(*score), name(*m))).collect();
            if matches!(write, Write::ZAddFails(_)) {
                named.push((1.0, TOO_LONG.to_vec()));
            } else {
                model.zset.extend(named.iter().map(|(score, m)| (m.clone(), *score)));
            }
            let pairs: Vec<_> = named.iter().map(|(score, m)| (*score, &m[..])).collect();
            let result = db.zadd(b"z", &pairs, ZAdd::default());
            assert_eq!(result.is_err(), matches!(write, Write::ZAddFails(_)), "{result:?}");
        }
        Write::ZRem(members) => {
            let names = names(members);
            model.zset.retain(|member, _| !names.contains(member));
            db.zrem(b"z", &refs(&names)).unwrap();
        }
        Write::ZRemRanks(start, stop) => {
            let gone = model.ranked()[model.positions(*start, *stop)].to_vec();
            model.zset.retain(|member, _| !gone.iter().any(|(_, it)| it == member));
            let removed = db.zremrangebyrank(b"z", *start, *stop).unwrap();
            assert_eq!(removed, gone.len() as i64);
        }
        Write::ZPop(max, count) => {
            let popped = if *max { db.zpopmax(b"z", *count) } else { db.zpopmin(b"z", *count) };
            for (member, score) in popped.unwrap() {
                assert_eq!(model.zset.remove(&member[..]), Some(score));
            }
        }
        Write::ZUnion => {
            model.zset.values_mut().for_each(|score| *score *= 2.0);
            db.zunionstore(b"z", &[b"z", b"z"], Combine::default()).unwrap();
        }
        Write::LexAdd(members) => {
            let names = names(members);
            let pairs: Vec<_> = names.iter().map(|member| (1.0, &member[..])).collect();
            db.zadd(b"l", &pairs, ZAdd::default()).unwrap();
            model.lex.extend(names);
        }
        Write::LexRem(first, end) => {
            let (first, end) = (name(*first), name(*end));
            let before = model.lex.len();
            model.lex.retain(|member| *member < first || *member >= end);
            let bounds = (Bound::Included(&first[..]), Bound::Excluded(&end[..]));
            let removed = db.zremrangebylex(b"l", bounds.0, bounds.1).unwrap();
            assert_eq!(removed, (before - model.lex.len()) as i64);
        }
        Write::HSet(members) | Write::HSetFails(members) => {
            let names = names(members);
            let mut pairs: Vec<_> = names.iter().map(|m| (&m[..], &m[..])).collect();
            if matches!(write, Write::HSetFails(_)) {
                pairs.push((b"long", &TOO_LONG));
            } else {
                model.hash.extend(names.iter().cloned());
            }
            let result = db.hset(b"h", &pairs);
            assert_eq!(result.is_err(), matches!(write, Write::HSetFails(_)), "{result:?}");
        }
        Write::HDel(members) => {
            let names = names(members);
            model.hash.retain(|member| !names.contains(member));
            db.hdel(b"h", &refs(&names)).unwrap();
        }
        Write::SAdd(members) => {
            let names = names(members);
            model.set.extend(names.iter().cloned());
            db.sadd(b"s", &refs(&names)).unwrap();
        }
        Write::SRem(members) => {
            let names = names(members);
            model.set.retain(|member| !names.contains(member));
            db.srem(b"s", &refs(&names)).unwrap();
        }
        Write::SPop(count) => {
            for member in db.spop_count(b"s", *count).unwrap() {
                assert!(model.set.remove(&member[..]), "{member:?} is popped twice");
            }
        }
        Write::SUnion => {
            db.sunionstore(b"s", &[b"s", b"s"]).unwrap();
        }
        Write::Rename => {
            for key in [&b"z"[..], b"l", b"h", b"s"] {
                if db.exists(&[key]).unwrap() == 1 {
                    db.rename(key, b"away").unwrap();
                    db.rename(b"away", key).unwrap();
                }
            }
        }
        Write::Delete => {
            db.del(&[b"z", b"l", b"h", b"s"]).unwrap();
            *model = Model::default();
        }
    }
}

/// Whether every position is as in the model.
fn compare(db: &Db, model: &Model) {
    let ranked = model.ranked();
    let len = ranked.len() as i64;
    assert_eq!(db.zcard(b"z").unwrap(), len);
    for (rank, (score, member)) in (0i64..).zip(&ranked) {
        assert_eq!(db.zrank(b"z", member).unwrap(), Some(rank));
        assert_eq!(db.zrevrank(b"z", member).unwrap(), Some(len - 1 - rank));
        let (low, high) = (Bound::Excluded(*score), Bound::Included(*score));
        let above = ranked.iter().filter(|(other, _)| other > score).count() as i64;
        assert_eq!(db.zcount(b"z", low, Bound::Unbounded).unwrap(), above);
        assert_eq!(db.zcount(b"z", Bound::Unbounded, high).unwrap(), len - above);
    }
    for reverse in [false, true] {
        let mut turned: Vec<&[u8]> = ranked.iter().map(|(_, member)| &member[..]).collect();
        if reverse {
            turned.reverse();
        }
        for first in 0..turned.len() {
            let last = turned.len().min(first + 3);
            let by_rank = By::Rank(first as i64, last as i64 - 1);
            let by_score = By::Score(Bound::Unbounded, Bound::Included(f64::INFINITY));
            let by_score = ZRange::of(by_score).limited(first as i64, 3);
            for range in [ZRange::of(by_rank), by_score] {
                let range = ZRange { reverse, ..range };
                assert_eq!(db.zrange(b"z", &range).unwrap(), turned[first..last], "{range:?}");
            }
        }
    }
    compare_by_member(db, b"z", &ranked);
    let lex: Vec<_> = model.lex.iter().map(|member| (1.0, member.clone())).collect();
    compare_by_member(db, b"l", &lex);
    compare_members(db, b"z", Type::ZSet, model.zset.keys());
    compare_members(db, b"l", Type::ZSet, model.lex.iter());
    compare_members(db, b"h", Type::Hash, model.hash.iter());
    compare_members(db, b"s", Type::Set, model.set.iter());
}

/// The members within bounds: where scores differ, from the first one inside to the first outside.
fn by_member<'m>(
    ranked: &'m [(f64, Vec<u8>)],
    (min, max): (Bound<&[u8]>, Bound<&[u8]>),
    reverse: bool,
) -> Vec<&'m [u8]> {
    let within = |bounds: (Bound<&[u8]>, Bound<&[u8]>), member: &[u8]| {
        RangeBounds::<[u8]>::contains(&bounds, member)
    };
    let above = |member: &[u8]| within((min, Bound::Unbounded), member);
    let below = |member: &[u8]| within((Bound::Unbounded, max), member);
    let (Some(first), Some(last)) = (ranked.first(), ranked.last()) else { return Vec::new() };
    let mut members: Vec<&[u8]> = ranked.iter().map(|(_, member)| &member[..]).collect();
    if reverse {
        members.reverse();
    }
    if first.0 == last.0 {
        members.retain(|member| above(member) && below(member));
        return members;
    }
    if !above(&last.1) || !below(&first.1) {
        return Vec::new();
    }
    let enters = |member: &[u8]| if reverse { below(member) } else { above(member) };
    let stays = |member: &[u8]| if reverse { above(member) } else { below(member) };
    members.into_iter().skip_while(|it| !enters(it)).take_while(|it| stays(it)).collect()
}

/// Whether counts and ranges by member are as in the model.
fn compare_by_member(db: &Db, key: &[u8], ranked: &[(f64, Vec<u8>)]) {
    for (nth, (_, member)) in ranked.iter().enumerate().step_by(3) {
        let other = &ranked[(7 * nth + 3) % ranked.len()].1;
        for (min, max) in [
            (Bound::Included(&member[..]), Bound::Unbounded),
            (Bound::Unbounded, Bound::Excluded(&member[..])),
            (Bound::Excluded(&member[..]), Bound::Included(&other[..])),
        ] {
            let counted = by_member(ranked, (min, max), false).len() as i64;
            assert_eq!(db.zlexcount(key, min, max).unwrap(), counted, "{min:?} {max:?}");
            for reverse in [false, true] {
                let inside = by_member(ranked, (min, max), reverse);
                let skipped = inside.len() * 2 / 3;
                let range = ZRange::of(By::Lex(min, max)).limited(skipped as i64, 3);
                let range = ZRange { reverse, ..range };
                let end = inside.len().min(skipped + 3);
                assert_eq!(db.zrange(key, &range).unwrap(), inside[skipped..end], "{range:?}");
            }
        }
    }
}

fn compare_members<'m>(
    db: &Db,
    key: &[u8],
    kind: Type,
    members: impl ExactSizeIterator<Item = &'m Vec<u8>>,
) {
    let len = members.len() as u64;
    db.read(|tx| {
        let Some(collection) = tx.collection(key, kind)? else {
            assert_eq!(len, 0);
            return Ok(());
        };
        assert_eq!(collection.len(), len);
        if collection.is_counted(tx) {
            for (nth, member) in (0..).zip(members) {
                assert_eq!(collection.select_member(tx, nth)?.as_deref(), Some(&member[..]));
            }
            assert_eq!(collection.select_member(tx, len)?, None);
        }
        Ok(())
    })
    .unwrap();
    let sample = |count| match kind {
        Type::Hash => db.hrandfield_count(key, count).unwrap().into_iter().collect(),
        Type::Set => db.srandmember_count(key, count).unwrap().into_iter().collect(),
        _ => {
            let drawn = db.zrandmember_count(key, count).unwrap();
            drawn.into_iter().map(|(member, _)| member).collect::<BTreeSet<_>>()
        }
    };
    assert_eq!(sample(len as i64 / 2).len() as u64, len / 2);
}

/// The words of a command whose effect is known before it runs.
fn words(write: &Write) -> Option<Vec<Vec<u8>>> {
    let plain = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
    let named = |name: &[u8], key: &[u8], members: &[u8]| {
        let names = names(members);
        [plain(&[name, key]), names].concat()
    };
    Some(match write {
        Write::ZAdd(members) | Write::ZAddFails(members) => {
            let mut words = plain(&[b"ZADD", b"z"]);
            for (score, member) in members {
                words.extend([score.to_string().into_bytes(), name(*member)]);
            }
            if matches!(write, Write::ZAddFails(_)) {
                words.extend([b"1".to_vec(), TOO_LONG.to_vec()]);
            }
            words
        }
        Write::HSet(members) | Write::HSetFails(members) => {
            let mut words = plain(&[b"HSET", b"h"]);
            members.iter().for_each(|member| words.extend([name(*member), name(*member)]));
            if matches!(write, Write::HSetFails(_)) {
                words.extend([b"long".to_vec(), TOO_LONG.to_vec()]);
            }
            words
        }
        Write::ZRem(members) => named(b"ZREM", b"z", members),
        Write::HDel(members) => named(b"HDEL", b"h", members),
        Write::SAdd(members) => named(b"SADD", b"s", members),
        Write::SRem(members) => named(b"SREM", b"s", members),
        Write::ZRemRanks(start, stop) => {
            let (start, stop) = (start.to_string(), stop.to_string());
            plain(&[b"ZREMRANGEBYRANK", b"z", start.as_bytes(), stop.as_bytes()])
        }
        Write::ZUnion => plain(&[b"ZUNIONSTORE", b"z", b"2", b"z", b"z"]),
        Write::SUnion => plain(&[b"SUNIONSTORE", b"s", b"s", b"s"]),
        Write::LexAdd(members) => {
            let mut words = plain(&[b"ZADD", b"l"]);
            members.iter().for_each(|member| words.extend([b"1".to_vec(), name(*member)]));
            words
        }
        Write::LexRem(first, end) => {
            let (first, end) =
                ([b"[", &name(*first)[..]].concat(), [b"(", &name(*end)[..]].concat());
            plain(&[b"ZREMRANGEBYLEX", b"l", &first, &end])
        }
        Write::Delete => plain(&[b"DEL", b"z", b"l", b"h", b"s"]),
        Write::ZPop(..) | Write::SPop(_) | Write::Rename => return None,
    })
}

/// Runs the commands given as their number of words and these words; errors are not its own.
const SCRIPT: &[u8] = b"local at = 1
    while at <= #ARGV do
        local count, words = tonumber(ARGV[at]), {}
        for i = 1, count do words[i] = ARGV[at + i] end
        redis.pcall(unpack(words))
        at = at + count + 1
    end";

/// Runs commands in one EXEC or in one script. One that fails leaves no trace.
fn together(db: &Db, model: &mut Model, writes: &[Write], exec: bool) {
    // On a store of its own the commands change the model one by one.
    let apart =
        Db::open(":memory:", Options { max_value_bytes: 64, ..Options::default() }).unwrap();
    let members: Vec<_> = model.zset.iter().map(|(member, score)| (*score, &member[..])).collect();
    let alike: Vec<_> = model.lex.iter().map(|member| (1.0, &member[..])).collect();
    let fields: Vec<_> = model.hash.iter().map(|member| (&member[..], &member[..])).collect();
    let set: Vec<_> = model.set.iter().map(Vec::as_slice).collect();
    if !members.is_empty() {
        apart.zadd(b"z", &members, ZAdd::default()).unwrap();
    }
    if !alike.is_empty() {
        apart.zadd(b"l", &alike, ZAdd::default()).unwrap();
    }
    if !fields.is_empty() {
        apart.hset(b"h", &fields).unwrap();
    }
    if !set.is_empty() {
        apart.sadd(b"s", &set).unwrap();
    }
    let mut commands = Vec::new();
    for write in writes {
        if let Some(words) = words(write) {
            run(&apart, model, write);
            commands.push(words);
        }
    }
    let mut session = db.session();
    let mut call = |words: &[Vec<u8>]| session.command(&refs(words)).unwrap();
    if exec || cfg!(not(feature = "scripting")) {
        call(&[b"MULTI".to_vec()]);
        commands.iter().for_each(|words| drop(call(words)));
        call(&[b"EXEC".to_vec()]);
    } else {
        let mut words: Vec<Vec<u8>> =
            [&b"EVAL"[..], SCRIPT, b"4", b"z", b"l", b"h", b"s"].map(<[u8]>::to_vec).to_vec();
        for command in commands {
            words.push(command.len().to_string().into_bytes());
            words.extend(command);
        }
        assert_eq!(format!("{:?}", call(&words)), "Nil");
    }
}

/// Runs commands in a transaction beside another client's.
fn transact(db: &Db, model: &mut Model, inside: &[Write], outside: Option<&Write>, commit: bool) {
    let base = model.clone();
    let mut inner = model.clone();
    let transaction = db.begin().unwrap();
    for write in inside {
        run(&transaction, &mut inner, write);
        compare(&transaction, &inner);
    }
    if let Some(outside) = outside {
        run(db, model, outside);
    }
    if !commit {
        return transaction.rollback().unwrap();
    }
    match transaction.commit() {
        Ok(()) => *model = inner.joined(&base, model.clone()),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}"),
    }
}

/// Whether the sorted set, hash or set at `key` is counted.
fn is_counted(db: &Db, key: &[u8], kind: Type) -> bool {
    db.read(|tx| Ok(tx.collection(key, kind)?.unwrap().is_counted(tx))).unwrap()
}

/// A copy of a store of the repository.
fn golden(name: &str) -> tempfile::TempDir {
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata/stores");
    let scratch = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(stores.join(name)).unwrap().map(Result::unwrap) {
        std::fs::copy(file.path(), scratch.path().join(file.file_name())).unwrap();
    }
    scratch
}

/// The ranks of all members of `large:zset` of a golden store.
fn golden_ranks(db: &Db) -> Vec<Option<i64>> {
    let members = db.zrange(b"large:zset", &ZRange::of(By::Rank(0, -1))).unwrap();
    members.iter().map(|member| db.zrank(b"large:zset", member).unwrap()).collect()
}

const GOLDEN_KEYS: [(&[u8], Type); 3] =
    [(b"large:zset", Type::ZSet), (b"large:hash", Type::Hash), (b"large:set", Type::Set)];

#[test]
fn collections_of_an_older_store_are_counted_once_they_are_rewritten() {
    let scratch = golden("format-2-closed");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let expected: Vec<_> = (0..400).map(Some).collect();
    assert_eq!(golden_ranks(&db), expected);
    // Writes to an old collection do not make it counted.
    db.zadd(b"large:zset", &[(1.0, b"new")], ZAdd::default()).unwrap();
    db.zrem(b"large:zset", &[b"new"]).unwrap();
    for (key, kind) in GOLDEN_KEYS {
        assert!(!is_counted(&db, key, kind));
        db.rename(key, b"renamed").unwrap();
        db.rename(b"renamed", key).unwrap();
        assert!(is_counted(&db, key, kind));
    }
    db.close().unwrap();
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    assert!(GOLDEN_KEYS.iter().all(|(key, kind)| is_counted(&db, key, *kind)));
    assert_eq!(golden_ranks(&db), expected);
    assert_eq!(db.check().unwrap(), [""; 0]);
}

#[test]
fn a_compaction_rewrites_what_an_earlier_version_has_written() {
    for name in ["format-1-killed", "format-1-closed", "format-2-killed", "format-2-closed"] {
        let scratch = golden(name);
        let db = Db::open(scratch.path(), Options::default()).unwrap();
        let expected: Vec<_> = (0..400).map(Some).collect();
        assert_eq!(golden_ranks(&db), expected);
        assert!(GOLDEN_KEYS.iter().all(|(key, kind)| !is_counted(&db, key, *kind)));
        // A transaction that has read an old collection must not write rows of its version.
        let transaction = db.begin().unwrap();
        transaction.hset(b"large:hash", &[(b"field", b"of a transaction")]).unwrap();
        let all = || (db.hgetall(b"large:hash").unwrap(), db.smembers(b"large:set").unwrap());
        let before = all();
        db.compact().unwrap();
        assert!(GOLDEN_KEYS.iter().all(|(key, kind)| is_counted(&db, key, *kind)));
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!((golden_ranks(&db), all()), (expected.clone(), before));
        // Nothing is left to do.
        assert_eq!(db.read(|tx| tx.store().rewrite_older()).unwrap(), 0);
        assert_eq!(db.check().unwrap(), [""; 0]);
        db.close().unwrap();
        let db = Db::open(scratch.path(), Options::default()).unwrap();
        assert!(GOLDEN_KEYS.iter().all(|(key, kind)| is_counted(&db, key, *kind)));
        assert_eq!(golden_ranks(&db), expected);
    }
}

/// A large string of an earlier version is whole in its record, and every question reads all of it.
#[test]
fn a_compaction_puts_large_strings_of_an_earlier_version_into_chunks() {
    let scratch = golden("format-2-whole-strings");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let is_chunked = |key: &[u8]| {
        db.read(|tx| Ok(crate::encoding::chunked::is_chunked(&tx.record(key)?.unwrap().bytes)))
    };
    let keys: [(&[u8], bool); 4] = [
        (b"large:65536", false),
        (b"large:65537", true),
        (b"large:200000", true),
        (b"large:bits", true),
    ];
    let seen = |key: &[u8]| (db.get(key).unwrap(), db.pexpiretime(key).unwrap());
    let before: Vec<_> = keys.iter().map(|(key, _)| seen(key)).collect();
    assert!(keys.iter().all(|(key, _)| !is_chunked(key).unwrap()));
    db.compact().unwrap();
    for ((key, large), before) in keys.iter().zip(before) {
        assert_eq!(is_chunked(key).unwrap(), *large);
        assert!(seen(key) == before);
    }
    assert_eq!(db.check().unwrap(), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 100 }))]
    #[test]
    fn every_position_is_that_of_the_model(
        packed_members in prop::sample::select(vec![0, 0, 0, 5]),
        // How many steps are made before the store begins to count.
        uncounted in prop::sample::select(vec![0, 0, 10]),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let fs = Arc::new(MemFs::untracked());
        let mut counted_from = if uncounted > 0 { u64::MAX } else { 0 };
        let mut db = open(&fs, packed_members, counted_from);
        let (mut model, mut snapshots) = (Model::default(), Vec::<(Db, Model)>::new());
        for (n, step) in steps.iter().enumerate() {
            if n == uncounted {
                db.read(|tx| {
                    counted_from = tx.store().engine().reserve_number().number();
                    tx.store().count_from(counted_from);
                    Ok(())
                }).unwrap();
            }
            match step {
                Step::Write(write) => run(&db, &mut model, write),
                Step::Transact(inside, outside, commit) => {
                    transact(&db, &mut model, inside, outside.as_ref(), *commit);
                }
                Step::Together(writes, exec) => together(&db, &mut model, writes, *exec),
                Step::Snapshot => snapshots.push((db.snapshot().unwrap(), model.clone())),
                Step::Flush => db.flush().unwrap(),
                Step::Compact => db.compact().unwrap(),
                Step::Reopen(packed) => {
                    snapshots.clear();
                    db.close().unwrap();
                    db = open(&fs, *packed, counted_from);
                }
            }
            compare(&db, &model);
            snapshots.iter().for_each(|(then, model)| compare(then, model));
            prop_assert_eq!(db.check().unwrap(), Vec::<String>::new());
        }
        snapshots.clear();
        db.close().unwrap();
    }
}
