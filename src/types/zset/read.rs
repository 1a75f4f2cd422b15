//! ZCARD, ZSCORE, ZMSCORE, ZRANK, ZREVRANK, ZCOUNT, ZLEXCOUNT.

use std::ops::Bound;

use super::rows::{ZSet, score_sub_key};
use super::span::Span;
use crate::error::Result;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::scores::stored_score;

commands! {
    /// ZCOUNT: how many members have scores within the bounds.
    read fn zcount(key: &[u8], min: Bound<f64>, max: Bound<f64>) -> i64;
    /// ZLEXCOUNT: how many members are within the bounds, if all have the same score.
    read fn zlexcount(key: &[u8], min: Bound<&[u8]>, max: Bound<&[u8]>) -> i64;
}

impl Tx<'_> {
    pub(crate) fn zcard(&self, key: &[u8]) -> Result<i64> {
        Ok(self.zset(key)?.map_or(0, |zset| zset.card()))
    }

    pub(crate) fn zscore(&self, key: &[u8], member: &[u8]) -> Result<Option<f64>> {
        match self.zset(key)? {
            Some(zset) => zset.score(self, member),
            None => Ok(None),
        }
    }

    pub(crate) fn zmscore(&self, key: &[u8], members: &[&[u8]]) -> Result<Vec<Option<f64>>> {
        let Some(zset) = self.zset(key)? else { return Ok(vec![None; members.len()]) };
        let looks = zset.rows().multi_lookup(members.len() as u64)?;
        let score = |member: &&[u8]| looks.with_value(self, member, stored_score)?.transpose();
        members.iter().map(score).collect()
    }

    pub(crate) fn zrank(&self, key: &[u8], member: &[u8]) -> Result<Option<i64>> {
        Ok(self.rank(key, member)?.map(|(rank, _)| as_count(rank)))
    }

    pub(crate) fn zrevrank(&self, key: &[u8], member: &[u8]) -> Result<Option<i64>> {
        Ok(self.rank(key, member)?.map(|(rank, len)| as_count(len.saturating_sub(rank + 1))))
    }

    /// How many members come before this one, and how many there are.
    fn rank(&self, key: &[u8], member: &[u8]) -> Result<Option<(u64, u64)>> {
        let Some(zset) = self.zset(key)? else { return Ok(None) };
        let Some(score) = zset.score(self, member)? else { return Ok(None) };
        Ok(Some((self.count_before(&zset, &score_sub_key(score, member))?, zset.len())))
    }

    /// How many members come before the score row with this sub key. In a collection that is not
    /// counted, two walks start there and go both ways in turn: the one that ends first tells where
    /// the row is, so the walk is as long as the way to the nearer end.
    fn count_before(&self, zset: &ZSet, sub_key: &[u8]) -> Result<u64> {
        let before = Span { lower: Vec::new(), upper: Some(sub_key.to_vec()) };
        if zset.rows().is_counted(self) {
            return zset.count(self, &before);
        }
        let from_here = Span { lower: sub_key.to_vec(), upper: None };
        let mut down = zset.walk(self, &before, true)?;
        let mut up = zset.walk(self, &from_here, false)?;
        let mut steps = 0;
        loop {
            if !down.advance()? {
                return Ok(steps);
            }
            if !up.advance()? {
                return Ok(zset.len().saturating_sub(steps));
            }
            steps += 1;
        }
    }

    pub(crate) fn zcount(&self, key: &[u8], min: Bound<f64>, max: Bound<f64>) -> Result<i64> {
        let span = Span::of_scores(min, max)?;
        match self.zset(key)? {
            Some(zset) => zset.count(self, &span).map(as_count),
            None => Ok(0),
        }
    }

    pub(crate) fn zlexcount(
        &self,
        key: &[u8],
        min: Bound<&[u8]>,
        max: Bound<&[u8]>,
    ) -> Result<i64> {
        let Some(zset) = self.zset(key)? else { return Ok(0) };
        match Span::of_members(self, &zset, (min, max), false)? {
            Some(span) => zset.count(self, &span).map(as_count),
            None => Ok(0),
        }
    }
}

fn as_count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
