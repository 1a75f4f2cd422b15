//! Handles made from a handle: other databases, snapshots, sync modes, sessions.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_char;
use std::ptr::null_mut;

use crate::error::Result;
use crate::ffi::boundary::call;
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::{self, lsmkv_db};
use crate::ffi::inside::Inside;
use crate::ffi::on::On;
use crate::ffi::options::text;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::options::Options;

/// The store as it is now, to be read as often as one likes; it keeps what is deleted later from
/// being reclaimed, until *out is closed by lsmkv_close. Of a snapshot: the same one again.
///
/// OK; MISUSE: out is NULL; UNSUPPORTED: on a transaction or a batch; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_snapshot(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { made(db, out, err, |on| on.db().snapshot().map(Inside::View)) }
}

/// The same with database `number` selected, from 0: on a snapshot at its moment, on a transaction
/// within it. *out is to be closed by lsmkv_close.
///
/// OK; MISUSE: out is NULL; OUT_OF_RANGE: there is no such database; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_select(
    db: *mut lsmkv_db,
    number: u32,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { made(db, out, err, |on| on.db().select(number).map(Inside::View)) }
}

/// The same store, but writes through *out are as durable as `mode` says, one of the values of the
/// option sync: "always", "interval" or "off". *out is to be closed by lsmkv_close.
///
/// OK; MISUSE: mode or out is NULL; INVALID: there is no such mode; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_with_sync(
    db: *mut lsmkv_db,
    mode: *const c_char,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        made(db, out, err, |on| {
            let mut options = Options::default();
            options.set("sync", text("mode", mode)?)?;
            Ok(Inside::View(on.db().with_sync(options.sync)))
        })
    }
}

/// What a connection is to a server: lsmkv_command on *out takes MULTI, EXEC, DISCARD, WATCH,
/// UNWATCH, SELECT, HELLO, CLIENT and the like, and remembers. Other functions run on its selected
/// database, but not between MULTI and EXEC (MISUSE). One thread at a time. *out is to be closed
/// by lsmkv_close, which discards what is queued.
///
/// OK; MISUSE: out is NULL; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_session(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { made(db, out, err, |on| Ok(Inside::session(on.db()))) }
}

/// Gives the caller a handle of what `make` makes.
///
/// # Safety
/// `out` is NULL or a place for a pointer; the rest as for [`call`].
pub(super) unsafe fn made(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
    make: impl FnOnce(&On<'_>) -> Result<Inside>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            out.set(handle::open(make(on)?));
            Ok(LSMKV_OK)
        })
    }
}
