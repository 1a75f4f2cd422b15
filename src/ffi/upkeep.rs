//! Upkeep: durability on demand, flushing, compaction, recovery from a full disk.
#![expect(unsafe_code, reason = "enters handles given by C")]

use crate::error::Result;
use crate::ffi::boundary::call;
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};

/// Makes every write that has returned durable, whatever the sync mode.
///
/// OK; MISUSE; READONLY; DEGRADED, IO: the sync failed, and no later write will be accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sync(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |db| done(db.sync())) }
}

/// Writes the buffers in memory to tables, and waits for it.
///
/// OK; MISUSE; READONLY, DEGRADED, FULL, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_flush(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |db| done(db.flush())) }
}

/// Flushes, merges all tables, and returns when the old files and the old log are gone. May take
/// long; other threads go on reading and writing.
///
/// OK; MISUSE; READONLY, DEGRADED, FULL, CORRUPT, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_compact(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |db| done(db.compact())) }
}

/// Tries at once to write again after LSMKV_FULL. Without it the store tries by itself.
///
/// OK: writes are accepted; MISUSE; FULL: still no space; READONLY, DEGRADED, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_resume(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |db| done(db.resume())) }
}

fn done(result: Result<()>) -> Result<lsmkv_status> {
    result.map(|()| LSMKV_OK)
}
