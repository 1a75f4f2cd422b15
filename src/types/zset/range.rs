//! ZRANGE and its older forms, ZRANGESTORE.

use std::ops::Bound;

use bytes::Bytes;

use super::Scored;
use super::range_output::{RangeOutput, ScoredSink};
use super::rows::ZSet;
use super::span::Span;
use crate::encoding::meta::Type;
use crate::error::Result;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::collection_builder::CollectionBuilder;

/// The bounds of a range. `Unbounded` reaches as far as there are members.
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
    /// The bounds.
    pub by: By<'a>,
    /// REV: the last member first.
    pub reverse: bool,
    /// LIMIT: skip this many members; all if it is negative. Not for ranks.
    pub offset: i64,
    /// LIMIT: return at most this many members; negative: all. Not for ranks.
    pub count: i64,
}

impl<'a> ZRange<'a> {
    /// The whole range in order.
    pub fn of(by: By<'a>) -> Self {
        Self { by, reverse: false, offset: 0, count: -1 }
    }

    /// The range in reverse order.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self { reverse: true, ..self }
    }

    /// The part of the range without the first `offset` members and with at most `count`.
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
    /// ZRANGESTORE: replaces `destination` by a range of `source`; its number of members.
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
        // A source of another type is an error before anything is begun.
        self.as_read(|tx| tx.zset(source))?;
        let mut stored = Stored { build: self.build_collection(destination)?, size: 0 };
        self.show_range(source, range, true, &mut stored)?;
        self.store_built("zrangestore", destination, stored.build, Type::ZSet, stored.size)
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
        let mut members = Scored::new();
        self.show_range(key, range, exact, &mut members)?;
        Ok(members)
    }

    /// Writes the members of a range to a sink. `exact` keeps the sign of a zero score, at the cost
    /// of a lookup.
    pub(crate) fn show_range(
        &self,
        key: &[u8],
        range: &ZRange<'_>,
        exact: bool,
        sink: &mut dyn ScoredSink,
    ) -> Result<()> {
        // Bounds that are no numbers are an error even if the key is missing.
        let by_score = match range.by {
            By::Score(min, max) => Some(Span::of_scores(min, max)?),
            _ => None,
        };
        let Some(zset) = self.zset(key)? else { return sink.expect(0) };
        let show = RangeOutput { tx: self, zset: &zset, exact };
        let span = match range.by {
            By::Rank(start, stop) => {
                return match positions(start, stop, zset.len()) {
                    Some((first, last)) => show.positions(first, last, range.reverse, sink),
                    None => sink.expect(0),
                };
            }
            By::Lex(min, max) => Span::of_members(self, &zset, (min, max), range.reverse)?,
            By::Score(..) => by_score,
        };
        let (Some(span), Ok(offset)) = (span, u64::try_from(range.offset)) else {
            return sink.expect(0);
        };
        show.span(&span, range.reverse, offset, u64::try_from(range.count).ok(), sink)
    }

    /// The members at positions.
    pub(super) fn members_at(&self, zset: &ZSet, start: i64, stop: i64) -> Result<Scored> {
        let mut members = Scored::new();
        if let Some((first, last)) = positions(start, stop, zset.len()) {
            RangeOutput { tx: self, zset, exact: false }.positions(
                first,
                last,
                false,
                &mut members,
            )?;
        }
        Ok(members)
    }
}

/// Stores the members that it receives, for ZRANGESTORE.
struct Stored<'s> {
    build: CollectionBuilder<'s>,
    size: u64,
}

impl ScoredSink for Stored<'_> {
    fn expect(&mut self, _count: u64) -> Result<()> {
        Ok(())
    }

    fn push_scored(&mut self, member: &[u8], score: f64) -> Result<bool> {
        self.build.put_scored(member, score)?;
        self.size += 1;
        Ok(true)
    }
}

/// The first and the last position among `len`, from two that may be negative or too large.
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
