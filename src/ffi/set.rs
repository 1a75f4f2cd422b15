//! Sets: functions of commands with options.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::commands::Members;
use crate::ffi::boundary::{call, write};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::invalid;
use crate::ffi::give::{Give, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::hash::within;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice};
use crate::ffi::status::lsmkv_status;

/// SINTERCARD: how many members all of n sets have; counts no further than limit, 0 = all.
/// *out, which may be NULL, receives the number.
///
/// OK; WRONGTYPE; INVALID: the limit is negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sintercard(
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
            out.give(on.db().sintercard(&keys, limit)?)
        })
    }
}

/// SPOP: removes a member chosen at random. *out, which may be NULL, receives it, to be
/// released by lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_spop(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            if on.records() {
                return on.record("SPOP", &[key]);
            }
            out.give(on.db().spop(key)?)
        })
    }
}

/// SPOP with a count: removes up to that many members chosen at random. *out, which may be
/// NULL, receives a set of them, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: the count is negative; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_spop_count(
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
                return on.record("SPOP", &[key, text(count).as_bytes()]);
            }
            out.give(Members(on.db().spop_count(key, number)?))
        })
    }
}

/// SRANDMEMBER: a member chosen at random. *out receives the bytes, to be released by
/// lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_srandmember(
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
            out.give(on.db().srandmember(key)?)
        })
    }
}

/// SRANDMEMBER with a count: that many different members, all if there are fewer; of a negative
/// one as many as asked for, the same one perhaps several times. *out receives an array of
/// them, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: the count is absurd; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_srandmember_count(
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
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            out.give(on.db().srandmember_count(key, within(count)?)?)
        })
    }
}
