//! Sorted sets: removing members, and storing ranges.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::commands::Reply;
use crate::error::Result;
use crate::ffi::boundary::write;
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_REV, choice, invalid};
use crate::ffi::give::{Give, Take, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::on::On;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice};
use crate::ffi::status::{LSMKV_NOT_FOUND, lsmkv_status};
use crate::ffi::zset::bounds::{EXCLUSIONS, exclusions, members, scores};

const REV: &[(u32, &str)] = &[(LSMKV_REV, "REV")];

/// ZREMRANGEBYSCORE: removes the members with scores from min to max, MINEX and MAXEX exclude
/// the bounds themselves, an infinite one is open. *removed, which may be NULL, receives how
/// many there were.
///
/// OK; WRONGTYPE; NOT_FLOAT: a bound is NaN; INVALID: a flag; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zremrangebyscore(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    min: f64,
    max: f64,
    flags: u32,
    removed: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let removed = Out::emptied(removed, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let bounds = scores(min, max, exclusions(flags)?);
            if on.records() {
                let [min, max] = bounds.texts();
                return on.record("ZREMRANGEBYSCORE", &[key, &min, &max]);
            }
            removed.give(on.db().zremrangebyscore(key, bounds.min, bounds.max)?)
        })
    }
}

/// ZREMRANGEBYLEX: removes the members from min to max, if all have the same score. NULL is
/// open, MINEX and MAXEX exclude the bounds themselves. *removed, which may be NULL, receives
/// how many there were.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zremrangebylex(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    min: *const lsmkv_slice,
    max: *const lsmkv_slice,
    flags: u32,
    removed: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let removed = Out::emptied(removed, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let min = on.optional("min", min)?;
            let max = on.optional("max", max)?;
            let bounds = members(min, max, exclusions(flags)?);
            if on.records() {
                let [min, max] = bounds.texts();
                return on.record("ZREMRANGEBYLEX", &[key, &min, &max]);
            }
            removed.give(on.db().zremrangebylex(key, bounds.min, bounds.max)?)
        })
    }
}

/// ZRANGESTORE: makes destination the members of source from one position to another. Flag REV.
/// *length, which may be NULL, receives how many there are.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrangestore(
    db: *mut lsmkv_db,
    destination: *const c_void,
    dlen: usize,
    source: *const c_void,
    slen: usize,
    start: i64,
    stop: i64,
    flags: u32,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let destination = on.key("destination", destination, dlen)?;
            let source = on.key("source", source, slen)?;
            let flags = Flags::checked(flags, LSMKV_REV, &[])?;
            let (start, stop) = (text(start), text(stop));
            let args = [destination, source, start.as_bytes(), stop.as_bytes()];
            length.take(on.run("ZRANGESTORE", &args, flags.words(REV))?)
        })
    }
}

/// ZRANGESTORE with BYSCORE: makes destination the members of source that lsmkv_zrangebyscore
/// gives. Flags REV, MINEX, MAXEX. *length, which may be NULL, receives how many there are.
///
/// OK; WRONGTYPE; NOT_FLOAT: a bound is NaN; INVALID: a flag; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrangestore_byscore(
    db: *mut lsmkv_db,
    destination: *const c_void,
    dlen: usize,
    source: *const c_void,
    slen: usize,
    min: f64,
    max: f64,
    flags: u32,
    offset: i64,
    count: i64,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let destination = on.key("destination", destination, dlen)?;
            let source = on.key("source", source, slen)?;
            let flags = Flags::checked(flags, EXCLUSIONS | LSMKV_REV, &[])?;
            let bounds = scores(min, max, flags).texts();
            let limit = (offset, count);
            length.take(store(on, destination, source, "BYSCORE", &bounds, limit, flags)?)
        })
    }
}

/// ZRANGESTORE with BYLEX: makes destination the members of source that lsmkv_zrangebylex
/// gives. Flags REV, MINEX, MAXEX. *length, which may be NULL, receives how many there are.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrangestore_bylex(
    db: *mut lsmkv_db,
    destination: *const c_void,
    dlen: usize,
    source: *const c_void,
    slen: usize,
    min: *const lsmkv_slice,
    max: *const lsmkv_slice,
    flags: u32,
    offset: i64,
    count: i64,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let destination = on.key("destination", destination, dlen)?;
            let source = on.key("source", source, slen)?;
            let min = on.optional("min", min)?;
            let max = on.optional("max", max)?;
            let flags = Flags::checked(flags, EXCLUSIONS | LSMKV_REV, &[])?;
            let bounds = members(min, max, flags).texts();
            let limit = (offset, count);
            length.take(store(on, destination, source, "BYLEX", &bounds, limit, flags)?)
        })
    }
}

/// ZPOPMIN: removes the member with the least score. *member receives it, to be released by
/// lsmkv_buf_release, and *score its score; both may be NULL.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zpopmin(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    member: *mut lsmkv_buf,
    score: *mut f64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let member = Out::emptied(member, lsmkv_buf::EMPTY);
        let score = Out::emptied(score, 0.0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            if on.records() {
                return on.record("ZPOPMIN", &[key]);
            }
            let Some((popped, its_score)) = on.db().zpopmin(key, 1)?.into_iter().next() else {
                return Ok(LSMKV_NOT_FOUND);
            };
            score.give(its_score)?;
            member.give(popped)
        })
    }
}

/// ZPOPMIN with a count: removes up to that many members with the least scores. *out, which may
/// be NULL, receives an array of members and scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: the count is negative; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zpopmin_count(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let number = u64::try_from(count).map_err(|_| invalid("count is negative"))?;
            if on.records() {
                return on.record("ZPOPMIN", &[key, text(count).as_bytes()]);
            }
            out.give(on.db().zpopmin(key, number)?)
        })
    }
}

/// ZPOPMAX: removes the member with the greatest score. *member receives it, to be released by
/// lsmkv_buf_release, and *score its score; both may be NULL.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zpopmax(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    member: *mut lsmkv_buf,
    score: *mut f64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let member = Out::emptied(member, lsmkv_buf::EMPTY);
        let score = Out::emptied(score, 0.0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            if on.records() {
                return on.record("ZPOPMAX", &[key]);
            }
            let Some((popped, its_score)) = on.db().zpopmax(key, 1)?.into_iter().next() else {
                return Ok(LSMKV_NOT_FOUND);
            };
            score.give(its_score)?;
            member.give(popped)
        })
    }
}

/// ZPOPMAX with a count: removes up to that many members with the greatest scores. *out, which
/// may be NULL, receives an array of members and scores in turn, to be freed by
/// lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: the count is negative; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zpopmax_count(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let number = u64::try_from(count).map_err(|_| invalid("count is negative"))?;
            if on.records() {
                return on.record("ZPOPMAX", &[key, text(count).as_bytes()]);
            }
            out.give(on.db().zpopmax(key, number)?)
        })
    }
}

/// ZMPOP: removes up to count members with the least (LSMKV_LEAST) or greatest (LSMKV_GREATEST)
/// scores of the first of n keys that exists. *out, which may be NULL, receives an array of its
/// key and an array of arrays of member and score, to be freed by lsmkv_reply_free.
///
/// OK; NOT_FOUND: there is none; WRONGTYPE; OUT_OF_RANGE: the count is below 1; INVALID: end
/// names none; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zmpop(
    db: *mut lsmkv_db,
    keys: *const lsmkv_slice,
    n: usize,
    end: i32,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        write(db, err, |on| {
            let keys = on.keys("keys", keys, n)?;
            let words: [&[u8]; 2] = [b"MIN", b"MAX"];
            let (number, count) = (text(keys.len()), text(count));
            let options = [choice("end", end, &words)?, b"COUNT", count.as_bytes()];
            out.take(on.run("ZMPOP", &[number.as_bytes()], keys.into_iter().chain(options))?)
        })
    }
}

/// Runs ZRANGESTORE, whose bounds come in the direction of the range.
fn store(
    on: &On<'_>,
    destination: &[u8],
    source: &[u8],
    by: &str,
    bounds: &[Vec<u8>; 2],
    (offset, count): (i64, i64),
    flags: Flags,
) -> Result<Option<Reply>> {
    let [min, max] = bounds;
    let (first, last) = if flags.has(LSMKV_REV) { (max, min) } else { (min, max) };
    let (offset, count) = (text(offset), text(count));
    let limit = [b"LIMIT", offset.as_bytes(), count.as_bytes()];
    let options = flags.words(REV).into_iter().chain(limit);
    on.run("ZRANGESTORE", &[destination, source, first, last, by.as_bytes()], options)
}
