//! Hashes: functions of commands with options.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::commands::Reply;
use crate::error::Result;
use crate::ffi::boundary::{call, write};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_WITHVALUES, invalid};
use crate::ffi::give::{Give, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice};
use crate::ffi::status::lsmkv_status;

/// HGETDEL: removes a field. *out, which may be NULL, receives its value, to be released by
/// lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_hgetdel(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    field: *const c_void,
    flen: usize,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let field = on.bytes("field", field, flen)?;
            if on.records() {
                return on.record("HGETDEL", &[key, b"FIELDS", b"1", field]);
            }
            out.give(on.db().hgetdel(key, &[field])?.into_iter().next().flatten())
        })
    }
}

/// HGETDEL: removes n fields. *out, which may be NULL, receives an array with the value or nil
/// for each, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_hgetdel_many(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    items: *const lsmkv_slice,
    n: usize,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let items = on.items("items", items, n)?;
            if on.records() {
                let n = text(items.len());
                return on.record_with("HGETDEL", &[key, b"FIELDS", n.as_bytes()], items);
            }
            out.give(on.db().hgetdel(key, &items)?)
        })
    }
}

/// HRANDFIELD: a field chosen at random. *out receives the bytes, to be released by
/// lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_hrandfield(
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
            out.give(on.db().hrandfield(key)?)
        })
    }
}

/// HRANDFIELD with a count: that many different fields, all if there are fewer; of a negative
/// one as many as asked for, the same one perhaps several times. Flag WITHVALUES. *out receives
/// an array of fields, or of fields and values in turn, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_hrandfield_count(
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
            if Flags::checked(flags, LSMKV_WITHVALUES, &[])?.has(LSMKV_WITHVALUES) {
                let pairs = on.db().hrandfield_withvalues(key, within(count)?)?;
                return out.give(Reply::list(
                    pairs.into_iter().flat_map(|(field, value)| [field, value]),
                ));
            }
            out.give(on.db().hrandfield_count(key, within(count)?)?)
        })
    }
}

/// A count whose double is a number too.
pub(super) fn within(count: i64) -> Result<i64> {
    let most = (i64::MAX / 2).unsigned_abs();
    let fits = count.unsigned_abs() <= most;
    if fits { Ok(count) } else { Err(invalid(format!("the count {count} is too large"))) }
}
