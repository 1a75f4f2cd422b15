//! Strings: functions of commands with options.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::{copy_nonoverlapping, null_mut};

use crate::error::Result;
use crate::ffi::boundary::{call, write};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{
    Flags, LSMKV_AT, LSMKV_KEEPTTL, LSMKV_NX, LSMKV_PERSIST, LSMKV_WITHMATCHLEN, LSMKV_XX, invalid,
};
use crate::ffi::give::{Give, Take, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::on::On;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, misuse};
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, LSMKV_SKIPPED, LSMKV_TOO_SMALL, lsmkv_status};
use crate::types::{Condition, Expiry, GetExpiry, SetExpiry, SetOptions};

const SET_FLAGS: u32 = LSMKV_NX | LSMKV_XX | LSMKV_KEEPTTL | LSMKV_AT;
const SET_WORDS: &[(u32, &str)] = &[(LSMKV_NX, "NX"), (LSMKV_XX, "XX"), (LSMKV_KEEPTTL, "KEEPTTL")];

/// SET: gives a key a value, replacing one of any type and its expiry.
///
/// OK; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_set(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    value: *const c_void,
    vlen: usize,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let value = on.bytes("value", value, vlen)?;
            if on.records() {
                return on.record("SET", &[key, value]);
            }
            on.db().set(key, value)?;
            Ok(LSMKV_OK)
        })
    }
}

/// SET with options: flags NX or XX, and KEEPTTL; ttl_ms is how long the key shall live, 0 =
/// for ever, or with AT the moment, in milliseconds since 1970, at which it expires. *old,
/// which may be NULL, receives the value the key had, to be released by lsmkv_buf_release; its
/// data is NULL if there was none.
///
/// OK; SKIPPED: NX or XX was not met, and nothing was changed; WRONGTYPE: old is wanted and the
/// key holds no string; INVALID: a flag, or a time that is none; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_set_opt(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    value: *const c_void,
    vlen: usize,
    flags: u32,
    ttl_ms: i64,
    old: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let old = Out::emptied(old, lsmkv_buf::EMPTY);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let value = on.bytes("value", value, vlen)?;
            let flags =
                Flags::checked(flags, SET_FLAGS, &[LSMKV_NX | LSMKV_XX, LSMKV_KEEPTTL | LSMKV_AT])?;
            let options = set_options(flags, ttl_ms, old.is_wanted())?;
            if on.records() {
                let mut words = flags.words(SET_WORDS);
                words.extend(options.get.then_some(&b"GET"[..]));
                let ttl = text(ttl_ms);
                if let SetExpiry::At(expiry) = options.expiry {
                    words.extend([unit(expiry), ttl.as_bytes()]);
                }
                return on.record_with("SET", &[key, value], words);
            }
            let outcome = on.db().set_with(key, value, options)?;
            outcome.old.map_or(Ok(LSMKV_OK), |value| old.give(value))?;
            Ok(if outcome.written { LSMKV_OK } else { LSMKV_SKIPPED })
        })
    }
}

/// GET into memory of the caller: copies the value of a key to dst, which has room for cap
/// bytes, and its length to *len. dst may be NULL when cap is 0.
///
/// OK; NOT_FOUND: *len is 0; TOO_SMALL: *len is the length needed and nothing was copied;
/// WRONGTYPE; MISUSE: len is NULL, or dst is NULL and cap is not 0; TOO_LARGE: the key;
/// CORRUPT, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_get_into(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    dst: *mut c_void,
    cap: usize,
    len: *mut usize,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller promises NULL or a place for a length.
    let len = unsafe { Out::emptied(len, 0) };
    let body = |on: &On<'_>| {
        let len = len.required("len")?;
        if dst.is_null() && cap != 0 {
            return Err(misuse(format_args!("dst is NULL but cap is {cap}")));
        }
        // SAFETY: the caller promises klen readable bytes.
        let key = unsafe { on.key("key", key, klen)? };
        let Some(value) = on.db().get(key)? else {
            return Ok(LSMKV_NOT_FOUND);
        };
        len.set(value.len());
        if value.len() > cap {
            return Ok(LSMKV_TOO_SMALL);
        }
        if !value.is_empty() {
            // SAFETY: cap > 0, so dst is not NULL and has room for cap bytes, no fewer than
            // the value has; memory of the caller does not overlap memory of the library.
            unsafe { copy_nonoverlapping(value.as_ptr(), dst.cast(), value.len()) };
        }
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, body) }
}

/// GETEX: the value of a key, whose expiry changes: ttl_ms is how long it shall live, or with
/// the flag AT the moment at which it expires; 0 leaves the expiry, or with the flag PERSIST
/// takes it away. *out, which may be NULL, receives the value, to be released by
/// lsmkv_buf_release.
///
/// OK; NOT_FOUND; WRONGTYPE; INVALID: a flag, or a time that is none; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_getex(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    ttl_ms: i64,
    flags: u32,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let flags =
                Flags::checked(flags, LSMKV_AT | LSMKV_PERSIST, &[LSMKV_AT | LSMKV_PERSIST])?;
            let change = match expiry(flags, ttl_ms)? {
                Some(_) if flags.has(LSMKV_PERSIST) => {
                    return Err(invalid("PERSIST goes with no time"));
                }
                Some(expiry) => GetExpiry::At(expiry),
                None if flags.has(LSMKV_PERSIST) => GetExpiry::Persist,
                None => GetExpiry::Keep,
            };
            if on.records() {
                let ttl = text(ttl_ms);
                return match change {
                    GetExpiry::At(expiry) => {
                        on.record("GETEX", &[key, unit(expiry), ttl.as_bytes()])
                    }
                    GetExpiry::Persist => on.record("GETEX", &[key, b"PERSIST"]),
                    GetExpiry::Keep => on.record("GETEX", &[key]),
                };
            }
            out.give(on.db().getex(key, change)?)
        })
    }
}

/// LCS: the longest common subsequence of two values. Takes time in proportion to the product
/// of their lengths. *out receives the bytes, to be released by lsmkv_buf_release.
///
/// OK; WRONGTYPE; OUT_OF_RANGE: the values are too long; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lcs(
    db: *mut lsmkv_db,
    key1: *const c_void,
    len1: usize,
    key2: *const c_void,
    len2: usize,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        call(db, err, |on| {
            let out = out.required("out")?;
            let key1 = on.key("key1", key1, len1)?;
            let key2 = on.key("key2", key2, len2)?;
            out.give(on.db().lcs(key1, key2)?.text)
        })
    }
}

/// LCS with LEN: the length of the longest common subsequence. *out, which may be NULL,
/// receives it.
///
/// OK; WRONGTYPE; OUT_OF_RANGE: the values are too long; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lcs_len(
    db: *mut lsmkv_db,
    key1: *const c_void,
    len1: usize,
    key2: *const c_void,
    len2: usize,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key1 = on.key("key1", key1, len1)?;
            let key2 = on.key("key2", key2, len2)?;
            out.take(on.run("LCS", &[key1, key2, b"LEN"], [])?)
        })
    }
}

/// LCS with IDX: where the longest common subsequence is in both values, in stretches of at
/// least minmatchlen bytes. Flag WITHMATCHLEN. *out receives a map of matches and len, as Redis
/// replies, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: a flag; OUT_OF_RANGE: the values are too long; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_lcs_idx(
    db: *mut lsmkv_db,
    key1: *const c_void,
    len1: usize,
    key2: *const c_void,
    len2: usize,
    minmatchlen: i64,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key1 = on.key("key1", key1, len1)?;
            let key2 = on.key("key2", key2, len2)?;
            let flags = Flags::checked(flags, LSMKV_WITHMATCHLEN, &[])?;
            let words = flags.words(&[(LSMKV_WITHMATCHLEN, "WITHMATCHLEN")]);
            let least = text(minmatchlen);
            let args = [key1, key2, b"IDX", b"MINMATCHLEN", least.as_bytes()];
            out.take(on.run("LCS", &args, words)?)
        })
    }
}

fn set_options(flags: Flags, ttl_ms: i64, get: bool) -> Result<SetOptions> {
    let condition = match (flags.has(LSMKV_NX), flags.has(LSMKV_XX)) {
        (true, _) => Condition::IfMissing,
        (_, true) => Condition::IfExists,
        _ => Condition::Always,
    };
    let expiry = match expiry(flags, ttl_ms)? {
        Some(_) if flags.has(LSMKV_KEEPTTL) => return Err(invalid("KEEPTTL goes with no time")),
        Some(expiry) => SetExpiry::At(expiry),
        None if flags.has(LSMKV_KEEPTTL) => SetExpiry::Keep,
        None => SetExpiry::Never,
    };
    Ok(SetOptions { condition, expiry, get })
}

/// A duration, or with AT a moment; none for 0.
fn expiry(flags: Flags, ms: i64) -> Result<Option<Expiry>> {
    match ms {
        0 if flags.has(LSMKV_AT) => Err(invalid("AT needs a moment")),
        0 => Ok(None),
        ..0 => Err(invalid(format!("a time of {ms} ms is none"))),
        _ if flags.has(LSMKV_AT) => Ok(Some(Expiry::AtMilliseconds(ms))),
        _ => Ok(Some(Expiry::Milliseconds(ms))),
    }
}

fn unit(expiry: Expiry) -> &'static [u8] {
    if matches!(expiry, Expiry::AtMilliseconds(_)) { b"PXAT" } else { b"PX" }
}
