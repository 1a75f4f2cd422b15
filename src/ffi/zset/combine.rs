//! Sorted sets: unions, intersections, differences; members by chance.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use bytes::Bytes;

use crate::commands::Reply;
use crate::error::Result;
use crate::ffi::boundary::{call, write};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_WITHSCORES, choice, invalid};
use crate::ffi::give::{Give, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::hash::within;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, array, lsmkv_slice};
use crate::ffi::status::lsmkv_status;
use crate::types::{Aggregate, Combine};

/// ZDIFF: the members of the first of n keys that no other has. Flag WITHSCORES. *out receives
/// an array of members, or of members and scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zdiff(
    db: *mut lsmkv_db,
    keys: *const lsmkv_slice,
    n: usize,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let keys = on.keys("keys", keys, n)?;
            let members = on.db().zdiff(&keys)?;
            give(&out, members, flags)
        })
    }
}

/// ZDIFFSTORE: makes destination the difference of n keys. *length, which may be NULL, receives
/// how many members it has.
///
/// OK; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zdiffstore(
    db: *mut lsmkv_db,
    destination: *const c_void,
    dlen: usize,
    keys: *const lsmkv_slice,
    n: usize,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let destination = on.key("destination", destination, dlen)?;
            let keys = on.keys("keys", keys, n)?;
            if on.records() {
                let n = text(keys.len());
                return on.record_with("ZDIFFSTORE", &[destination, n.as_bytes()], keys);
            }
            length.give(on.db().zdiffstore(destination, &keys)?)
        })
    }
}

/// ZINTER: the members that all of n keys have, each weighted by weights[i], or all alike if
/// weights is NULL; a member of several has their scores combined as aggregate says: LSMKV_SUM,
/// LSMKV_MIN or LSMKV_MAX. Flag WITHSCORES. *out receives an array of members, or of members
/// and scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; NOT_FLOAT: a weight is NaN; INVALID: a flag, or no such aggregate; any of a
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zinter(
    db: *mut lsmkv_db,
    keys: *const lsmkv_slice,
    n: usize,
    weights: *const f64,
    aggregate: i32,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let keys = on.keys("keys", keys, n)?;
            let how = how(weights, keys.len(), aggregate)?;
            give(&out, on.db().zinter(&keys, how)?, flags)
        })
    }
}

/// ZINTERSTORE: makes destination the intersection of n keys, each weighted by weights[i], or
/// all alike if weights is NULL; a member of several has their scores combined as aggregate
/// says: LSMKV_SUM, LSMKV_MIN or LSMKV_MAX. *length, which may be NULL, receives how many
/// members it has.
///
/// OK; WRONGTYPE; NOT_FLOAT: a weight is NaN; INVALID: no such aggregate; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zinterstore(
    db: *mut lsmkv_db,
    destination: *const c_void,
    dlen: usize,
    keys: *const lsmkv_slice,
    n: usize,
    weights: *const f64,
    aggregate: i32,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let destination = on.key("destination", destination, dlen)?;
            let keys = on.keys("keys", keys, n)?;
            let how = how(weights, keys.len(), aggregate)?;
            if on.records() {
                let (n, options) = (text(keys.len()), words(&how));
                let rest = keys.into_iter().chain(options.iter().map(String::as_bytes));
                return on.record_with("ZINTERSTORE", &[destination, n.as_bytes()], rest);
            }
            length.give(on.db().zinterstore(destination, &keys, how)?)
        })
    }
}

/// ZUNION: the members of any of n keys, each weighted by weights[i], or all alike if weights
/// is NULL; a member of several has their scores combined as aggregate says: LSMKV_SUM,
/// LSMKV_MIN or LSMKV_MAX. Flag WITHSCORES. *out receives an array of members, or of members
/// and scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; NOT_FLOAT: a weight is NaN; INVALID: a flag, or no such aggregate; any of a
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zunion(
    db: *mut lsmkv_db,
    keys: *const lsmkv_slice,
    n: usize,
    weights: *const f64,
    aggregate: i32,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let keys = on.keys("keys", keys, n)?;
            let how = how(weights, keys.len(), aggregate)?;
            give(&out, on.db().zunion(&keys, how)?, flags)
        })
    }
}

/// ZUNIONSTORE: makes destination the union of n keys, each weighted by weights[i], or all
/// alike if weights is NULL; a member of several has their scores combined as aggregate says:
/// LSMKV_SUM, LSMKV_MIN or LSMKV_MAX. *length, which may be NULL, receives how many members it
/// has.
///
/// OK; WRONGTYPE; NOT_FLOAT: a weight is NaN; INVALID: no such aggregate; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zunionstore(
    db: *mut lsmkv_db,
    destination: *const c_void,
    dlen: usize,
    keys: *const lsmkv_slice,
    n: usize,
    weights: *const f64,
    aggregate: i32,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let destination = on.key("destination", destination, dlen)?;
            let keys = on.keys("keys", keys, n)?;
            let how = how(weights, keys.len(), aggregate)?;
            if on.records() {
                let (n, options) = (text(keys.len()), words(&how));
                let rest = keys.into_iter().chain(options.iter().map(String::as_bytes));
                return on.record_with("ZUNIONSTORE", &[destination, n.as_bytes()], rest);
            }
            length.give(on.db().zunionstore(destination, &keys, how)?)
        })
    }
}

/// ZINTERCARD: how many members all of n keys have; counts no further than limit, 0 = all.
/// *out, which may be NULL, receives the number.
///
/// OK; WRONGTYPE; INVALID: the limit is negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zintercard(
    db: *mut lsmkv_db,
    keys: *const lsmkv_slice,
    n: usize,
    limit: i64,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let keys = on.keys("keys", keys, n)?;
            let limit = u64::try_from(limit).map_err(|_| invalid("limit is negative"))?;
            out.give(on.db().zintercard(&keys, limit)?)
        })
    }
}

/// ZRANDMEMBER: a member by chance. *out receives the bytes, to be released by
/// lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrandmember(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            out.give(on.db().zrandmember(key)?)
        })
    }
}

/// ZRANDMEMBER with a count: that many different members, all if there are fewer; of a negative
/// one as many as asked for, the same one perhaps several times. Flag WITHSCORES. *out receives
/// an array of members, or of members and scores in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag, or the count is absurd; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zrandmember_count(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    count: i64,
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
            let members = on.db().zrandmember_count(key, within(count)?)?;
            give(&out, members, flags)
        })
    }
}

fn give(
    out: &Out<*mut lsmkv_reply>,
    members: Vec<(Bytes, f64)>,
    flags: u32,
) -> Result<lsmkv_status> {
    if Flags::checked(flags, LSMKV_WITHSCORES, &[])?.has(LSMKV_WITHSCORES) {
        return out.give(members);
    }
    out.give(Reply::list(members.into_iter().map(|(member, _)| member)))
}

/// # Safety
/// `weights` is NULL or points to `n` numbers that nobody writes during the call.
unsafe fn how<'s>(weights: *const f64, n: usize, aggregate: i32) -> Result<Combine<'s>> {
    let kinds = [Aggregate::Sum, Aggregate::Min, Aggregate::Max];
    let aggregate = choice("aggregate", aggregate, &kinds)?;
    if weights.is_null() {
        return Ok(Combine { weights: &[], aggregate });
    }
    // SAFETY: the caller's promise.
    Ok(Combine { weights: unsafe { array("weights", weights, n)? }, aggregate })
}

/// The options as commands write them.
fn words(how: &Combine<'_>) -> Vec<String> {
    let aggregate = match how.aggregate {
        Aggregate::Sum => "SUM",
        Aggregate::Min => "MIN",
        Aggregate::Max => "MAX",
    };
    let mut words = vec!["AGGREGATE".to_owned(), aggregate.to_owned()];
    if !how.weights.is_empty() {
        words.push("WEIGHTS".to_owned());
        words.extend(how.weights.iter().map(|weight| text(*weight)));
    }
    words
}
