//! Random members of a collection, for HRANDFIELD, SRANDMEMBER, SPOP and ZRANDMEMBER.
//!
//! Positions are drawn, and the members at these positions looked up in one pass in byte order: by
//! walking where the next position is near, and by a search where it is far (`ranks`). So every
//! member is exactly as likely as any other, whatever its name and wherever it is stored.
//!
//! A collection from before the store began to count has no search. A few of its many members are
//! drawn as rows from the engine's runs and blocks instead (`engine::Sampler`): every member is
//! equally likely, except those that share a block with more than four times as many others as usual
//! in their table, which are less likely by that factor. Where that fails ([`DRAWS`] in vain, or
//! writes of the transaction are pending) it is walked.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

use bytes::Bytes;

use crate::encoding::keys::after_prefix;
use crate::encoding::meta::Type;
use crate::engine::CacheFill;
use crate::error::Result;
use crate::io::splitmix::SplitMix64;
use crate::keyspace::trees::DATA;
use crate::txn::collection::Collection;
use crate::txn::{Tx, Walk};
use crate::types::number::out_of_range;
use crate::types::ranks::NEAR;

/// The least members of an old collection from which rows are drawn.
const MANY: u64 = 4096;
/// The number of failed draws in a row after which rows are no longer drawn.
const DRAWS: u64 = 1024;
/// Of more than one in this many members, each is decided on in turn.
const DENSE: u64 = 16;
/// The most repetitions: the reply is built in memory.
const MOST_REPEATED: u64 = 1 << 24;

/// How many members to choose, and whether one may come twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// This many different members, all if there are fewer.
    Different(u64),
    /// This many members, each chosen from all.
    Repeated(u64),
}

impl Choice {
    /// Converts the count of a command: a negative one allows repetitions.
    pub(crate) fn of_count(count: i64) -> Self {
        match u64::try_from(count) {
            Ok(count) => Self::Different(count),
            Err(_) => Self::Repeated(count.unsigned_abs()),
        }
    }
}

/// A member and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sampled {
    pub(crate) member: Bytes,
    pub(crate) value: Bytes,
}

impl Tx<'_> {
    /// Chooses random members. Different ones may come in byte order, repeated ones come in random
    /// order.
    pub(crate) fn sample(&self, from: &Collection, choice: Choice) -> Result<Vec<Sampled>> {
        // Every RandomState is keyed differently, from the operating system's randomness.
        let mut random = SplitMix64::new(RandomState::new().build_hasher().finish());
        let len = from.len();
        match choice {
            _ if len == 0 => Ok(Vec::new()),
            Choice::Repeated(wanted) if wanted > MOST_REPEATED => Err(out_of_range("")),
            Choice::Repeated(wanted) => {
                if let Some(drawn) = self.draw_rows(from, wanted, false, &mut random)? {
                    return Ok(drawn);
                }
                let drawn: Vec<u64> = (0..wanted).map(|_| random.below(len)).collect();
                let mut positions = drawn.clone();
                positions.sort_unstable();
                positions.dedup();
                let members = self.members_at_positions(from, &positions)?;
                let found: HashMap<_, _> = positions.iter().zip(members).collect();
                Ok(drawn.iter().filter_map(|position| found.get(position).cloned()).collect())
            }
            Choice::Different(wanted) => {
                if let Some(drawn) = self.draw_rows(from, wanted, true, &mut random)? {
                    return Ok(drawn);
                }
                let positions = different_positions(len, wanted.min(len), &mut random);
                self.members_at_positions(from, &positions)
            }
        }
    }

    /// Chooses one random member, if there is any.
    pub(crate) fn sample_one(&self, from: &Collection) -> Result<Option<Sampled>> {
        Ok(self.sample(from, Choice::Different(1))?.pop())
    }

    /// The members at ascending positions in byte order.
    fn members_at_positions(&self, from: &Collection, positions: &[u64]) -> Result<Vec<Sampled>> {
        let (counted, mut found) = (from.is_counted(self), Vec::with_capacity(positions.len()));
        // A walk, and the position of the member that it meets next.
        let mut walk: Option<(Walk, u64)> = None;
        let mut positions = positions.iter().copied().peekable();
        while let Some(position) = positions.next() {
            let is_near = |to: u64| !counted || position.abs_diff(to) <= NEAR;
            if walk.as_ref().is_none_or(|(_, next)| !is_near(*next)) {
                walk = None;
                if is_near(0) {
                    walk = Some((from.walk(self)?, 0));
                } else {
                    let member = from.select_member(self, position)?;
                    let member = member.ok_or_else(|| from.miscounted())?;
                    match positions.peek() {
                        Some(next) if is_near(*next) => {
                            walk = Some((from.walk_from(self, &member, false)?, position));
                        }
                        _ => {
                            found.push(self.sampled(from, member)?);
                            continue;
                        }
                    }
                }
            }
            if let Some((walk, next)) = &mut walk {
                while *next <= position {
                    if !walk.advance()? {
                        return Err(from.miscounted());
                    }
                    *next += 1;
                }
                let member = Bytes::copy_from_slice(from.sub_key(walk.key()));
                found.push(Sampled { member, value: walk.value_bytes() });
            }
        }
        Ok(found)
    }

    /// A member that exists, with its value. A set's members have none.
    fn sampled(&self, from: &Collection, member: Bytes) -> Result<Sampled> {
        let value = match from.header.kind {
            Type::Set => Bytes::new(),
            _ => from.get(self, &member)?.ok_or_else(|| from.miscounted())?,
        };
        Ok(Sampled { member, value })
    }

    /// Draws a few of the many members of a collection that is not counted; `None` if it is counted
    /// or that does not succeed soon.
    fn draw_rows(
        &self,
        from: &Collection,
        wanted: u64,
        different: bool,
        random: &mut SplitMix64,
    ) -> Result<Option<Vec<Sampled>>> {
        let (prefix, end) = (from.prefix(), after_prefix(from.prefix()));
        let walked = from.is_packed() || from.len() < MANY || wanted > from.len() / DENSE;
        if walked || from.is_counted(self) || self.has_pending(DATA, prefix, end.as_deref()) {
            return Ok(None);
        }
        let rows = self.row_sampler(DATA, prefix, end.as_deref(), CacheFill::Fill)?;
        let (mut seen, mut drawn, mut failed) = (HashSet::new(), Vec::new(), 0);
        while (drawn.len() as u64) < wanted {
            let row = rows.draw(&mut |below| random.below(below))?;
            let row = row.filter(|(row, _)| !different || seen.insert(row.clone()));
            let Some((row, value)) = row else {
                failed += 1;
                if failed > DRAWS {
                    return Ok(None);
                }
                continue;
            };
            failed = 0;
            drawn.push(Sampled { member: Bytes::copy_from_slice(from.sub_key(&row)), value });
        }
        Ok(Some(drawn))
    }
}

/// Chooses `wanted` different positions below `len`, ascending. Every choice of that many is equally
/// likely.
fn different_positions(len: u64, wanted: u64, random: &mut SplitMix64) -> Vec<u64> {
    if wanted > len / DENSE {
        // Each is taken with the probability that the number still wanted has among those left.
        let mut left = wanted;
        return (0..len)
            .filter(|position| {
                let taken = random.below(len - position) < left;
                left -= u64::from(taken);
                taken
            })
            .collect();
    }
    // Floyd's algorithm: the nth draw is among the positions up to `len - wanted + n`; one that was
    // drawn before gives the greatest of these, which was not.
    let mut chosen = HashSet::new();
    for last in len - wanted..len {
        let drawn = random.below(last + 1);
        if !chosen.insert(drawn) {
            chosen.insert(last);
        }
    }
    let mut positions: Vec<u64> = chosen.into_iter().collect();
    positions.sort_unstable();
    positions
}

#[cfg(test)]
mod tests;
