//! The span of score rows that a range by member covers.
//!
//! Ranges by member are meant for sets whose members all have one score; then they are a span of
//! that score's rows. Otherwise the reference leaves the result open, and returns what a walk finds
//! from the first member inside to the first one outside: so do we.

use std::ops::Bound;

use super::rows::{ZSet, score_sub_key};
use super::span::Span;
use super::text::LexBounds;
use crate::error::Result;
use crate::txn::Tx;

impl Span {
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

    /// The rows with members within the bounds, if all members have this score.
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

    /// The rows with members within the bounds, if scores differ.
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
