//! Upkeep: durability on demand, flushing, compaction, recovery from a full disk, figures.
#![expect(unsafe_code, reason = "enters handles given by C")]

use std::ffi::c_char;
use std::ptr::null_mut;

use bytes::Bytes;

use crate::commands::Reply;
use crate::error::Result;
use crate::ffi::boundary::call;
use crate::ffi::db::directory;
use crate::ffi::err::lsmkv_err;
use crate::ffi::give::Give;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, c_string};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::types::{Stat, StatValue};

/// Makes every write that has returned durable, whatever the sync mode.
///
/// OK; MISUSE; READONLY; DEGRADED, IO: the sync failed, and no later write will be accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sync(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |on| done(on.db().sync())) }
}

/// Writes the buffers in memory to tables, and waits for it.
///
/// OK; MISUSE; READONLY, DEGRADED, FULL, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_flush(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |on| done(on.db().flush())) }
}

/// Flushes, merges all tables, and returns when the old files and the old log are gone. May take
/// long; other threads go on reading and writing.
///
/// OK; MISUSE; READONLY, DEGRADED, FULL, CORRUPT, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_compact(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |on| done(on.db().compact())) }
}

/// Tries at once to write again after LSMKV_FULL. Without it the store tries by itself.
///
/// OK: writes are accepted; MISUSE; FULL: still no space; READONLY, DEGRADED, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_resume(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { call(db, err, |on| done(on.db().resume())) }
}

/// Makes a copy of the store in directory `dir`, which must not exist, by hard links: at once
/// whatever the size, on the same file system; reads and writes go on. It holds every write that had
/// returned before, and opens as a store of its own.
///
/// OK; MISUSE: dir is NULL; INVALID: dir exists, or the store is in memory; IO, FULL; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_checkpoint(
    db: *mut lsmkv_db,
    dir: *const c_char,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        call(db, err, |on| {
            let dir = directory("dir", c_string("dir", dir)?)?;
            done(on.db().checkpoint(dir))
        })
    }
}

/// Whether everything stored fits together: *report receives an array of the problems found, empty
/// for a sound store, to be freed by lsmkv_reply_free. Reads the whole store, as of one moment;
/// other threads go on.
///
/// OK; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_check(
    db: *mut lsmkv_db,
    report: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let report = Out::emptied(report, null_mut());
        call(db, err, |on| {
            let report = report.required("report")?;
            let problems = on.db().check()?.into_iter().map(Bytes::from);
            report.give(Reply::list(problems))
        })
    }
}

/// What the store holds and has done: *out receives a map of names to integers or doubles, to be
/// freed by lsmkv_reply_free.
///
/// OK; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_stats(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let figures = on.db().stats()?.into_iter().map(figure);
            out.give(Reply::Map(figures.collect()))
        })
    }
}

fn figure(stat: Stat) -> (Reply, Reply) {
    let value = match stat.value {
        StatValue::Count(count) => Reply::Int(i64::try_from(count).unwrap_or(i64::MAX)),
        StatValue::Ratio(ratio) => Reply::Double(ratio),
    };
    (Reply::Bulk(Bytes::from_static(stat.name.as_bytes())), value)
}

fn done(result: Result<()>) -> Result<lsmkv_status> {
    result.map(|()| LSMKV_OK)
}
