//! Writes the members of a range to a sink.

use bytes::Bytes;

use super::Scored;
use super::rows::{ScoreWalk, ZSet};
use super::span::Span;
use crate::error::Result;
use crate::txn::Tx;
use crate::types::ranks::NEAR;

/// The most bytes of members that are remembered on the way from the far end; more need a second
/// walk. Fewer in the tests of this crate, which have few members.
const REMEMBERED_BYTES: usize = if cfg!(test) { 100 } else { 64 << 10 };

/// Receives members with their scores.
pub(crate) trait ScoredSink {
    /// Announces the number of members. Not called for a range by score or by member: counting them
    /// first would cost as much as walking over a few.
    fn expect(&mut self, count: u64) -> Result<()>;
    /// Receives the next member; `false` if no more are wanted.
    fn push_scored(&mut self, member: &[u8], score: f64) -> Result<bool>;
}

impl ScoredSink for Scored {
    fn expect(&mut self, _count: u64) -> Result<()> {
        Ok(())
    }

    fn push_scored(&mut self, member: &[u8], score: f64) -> Result<bool> {
        self.push((Bytes::copy_from_slice(member), score));
        Ok(true)
    }
}

/// Writes members of one sorted set.
#[derive(Clone, Copy)]
pub(super) struct RangeOutput<'a> {
    pub(super) tx: &'a Tx<'a>,
    pub(super) zset: &'a ZSet,
    /// Whether a zero score keeps its sign.
    pub(super) exact: bool,
}

impl RangeOutput<'_> {
    /// Writes the members of a span, without the first `offset`, at most `count`.
    pub(super) fn span(
        &self,
        span: &Span,
        reverse: bool,
        offset: u64,
        count: Option<u64>,
        sink: &mut dyn ScoredSink,
    ) -> Result<()> {
        if let Some(mut walk) = self.zset.walk_past(self.tx, span, reverse, offset)? {
            self.next(&mut walk, count.unwrap_or(u64::MAX), sink)?;
        }
        Ok(())
    }

    /// Writes the members between two existing positions. A few near the far end are met by a walk
    /// from there, and so are those of a collection that is not counted if that end is nearer.
    pub(super) fn positions(
        &self,
        first: u64,
        last: u64,
        reverse: bool,
        sink: &mut dyn ScoredSink,
    ) -> Result<()> {
        let (count, behind) = (last - first + 1, self.zset.len() - 1 - last);
        sink.expect(count)?;
        let from_far_end = behind + count;
        if from_far_end < first && (from_far_end <= NEAR || !self.zset.rows().is_counted(self.tx)) {
            return self.met_backward(behind, count, reverse, sink);
        }
        match self.zset.walk_past(self.tx, &Span::all(), reverse, first)? {
            Some(mut walk) => self.exactly(&mut walk, count, sink),
            None => Err(self.zset.rows().miscounted()),
        }
    }

    /// Writes `count` members before the last `behind` ones. A walk from the far end meets them in
    /// reverse order: a few are remembered; of many only the first, where a second walk begins.
    fn met_backward(
        &self,
        behind: u64,
        count: u64,
        reverse: bool,
        sink: &mut dyn ScoredSink,
    ) -> Result<()> {
        let mut walk = self.zset.walk(self.tx, &Span::all(), !reverse)?;
        let (mut found, mut bytes) = (Scored::new(), 0);
        let mut enough = walk.skip(behind)?;
        while enough && (found.len() as u64) < count && bytes <= REMEMBERED_BYTES {
            enough = walk.advance()?;
            if enough {
                let (score, member) = walk.scored(self.tx, self.exact)?;
                bytes += member.len() + size_of::<(Bytes, f64)>();
                found.push_scored(member, score)?;
            }
        }
        let left = count - found.len() as u64;
        if !enough || !walk.skip(left)? {
            return Err(self.zset.rows().miscounted());
        }
        if left == 0 {
            for (member, score) in found.iter().rev() {
                if !sink.push_scored(member, *score)? {
                    break;
                }
            }
            return Ok(());
        }
        let mut walk =
            self.zset.walk(self.tx, &Span::all().starting_at(walk.sub_key(), reverse), reverse)?;
        self.exactly(&mut walk, count, sink)
    }

    /// Writes exactly `count` members; fewer are damage.
    fn exactly(
        &self,
        walk: &mut ScoreWalk<'_>,
        count: u64,
        sink: &mut dyn ScoredSink,
    ) -> Result<()> {
        let wanted_more = self.next(walk, count, sink)?;
        if wanted_more > 0 { Err(self.zset.rows().miscounted()) } else { Ok(()) }
    }

    /// Writes at most `count` members; how many are missing.
    fn next(&self, walk: &mut ScoreWalk<'_>, count: u64, sink: &mut dyn ScoredSink) -> Result<u64> {
        let mut left = count;
        while left > 0 && walk.advance()? {
            let (score, member) = walk.scored(self.tx, self.exact)?;
            if !sink.push_scored(member, score)? {
                return Ok(0);
            }
            left -= 1;
        }
        Ok(left)
    }
}

#[cfg(test)]
mod tests {
    use crate::types::testing::both;
    use crate::types::{By, ZAdd, ZRange};

    #[test]
    fn every_range_of_positions_is_that_part_of_all_whichever_way_it_is_walked() {
        const MEMBERS: i64 = 24;
        let name = |n: i64| format!("member {n:02}");
        for db in both() {
            for n in 0..MEMBERS {
                let member = name(n);
                db.zadd(b"z", &[(n as f64 / 4.0, member.as_bytes())], ZAdd::default()).unwrap();
            }
            for reverse in [false, true] {
                let all: Vec<String> = match reverse {
                    false => (0..MEMBERS).map(name).collect(),
                    true => (0..MEMBERS).rev().map(name).collect(),
                };
                for first in 0..MEMBERS {
                    for last in first..MEMBERS {
                        let range = ZRange { reverse, ..ZRange::of(By::Rank(first, last)) };
                        let (first, last) = (first as usize, last as usize);
                        assert_eq!(
                            db.zrange(b"z", &range).unwrap(),
                            all[first..=last],
                            "{range:?}"
                        );
                    }
                }
            }
        }
    }
}
