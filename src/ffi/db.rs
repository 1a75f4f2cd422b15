//! Opening and closing a store, and its first commands.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{copy_nonoverlapping, null_mut};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::boundary::{call, call_free};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::fork::{self, Transit};
use crate::ffi::handle::{self, lsmkv_db};
use crate::ffi::options::lsmkv_options;
use crate::ffi::slice::{Out, c_string, input, misuse};
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, LSMKV_TOO_SMALL, lsmkv_status};
use crate::types::Db;

/// Opens the store in directory `path`, creating it if the options allow; ":memory:" opens an
/// empty one in memory. `options` may be NULL for the defaults, and may be freed or used again
/// afterwards. *out receives the handle, to be closed by lsmkv_close.
///
/// OK; MISUSE: path or out is NULL; INVALID: options contradict each other, or there is no store
/// and create_if_missing is off, or there is one and error_if_exists is on; BUSY: another handle
/// or process has it open; INCOMPATIBLE: not a store, or one of a newer version; FORKED: the
/// process was forked while a store was open; CORRUPT, IO, FULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_open(
    path: *const c_char,
    options: *const lsmkv_options,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller promises NULL or a place for a pointer.
    let out = unsafe { Out::emptied(out, null_mut()) };
    let body = || {
        let out = out.required("out")?;
        // SAFETY: the caller promises a terminated string or NULL, and live options or NULL.
        let (path, options) = unsafe { (c_string("path", path)?, options.as_ref()) };
        fork::watch()?;
        let _transit = Transit::begin();
        let options = options.map(|given| given.options.clone()).unwrap_or_default();
        out.set(handle::open(Db::open(directory(path)?, options)?));
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promise about err.
    unsafe { call_free(err, body) }
}

/// Closes a handle: rejects new calls, waits for those in flight, stops background work, flushes
/// and unlocks the directory. The handle is gone whatever is returned; NULL is allowed. Buffers
/// stay valid. Threads that still use the handle get MISUSE.
///
/// OK; MISUSE: closed already; IO, FULL, DEGRADED: what the last flush met.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_close(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    let body = || {
        let _transit = Transit::begin();
        if !db.is_null() {
            // SAFETY: the caller promises a handle of this library.
            unsafe { handle::close(db) }?.close()?;
        }
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promise about err.
    unsafe { call_free(err, body) }
}

/// SET: gives a key a value, replacing one of any type and its expiry. Key and value are copied.
///
/// OK; MISUSE; TOO_LARGE: above max_key_bytes or max_value_bytes; READONLY, DEGRADED, FULL, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_set(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    value: *const c_void,
    vlen: usize,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let body = |db: &Db| {
        // SAFETY: the caller promises klen and vlen readable bytes.
        let (key, value) = unsafe { (key_of(db, key, klen)?, value_of(db, value, vlen)?) };
        db.set(key, value)?;
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, body) }
}

/// GET: pins the value of a key without copying it. *out must be released by lsmkv_buf_release,
/// also when it is empty.
///
/// OK; NOT_FOUND; WRONGTYPE; MISUSE: out is NULL, or as in the rules above; TOO_LARGE: the key;
/// CORRUPT, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_get(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller promises NULL or a place for a buffer.
    let out = unsafe { Out::emptied(out, lsmkv_buf::EMPTY) };
    let body = |db: &Db| {
        let out = out.required("out")?;
        // SAFETY: the caller promises klen readable bytes.
        let key = unsafe { key_of(db, key, klen)? };
        let Some(value) = db.get(key)? else {
            return Ok(LSMKV_NOT_FOUND);
        };
        out.set(lsmkv_buf::pinning(value));
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, body) }
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
    let body = |db: &Db| {
        let len = len.required("len")?;
        if dst.is_null() && cap != 0 {
            return Err(misuse(format_args!("dst is NULL but cap is {cap}")));
        }
        // SAFETY: the caller promises klen readable bytes.
        let key = unsafe { key_of(db, key, klen)? };
        let Some(value) = db.get(key)? else {
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

/// DEL: removes a key of any type. *deleted, which may be NULL, receives 1 if it existed, else 0.
///
/// OK; MISUSE; TOO_LARGE: the key; READONLY, DEGRADED, CORRUPT, IO; FULL: not even the space
/// reserved for deletions is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_del(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    deleted: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller promises NULL or a place for a number.
    let deleted = unsafe { Out::emptied(deleted, 0) };
    let body = |db: &Db| {
        // SAFETY: the caller promises klen readable bytes.
        let key = unsafe { key_of(db, key, klen)? };
        deleted.set(db.del(&[key])?);
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, body) }
}

/// EXISTS: *out, which may be NULL, receives 1 if the key exists, else 0.
///
/// OK; MISUSE; TOO_LARGE: the key; CORRUPT, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_exists(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller promises NULL or a place for a number.
    let out = unsafe { Out::emptied(out, 0) };
    let body = |db: &Db| {
        // SAFETY: the caller promises klen readable bytes.
        let key = unsafe { key_of(db, key, klen)? };
        out.set(db.exists(&[key])?);
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, body) }
}

/// # Safety
/// As for `slice::input`.
unsafe fn key_of<'a>(db: &Db, data: *const c_void, len: usize) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { input("key", data, len, |len| db.limits().check_key_len(len)) }
}

/// # Safety
/// As for `slice::input`.
unsafe fn value_of<'a>(db: &Db, data: *const c_void, len: usize) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    unsafe { input("value", data, len, |len| db.limits().check_value_len(len)) }
}

/// Paths are bytes.
fn directory(path: &CStr) -> Result<&Path> {
    if path.is_empty() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "path is empty: name a directory, or :memory: for a store without one",
        ));
    }
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}
