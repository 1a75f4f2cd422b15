//! The frame of every exported function: nothing unwinds into C, and every call ends in a status.
//!
//! A panic is a defect of this library. The call reports LSMKV_PANIC, and the database stops
//! accepting writes: memory may be half changed, and the disk must not follow. Reads go on.
#![expect(unsafe_code, reason = "enters handles given by C")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::err::{Report, lsmkv_err};
use crate::ffi::handle::{self, lsmkv_db};
use crate::ffi::handle_kind::HandleKind;
use crate::ffi::status::lsmkv_status;
use crate::ffi::target::CommandTarget;
use crate::txn::Db;

/// Runs a call on a handle of any kind but a batch.
///
/// # Safety
/// `db` is NULL or a handle of this library; `err` is NULL or memory for an `lsmkv_err` that no
/// other thread uses.
#[inline]
pub(super) unsafe fn read_call(
    db: *mut lsmkv_db,
    err: *mut lsmkv_err,
    body: impl FnOnce(&CommandTarget<'_>) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe { write_call(db, err, |target| target.reads().and_then(|()| body(target))) }
}

/// Runs a call on a handle of any kind. A batch stores writes and runs them later.
///
/// # Safety
/// `db` and `err` are as [`read_call`] requires.
#[inline]
pub(super) unsafe fn write_call(
    db: *mut lsmkv_db,
    err: *mut lsmkv_err,
    body: impl FnOnce(&CommandTarget<'_>) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe { handle_call(db, err, |handle| handle.run(body)) }
}

/// Runs a call that needs the handle itself, of any kind.
///
/// # Safety
/// `db` and `err` are as [`read_call`] requires.
#[inline]
pub(super) unsafe fn handle_call(
    db: *mut lsmkv_db,
    err: *mut lsmkv_err,
    body: impl FnOnce(&HandleKind) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe {
        let entered = handle::enter(db);
        guarded_call(err, entered, |entered| entered.kind().store(), |entered| body(entered.kind()))
    }
}

/// Runs a call on an object that `store` returns, unless `store` fails.
///
/// # Safety
/// `err` is NULL or memory for an `lsmkv_err` that no other thread uses.
#[inline]
pub(super) unsafe fn guarded_call<T>(
    err: *mut lsmkv_err,
    entered: Result<T>,
    store: impl FnOnce(&T) -> Option<&Db>,
    body: impl FnOnce(&T) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promise.
    let report = unsafe { Report::new(err) };
    finish(report, entered.and_then(|entered| degrading(&entered, store, body)))
}

/// Runs a call that has no handle, or that ends one.
///
/// # Safety
/// `err` is NULL or memory for an `lsmkv_err` that no other thread uses.
pub(super) unsafe fn free_call(
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
    store: impl FnOnce(&T) -> Option<&Db>,
    body: impl FnOnce(&T) -> Result<R>,
) -> Result<R> {
    let outcome = caught(|| body(entered));
    if let Err(error) = &outcome
        && error.kind() == ErrorKind::Panic
    {
        // If this panics too, the first panic is still the one reported.
        let _ = caught(|| {
            if let Some(store) = store(entered) {
                store.degrade(error);
            }
            Ok(())
        });
    }
    outcome
}

/// Turns a panic of `body` into an error.
pub(super) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // Unwind safety: nothing is written any more from what the panic left half changed.
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
        let db = handle::open(HandleKind::Root(Db::open(":memory:", Options::default()).unwrap()));
        // SAFETY: an open handle, and NULL for err.
        unsafe {
            let set = |target: &CommandTarget<'_>| target.db()?.set(b"k", b"v").map(|()| LSMKV_OK);
            assert_eq!(read_call(db, null_mut(), set), LSMKV_OK);
            assert_eq!(read_call(db, null_mut(), |_| panic!("injected")), LSMKV_PANIC);
            assert_eq!(read_call(db, null_mut(), set), LSMKV_DEGRADED);
            let get = |target: &CommandTarget<'_>| {
                assert_eq!(target.db()?.get(b"k")?.as_deref(), Some(&b"v"[..]));
                Ok(LSMKV_OK)
            };
            assert_eq!(read_call(db, null_mut(), get), LSMKV_OK);
            // The call left the gate while it unwound; otherwise this would wait for ever.
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
