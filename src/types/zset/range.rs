//! ZRANGE and its older forms, ZRANGESTORE.

use std::ops::Bound;

use bytes::Bytes;

use super::Scored;
use super::rows::{ScoreWalk, ZSet};
use super::span::Span;
use crate::encoding::meta::Type;
use crate::error::Result;
use crate::types::db::commands;
use crate::types::txn::Tx;

/// What the ends of a range are. `Unbounded` is as far as there are members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By<'a> {
    /// Positions of the first and the last member, in the direction of the range; negative ones
    /// count from the end.
    Rank(i64, i64),
    /// The least and the greatest score, whatever the direction.
    Score(Bound<f64>, Bound<f64>),
    /// The least and the greatest member, whatever the direction, if all have the same score.
    Lex(Bound<&'a [u8]>, Bound<&'a [u8]>),
}

/// A range of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZRange<'a> {
    /// Its ends.
    pub by: By<'a>,
    /// REV: the last member first.
    pub reverse: bool,
    /// LIMIT: leaves out that many members first; all if it is negative. Not for ranks.
    pub offset: i64,
    /// LIMIT: at most that many members; negative: all. Not for ranks.
    pub count: i64,
}

impl<'a> ZRange<'a> {
    /// All of the range, in order.
    pub fn of(by: By<'a>) -> Self {
        Self { by, reverse: false, offset: 0, count: -1 }
    }

    /// The same, the last member first.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { reverse: true, ..self }
    }

    /// The part of it that leaves out `offset` members and has at most `count`.
    #[must_use]
    pub fn limited(self, offset: i64, count: i64) -> Self {
        Self { offset, count, ..self }
    }
}

commands! {
    /// ZRANGE: the members of a range.
    read fn zrange(key: &[u8], range: &ZRange<'_>) -> Vec<Bytes>;
    /// ZRANGE with WITHSCORES: the members of a range and their scores.
    read fn zrange_withscores(key: &[u8], range: &ZRange<'_>) -> Vec<(Bytes, f64)>;
    /// ZRANGESTORE: makes `destination` the sorted set of a range of `source`, whatever it was;
    /// how many members it has.
    write [destination, source] fn zrangestore(
        destination: &[u8], source: &[u8], range: &ZRange<'_>,
    ) -> i64;
    /// ZREVRANGE: the members from one position to another, the last one being at position 0.
    read fn zrevrange(key: &[u8], start: i64, stop: i64) -> Vec<Bytes>;
    /// ZRANGEBYSCORE: the members with scores within the bounds.
    read fn zrangebyscore(key: &[u8], min: Bound<f64>, max: Bound<f64>) -> Vec<Bytes>;
    /// ZREVRANGEBYSCORE: the members with scores within the bounds, the last one first.
    read fn zrevrangebyscore(key: &[u8], max: Bound<f64>, min: Bound<f64>) -> Vec<Bytes>;
    /// ZRANGEBYLEX: the members within the bounds, if all have the same score.
    read fn zrangebylex(key: &[u8], min: Bound<&[u8]>, max: Bound<&[u8]>) -> Vec<Bytes>;
    /// ZREVRANGEBYLEX: the members within the bounds, if all have the same score, the last one
    /// first.
    read fn zrevrangebylex(key: &[u8], max: Bound<&[u8]>, min: Bound<&[u8]>) -> Vec<Bytes>;
}

impl Tx<'_> {
    pub(crate) fn zrange(&self, key: &[u8], range: &ZRange<'_>) -> Result<Vec<Bytes>> {
        let members = self.members_in(key, range, false)?;
        Ok(members.into_iter().map(|(member, _)| member).collect())
    }

    pub(crate) fn zrange_withscores(&self, key: &[u8], range: &ZRange<'_>) -> Result<Scored> {
        self.members_in(key, range, true)
    }

    pub(crate) fn zrangestore(
        &mut self,
        destination: &[u8],
        source: &[u8],
        range: &ZRange<'_>,
    ) -> Result<i64> {
        let zset = self.zset_in(source, range)?;
        let (mut build, mut size) = (self.build(destination)?, 0);
        // In which order the members are written makes no difference.
        if let Some(zset) = &zset
            && let Some(mut part) = self.part(zset, range)?
        {
            while size < part.count && part.walk.advance()? {
                let (score, member) = part.walk.scored(self, true)?;
                build.put_scored(member, score)?;
                size += 1;
            }
        }
        self.store_built(destination, build, Type::ZSet, size)
    }

    pub(crate) fn zrevrange(&self, key: &[u8], start: i64, stop: i64) -> Result<Vec<Bytes>> {
        self.zrange(key, &ZRange::of(By::Rank(start, stop)).reversed())
    }

    pub(crate) fn zrangebyscore(
        &self,
        key: &[u8],
        min: Bound<f64>,
        max: Bound<f64>,
    ) -> Result<Vec<Bytes>> {
        self.zrange(key, &ZRange::of(By::Score(min, max)))
    }

    pub(crate) fn zrevrangebyscore(
        &self,
        key: &[u8],
        max: Bound<f64>,
        min: Bound<f64>,
    ) -> Result<Vec<Bytes>> {
        self.zrange(key, &ZRange::of(By::Score(min, max)).reversed())
    }

    pub(crate) fn zrangebylex(
        &self,
        key: &[u8],
        min: Bound<&[u8]>,
        max: Bound<&[u8]>,
    ) -> Result<Vec<Bytes>> {
        self.zrange(key, &ZRange::of(By::Lex(min, max)))
    }

    pub(crate) fn zrevrangebylex(
        &self,
        key: &[u8],
        max: Bound<&[u8]>,
        min: Bound<&[u8]>,
    ) -> Result<Vec<Bytes>> {
        self.zrange(key, &ZRange::of(By::Lex(min, max)).reversed())
    }

    fn members_in(&self, key: &[u8], range: &ZRange<'_>, exact: bool) -> Result<Scored> {
        let Some(zset) = self.zset_in(key, range)? else { return Ok(Scored::new()) };
        match self.part(&zset, range)? {
            Some(part) => part.collect(self, exact),
            None => Ok(Scored::new()),
        }
    }

    /// The sorted set at `key`, once the range is known to be one: bounds that are no numbers are
    /// an error even if the key is missing.
    fn zset_in(&self, key: &[u8], range: &ZRange<'_>) -> Result<Option<ZSet>> {
        if let By::Score(min, max) = range.by {
            Span::of_scores(min, max)?;
        }
        self.zset(key)
    }

    /// The members of a range; `None` if there are none.
    fn part<'z>(&self, zset: &'z ZSet, range: &ZRange<'_>) -> Result<Option<Part<'z>>> {
        let span = match range.by {
            By::Rank(start, stop) => return self.part_at(zset, start, stop, range.reverse),
            By::Lex(min, max) => Span::of_members(self, zset, (min, max), range.reverse)?,
            By::Score(min, max) => Some(Span::of_scores(min, max)?),
        };
        let (Some(span), Ok(offset)) = (span, u64::try_from(range.offset)) else {
            return Ok(None);
        };
        let mut walk = zset.walk(self, &span, range.reverse)?;
        if !walk.skip(offset)? {
            return Ok(None);
        }
        let count = u64::try_from(range.count).unwrap_or(u64::MAX);
        Ok(Some(Part { walk, count, backward: false }))
    }

    /// The members at positions, walked to from the nearer end.
    fn part_at<'z>(
        &self,
        zset: &'z ZSet,
        start: i64,
        stop: i64,
        reverse: bool,
    ) -> Result<Option<Part<'z>>> {
        let len = zset.len();
        let Some((first, last)) = positions(start, stop, len) else { return Ok(None) };
        let (count, behind) = (last - first + 1, len - 1 - last);
        let backward = behind < first;
        let mut walk = zset.walk(self, &Span::all(), reverse != backward)?;
        walk.skip(if backward { behind } else { first })?;
        Ok(Some(Part { walk, count, backward }))
    }

    /// The members at positions.
    pub(super) fn members_at(&self, zset: &ZSet, start: i64, stop: i64) -> Result<Scored> {
        match self.part_at(zset, start, stop, false)? {
            Some(part) => part.collect(self, false),
            None => Ok(Scored::new()),
        }
    }
}

/// Members of a range: the next `count` of a walk, the last one first if it goes backward.
struct Part<'z> {
    walk: ScoreWalk<'z>,
    count: u64,
    backward: bool,
}

impl Part<'_> {
    fn collect(mut self, tx: &Tx<'_>, exact: bool) -> Result<Scored> {
        let mut members = self.walk.collect(tx, self.count, exact)?;
        if self.backward {
            members.reverse();
        }
        Ok(members)
    }
}

/// The first and the last position among `len`, of two that may be negative or too great.
fn positions(start: i64, stop: i64, len: u64) -> Option<(u64, u64)> {
    let from_front = |position: i64| match u64::try_from(position) {
        Ok(position) => Some(position),
        Err(_) => len.checked_sub(position.unsigned_abs()),
    };
    let first = from_front(start).unwrap_or(0);
    let last = from_front(stop)?.min(len.checked_sub(1)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_clamped_to_the_members() {
        for (start, stop, expected) in [
            (0, -1, Some((0, 4))),
            (0, 99, Some((0, 4))),
            (-99, 1, Some((0, 1))),
            (-2, -1, Some((3, 4))),
            (3, 2, None),
            (5, 9, None),
            (0, -6, None),
            (i64::MIN, i64::MAX, Some((0, 4))),
        ] {
            assert_eq!(positions(start, stop, 5), expected, "{start} {stop}");
        }
        assert_eq!(positions(0, -1, 0), None);
    }
}
