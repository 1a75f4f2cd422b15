//! Exported functions that make a handle from a handle: other databases, snapshots, sync modes,
//! sessions.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_char;
use std::ptr::null_mut;

use crate::error::Result;
use crate::ffi::boundary::handle_call;
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::{self, lsmkv_db};
use crate::ffi::handle_kind::HandleKind;
use crate::ffi::options::text;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::options::Options;

/// Makes a snapshot: a read-only handle on the store as it is now. Until *out is closed, the space
/// of data deleted later is not reclaimed. On a snapshot it returns another handle on that
/// snapshot. The process that holds a shared store keeps the snapshots of the others; when it ends,
/// their calls return IO.
///
/// OK; MISUSE: out is NULL; UNSUPPORTED: on a transaction or a batch; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_snapshot(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { made(db, out, err, HandleKind::snapshot) }
}

/// Makes a handle with database `number` selected, from 0. On a snapshot it reads that snapshot, on
/// a transaction it belongs to that transaction. Close *out with lsmkv_close.
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
    unsafe { made(db, out, err, |handle| handle.select(number)) }
}

/// Makes a handle whose writes are as durable as `mode` says: "always", "interval" or "off", as for
/// the option sync. Close *out with lsmkv_close.
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
        made(db, out, err, |handle| {
            let mut options = Options::default();
            options.set("sync", text("mode", mode)?)?;
            handle.with_database(|db| Ok(HandleKind::new_view(&db.with_sync(options.sync))))
        })
    }
}

/// Makes a session, which is what a server keeps per connection. lsmkv_command on *out accepts
/// MULTI, EXEC, DISCARD, WATCH, UNWATCH, SELECT, HELLO, CLIENT and the other connection commands,
/// and keeps their state. Other functions run on its selected database, but return MISUSE between
/// MULTI and EXEC. One thread at a time may use *out. Close it with lsmkv_close, which discards
/// queued commands.
///
/// OK; MISUSE: out is NULL; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_session(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { made(db, out, err, HandleKind::new_session) }
}

/// Gives the caller a handle of what `make` returns.
///
/// # Safety
/// `out` is NULL or a place for a pointer; `db` and `err` are as [`handle_call`] requires.
pub(super) unsafe fn made(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
    make: impl FnOnce(&HandleKind) -> Result<HandleKind>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe {
        let out = Out::emptied(out, null_mut());
        handle_call(db, err, |handle| {
            let out = out.required("out")?;
            out.set(handle::open(make(handle)?));
            Ok(LSMKV_OK)
        })
    }
}
