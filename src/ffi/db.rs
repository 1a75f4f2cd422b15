//! Opening and closing a store.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::boundary::call_free;
use crate::ffi::err::lsmkv_err;
use crate::ffi::fork::{self, Transit};
use crate::ffi::handle::{self, lsmkv_db};
use crate::ffi::inside::Inside;
use crate::ffi::options::lsmkv_options;
use crate::ffi::slice::{Out, c_string};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
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
        out.set(handle::open(Inside::Root(Db::open(directory("path", path)?, options)?)));
        Ok(LSMKV_OK)
    };
    // SAFETY: the caller's promise about err.
    unsafe { call_free(err, body) }
}

/// Closes a handle: rejects new calls and waits for those in flight, a long one like lsmkv_compact
/// too; only lsmkv_wait is cut short. The handle of lsmkv_open closes the store with it: stops
/// background work, flushes, unlocks the directory; handles made from it give CLOSED from then on
/// and are still to be closed, in any order. Other handles only end what they are; a transaction
/// that was not committed is rolled back. The handle is gone whatever is returned; NULL is allowed.
/// Buffers and replies stay valid.
///
/// OK; MISUSE: closed already; IO, FULL, DEGRADED: what the last flush met; FORKED, PANIC.
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

/// The handle, for C, of a store that was opened from Rust: on a file system that only Rust can
/// name, say. To be closed by lsmkv_close.
pub(crate) fn handle_of(db: Db) -> Result<*mut lsmkv_db> {
    fork::watch()?;
    Ok(handle::open(Inside::Root(db)))
}

/// Paths are bytes.
pub(super) fn directory<'a>(name: &str, path: &'a CStr) -> Result<&'a Path> {
    if path.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, format!("{name} is empty: name a directory")));
    }
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}
