//! Exported functions for upkeep: durability on demand, flushing, compaction, recovery from a full
//! disk, statistics.
#![expect(unsafe_code, reason = "enters handles given by C")]

use std::ffi::c_char;
use std::ptr::null_mut;

use crate::admin::{Stat, StatValue};
use crate::commands::{Head, ReplySink};
use crate::error::Result;
use crate::ffi::boundary::read_call;
use crate::ffi::db::directory;
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, c_string};
use crate::ffi::status::{LSMKV_OK, lsmkv_status};

/// Makes every write that has returned durable, whatever the sync mode.
///
/// OK; MISUSE; READONLY; DEGRADED, IO: the sync failed, and no later write will be accepted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sync(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { read_call(db, err, |target| done(target.db()?.sync())) }
}

/// Flushes the memtables to tables, and waits until that is done.
///
/// OK; MISUSE; READONLY, DEGRADED, FULL, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_flush(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { read_call(db, err, |target| done(target.db()?.flush())) }
}

/// Flushes, merges all tables, and returns when the old files and the old log are gone. This may
/// take long; other threads keep reading and writing. In a store of an earlier version, it first
/// rewrites collections and large strings, so that ranks, counts and changes no longer grow with
/// their size; who writes one of these keys meanwhile waits until it is done.
///
/// OK; MISUSE; READONLY, DEGRADED, FULL, CORRUPT, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_compact(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { read_call(db, err, |target| done(target.db()?.compact())) }
}

/// Moves a store that was opened read_only beside a writer on to what the writer has committed by
/// now. All handles of the store see it from then on; snapshots, iterators and running calls keep
/// their moment. Every write that had returned before this call is seen, whatever its sync mode.
/// Other threads go on reading.
///
/// OK, also where there is nothing to do: a store that holds its lock, or a remote one, shows every
/// write anyway; MISUSE; BUSY: a slow script is running; INCOMPATIBLE: the directory holds another
/// store now; UNSUPPORTED: the process may not open so many files, or the handle is a batch;
/// CORRUPT, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_refresh(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { read_call(db, err, |target| done(target.refresh())) }
}

/// Retries writing at once after LSMKV_FULL. The store also retries by itself.
///
/// OK: writes are accepted; MISUSE; FULL: still no space; READONLY, DEGRADED, IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_resume(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller's promises about db and err.
    unsafe { read_call(db, err, |target| done(target.db()?.resume())) }
}

/// Copies the store to directory `dir`, which must not exist, by hard links on the same file
/// system. The copy takes no longer for a larger store, and reads and writes go on. It holds every
/// write that had returned before the call, and opens as a store of its own.
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
        read_call(db, err, |target| {
            let dir = directory("dir", c_string("dir", dir)?)?;
            done(target.db()?.checkpoint(dir))
        })
    }
}

/// Checks whether everything stored is consistent. *report receives an array of the problems found,
/// empty for a sound store; free it with lsmkv_reply_free. The check reads the whole store as of
/// one moment; other threads go on.
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
        read_call(db, err, |target| {
            let report = report.required("report")?;
            let problems = target.db()?.check()?;
            report.fill(|sink| {
                sink.head(Head::Array, problems.len());
                problems.iter().for_each(|problem| sink.bulk(problem.as_bytes()));
            })
        })
    }
}

/// Returns statistics of the store. *out receives a map of names to integers or doubles; free it
/// with lsmkv_reply_free.
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
        read_call(db, err, |target| {
            let out = out.required("out")?;
            let figures = target.db()?.stats()?;
            out.fill(|sink| {
                sink.head(Head::Map, figures.len());
                figures.iter().for_each(|figure| write_figure(figure, sink));
            })
        })
    }
}

fn write_figure(figure: &Stat, sink: &mut dyn ReplySink) {
    sink.bulk(figure.name.as_bytes());
    match figure.value {
        StatValue::Count(count) => sink.integer(i64::try_from(count).unwrap_or(i64::MAX)),
        StatValue::Ratio(ratio) => sink.double(ratio),
    }
}

fn done(result: Result<()>) -> Result<lsmkv_status> {
    result.map(|()| LSMKV_OK)
}
