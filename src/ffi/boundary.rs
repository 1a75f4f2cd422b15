//! The frame of every exported function: nothing unwinds into C, everything ends in a status.
//!
//! A panic is a defect of this library. The call reports LSMKV_PANIC, and the database takes no
//! more writes: memory may be half changed, and what is on disk must not follow. Reads go on.
#![expect(unsafe_code, reason = "enters handles given by C")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::err::{Report, lsmkv_err};
use crate::ffi::handle::{self, lsmkv_db};
use crate::ffi::inside::Inside;
use crate::ffi::on::On;
use crate::ffi::status::lsmkv_status;
use crate::types::Db;

/// Runs a call on a handle that is no batch.
///
/// # Safety
/// `db` is NULL or a handle of this library; `err` is NULL or memory for an `lsmkv_err` that no
/// other thread uses.
#[inline]
pub(super) unsafe fn call(
    db: *mut lsmkv_db,
    err: *mut lsmkv_err,
    body: impl FnOnce(&On<'_>) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe { write(db, err, |on| on.reads().and_then(|()| body(on))) }
}

/// Runs a call on a handle that may be a batch, which notes writes and runs them later.
///
/// # Safety
/// As for [`call`].
#[inline]
pub(super) unsafe fn write(
    db: *mut lsmkv_db,
    err: *mut lsmkv_err,
    body: impl FnOnce(&On<'_>) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe { call_inside(db, err, |inside| inside.run(body)) }
}

/// Runs a call on a handle of any kind.
///
/// # Safety
/// As for [`call`].
#[inline]
pub(super) unsafe fn call_inside(
    db: *mut lsmkv_db,
    err: *mut lsmkv_err,
    body: impl FnOnce(&Inside) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe {
        let entered = handle::enter(db);
        call_on(err, entered, |entered| entered.inside().store(), |entered| body(entered.inside()))
    }
}

/// Runs a call on something of a store, which `store` gives, unless it could not be entered.
///
/// # Safety
/// `err` is NULL or memory for an `lsmkv_err` that no other thread uses.
#[inline]
pub(super) unsafe fn call_on<T>(
    err: *mut lsmkv_err,
    entered: Result<T>,
    store: impl FnOnce(&T) -> &Db,
    body: impl FnOnce(&T) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promise.
    let report = unsafe { Report::new(err) };
    finish(report, entered.and_then(|entered| degrading(&entered, store, body)))
}

/// Runs a call that has no handle, or ends one.
///
/// # Safety
/// `err` is NULL or memory for an `lsmkv_err` that no other thread uses.
pub(super) unsafe fn call_free(
    err: *mut lsmkv_err,
    body: impl FnOnce() -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promise.
    finish(unsafe { Report::new(err) }, caught(body))
}

fn finish(report: Report, outcome: Result<lsmkv_status>) -> lsmkv_status {
    match outcome {
        Ok(status) => report.outcome(status),
        Err(error) => report.failure(&error),
    }
}

fn degrading<T, R>(
    entered: &T,
    store: impl FnOnce(&T) -> &Db,
    body: impl FnOnce(&T) -> Result<R>,
) -> Result<R> {
    let outcome = caught(|| body(entered));
    if let Err(error) = &outcome
        && error.kind() == ErrorKind::Panic
    {
        // A second panic changes nothing: the first is reported.
        let _ = caught(|| {
            store(entered).degrade(error);
            Ok(())
        });
    }
    outcome
}

/// Turns a panic of `body` into an error.
pub(super) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind safety: what the panic may have left half changed is written to no more.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(panicked(&*payload)))
}

fn panicked(payload: &(dyn Any + Send)) -> Error {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let message = format!(
        "a defect of lsmkv was caught; writes are off until the store is opened again; please \
         report: {text}"
    );
    Error::new(ErrorKind::Panic, message)
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;
    use crate::ffi::status::{LSMKV_DEGRADED, LSMKV_OK, LSMKV_PANIC};
    use crate::options::Options;

    #[test]
    fn a_panic_becomes_a_status_and_turns_writes_off_while_reads_go_on() {
        let db = handle::open(Inside::Root(Db::open(":memory:", Options::default()).unwrap()));
        // SAFETY: an open handle, and NULL for err.
        unsafe {
            let set = |on: &On<'_>| on.db().set(b"k", b"v").map(|()| LSMKV_OK);
            assert_eq!(call(db, null_mut(), set), LSMKV_OK);
            assert_eq!(call(db, null_mut(), |_| panic!("injected")), LSMKV_PANIC);
            assert_eq!(call(db, null_mut(), set), LSMKV_DEGRADED);
            let get = |on: &On<'_>| {
                assert_eq!(on.db().get(b"k")?.as_deref(), Some(&b"v"[..]));
                Ok(LSMKV_OK)
            };
            assert_eq!(call(db, null_mut(), get), LSMKV_OK);
            // The gate was left on the way out, or this would wait for ever.
            drop(handle::close(db).unwrap());
        }
    }

    #[test]
    fn the_text_of_a_panic_is_in_the_message() {
        let number = 7;
        let formatted = caught::<()>(|| panic!("number {number}")).unwrap_err();
        assert!(formatted.message().ends_with("number 7"), "{formatted}");
        let odd = caught::<()>(|| std::panic::panic_any(7)).unwrap_err();
        assert!(odd.message().ends_with("no message"), "{odd}");
    }
}
