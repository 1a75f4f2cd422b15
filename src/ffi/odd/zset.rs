//! Sorted sets: ZADD, pops into two outputs, and ranges whose flag REV swaps the
//! bounds of the command.

use std::ops::Bound;

use crate::commands::entry::Entry;
use crate::commands::{Reply, entries, stream};
use crate::error::Result;
use crate::ffi::argv::{Argv, text};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::flags::{
    Flags, LSMKV_CH, LSMKV_GT, LSMKV_LT, LSMKV_NX, LSMKV_REV, LSMKV_WITHSCORES, LSMKV_XX,
};
use crate::ffi::output::{WriteOutput, WriteReply, unexpected};
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, LSMKV_SKIPPED, lsmkv_status};
use crate::ffi::target::CommandTarget;
use crate::txn::Db;
use crate::types::number::not_a_float;
use crate::types::{By, ZAdd, ZRange};

// ZADD goes straight to its method: it is too frequent to print scores and parse them again.

pub(crate) fn zadd(
    target: &CommandTarget<'_>,
    key: &[u8],
    score: f64,
    member: &[u8],
    added: &Out<i64>,
) -> Result<lsmkv_status> {
    if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::ZADD);
        argv.push(key);
        argv.scored(&[score], &[member]);
        return added.run(target, &entries::ZADD, &argv, LSMKV_NOT_FOUND);
    }
    added.write(target.db()?.zadd(key, &[(score, member)], ZAdd::default())?)
}

pub(crate) fn zadd_opt(
    target: &CommandTarget<'_>,
    key: &[u8],
    score: f64,
    member: &[u8],
    flags: Flags,
    changed: &Out<i64>,
) -> Result<lsmkv_status> {
    zadd_many(target, key, &[member], &[score], flags, changed)
}

pub(crate) fn zadd_many(
    target: &CommandTarget<'_>,
    key: &[u8],
    items: &[&[u8]],
    scores: &[f64],
    flags: Flags,
    changed: &Out<i64>,
) -> Result<lsmkv_status> {
    check_scores(scores)?;
    if target.is_elsewhere() {
        let mut argv = zadd_argv(key, flags);
        argv.scored(scores, items);
        return changed.run(target, &entries::ZADD, &argv, LSMKV_NOT_FOUND);
    }
    let members: Vec<_> = scores.iter().copied().zip(items.iter().copied()).collect();
    changed.write(target.db()?.zadd(key, &members, zadd_options(flags))?)
}

pub(crate) fn zadd_incr(
    target: &CommandTarget<'_>,
    key: &[u8],
    increment: f64,
    member: &[u8],
    flags: Flags,
    out: &Out<f64>,
) -> Result<lsmkv_status> {
    check_scores(&[increment])?;
    if target.is_elsewhere() {
        let mut argv = zadd_argv(key, flags);
        argv.word("INCR");
        argv.scored(&[increment], &[member]);
        return out.run(target, &entries::ZADD, &argv, LSMKV_SKIPPED);
    }
    match target.db()?.zadd_incr(key, increment, member, zadd_options(flags))? {
        Some(score) => out.write(score),
        None => Ok(LSMKV_SKIPPED),
    }
}

/// Fails for a NaN, also where the method would not look at the score.
fn check_scores(scores: &[f64]) -> Result<()> {
    if scores.iter().any(|score| score.is_nan()) { Err(not_a_float()) } else { Ok(()) }
}

fn zadd_options(flags: Flags) -> ZAdd {
    ZAdd {
        nx: flags.has(LSMKV_NX),
        xx: flags.has(LSMKV_XX),
        gt: flags.has(LSMKV_GT),
        lt: flags.has(LSMKV_LT),
        ch: flags.has(LSMKV_CH),
    }
}

/// ZADD with its key and options, in words.
fn zadd_argv(key: &[u8], flags: Flags) -> Argv<'_> {
    let mut argv = Argv::new(&entries::ZADD);
    argv.push(key);
    argv.flag(flags, LSMKV_NX, "NX");
    argv.flag(flags, LSMKV_XX, "XX");
    argv.flag(flags, LSMKV_GT, "GT");
    argv.flag(flags, LSMKV_LT, "LT");
    argv.flag(flags, LSMKV_CH, "CH");
    argv
}

pub(crate) fn zpopmin(
    target: &CommandTarget<'_>,
    key: &[u8],
    member: &Out<lsmkv_buf>,
    score: &Out<f64>,
) -> Result<lsmkv_status> {
    pop(target, key, &entries::ZPOPMIN, Db::zpopmin, member, score)
}

pub(crate) fn zpopmax(
    target: &CommandTarget<'_>,
    key: &[u8],
    member: &Out<lsmkv_buf>,
    score: &Out<f64>,
) -> Result<lsmkv_status> {
    pop(target, key, &entries::ZPOPMAX, Db::zpopmax, member, score)
}

fn pop(
    target: &CommandTarget<'_>,
    key: &[u8],
    entry: &'static Entry,
    method: impl FnOnce(&Db, &[u8], u64) -> Result<Vec<(bytes::Bytes, f64)>>,
    member: &Out<lsmkv_buf>,
    score: &Out<f64>,
) -> Result<lsmkv_status> {
    if target.is_elsewhere() {
        let mut argv = Argv::new(entry);
        argv.push(key);
        let Some(reply) = target.reply(entry, &argv)? else { return Ok(LSMKV_OK) };
        let Reply::Array(popped) = &reply else { return Err(unexpected(&reply)) };
        return match popped.as_slice() {
            [] => Ok(LSMKV_NOT_FOUND),
            [Reply::Bulk(popped), Reply::Double(its_score)] => {
                score.write(*its_score)?;
                member.write(popped.clone())
            }
            _ => Err(unexpected(&reply)),
        };
    }
    let Some((popped, its_score)) = method(target.db()?, key, 1)?.into_iter().next() else {
        return Ok(LSMKV_NOT_FOUND);
    };
    score.write(its_score)?;
    member.write(popped)
}

#[expect(clippy::too_many_arguments, reason = "as many as the C function has")]
pub(crate) fn zrangebyscore(
    target: &CommandTarget<'_>,
    key: &[u8],
    min: Bound<f64>,
    max: Bound<f64>,
    flags: Flags,
    offset: i64,
    count: i64,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    range(target, key, ZRange::of(By::Score(min, max)).limited(offset, count), flags, out)
}

#[expect(clippy::too_many_arguments, reason = "as many as the C function has")]
pub(crate) fn zrangebylex(
    target: &CommandTarget<'_>,
    key: &[u8],
    min: Bound<&[u8]>,
    max: Bound<&[u8]>,
    flags: Flags,
    offset: i64,
    count: i64,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    range(target, key, ZRange::of(By::Lex(min, max)).limited(offset, count), flags, out)
}

fn range(
    target: &CommandTarget<'_>,
    key: &[u8],
    range: ZRange<'_>,
    flags: Flags,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    if target.is_elsewhere() {
        let words = RangeWords::of(&range);
        let mut argv = Argv::new(&entries::ZRANGE);
        argv.push(key);
        words.push_to(&mut argv, flags, (range.offset, range.count));
        argv.flag(flags, LSMKV_WITHSCORES, "WITHSCORES");
        return out.run(target, &entries::ZRANGE, &argv, LSMKV_NOT_FOUND);
    }
    let range = if flags.has(LSMKV_REV) { range.reversed() } else { range };
    let with_scores = flags.has(LSMKV_WITHSCORES);
    out.stream(target, |tx, sink| stream::zrange(tx, key, &range, with_scores, sink))
}

#[expect(clippy::too_many_arguments, reason = "as many as the C function has")]
pub(crate) fn zrangestore_byscore(
    target: &CommandTarget<'_>,
    destination: &[u8],
    source: &[u8],
    min: Bound<f64>,
    max: Bound<f64>,
    flags: Flags,
    offset: i64,
    count: i64,
    length: &Out<i64>,
) -> Result<lsmkv_status> {
    let range = ZRange::of(By::Score(min, max)).limited(offset, count);
    store(target, destination, source, &range, flags, length)
}

#[expect(clippy::too_many_arguments, reason = "as many as the C function has")]
pub(crate) fn zrangestore_bylex(
    target: &CommandTarget<'_>,
    destination: &[u8],
    source: &[u8],
    min: Bound<&[u8]>,
    max: Bound<&[u8]>,
    flags: Flags,
    offset: i64,
    count: i64,
    length: &Out<i64>,
) -> Result<lsmkv_status> {
    let range = ZRange::of(By::Lex(min, max)).limited(offset, count);
    store(target, destination, source, &range, flags, length)
}

fn store(
    target: &CommandTarget<'_>,
    destination: &[u8],
    source: &[u8],
    range: &ZRange<'_>,
    flags: Flags,
    length: &Out<i64>,
) -> Result<lsmkv_status> {
    let words = RangeWords::of(range);
    let mut argv = Argv::new(&entries::ZRANGESTORE);
    argv.extend(&[destination, source]);
    words.push_to(&mut argv, flags, (range.offset, range.count));
    length.run(target, &entries::ZRANGESTORE, &argv, LSMKV_NOT_FOUND)
}

/// The bounds of a range as ZRANGE spells them.
struct RangeWords {
    by: &'static str,
    min: Vec<u8>,
    max: Vec<u8>,
}

impl RangeWords {
    fn of(range: &ZRange<'_>) -> Self {
        let score = |bound: Bound<f64>, open: &str| match bound {
            Bound::Excluded(score) => format!("({score}").into_bytes(),
            Bound::Included(score) => format!("{score}").into_bytes(),
            Bound::Unbounded => open.as_bytes().to_vec(),
        };
        let member = |bound: Bound<&[u8]>, open: &[u8]| match bound {
            Bound::Excluded(member) => [b"(", member].concat(),
            Bound::Included(member) => [b"[", member].concat(),
            Bound::Unbounded => open.to_vec(),
        };
        let (by, min, max) = match range.by {
            By::Score(min, max) => ("BYSCORE", score(min, "-inf"), score(max, "inf")),
            By::Lex(min, max) => ("BYLEX", member(min, b"-"), member(max, b"+")),
            By::Rank(first, last) => {
                ("", first.to_string().into_bytes(), last.to_string().into_bytes())
            }
        };
        Self { by, min, max }
    }

    /// Adds the bounds, which come in the direction of the range, its options and the part of it.
    fn push_to<'a>(&'a self, argv: &mut Argv<'a>, flags: Flags, (offset, count): (i64, i64)) {
        let reverse = flags.has(LSMKV_REV);
        let (first, last) = if reverse { (&self.max, &self.min) } else { (&self.min, &self.max) };
        argv.extend(&[first, last]);
        if !self.by.is_empty() {
            argv.word(self.by);
        }
        argv.flag(flags, LSMKV_REV, "REV");
        if !self.by.is_empty() {
            argv.word("LIMIT");
            argv.own(text(offset));
            argv.own(text(count));
        }
    }
}
