//! Sorted sets: ZADD, pops into two outputs, and ranges whose flag REV swaps the
//! bounds of the command.

use std::ops::Bound;

use crate::commands::entry::Entry;
use crate::commands::{entries, stream};
use crate::error::Result;
use crate::ffi::argv::{Argv, text};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::flags::{
    Flags, LSMKV_CH, LSMKV_GT, LSMKV_LT, LSMKV_NX, LSMKV_REV, LSMKV_WITHSCORES, LSMKV_XX,
};
use crate::ffi::output::{WriteOutput, WriteReply};
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_SKIPPED, lsmkv_status};
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
    if target.records() {
        return target.record(&entries::ZADD, &[key, text(score).as_bytes(), member]);
    }
    added.write(target.db().zadd(key, &[(score, member)], ZAdd::default())?)
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
    if target.records() {
        let mut argv = zadd_argv(key, flags);
        argv.scored(scores, items);
        return target.run(&entries::ZADD, &argv);
    }
    check_scores(scores)?;
    let members: Vec<_> = scores.iter().copied().zip(items.iter().copied()).collect();
    changed.write(target.db().zadd(key, &members, zadd_options(flags))?)
}

pub(crate) fn zadd_incr(
    target: &CommandTarget<'_>,
    key: &[u8],
    increment: f64,
    member: &[u8],
    flags: Flags,
    out: &Out<f64>,
) -> Result<lsmkv_status> {
    if target.records() {
        let mut argv = zadd_argv(key, flags);
        argv.word("INCR");
        argv.scored(&[increment], &[member]);
        return target.run(&entries::ZADD, &argv);
    }
    check_scores(&[increment])?;
    match target.db().zadd_incr(key, increment, member, zadd_options(flags))? {
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

/// ZADD with its key and options, for a batch.
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
    if target.records() {
        return target.record(entry, &[key]);
    }
    let Some((popped, its_score)) = method(target.db(), key, 1)?.into_iter().next() else {
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
    let word = |bound: Bound<f64>| match bound {
        Bound::Excluded(score) => format!("({score}").into_bytes(),
        Bound::Included(score) => format!("{score}").into_bytes(),
        Bound::Unbounded => b"inf".to_vec(),
    };
    let bounds = (word(min), word(max));
    store(target, destination, source, "BYSCORE", &bounds, flags, (offset, count), length)
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
    let word = |bound: Bound<&[u8]>, open: &[u8]| match bound {
        Bound::Excluded(member) => [b"(", member].concat(),
        Bound::Included(member) => [b"[", member].concat(),
        Bound::Unbounded => open.to_vec(),
    };
    let bounds = (word(min, b"-"), word(max, b"+"));
    store(target, destination, source, "BYLEX", &bounds, flags, (offset, count), length)
}

/// Runs ZRANGESTORE. Its bounds come in the direction of the range.
#[expect(clippy::too_many_arguments, reason = "as many as the C functions have")]
fn store(
    target: &CommandTarget<'_>,
    destination: &[u8],
    source: &[u8],
    by: &'static str,
    (min, max): &(Vec<u8>, Vec<u8>),
    flags: Flags,
    (offset, count): (i64, i64),
    length: &Out<i64>,
) -> Result<lsmkv_status> {
    let (first, last) = if flags.has(LSMKV_REV) { (max, min) } else { (min, max) };
    let mut argv = Argv::new(&entries::ZRANGESTORE);
    argv.extend(&[destination, source, first, last]);
    argv.word(by);
    argv.flag(flags, LSMKV_REV, "REV");
    argv.word("LIMIT");
    argv.own(text(offset));
    argv.own(text(count));
    length.run(target, &entries::ZRANGESTORE, &argv, LSMKV_NOT_FOUND)
}
