//! Random commands of strings and bits on a store whose strings of more than a few bytes are in
//! chunks, and on a `Vec<u8>` for each key: live, in transactions and on snapshots, across flushes,
//! compactions, and reopens with other chunks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::Config;

use crate::engine::MemFs;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;
use crate::types::{
    BitOp, BitRange, BitSearch, BitUnit, BitfieldOp, Condition, ExpireIf, FieldAction, FieldType,
    GetExpiry, KeyRange, Overflow, SetExpiry, SetOptions,
};

const KEYS: [&[u8]; 3] = [b"a", b"b\0", b"c"];
/// The longest string kept whole, and the size of a chunk.
const LAYOUTS: [(u64, u64); 4] = [(16, 16), (40, 16), (20, 64), (64 << 10, 16 << 10)];

#[derive(Clone, Debug)]
enum Op {
    Set(usize, Vec<u8>),
    SetAndGet(usize, Vec<u8>),
    GetAndDelete(usize),
    GetAndPersist(usize),
    Append(usize, Vec<u8>),
    SetRange(usize, usize, Vec<u8>),
    SetBit(usize, u64, bool),
    Increment(usize, u64, i64),
    Combine(BitOp, usize, Vec<usize>),
    Copy(usize, usize),
    Rename(usize, usize),
    Delete(usize),
    Expire(usize),
    Count(usize, i64, i64, bool),
    Position(usize, bool, i64, Option<i64>, bool),
    Range(usize, i64, i64),
}

#[derive(Clone, Debug)]
enum Step {
    One(Op),
    Together(Vec<Op>, bool),
    Snapshot,
    Flush,
    Compact,
    Reopen(usize),
}

/// Zeros are frequent, so that there are holes, rows of zeros, and ends of zeros.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = || prop_oneof![3 => Just(0u8), 1 => Just(0xff), 1 => any::<u8>()];
    prop_oneof![
        2 => prop::collection::vec(byte(), 0..12),
        2 => prop::collection::vec(byte(), 10..90),
        1 => (16usize..130).prop_map(|len| vec![0; len]),
        1 => (16usize..130).prop_map(|len| vec![0xff; len]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS.len();
    let at = || prop_oneof![0usize..40, 0usize..200];
    let index = || prop_oneof![-40i64..40, -210i64..210];
    let how = || prop_oneof![Just(BitOp::And), Just(BitOp::Or), Just(BitOp::Xor), Just(BitOp::Not)];
    let sources = prop::collection::vec(key(), 1..4);
    let end = proptest::option::of(index());
    prop_oneof![
        3 => (key(), bytes()).prop_map(|(k, v)| Op::Set(k, v)),
        1 => (key(), bytes()).prop_map(|(k, v)| Op::SetAndGet(k, v)),
        1 => key().prop_map(Op::GetAndDelete),
        1 => key().prop_map(Op::GetAndPersist),
        4 => (key(), bytes()).prop_map(|(k, v)| Op::Append(k, v)),
        4 => (key(), at(), bytes()).prop_map(|(k, at, v)| Op::SetRange(k, at, v)),
        4 => (key(), at(), 0..8u64, any::<bool>())
            .prop_map(|(k, at, bit, on)| Op::SetBit(k, at as u64 * 8 + bit, on)),
        3 => (key(), at(), 0..8u64, any::<i64>())
            .prop_map(|(k, at, bit, n)| Op::Increment(k, at as u64 * 8 + bit, n)),
        3 => (how(), key(), sources).prop_map(|(how, to, from)| Op::Combine(how, to, from)),
        2 => (key(), key()).prop_map(|(a, b)| Op::Copy(a, b)),
        1 => (key(), key()).prop_map(|(a, b)| Op::Rename(a, b)),
        1 => key().prop_map(Op::Delete),
        1 => key().prop_map(Op::Expire),
        2 => (key(), index(), index(), any::<bool>())
            .prop_map(|(k, a, b, bits)| Op::Count(k, a, b, bits)),
        3 => (key(), any::<bool>(), index(), end, any::<bool>())
            .prop_map(|(k, bit, a, b, bits)| Op::Position(k, bit, a, b, bits)),
        3 => (key(), index(), index()).prop_map(|(k, a, b)| Op::Range(k, a, b)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => op().prop_map(Step::One),
        2 => (prop::collection::vec(op(), 1..6), any::<bool>())
            .prop_map(|(ops, commit)| Step::Together(ops, commit)),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => (0..LAYOUTS.len()).prop_map(Step::Reopen),
    ]
}

type Model = BTreeMap<usize, Vec<u8>>;

fn bit_of(value: &[u8], at: usize) -> bool {
    value.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1)
}

/// The items of `len` that a range names, one by one, as Redis documents it.
fn named(len: usize, start: i64, end: i64) -> Vec<usize> {
    let len = len as i64;
    let at = |index: i64| if index < 0 { (index + len).max(0) } else { index };
    (0..len).filter(|i| (at(start)..=at(end)).contains(i)).map(|i| i as usize).collect()
}

fn written(value: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if value.len() < at + bytes.len() {
        value.resize(at + bytes.len(), 0);
    }
    value[at..at + bytes.len()].copy_from_slice(bytes);
}

fn combined(how: BitOp, values: &[Vec<u8>]) -> Vec<u8> {
    let longest = values.iter().map(Vec::len).max().unwrap();
    let byte = |value: &Vec<u8>, at: usize| value.get(at).copied().unwrap_or(0);
    (0..longest)
        .map(|at| {
            let bytes = values.iter().map(|value| byte(value, at));
            match how {
                BitOp::And => bytes.reduce(|a, b| a & b).unwrap(),
                BitOp::Or => bytes.reduce(|a, b| a | b).unwrap(),
                BitOp::Xor => bytes.reduce(|a, b| a ^ b).unwrap(),
                BitOp::Not => !byte(&values[0], at),
            }
        })
        .collect()
}

/// Runs a command on the store and on the model, and compares the answers.
#[expect(clippy::too_many_lines, reason = "one arm a command")]
fn run(db: &Db, model: &mut Model, op: &Op) {
    let value = |model: &Model, key: &usize| model.get(key).cloned().unwrap_or_default();
    match op {
        Op::Set(k, v) => {
            db.set(KEYS[*k], v).unwrap();
            model.insert(*k, v.clone());
        }
        Op::SetAndGet(k, v) => {
            let options =
                SetOptions { get: true, expiry: SetExpiry::Keep, condition: Condition::Always };
            let old = db.set_with(KEYS[*k], v, options).unwrap().old;
            assert_eq!(old.map(Vec::from), model.insert(*k, v.clone()));
        }
        Op::GetAndDelete(k) => {
            assert_eq!(db.getdel(KEYS[*k]).unwrap().map(Vec::from), model.remove(k));
        }
        Op::GetAndPersist(k) => {
            let got = db.getex(KEYS[*k], GetExpiry::Persist).unwrap();
            assert_eq!(got.map(Vec::from), model.get(k).cloned());
        }
        Op::Append(k, v) => {
            let value = model.entry(*k).or_default();
            value.extend_from_slice(v);
            assert_eq!(db.append(KEYS[*k], v).unwrap(), value.len() as i64);
        }
        Op::SetRange(k, at, v) => {
            let len = db.setrange(KEYS[*k], *at as i64, v).unwrap();
            if !v.is_empty() {
                written(model.entry(*k).or_default(), *at, v);
            }
            assert_eq!(len, value(model, k).len() as i64);
        }
        Op::SetBit(k, at, on) => {
            let (byte, mask) = ((at / 8) as usize, 0x80u8 >> (at % 8));
            let value = model.entry(*k).or_default();
            let was = bit_of(value, *at as usize);
            let old = value.get(byte).copied().unwrap_or(0);
            written(value, byte, &[if *on { old | mask } else { old & !mask }]);
            assert_eq!(db.setbit(KEYS[*k], *at, *on).unwrap(), was);
            assert_eq!(db.getbit(KEYS[*k], *at).unwrap(), *on);
        }
        Op::Increment(k, at, by) => {
            // 33 bits at any bit: it may be in two chunks.
            let field = FieldType::unsigned(33).unwrap();
            let ops = [FieldAction::IncrBy(*by), FieldAction::Get].map(|action| BitfieldOp {
                field,
                offset: *at,
                action,
                overflow: Overflow::Wrap,
            });
            let answers = db.bitfield(KEYS[*k], &ops).unwrap();
            let value = model.entry(*k).or_default();
            let bits = *at as usize..*at as usize + 33;
            if value.len() * 8 < bits.end {
                value.resize(bits.end.div_ceil(8), 0);
            }
            let old = bits.clone().fold(0u64, |sum, at| sum << 1 | u64::from(bit_of(value, at)));
            let new = old.wrapping_add(*by as u64) & ((1 << 33) - 1);
            for (place, at) in bits.rev().enumerate() {
                let mask = 0x80u8 >> (at % 8);
                let on = new >> place & 1 == 1;
                value[at / 8] = if on { value[at / 8] | mask } else { value[at / 8] & !mask };
            }
            assert_eq!(answers, [Some(new as i64); 2]);
            assert_eq!(db.bitfield_ro(KEYS[*k], &ops[1..]).unwrap(), [Some(new as i64)]);
        }
        Op::Combine(how, to, from) => {
            let from = if *how == BitOp::Not { &from[..1] } else { &from[..] };
            let values: Vec<_> = from.iter().map(|k| value(model, k)).collect();
            let result = combined(*how, &values);
            let keys: Vec<_> = from.iter().map(|k| KEYS[*k]).collect();
            assert_eq!(db.bitop(*how, KEYS[*to], &keys).unwrap(), result.len() as i64);
            match result.is_empty() {
                true => model.remove(to),
                false => model.insert(*to, result),
            };
        }
        Op::Copy(a, b) if a != b => {
            let copied = db.copy(KEYS[*a], KEYS[*b], true).unwrap();
            assert_eq!(copied, model.contains_key(a));
            model.get(a).cloned().map(|value| model.insert(*b, value));
        }
        Op::Rename(a, b) if a != b && model.contains_key(a) => {
            db.rename(KEYS[*a], KEYS[*b]).unwrap();
            let value = model.remove(a).unwrap();
            model.insert(*b, value);
        }
        Op::Copy(..) | Op::Rename(..) => {}
        Op::Delete(k) => {
            assert_eq!(db.del(&[KEYS[*k]]).unwrap(), i64::from(model.remove(k).is_some()));
        }
        Op::Expire(k) => {
            let known = db.expire(KEYS[*k], 1000, ExpireIf::ALWAYS).unwrap();
            assert_eq!(known, model.contains_key(k));
        }
        Op::Count(k, start, end, bits) => {
            let value = value(model, k);
            let unit = if *bits { BitUnit::Bit } else { BitUnit::Byte };
            let wrong = *start < 0 && *end < 0 && start > end;
            let range = BitRange { start: *start, end: *end, unit };
            let len = if *bits { value.len() * 8 } else { value.len() };
            let items = if wrong { Vec::new() } else { named(len, *start, *end) };
            let expected: i64 = match bits {
                true => items.iter().map(|at| i64::from(bit_of(&value, *at))).sum(),
                false => items.iter().map(|at| i64::from(value[*at].count_ones())).sum(),
            };
            assert_eq!(db.bitcount(KEYS[*k], Some(range)).unwrap(), expected);
            let all: i64 = value.iter().map(|byte| i64::from(byte.count_ones())).sum();
            assert_eq!(db.bitcount(KEYS[*k], None).unwrap(), all);
        }
        Op::Position(k, bit, start, end, bits) => {
            let unit = if *bits { BitUnit::Bit } else { BitUnit::Byte };
            let found =
                db.bitpos(KEYS[*k], *bit, BitSearch { start: *start, end: *end, unit }).unwrap();
            let Some(value) = model.get(k) else {
                assert_eq!(found, (!bit).then_some(0));
                return;
            };
            let len = if *bits { value.len() * 8 } else { value.len() };
            let items = named(len, *start, end.unwrap_or(-1));
            let places: Vec<usize> = match bits {
                true => items,
                false => items.iter().flat_map(|at| at * 8..at * 8 + 8).collect(),
            };
            let first = places.iter().find(|at| bit_of(value, **at) == *bit).map(|at| *at as i64);
            let after = (!bit && end.is_none()).then(|| places.last().map(|at| *at as i64 + 1));
            assert_eq!(found, first.or(after.flatten()));
        }
        Op::Range(k, start, end) => {
            let value = value(model, k);
            let wrong = *start < 0 && *end < 0 && start > end;
            let items = if wrong { Vec::new() } else { named(value.len(), *start, *end) };
            let expected: Vec<u8> = items.iter().map(|at| value[*at]).collect();
            assert_eq!(db.getrange(KEYS[*k], *start, *end).unwrap(), expected);
        }
    }
}

/// Compares all that there is, read in every way.
fn compare(db: &Db, model: &Model) {
    let expected: Vec<Option<Vec<u8>>> = (0..KEYS.len()).map(|k| model.get(&k).cloned()).collect();
    let all: Vec<_> = db.mget(&KEYS).unwrap().into_iter().map(|it| it.map(Vec::from)).collect();
    assert_eq!(all, expected);
    for (key, value) in KEYS.iter().zip(&expected) {
        assert_eq!(db.get(key).unwrap().map(Vec::from), *value);
        let len = value.as_ref().map_or(0, Vec::len);
        assert_eq!(db.strlen(key).unwrap(), len as i64);
        assert_eq!(db.exists(&[key]).unwrap(), i64::from(value.is_some()));
        assert_eq!(db.memory_usage(key, 0).unwrap().is_some(), value.is_some());
        if len > 44 {
            assert_eq!(db.object_encoding(key).unwrap(), Some("raw"));
        }
    }
    let range = KeyRange { values: true, ..KeyRange::default() };
    let pair = |entry: crate::types::KeyEntry| (entry.key.to_vec(), entry.value.unwrap().to_vec());
    let walked: Vec<_> = db.iter(range).unwrap().map(|entry| pair(entry.unwrap())).collect();
    let stored = KEYS.iter().zip(&expected);
    let stored: Vec<_> = stored.filter_map(|(k, v)| Some((k.to_vec(), v.clone()?))).collect();
    assert_eq!(walked, stored);
}

fn open(fs: &MemFs, layout: usize) -> Db {
    let (inline_max_bytes, chunk_bytes) = LAYOUTS[layout];
    let options = Options {
        inline_max_bytes,
        chunk_bytes,
        write_buffer: 64 << 10,
        ttl_cleaner_interval_s: 0,
        ..Options::default()
    };
    let clock = Arc::new(ManualClock::at(1000));
    let db = Db::open_on(Arc::new(fs.clone()), Path::new("/db"), options, clock).unwrap();
    // So that values of three or four chunks come in several commits.
    db.store().spills().spill_at(100);
    db
}

fn story(steps: &[Step]) {
    let fs = MemFs::untracked();
    let mut db = open(&fs, 0);
    let mut model = Model::new();
    let mut snapshots: Vec<(Db, Model)> = Vec::new();
    for step in steps {
        match step {
            Step::One(op) => run(&db, &mut model, op),
            Step::Together(ops, commit) => {
                let txn = db.begin().unwrap();
                let mut inside = model.clone();
                for op in ops {
                    run(&txn, &mut inside, op);
                    compare(&txn, &inside);
                }
                match commit {
                    true => {
                        txn.commit().unwrap();
                        model = inside;
                    }
                    false => txn.rollback().unwrap(),
                }
            }
            Step::Snapshot => snapshots.push((db.snapshot().unwrap(), model.clone())),
            Step::Flush => db.flush().unwrap(),
            Step::Compact => db.compact().unwrap(),
            Step::Reopen(layout) => {
                snapshots.clear();
                db.close().unwrap();
                db = open(&fs, *layout);
                compare(&db, &model);
            }
        }
        snapshots.iter().for_each(|(then, model)| compare(then, model));
    }
    compare(&db, &model);
    assert_eq!(db.check().unwrap(), [""; 0]);
    db.close().unwrap();
    let db = open(&fs, 0);
    compare(&db, &model);
    db.compact().unwrap();
    compare(&db, &model);
    assert_eq!(db.check().unwrap(), [""; 0]);
}

/// The number of random stories; LSMKV_STRING_STORIES asks for more.
fn stories() -> u32 {
    std::env::var("LSMKV_STRING_STORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

proptest! {
    #![proptest_config(Config { cases: stories(), failure_persistence: None, ..Config::default() })]

    #[test]
    fn strings_in_chunks_are_the_strings_they_would_be_whole(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        story(&steps);
    }
}
