//! Batches.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use crate::ffi::boundary::call_inside;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::Flags;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::inside::Inside;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::ffi::views::made;

/// lsmkv_batch: DEL, UNLINK, PERSIST and EXPIRE in all its forms fail the whole batch if a key of
/// theirs is missing.
pub const LSMKV_STRICT: u32 = 1;

/// An empty batch: write functions and lsmkv_command on *out are noted, with their outputs empty,
/// and run at lsmkv_commit: all of them, or none if one fails. Flag LSMKV_STRICT. One thread at a
/// time. *out is to be closed by lsmkv_close.
///
/// OK; MISUSE: out is NULL; INVALID: a flag; UNSUPPORTED: on a batch; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_batch(
    db: *mut lsmkv_db,
    flags: u32,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        made(db, out, err, |on| {
            let strict = Flags::checked(flags, LSMKV_STRICT, &[])?.has(LSMKV_STRICT);
            Ok(Inside::new_batch(on.db(), strict))
        })
    }
}

/// Empties a batch; one that was committed can then be used again.
///
/// OK; UNSUPPORTED: no batch; MISUSE, FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_batch_clear(
    batch: *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        call_inside(batch, err, |inside| {
            inside.batch()?.clear();
            Ok(LSMKV_OK)
        })
    }
}

/// The priority of the commands that follow, 0 at first: those of a higher one run before those of
/// a lower one, equal ones in the order in which they were noted.
///
/// OK; UNSUPPORTED: no batch; MISUSE, FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_batch_priority(
    batch: *mut lsmkv_db,
    priority: i32,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        call_inside(batch, err, |inside| {
            inside.batch()?.priority(priority);
            Ok(LSMKV_OK)
        })
    }
}
