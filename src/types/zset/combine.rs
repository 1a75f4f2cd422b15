//! ZUNION, ZINTER, ZDIFF, their storing forms, and ZINTERCARD. Plain sets take part with the
//! score 1 for each member.
//!
//! Sums are made in the order of the reference, the smallest input first: with doubles the order
//! shows in the last digits.

use std::collections::HashMap;

use bytes::Bytes;

use super::Scored;
use super::rows::stored_score;
use crate::encoding::meta::Type;
use crate::error::{Error, ErrorKind, Result};
use crate::types::collection::Collection;
use crate::types::db::commands;
use crate::types::txn::{Tx, wrong_type};

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
    /// AGGREGATE.
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
    /// ZUNIONSTORE: makes `destination` the union of the keys; how many members it has.
    write_keys [&[&[destination], keys].concat()] fn zunionstore(
        destination: &[u8], keys: &[&[u8]], how: Combine<'_>,
    ) -> i64;
    /// ZINTERSTORE: makes `destination` the intersection of the keys; how many members it has.
    write_keys [&[&[destination], keys].concat()] fn zinterstore(
        destination: &[u8], keys: &[&[u8]], how: Combine<'_>,
    ) -> i64;
    /// ZDIFFSTORE: makes `destination` the difference of the keys; how many members it has.
    write_keys [&[&[destination], keys].concat()] fn zdiffstore(
        destination: &[u8], keys: &[&[u8]],
    ) -> i64;
}

/// A sorted set or a set.
struct Input {
    rows: Collection,
    scored: bool,
}

/// What is combined: an entry for each key, `None` for one that does not exist.
pub(crate) struct Inputs(Vec<Option<Input>>);

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The error without keys.
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

    fn score(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<f64>> {
        self.rows.get(tx, member)?.map(|value| self.score_in(&value)).transpose()
    }

    /// Calls `visit` with every member until it says `false`.
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
    /// How many keys there are.
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

    /// Those of the inputs that exist, alike.
    fn existing_by_size(&self, how: &Combine<'_>) -> Vec<(&Input, f64)> {
        let inputs = self.0.iter().enumerate();
        let mut existing: Vec<_> = inputs
            .filter_map(|(index, input)| Some((input.as_ref()?, how.weight(index))))
            .collect();
        existing.sort_by_key(|(input, _)| input.rows.len());
        existing
    }

    pub(crate) fn union(&self, tx: &Tx<'_>, how: Combine<'_>) -> Result<Scored> {
        how.check(self.0.len())?;
        let mut found: HashMap<Bytes, f64> = HashMap::new();
        for (input, weight) in self.existing_by_size(&how) {
            input.each(tx, |member, score| {
                let score = number_or_zero(weight * score);
                match found.get_mut(member) {
                    Some(sum) => *sum = how.aggregate.of(*sum, score),
                    None => {
                        found.insert(Bytes::copy_from_slice(member), score);
                    }
                }
                Ok(true)
            })?;
        }
        Ok(in_order(found.into_iter().collect()))
    }

    pub(crate) fn intersection(&self, tx: &Tx<'_>, how: Combine<'_>) -> Result<Scored> {
        how.check(self.0.len())?;
        let mut found = Scored::new();
        self.each_common(tx, &how, |member, score| {
            found.push((Bytes::copy_from_slice(member), score));
            true
        })?;
        Ok(in_order(found))
    }

    pub(crate) fn intersection_size(&self, tx: &Tx<'_>, limit: u64) -> Result<i64> {
        let mut count = 0u64;
        self.each_common(tx, &Combine::default(), |_, _| {
            count += 1;
            count != limit
        })?;
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Calls `visit` with every member of all inputs until it says `false`.
    fn each_common(
        &self,
        tx: &Tx<'_>,
        how: &Combine<'_>,
        mut visit: impl FnMut(&[u8], f64) -> bool,
    ) -> Result<()> {
        let inputs = self.all_by_size(how).unwrap_or_default();
        let Some(((smallest, weight), others)) = inputs.split_first() else { return Ok(()) };
        smallest.each(tx, |member, score| {
            let mut result = number_or_zero(weight * score);
            for (other, weight) in others {
                let Some(score) = other.score(tx, member)? else { return Ok(true) };
                result = how.aggregate.of(result, weight * score);
            }
            Ok(visit(member, result))
        })
    }

    pub(crate) fn difference(&self, tx: &Tx<'_>) -> Result<Scored> {
        let mut found = Scored::new();
        let Some((Some(first), others)) = self.0.split_first() else { return Ok(found) };
        first.each(tx, |member, score| {
            for other in others.iter().flatten() {
                if other.rows.get(tx, member)?.is_some() {
                    return Ok(true);
                }
            }
            found.push((Bytes::copy_from_slice(member), score));
            Ok(true)
        })?;
        Ok(in_order(found))
    }
}

/// By score, then by member.
fn in_order(mut members: Scored) -> Scored {
    members.sort_by(|(a, x), (b, y)| {
        x.partial_cmp(y).unwrap_or(std::cmp::Ordering::Equal).then_with(|| a.cmp(b))
    });
    members
}

impl Tx<'_> {
    /// What the keys are; an error if one is neither a sorted set nor a set.
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
        self.zset_inputs(keys, "zunion")?.union(self, how)
    }

    pub(crate) fn zinter(&self, keys: &[&[u8]], how: Combine<'_>) -> Result<Scored> {
        self.zset_inputs(keys, "zinter")?.intersection(self, how)
    }

    pub(crate) fn zdiff(&self, keys: &[&[u8]]) -> Result<Scored> {
        self.zset_inputs(keys, "zdiff")?.difference(self)
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
        let members = self.zset_inputs(keys, "zunionstore")?.union(self, how)?;
        self.replace_zset(destination, &members)
    }

    pub(crate) fn zinterstore(
        &mut self,
        destination: &[u8],
        keys: &[&[u8]],
        how: Combine<'_>,
    ) -> Result<i64> {
        let members = self.zset_inputs(keys, "zinterstore")?.intersection(self, how)?;
        self.replace_zset(destination, &members)
    }

    pub(crate) fn zdiffstore(&mut self, destination: &[u8], keys: &[&[u8]]) -> Result<i64> {
        let members = self.zset_inputs(keys, "zdiffstore")?.difference(self)?;
        self.replace_zset(destination, &members)
    }
}
