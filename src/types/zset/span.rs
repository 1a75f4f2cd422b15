//! What part of the score rows a range by score or by member is.
//!
//! Ranges by member are made for sets whose members all have one score; then they are a span of
//! that score's rows. Otherwise the reference leaves open what they give, and gives what a walk
//! finds that goes from the first member inside to the first one outside: so do we.

use std::ops::Bound;

use super::rows::{ZSet, score_sub_key};
use super::text::{LexBounds, not_a_bound};
use crate::encoding::order::score_bytes;
use crate::error::Result;
use crate::types::txn::Tx;

/// Score rows with sub keys from `lower` on and before `upper`; `None`: to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) lower: Vec<u8>,
    pub(super) upper: Option<Vec<u8>>,
}

impl Span {
    /// All rows.
    pub(super) fn all() -> Self {
        Self { lower: Vec::new(), upper: None }
    }

    /// The row with this sub key and those that a walk meets after it.
    pub(super) fn starting_at(sub_key: &[u8], backward: bool) -> Self {
        match backward {
            false => Self { lower: sub_key.to_vec(), upper: None },
            true => Self { lower: Vec::new(), upper: Some([sub_key, &[0]].concat()) },
        }
    }

    /// Whether no row can be outside.
    pub(super) fn is_everything(&self) -> bool {
        let least = self.lower.as_slice() <= &score_bytes(f64::NEG_INFINITY)[..];
        let greatest = after_score(f64::INFINITY);
        least && self.upper.as_ref().is_none_or(|upper| *upper >= greatest)
    }

    /// The rows with scores within the bounds.
    pub(super) fn of_scores(min: Bound<f64>, max: Bound<f64>) -> Result<Self> {
        let is_nan = |bound: Bound<f64>| matches!(bound, Bound::Included(score) | Bound::Excluded(score) if score.is_nan());
        if is_nan(min) || is_nan(max) {
            return Err(not_a_bound());
        }
        let lower = match min {
            Bound::Included(score) => score_bytes(score).to_vec(),
            Bound::Excluded(score) => after_score(score),
            Bound::Unbounded => Vec::new(),
        };
        let upper = match max {
            Bound::Included(score) => Some(after_score(score)),
            Bound::Excluded(score) => Some(score_bytes(score).to_vec()),
            Bound::Unbounded => None,
        };
        Ok(Self { lower, upper })
    }

    /// The rows with members within the bounds; `None` if there are none.
    pub(super) fn of_members(
        tx: &Tx<'_>,
        zset: &ZSet,
        (min, max): LexBounds<'_>,
        backward: bool,
    ) -> Result<Option<Self>> {
        if crossed(min, max) {
            return Ok(None);
        }
        let (Some(first), Some(last)) = (zset.end(tx, false)?, zset.end(tx, true)?) else {
            return Ok(None);
        };
        if first.1 == last.1 {
            return Ok(Some(Self::of_members_at(first.1, min, max)));
        }
        if !above(&last.0, min) || !below(&first.0, max) {
            return Ok(None);
        }
        Self::by_walking(tx, zset, (min, max), backward)
    }

    /// The same if all members have this score.
    fn of_members_at(score: f64, min: Bound<&[u8]>, max: Bound<&[u8]>) -> Self {
        let at = |member: &[u8]| score_sub_key(score, member);
        let after = |member: &[u8]| [&at(member)[..], &[0]].concat();
        let lower = match min {
            Bound::Included(member) => at(member),
            Bound::Excluded(member) => after(member),
            Bound::Unbounded => at(b""),
        };
        let upper = match max {
            Bound::Included(member) => Some(after(member)),
            Bound::Excluded(member) => Some(at(member)),
            Bound::Unbounded => None,
        };
        Self { lower, upper }
    }

    /// The same if scores differ.
    fn by_walking(
        tx: &Tx<'_>,
        zset: &ZSet,
        (min, max): LexBounds<'_>,
        backward: bool,
    ) -> Result<Option<Self>> {
        let enters = |member: &[u8]| if backward { below(member, max) } else { above(member, min) };
        let stays = |member: &[u8]| if backward { above(member, min) } else { below(member, max) };
        let mut walk = zset.walk(tx, &Self::all(), backward)?;
        let mut ends: Option<(Vec<u8>, Vec<u8>)> = None;
        while walk.advance()? {
            let (_, member) = walk.row()?;
            if ends.is_none() && !enters(member) {
                continue;
            }
            if !stays(member) {
                break;
            }
            let here = walk.sub_key().to_vec();
            ends = Some((ends.map_or_else(|| here.clone(), |(first, _)| first), here));
        }
        Ok(ends.map(|(first, last)| {
            let (lower, last) = if backward { (last, first) } else { (first, last) };
            Self { lower, upper: Some([&last[..], &[0]].concat()) }
        }))
    }
}

/// What sorts after every row of this score, and not after any of the next score: no score has
/// bytes of ones only, so there is a number after each.
fn after_score(score: f64) -> Vec<u8> {
    u64::from_be_bytes(score_bytes(score)).saturating_add(1).to_be_bytes().to_vec()
}

fn above(member: &[u8], min: Bound<&[u8]>) -> bool {
    match min {
        Bound::Included(min) => member >= min,
        Bound::Excluded(min) => member > min,
        Bound::Unbounded => true,
    }
}

fn below(member: &[u8], max: Bound<&[u8]>) -> bool {
    match max {
        Bound::Included(max) => member <= max,
        Bound::Excluded(max) => member < max,
        Bound::Unbounded => true,
    }
}

/// Whether no member can be within the bounds.
fn crossed(min: Bound<&[u8]>, max: Bound<&[u8]>) -> bool {
    match (min, max) {
        (Bound::Included(min), Bound::Included(max)) => min > max,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (
            Bound::Included(min) | Bound::Excluded(min),
            Bound::Included(max) | Bound::Excluded(max),
        ) => min >= max,
    }
}
