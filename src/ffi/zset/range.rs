//! Sorted sets: ranges by position, score and bytes.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::error::Result;
use crate::ffi::boundary::call;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_REV, LSMKV_WITHSCORES};
use crate::ffi::give::Give;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::on::On;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice};
use crate::ffi::status::lsmkv_status;
use crate::ffi::zset::bounds::{Bounds, EXCLUSIONS, exclusions, members, scores};
use crate::types::{By, ZRange};

/// ZRANGE: the members from one position to another, both included; negative ones count from
/// the end. *out receives an array of members, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrange(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    start: i64,
    stop: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            out.give(on.db().zrange(key, &ZRange::of(By::Rank(start, stop)))?)
        })
    }
}

/// ZRANGE with options: flags REV, WITHSCORES. *out receives an array of members, or of members
/// and scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrange_opt(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    start: i64,
    stop: i64,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let flags = Flags::checked(flags, LSMKV_REV | LSMKV_WITHSCORES, &[])?;
            give(on, &out, key, ZRange::of(By::Rank(start, stop)), flags)
        })
    }
}

/// ZREVRANGE: the members from one position to another, the last one being at position 0. Flag
/// WITHSCORES. *out receives an array of members, or of members and scores in turn, to be freed
/// by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrevrange(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    start: i64,
    stop: i64,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let flags = Flags::checked(flags, LSMKV_WITHSCORES, &[])?;
            give(on, &out, key, ZRange::of(By::Rank(start, stop)).reversed(), flags)
        })
    }
}

/// ZRANGEBYSCORE: the members with scores from min to max, MINEX and MAXEX exclude the bounds
/// themselves, an infinite one is open; flags REV, WITHSCORES; offset members are passed and at
/// most count given, count < 0 = all. *out receives an array of members, or of members and
/// scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; NOT_FLOAT: a bound is NaN; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrangebyscore(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    min: f64,
    max: f64,
    flags: u32,
    offset: i64,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let flags = Flags::checked(flags, EXCLUSIONS | LSMKV_REV | LSMKV_WITHSCORES, &[])?;
            let Bounds { min, max } = scores(min, max, flags);
            give(on, &out, key, ZRange::of(By::Score(min, max)).limited(offset, count), flags)
        })
    }
}

/// ZREVRANGEBYSCORE: as lsmkv_zrangebyscore, the last one first; the greatest score comes
/// first. Flags WITHSCORES, MINEX, MAXEX. *out receives an array of members, or of members and
/// scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; NOT_FLOAT: a bound is NaN; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrevrangebyscore(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    max: f64,
    min: f64,
    flags: u32,
    offset: i64,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let flags = Flags::checked(flags, EXCLUSIONS | LSMKV_WITHSCORES, &[])?;
            let Bounds { min, max } = scores(min, max, flags);
            give(
                on,
                &out,
                key,
                ZRange::of(By::Score(min, max)).reversed().limited(offset, count),
                flags,
            )
        })
    }
}

/// ZRANGEBYLEX: the members from min to max, if all have the same score; NULL is open, MINEX
/// and MAXEX exclude the bounds themselves; flag REV; offset members are passed and at most
/// count given, count < 0 = all. *out receives an array of members, to be freed by
/// lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrangebylex(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    min: *const lsmkv_slice,
    max: *const lsmkv_slice,
    flags: u32,
    offset: i64,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let min = on.optional("min", min)?;
            let max = on.optional("max", max)?;
            let flags = Flags::checked(flags, EXCLUSIONS | LSMKV_REV, &[])?;
            let Bounds { min, max } = members(min, max, flags);
            give(on, &out, key, ZRange::of(By::Lex(min, max)).limited(offset, count), flags)
        })
    }
}

/// ZREVRANGEBYLEX: as lsmkv_zrangebylex, the last one first; the greatest member comes first.
/// Flags MINEX, MAXEX. *out receives an array of members, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrevrangebylex(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    max: *const lsmkv_slice,
    min: *const lsmkv_slice,
    flags: u32,
    offset: i64,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let max = on.optional("max", max)?;
            let min = on.optional("min", min)?;
            let flags = exclusions(flags)?;
            let Bounds { min, max } = members(min, max, flags);
            give(
                on,
                &out,
                key,
                ZRange::of(By::Lex(min, max)).reversed().limited(offset, count),
                flags,
            )
        })
    }
}

/// ZCOUNT: how many members have scores from min to max, MINEX and MAXEX exclude the bounds
/// themselves, an infinite one is open. *out, which may be NULL, receives the number.
///
/// OK; WRONGTYPE; NOT_FLOAT: a bound is NaN; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zcount(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    min: f64,
    max: f64,
    flags: u32,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let Bounds { min, max } = scores(min, max, exclusions(flags)?);
            out.give(on.db().zcount(key, min, max)?)
        })
    }
}

/// ZLEXCOUNT: how many members from min to max, if all have the same score. NULL is open, MINEX
/// and MAXEX exclude the bounds themselves. *out, which may be NULL, receives the number.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zlexcount(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    min: *const lsmkv_slice,
    max: *const lsmkv_slice,
    flags: u32,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let min = on.optional("min", min)?;
            let max = on.optional("max", max)?;
            let Bounds { min, max } = members(min, max, exclusions(flags)?);
            out.give(on.db().zlexcount(key, min, max)?)
        })
    }
}

/// The members of a range, with their scores if the flags say so, backwards if they say that.
fn give(
    on: &On<'_>,
    out: &Out<*mut lsmkv_reply>,
    key: &[u8],
    range: ZRange<'_>,
    flags: Flags,
) -> Result<lsmkv_status> {
    let range = if flags.has(LSMKV_REV) { range.reversed() } else { range };
    if flags.has(LSMKV_WITHSCORES) {
        return out.give(on.db().zrange_withscores(key, &range)?);
    }
    out.give(on.db().zrange(key, &range)?)
}
