//! Lists: functions of commands with options.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::commands::Reply;
use crate::error::Result;
use crate::ffi::boundary::{call, write};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{choice, invalid};
use crate::ffi::give::{Give, Take, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::types::{Place, Search, Side};

const SIDES: &[Side] = &[Side::Left, Side::Right];

fn word(side: Side) -> &'static [u8] {
    match side {
        Side::Left => b"LEFT",
        Side::Right => b"RIGHT",
    }
}

/// A number of elements, which is not negative.
fn unsigned(name: &str, count: i64) -> Result<u64> {
    u64::try_from(count).map_err(|_| invalid(format!("{name} is negative: {count}")))
}

/// LPOP: takes the first element. *out, which may be NULL, receives the bytes, to be released
/// by lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lpop(
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
                return on.record("LPOP", &[key]);
            }
            out.give(on.db().lpop(key)?)
        })
    }
}

/// LPOP with a count: takes up to that many of the first elements. *out, which may be NULL,
/// receives an array of them, to be freed by lsmkv_reply_free.
///
/// OK; NOT_FOUND: there is no such list; WRONGTYPE; INVALID: the count is negative; any of a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lpop_count(
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
            let count = unsigned("count", count)?;
            out.take(on.run("LPOP", &[key, text(count).as_bytes()], [])?)
        })
    }
}

/// RPOP: takes the last element. *out, which may be NULL, receives the bytes, to be released by
/// lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_rpop(
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
                return on.record("RPOP", &[key]);
            }
            out.give(on.db().rpop(key)?)
        })
    }
}

/// RPOP with a count: takes up to that many of the last elements. *out, which may be NULL,
/// receives an array of them, to be freed by lsmkv_reply_free.
///
/// OK; NOT_FOUND: there is no such list; WRONGTYPE; INVALID: the count is negative; any of a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_rpop_count(
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
            let count = unsigned("count", count)?;
            out.take(on.run("RPOP", &[key, text(count).as_bytes()], [])?)
        })
    }
}

/// LINDEX: the element at an index; a negative one counts from the end. *out receives the
/// bytes, to be released by lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lindex(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    index: i64,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            out.give(on.db().lindex(key, index)?)
        })
    }
}

/// LSET: replaces the element at an index.
///
/// OK; NO_SUCH_KEY; OUT_OF_RANGE: there is no such element; WRONGTYPE; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lset(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    index: i64,
    element: *const c_void,
    elen: usize,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let element = on.bytes("element", element, elen)?;
            if on.records() {
                return on.record("LSET", &[key, text(index).as_bytes(), element]);
            }
            on.db().lset(key, index, element)?;
            Ok(LSMKV_OK)
        })
    }
}

/// LINSERT: inserts an element before (LSMKV_BEFORE) or after (LSMKV_AFTER) the first one that
/// equals pivot. *length, which may be NULL, receives the new length; -1: there is no such
/// element; 0: no such list.
///
/// OK; WRONGTYPE; INVALID: where names no place; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_linsert(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    place: i32,
    pivot: *const c_void,
    plen: usize,
    element: *const c_void,
    elen: usize,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let pivot = on.bytes("pivot", pivot, plen)?;
            let element = on.bytes("element", element, elen)?;
            let place = choice("place", place, &[Place::Before, Place::After])?;
            if on.records() {
                let word = if place == Place::Before { "BEFORE" } else { "AFTER" };
                return on.record("LINSERT", &[key, word.as_bytes(), pivot, element]);
            }
            length.give(on.db().linsert(key, place, pivot, element)?)
        })
    }
}

/// LMOVE: takes an element from an end of source, LSMKV_LEFT or LSMKV_RIGHT, and adds it at an
/// end of destination, which may be the same list. *out, which may be NULL, receives the bytes,
/// to be released by lsmkv_buf_release.
///
/// OK; NOT_FOUND: there is no source; WRONGTYPE; INVALID: from or to names no end; any of a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lmove(
    db: *mut lsmkv_db,
    source: *const c_void,
    slen: usize,
    destination: *const c_void,
    dlen: usize,
    from: i32,
    to: i32,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        write(db, err, |on| {
            let source = on.key("source", source, slen)?;
            let destination = on.key("destination", destination, dlen)?;
            let (from, to) = (choice("from", from, SIDES)?, choice("to", to, SIDES)?);
            if on.records() {
                return on.record("LMOVE", &[source, destination, word(from), word(to)]);
            }
            out.give(on.db().lmove(source, destination, from, to)?)
        })
    }
}

/// LMPOP: takes up to count elements from an end, LSMKV_LEFT or LSMKV_RIGHT, of the first of n
/// lists that exists. *out, which may be NULL, receives an array of its key and an array of the
/// elements, to be freed by lsmkv_reply_free.
///
/// OK; NOT_FOUND: there is none; WRONGTYPE; OUT_OF_RANGE: the count is 0; INVALID: it is
/// negative, or from names no end; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lmpop(
    db: *mut lsmkv_db,
    keys: *const lsmkv_slice,
    n: usize,
    from: i32,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        write(db, err, |on| {
            let keys = on.keys("keys", keys, n)?;
            let (from, count) = (choice("from", from, SIDES)?, unsigned("count", count)?);
            let (number, count) = (text(keys.len()), text(count));
            let options = [word(from), b"COUNT", count.as_bytes()];
            out.take(on.run("LMPOP", &[number.as_bytes()], keys.into_iter().chain(options))?)
        })
    }
}

/// LPOS: where an element is that equals this one: the one of that rank, 1 being the first, -1
/// the last; looks at maxlen elements, 0 = all. *out, which may be NULL, receives its index.
///
/// OK; NOT_FOUND; WRONGTYPE; INVALID: rank is 0, or maxlen negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lpos(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    element: *const c_void,
    elen: usize,
    rank: i64,
    maxlen: i64,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let element = on.bytes("element", element, elen)?;
            let search = search(rank, 1, maxlen)?;
            out.give(on.db().lpos(key, element, search)?.first().copied())
        })
    }
}

/// LPOS with a count: as lsmkv_lpos, up to count of them, 0 = all. *out receives an array of
/// their indexes, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: rank is 0, or count or maxlen negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lpos_count(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    element: *const c_void,
    elen: usize,
    rank: i64,
    count: i64,
    maxlen: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let element = on.bytes("element", element, elen)?;
            let found = on.db().lpos(key, element, search(rank, count, maxlen)?)?;
            out.give(Reply::Array(found.into_iter().map(Reply::Int).collect()))
        })
    }
}

fn search(rank: i64, count: i64, maxlen: i64) -> Result<Search> {
    if rank == 0 {
        return Err(invalid("rank is 0: 1 is the first match, -1 the last"));
    }
    Ok(Search { rank, count: unsigned("count", count)?, maxlen: unsigned("maxlen", maxlen)? })
}
