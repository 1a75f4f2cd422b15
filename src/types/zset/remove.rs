//! ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX, ZPOPMIN, ZPOPMAX, ZMPOP.

use std::ops::Bound;

use bytes::Bytes;

use super::rows::ZSet;
use super::span::Span;
use super::{End, Scored};
use crate::error::Result;
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::string::length;

commands! {
    /// ZREMRANGEBYSCORE: removes the members with scores within the bounds; how many there were.
    write [key] fn zremrangebyscore(key: &[u8], min: Bound<f64>, max: Bound<f64>) -> i64;
    /// ZREMRANGEBYLEX: removes the members within the bounds, if all have the same score; how
    /// many there were.
    write [key] fn zremrangebylex(key: &[u8], min: Bound<&[u8]>, max: Bound<&[u8]>) -> i64;
    /// ZPOPMIN: removes up to `count` members with the least scores and returns them.
    write [key] fn zpopmin(key: &[u8], count: u64) -> Vec<(Bytes, f64)>;
    /// ZPOPMAX: removes up to `count` members with the greatest scores and returns them.
    write [key] fn zpopmax(key: &[u8], count: u64) -> Vec<(Bytes, f64)>;
    /// ZMPOP: removes up to `count` members from an end of the first key that exists; the key and
    /// the members.
    write_keys [keys] fn zmpop(
        keys: &[&[u8]], end: End, count: u64,
    ) -> Option<(Bytes, Vec<(Bytes, f64)>)>;
}

impl Tx<'_> {
    pub(crate) fn zrem(&mut self, key: &[u8], members: &[&[u8]]) -> Result<i64> {
        self.frees_space();
        let Some(mut zset) = self.zset(key)? else { return Ok(0) };
        let mut removed = 0;
        for member in members {
            removed += i64::from(zset.remove(self, member)?.is_some());
        }
        self.save_zset(zset)?;
        if removed > 0 {
            self.notify_taken(Classes::ZSET, "zrem", key)?;
        }
        Ok(removed)
    }

    pub(crate) fn zremrangebyrank(&mut self, key: &[u8], start: i64, stop: i64) -> Result<i64> {
        let Some(zset) = self.zset(key)? else { return Ok(0) };
        let members = self.members_at(&zset, start, stop)?;
        self.remove_members("zremrangebyrank", key, zset, &members, None)
    }

    pub(crate) fn zremrangebyscore(
        &mut self,
        key: &[u8],
        min: Bound<f64>,
        max: Bound<f64>,
    ) -> Result<i64> {
        let span = Span::of_scores(min, max)?;
        let Some(zset) = self.zset(key)? else { return Ok(0) };
        self.remove_span("zremrangebyscore", key, zset, &span)
    }

    pub(crate) fn zremrangebylex(
        &mut self,
        key: &[u8],
        min: Bound<&[u8]>,
        max: Bound<&[u8]>,
    ) -> Result<i64> {
        let Some(zset) = self.zset(key)? else { return Ok(0) };
        match Span::of_members(self, &zset, (min, max), false)? {
            Some(span) => self.remove_span("zremrangebylex", key, zset, &span),
            None => Ok(0),
        }
    }

    pub(crate) fn zpopmin(&mut self, key: &[u8], count: u64) -> Result<Scored> {
        self.pop_members(key, End::Min, count)
    }

    pub(crate) fn zpopmax(&mut self, key: &[u8], count: u64) -> Result<Scored> {
        self.pop_members(key, End::Max, count)
    }

    pub(crate) fn zmpop(
        &mut self,
        keys: &[&[u8]],
        end: End,
        count: u64,
    ) -> Result<Option<(Bytes, Scored)>> {
        for key in keys {
            if self.zset(key)?.is_some() {
                let members = self.pop_members(key, end, count)?;
                return Ok(Some((Bytes::copy_from_slice(key), members)));
            }
        }
        Ok(None)
    }

    fn pop_members(&mut self, key: &[u8], end: End, count: u64) -> Result<Scored> {
        let Some(zset) = self.zset(key)? else { return Ok(Scored::new()) };
        let mut walk = zset.walk(self, &Span::all(), end == End::Max)?;
        let members = walk.collect(self, count, true)?;
        // The row behind them becomes the outermost: the next pop begins there.
        let next = walk.advance()?.then(|| (end, walk.sub_key().to_vec()));
        let name = if end == End::Max { "zpopmax" } else { "zpopmin" };
        self.remove_members(name, key, zset, &members, next)?;
        Ok(members)
    }

    fn remove_span(
        &mut self,
        name: &'static str,
        key: &[u8],
        zset: ZSet,
        span: &Span,
    ) -> Result<i64> {
        let members = zset.walk(self, span, false)?.collect(self, u64::MAX, false)?;
        self.remove_members(name, key, zset, &members, None)
    }

    /// Removes existing members with these scores. If they are all, the record is deleted and their
    /// rows become unreachable, without a tombstone for each. `next` is the score row at that end
    /// afterwards, if it is known.
    fn remove_members(
        &mut self,
        name: &'static str,
        key: &[u8],
        mut zset: ZSet,
        members: &Scored,
        next: Option<(End, Vec<u8>)>,
    ) -> Result<i64> {
        self.frees_space();
        if members.is_empty() {
            return Ok(0);
        }
        if members.len() as u64 == zset.len() {
            self.delete_record(key);
            self.notify_taken(Classes::ZSET, name, key)?;
            return Ok(length(members.len()));
        }
        for (member, score) in members {
            zset.remove_present(self, member, *score)?;
        }
        if let Some((end, row)) = next {
            zset.is_bounded_by(end, &row);
        }
        self.save_zset(zset)?;
        self.notify_taken(Classes::ZSET, name, key)?;
        Ok(length(members.len()))
    }
}
