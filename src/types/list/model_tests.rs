//! Random list commands on a store and on a `VecDeque` for each key, checked after every step and
//! after a reopen.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::{InsertPosition, Search, Side};
use crate::engine::MemFs;
use crate::io::clock::ManualClock;
use crate::options::Options;
use crate::txn::Db;

const KEYS: [&[u8]; 2] = [b"a", b"b\0"];

type Element = Vec<u8>;

#[derive(Clone, Debug)]
enum Op {
    Push(usize, Side, Vec<Element>),
    PushExisting(usize, Side, Element),
    Pop(usize, Side, u64),
    Set(usize, i64, Element),
    Trim(usize, i64, i64),
    Insert(usize, InsertPosition, Element, Element),
    Remove(usize, i64, Element),
    Move(usize, usize, Side, Side),
    PopFirst(Side, u64),
    Find(usize, Element, Search),
    Range(usize, i64, i64),
    Delete(usize),
    Flush,
    Reopen,
}

/// Few different ones, so that searches find several.
fn element() -> impl Strategy<Value = Element> {
    prop_oneof![Just(vec![]), (0u8..4).prop_map(|byte| vec![byte]), Just(vec![9; 40])]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Left), Just(Side::Right)]
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS.len();
    let index = || -12i64..12;
    let place = prop_oneof![Just(InsertPosition::Before), Just(InsertPosition::After)];
    let search = (prop_oneof![-4i64..0, 1i64..5], 0u64..4, 0u64..8)
        .prop_map(|(rank, count, maxlen)| Search { rank, count, maxlen });
    prop_oneof![
        6 => (key(), side(), prop::collection::vec(element(), 1..5))
            .prop_map(|(k, s, e)| Op::Push(k, s, e)),
        1 => (key(), side(), element()).prop_map(|(k, s, e)| Op::PushExisting(k, s, e)),
        4 => (key(), side(), 0u64..4).prop_map(|(k, s, n)| Op::Pop(k, s, n)),
        2 => (key(), index(), element()).prop_map(|(k, i, e)| Op::Set(k, i, e)),
        1 => (key(), index(), index()).prop_map(|(k, a, b)| Op::Trim(k, a, b)),
        4 => (key(), place, element(), element()).prop_map(|(k, p, a, b)| Op::Insert(k, p, a, b)),
        4 => (key(), -3i64..4, element()).prop_map(|(k, n, e)| Op::Remove(k, n, e)),
        3 => (key(), key(), side(), side()).prop_map(|(a, b, s, t)| Op::Move(a, b, s, t)),
        1 => (side(), 1u64..4).prop_map(|(s, n)| Op::PopFirst(s, n)),
        2 => (key(), element(), search).prop_map(|(k, e, s)| Op::Find(k, e, s)),
        2 => (key(), index(), index()).prop_map(|(k, a, b)| Op::Range(k, a, b)),
        1 => key().prop_map(Op::Delete),
        1 => Just(Op::Flush),
        1 => Just(Op::Reopen),
    ]
}

/// What a list should be.
#[derive(Debug, Default)]
struct Model(VecDeque<Element>);

impl Model {
    fn push(&mut self, side: Side, element: Element) {
        match side {
            Side::Left => self.0.push_front(element),
            Side::Right => self.0.push_back(element),
        }
    }

    fn pop(&mut self, side: Side) -> Option<Element> {
        match side {
            Side::Left => self.0.pop_front(),
            Side::Right => self.0.pop_back(),
        }
    }

    fn pop_many(&mut self, side: Side, count: u64) -> Vec<Element> {
        (0..count).map_while(|_| self.pop(side)).collect()
    }

    /// The plain reading of Redis's documentation, one element at a time.
    fn range(&self, start: i64, stop: i64) -> Vec<Element> {
        let len = self.0.len() as i64;
        let at = |index: i64| if index < 0 { index + len } else { index };
        let inside = |i: &i64| (at(start)..=at(stop)).contains(i);
        (0..len).filter(inside).map(|i| self.0[i as usize].clone()).collect()
    }

    fn index(&self, index: i64) -> Option<usize> {
        let len = self.0.len() as i64;
        let at = if index < 0 { index + len } else { index };
        (0..len).contains(&at).then_some(at as usize)
    }

    fn find(&self, element: &[u8], search: Search) -> Vec<i64> {
        let mut order: Vec<usize> = (0..self.0.len()).collect();
        if search.rank < 0 {
            order.reverse();
        }
        let maxlen = if search.maxlen == 0 { usize::MAX } else { search.maxlen as usize };
        let count = if search.count == 0 { usize::MAX } else { search.count as usize };
        let found = order.into_iter().take(maxlen).filter(|at| self.0[*at] == element);
        let skipped = search.rank.unsigned_abs() as usize - 1;
        found.skip(skipped).take(count).map(|at| at as i64).collect()
    }

    fn insert(&mut self, place: InsertPosition, pivot: &[u8], element: Element) -> i64 {
        if self.0.is_empty() {
            return 0;
        }
        let Some(at) = self.0.iter().position(|found| found == pivot) else { return -1 };
        self.0.insert(at + usize::from(place == InsertPosition::After), element);
        self.0.len() as i64
    }

    fn remove(&mut self, count: i64, element: &[u8]) -> i64 {
        let rank = if count < 0 { -1 } else { 1 };
        let search = Search { rank, count: count.unsigned_abs(), maxlen: 0 };
        let mut found = self.find(element, search);
        found.sort_unstable();
        for at in found.iter().rev() {
            self.0.remove(*at as usize);
        }
        found.len() as i64
    }
}

struct Pair {
    fs: Arc<MemFs>,
    db: Db,
    models: [Model; 2],
}

impl Pair {
    fn new() -> Self {
        let fs = Arc::new(MemFs::new());
        Self { db: open(&fs), fs, models: Default::default() }
    }

    fn apply(&mut self, op: Op) {
        let (db, models) = (&self.db, &mut self.models);
        match op {
            Op::Push(k, side, elements) => {
                let given: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
                let len = match side {
                    Side::Left => db.lpush(KEYS[k], &given),
                    Side::Right => db.rpush(KEYS[k], &given),
                };
                elements.iter().for_each(|element| models[k].push(side, element.clone()));
                assert_eq!(len.unwrap(), models[k].0.len() as i64);
            }
            Op::PushExisting(k, side, element) => {
                let len = match side {
                    Side::Left => db.lpushx(KEYS[k], &[&element]),
                    Side::Right => db.rpushx(KEYS[k], &[&element]),
                };
                if !models[k].0.is_empty() {
                    models[k].push(side, element);
                }
                assert_eq!(len.unwrap(), models[k].0.len() as i64);
            }
            Op::Pop(k, side, count) => {
                let popped = match side {
                    Side::Left => db.lpop_many(KEYS[k], count),
                    Side::Right => db.rpop_many(KEYS[k], count),
                };
                let existed = !models[k].0.is_empty();
                let expected = existed.then(|| models[k].pop_many(side, count));
                assert_eq!(popped.unwrap(), expected.map(bytes));
            }
            Op::Set(k, index, element) => {
                let done = db.lset(KEYS[k], index, &element).is_ok();
                let at = models[k].index(index);
                assert_eq!(done, at.is_some());
                if let Some(at) = at {
                    models[k].0[at] = element;
                }
            }
            Op::Trim(k, start, stop) => {
                db.ltrim(KEYS[k], start, stop).unwrap();
                models[k].0 = models[k].range(start, stop).into();
            }
            Op::Insert(k, place, pivot, element) => {
                let answer = db.linsert(KEYS[k], place, &pivot, &element).unwrap();
                assert_eq!(answer, models[k].insert(place, &pivot, element));
            }
            Op::Remove(k, count, element) => {
                let answer = db.lrem(KEYS[k], count, &element).unwrap();
                assert_eq!(answer, models[k].remove(count, &element));
            }
            Op::Move(source, destination, from, to) => {
                let moved = db.lmove(KEYS[source], KEYS[destination], from, to).unwrap();
                let expected = models[source].pop(from);
                assert_eq!(moved.as_deref(), expected.as_deref());
                if let Some(element) = expected {
                    models[destination].push(to, element);
                }
            }
            Op::PopFirst(side, count) => {
                let answer = db.lmpop(&KEYS, side, count).unwrap();
                let first = models.iter().position(|model| !model.0.is_empty());
                let expected = first
                    .map(|k| (KEYS[k].to_vec().into(), bytes(models[k].pop_many(side, count))));
                assert_eq!(answer, expected);
            }
            Op::Find(k, element, search) => {
                let found = db.lpos(KEYS[k], &element, search).unwrap();
                assert_eq!(found, models[k].find(&element, search));
            }
            Op::Range(k, start, stop) => {
                let range = db.lrange(KEYS[k], start, stop).unwrap();
                assert_eq!(range, bytes(models[k].range(start, stop)));
                let indexed = db.lindex(KEYS[k], start).unwrap();
                let expected = models[k].index(start).map(|at| &models[k].0[at][..]);
                assert_eq!(indexed.as_deref(), expected);
            }
            Op::Delete(k) => {
                let existed = std::mem::take(&mut models[k]).0.len().min(1) as i64;
                assert_eq!(db.del(&[KEYS[k]]).unwrap(), existed);
            }
            Op::Flush => db.flush().unwrap(),
            Op::Reopen => self.reopen(),
        }
    }

    fn reopen(&mut self) {
        self.db.close().unwrap();
        self.db = open(&self.fs);
    }

    fn check(&self) {
        for (key, model) in KEYS.iter().zip(&self.models) {
            let expected: Vec<_> = model.0.iter().cloned().collect();
            assert_eq!(self.db.lrange(key, 0, -1).unwrap(), bytes(expected));
            assert_eq!(self.db.llen(key).unwrap(), model.0.len() as i64);
            let exists = i64::from(!model.0.is_empty());
            assert_eq!(self.db.exists(&[key]).unwrap(), exists, "an empty list does not exist");
        }
    }
}

fn bytes(elements: Vec<Element>) -> Vec<bytes::Bytes> {
    elements.into_iter().map(bytes::Bytes::from).collect()
}

fn open(fs: &Arc<MemFs>) -> Db {
    let options = Options { write_buffer: 1 << 20, ..Options::default() };
    let clock = Arc::new(ManualClock::at(1));
    Db::open_on(Arc::clone(fs) as _, Path::new("/db"), options, clock).unwrap()
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]

    #[test]
    fn lists_answer_as_deques_do_and_survive_a_reopen(
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let mut pair = Pair::new();
        for op in ops {
            pair.apply(op);
            pair.check();
        }
        pair.reopen();
        pair.check();
        prop_assert_eq!(pair.db.check().unwrap(), Vec::<String>::new());
    }
}
