//! Exported functions for batches.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use crate::ffi::boundary::handle_call;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::Flags;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::ffi::views::made;

/// lsmkv_batch: DEL, UNLINK, PERSIST and every form of EXPIRE fail the whole batch if one of their
/// keys is missing.
pub const LSMKV_STRICT: u32 = 1;

/// Creates an empty batch. Write functions and lsmkv_command on *out store their command and leave
/// their outputs empty. lsmkv_commit runs the stored commands: all of them, or none if one fails.
/// The only flag is LSMKV_STRICT. One thread at a time may use *out. Close it with lsmkv_close.
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
        made(db, out, err, |handle| {
            handle.new_batch(Flags::checked(flags, LSMKV_STRICT, &[])?.has(LSMKV_STRICT))
        })
    }
}

/// Empties a batch. A committed batch can then be used again.
///
/// OK; UNSUPPORTED: no batch; MISUSE, FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_batch_clear(
    batch: *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        handle_call(batch, err, |handle| {
            handle.clear_batch()?;
            Ok(LSMKV_OK)
        })
    }
}

/// Sets the priority of the commands that follow; a new batch has 0. Commands of a higher priority
/// run first. Commands of equal priority run in the order in which they were stored.
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
        handle_call(batch, err, |handle| {
            handle.batch_priority(priority)?;
            Ok(LSMKV_OK)
        })
    }
}
