//! ZUNION, ZINTER, ZDIFF, their *STORE forms, and ZINTERCARD. Plain sets take part with a score of
//! 1 for each member.
//!
//! Sums are formed in the order of the reference, the smallest input first: with doubles the order
//! shows in the last digits.
//!
//! Inputs are walked in member order and not held in memory. A result that is returned is collected
//! and sorted by score; a stored one is written as it comes: see `collection_builder`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;

use super::Scored;
use crate::encoding::meta::Type;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::errors::wrong_type;
use crate::txn::collection::Collection;
use crate::txn::db::commands;
use crate::txn::{Tx, Walk};
use crate::types::scores::stored_score;

/// How the scores of a member in several inputs become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    #[default]
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Aggregate {
    fn of(self, score: f64, other: f64) -> f64 {
        match self {
            Self::Sum => number_or_zero(score + other),
            Self::Min if other < score => other,
            Self::Max if other > score => other,
            Self::Min | Self::Max => score,
        }
    }
}

/// How inputs of a union or an intersection are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Combine<'a> {
    /// WEIGHTS: what the scores of each input are multiplied by; empty: by 1.
    pub weights: &'a [f64],
    /// AGGREGATE: how the scores of a member that several inputs have become one.
    pub aggregate: Aggregate,
}

commands! {
    /// ZUNION: the members that are in any of the keys.
    read fn zunion(keys: &[&[u8]], how: Combine<'_>) -> Vec<(Bytes, f64)>;
    /// ZINTER: the members that are in all of the keys.
    read fn zinter(keys: &[&[u8]], how: Combine<'_>) -> Vec<(Bytes, f64)>;
    /// ZDIFF: the members that are in the first key and in none of the others.
    read fn zdiff(keys: &[&[u8]]) -> Vec<(Bytes, f64)>;
    /// ZINTERCARD: how many members are in all of the keys; stops counting at `limit` unless it
    /// is 0.
    read fn zintercard(keys: &[&[u8]], limit: u64) -> i64;
    /// ZUNIONSTORE: replaces `destination` by the union of the keys; its number of members.
    write_keys [&[&[destination], keys].concat()] fn zunionstore(
        destination: &[u8], keys: &[&[u8]], how: Combine<'_>,
    ) -> i64;
    /// ZINTERSTORE: replaces `destination` by the intersection of the keys; its number of members.
    write_keys [&[&[destination], keys].concat()] fn zinterstore(
        destination: &[u8], keys: &[&[u8]], how: Combine<'_>,
    ) -> i64;
    /// ZDIFFSTORE: replaces `destination` by the difference of the keys; its number of members.
    write_keys [&[&[destination], keys].concat()] fn zdiffstore(
        destination: &[u8], keys: &[&[u8]],
    ) -> i64;
}

/// Called with members and their scores, each member once, until it returns `false`.
type Visit<'v> = &'v mut dyn FnMut(&[u8], f64) -> Result<bool>;

/// How inputs are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    /// The members of any input.
    Union(Combine<'a>),
    /// The members of all inputs.
    Intersection(Combine<'a>),
    /// The members of the first input that no other has.
    Difference,
}

impl Operation<'_> {
    fn check(&self, keys: usize) -> Result<()> {
        match self {
            Self::Union(how) | Self::Intersection(how) => how.check(keys),
            Self::Difference => Ok(()),
        }
    }
}

/// A sorted set or a set.
struct Input {
    rows: Collection,
    scored: bool,
}

/// The inputs, `None` for a key that does not exist.
pub(crate) struct Inputs(Vec<Option<Input>>);

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The error for a command without keys.
pub(crate) fn needs_a_key(name: &str) -> Error {
    let text = format!("ERR at least 1 input key is needed for '{name}' command");
    Error::new(ErrorKind::Syntax, text)
}

/// The error for a weight that is no number.
pub(crate) fn not_a_weight() -> Error {
    Error::new(ErrorKind::NotFloat, "ERR weight value is not a float")
}

impl Combine<'_> {
    fn check(&self, keys: usize) -> Result<()> {
        if !self.weights.is_empty() && self.weights.len() != keys {
            return Err(Error::new(ErrorKind::Syntax, "ERR syntax error"));
        }
        if self.weights.iter().any(|weight| weight.is_nan()) {
            return Err(not_a_weight());
        }
        Ok(())
    }

    fn weight(&self, index: usize) -> f64 {
        self.weights.get(index).copied().unwrap_or(1.0)
    }
}

impl Input {
    fn score_in(&self, value: &[u8]) -> Result<f64> {
        if self.scored { stored_score(value) } else { Ok(1.0) }
    }

    fn member(&self, walk: &Walk) -> Bytes {
        Bytes::copy_from_slice(self.rows.sub_key(walk.key()))
    }

    /// Calls `visit` with every member until it returns `false`.
    fn each(&self, tx: &Tx<'_>, mut visit: impl FnMut(&[u8], f64) -> Result<bool>) -> Result<()> {
        let mut walk = self.rows.walk(tx)?;
        while walk.advance()? {
            if !visit(self.rows.sub_key(walk.key()), self.score_in(walk.value())?)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Inputs {
    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The inputs with their weights, the smallest first; `None` if one does not exist.
    fn all_by_size(&self, how: &Combine<'_>) -> Option<Vec<(&Input, f64)>> {
        let inputs = self.0.iter().enumerate();
        let mut all: Vec<_> = inputs
            .map(|(index, input)| Some((input.as_ref()?, how.weight(index))))
            .collect::<Option<_>>()?;
        all.sort_by_key(|(input, _)| input.rows.len());
        Some(all)
    }

    /// The existing inputs with their weights, the smallest first.
    fn existing_by_size(&self, how: &Combine<'_>) -> Vec<(&Input, f64)> {
        let inputs = self.0.iter().enumerate();
        let mut existing: Vec<_> = inputs
            .filter_map(|(index, input)| Some((input.as_ref()?, how.weight(index))))
            .collect();
        existing.sort_by_key(|(input, _)| input.rows.len());
        existing
    }

    /// Calls `visit` with every member of any input, in byte order of the members.
    fn each_of_union(&self, tx: &Tx<'_>, how: &Combine<'_>, visit: Visit<'_>) -> Result<()> {
        let inputs = self.existing_by_size(how);
        let mut walks = Vec::new();
        // The least member first, and of equal ones the smallest input.
        let mut next = BinaryHeap::new();
        for (input, _) in &inputs {
            let mut walk = input.rows.walk(tx)?;
            if walk.advance()? {
                next.push(Reverse((input.member(&walk), walks.len())));
            }
            walks.push(walk);
        }
        let mut found: Option<(Bytes, f64)> = None;
        while let Some(Reverse((member, from))) = next.pop() {
            let (Some((input, weight)), Some(walk)) = (inputs.get(from), walks.get_mut(from))
            else {
                continue;
            };
            let score = number_or_zero(weight * input.score_in(walk.value())?);
            if walk.advance()? {
                next.push(Reverse((input.member(walk), from)));
            }
            match &mut found {
                Some((last, sum)) if *last == member => *sum = how.aggregate.of(*sum, score),
                _ => {
                    let complete = found.replace((member, score));
                    if let Some((member, score)) = complete
                        && !visit(&member, score)?
                    {
                        return Ok(());
                    }
                }
            }
        }
        if let Some((member, score)) = found {
            visit(&member, score)?;
        }
        Ok(())
    }

    /// Calls `visit` with every member of all inputs until it returns `false`.
    fn each_common(&self, tx: &Tx<'_>, how: &Combine<'_>, visit: Visit<'_>) -> Result<()> {
        let inputs = self.all_by_size(how).unwrap_or_default();
        let Some(((smallest, weight), others)) = inputs.split_first() else { return Ok(()) };
        let looks = others.iter().map(|(other, _)| other.rows.multi_lookup(smallest.rows.len()));
        let looks = looks.collect::<Result<Vec<_>>>()?;
        smallest.each(tx, |member, score| {
            let mut result = number_or_zero(weight * score);
            for ((other, weight), looks) in others.iter().zip(&looks) {
                let score = looks.with_value(tx, member, |value| other.score_in(value))?;
                let Some(score) = score.transpose()? else { return Ok(true) };
                result = how.aggregate.of(result, weight * score);
            }
            visit(member, result)
        })
    }

    /// Calls `visit` with every member of the first input that no other has.
    fn each_of_difference(&self, tx: &Tx<'_>, visit: Visit<'_>) -> Result<()> {
        let Some((Some(first), others)) = self.0.split_first() else { return Ok(()) };
        let others = others.iter().flatten().map(|other| other.rows.multi_lookup(first.rows.len()));
        let others = others.collect::<Result<Vec<_>>>()?;
        first.each(tx, |member, score| {
            for other in &others {
                if other.has(tx, member)? {
                    return Ok(true);
                }
            }
            visit(member, score)
        })
    }

    fn each(&self, tx: &Tx<'_>, what: Operation<'_>, visit: Visit<'_>) -> Result<()> {
        match what {
            Operation::Union(how) => self.each_of_union(tx, &how, visit),
            Operation::Intersection(how) => self.each_common(tx, &how, visit),
            Operation::Difference => self.each_of_difference(tx, visit),
        }
    }

    /// The result, sorted by score.
    pub(crate) fn combine(&self, tx: &Tx<'_>, what: Operation<'_>) -> Result<Scored> {
        what.check(self.0.len())?;
        let mut found = Scored::new();
        self.each(tx, what, &mut |member, score| {
            found.push((Bytes::copy_from_slice(member), score));
            Ok(true)
        })?;
        Ok(in_order(found))
    }

    /// Replaces whatever `key` holds by the result; its number of members.
    pub(crate) fn store(&self, tx: &mut Tx<'_>, key: &[u8], what: Operation<'_>) -> Result<i64> {
        let name = match what {
            Operation::Union(_) => "zunionstore",
            Operation::Intersection(_) => "zinterstore",
            Operation::Difference => "zdiffstore",
        };
        what.check(self.0.len())?;
        let (mut build, mut size) = (tx.build_collection(key)?, 0);
        self.each(tx, what, &mut |member, score| {
            size += 1;
            build.put_scored(member, score).map(|()| true)
        })?;
        tx.store_built(name, key, build, Type::ZSet, size)
    }

    pub(crate) fn intersection_size(&self, tx: &Tx<'_>, limit: u64) -> Result<i64> {
        let mut count = 0u64;
        self.each_common(tx, &Combine::default(), &mut |_, _| {
            count += 1;
            Ok(count != limit)
        })?;
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// Sorts by score, then by member.
fn in_order(mut members: Scored) -> Scored {
    members.sort_by(|(a, x), (b, y)| {
        x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal).then_with(|| a.cmp(b))
    });
    members
}

impl Tx<'_> {
    /// The inputs at these keys; fails if one is neither a sorted set nor a set.
    pub(crate) fn zset_inputs(&self, keys: &[&[u8]], name: &str) -> Result<Inputs> {
        if keys.is_empty() {
            return Err(needs_a_key(name));
        }
        keys.iter().map(|key| self.zset_input(key)).collect::<Result<_>>().map(Inputs)
    }

    fn zset_input(&self, key: &[u8]) -> Result<Option<Input>> {
        let Some(record) = self.record(key)? else { return Ok(None) };
        let scored = match record.header.kind {
            Type::ZSet => true,
            Type::Set => false,
            _ => return Err(wrong_type()),
        };
        let rows = self.collection(key, record.header.kind)?;
        Ok(rows.map(|rows| Input { rows, scored }))
    }

    pub(crate) fn zunion(&self, keys: &[&[u8]], how: Combine<'_>) -> Result<Scored> {
        self.zset_inputs(keys, "zunion")?.combine(self, Operation::Union(how))
    }

    pub(crate) fn zinter(&self, keys: &[&[u8]], how: Combine<'_>) -> Result<Scored> {
        self.zset_inputs(keys, "zinter")?.combine(self, Operation::Intersection(how))
    }

    pub(crate) fn zdiff(&self, keys: &[&[u8]]) -> Result<Scored> {
        self.zset_inputs(keys, "zdiff")?.combine(self, Operation::Difference)
    }

    pub(crate) fn zintercard(&self, keys: &[&[u8]], limit: u64) -> Result<i64> {
        self.zset_inputs(keys, "zintercard")?.intersection_size(self, limit)
    }

    pub(crate) fn zunionstore(
        &mut self,
        destination: &[u8],
        keys: &[&[u8]],
        how: Combine<'_>,
    ) -> Result<i64> {
        let inputs = self.as_read(|tx| tx.zset_inputs(keys, "zunionstore"))?;
        inputs.store(self, destination, Operation::Union(how))
    }

    pub(crate) fn zinterstore(
        &mut self,
        destination: &[u8],
        keys: &[&[u8]],
        how: Combine<'_>,
    ) -> Result<i64> {
        let inputs = self.as_read(|tx| tx.zset_inputs(keys, "zinterstore"))?;
        inputs.store(self, destination, Operation::Intersection(how))
    }

    pub(crate) fn zdiffstore(&mut self, destination: &[u8], keys: &[&[u8]]) -> Result<i64> {
        let inputs = self.as_read(|tx| tx.zset_inputs(keys, "zdiffstore"))?;
        inputs.store(self, destination, Operation::Difference)
    }
}
