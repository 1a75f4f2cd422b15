//! Exported functions for transactions and tickets.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::boundary::{handle_call, read_call};
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::handle_kind::HandleKind;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::ffi::views::made;
use crate::txn::Ticket;

/// Begins a transaction. Commands on *out see the store as it is now, plus the transaction's own
/// writes. Others see nothing of it before lsmkv_commit. One thread at a time may use *out. Close
/// it with lsmkv_close, which rolls back what was not committed. The process that holds a shared
/// store keeps the transactions of the others; when it ends, their calls return IO, and nothing of
/// them was committed.
///
/// OK; MISUSE: out is NULL; UNSUPPORTED: on a snapshot, a transaction or a batch; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_begin(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { made(db, out, err, HandleKind::begin) }
}

/// Makes all writes of a transaction or batch visible at once, and as durable as the sync mode
/// says. The handle is over afterwards: close it, or clear it if it is a batch.
///
/// OK; CONFLICT: another commit changed a key that the transaction read or wrote, and nothing was
/// written: begin again; UNSUPPORTED: neither a transaction nor a batch; for a batch also the
/// statuses of its commands: then nothing was written, and err names the command; of a shared store
/// also IO, TIMEOUT: the process that holds it ended or is silent, and err says whether anything may
/// have been written; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_commit(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { handle_call(db, err, |handle| done(handle.commit(None))) }
}

/// Commits a transaction or batch, and waits at most ms milliseconds for other writers of its keys.
///
/// The statuses of lsmkv_commit; TIMEOUT: nothing was written, and the transaction or batch can be
/// committed again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_commit_timeout(
    db: *mut lsmkv_db,
    ms: u64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let limit = Duration::from_millis(ms);
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { handle_call(db, err, |handle| done(handle.commit(Some(limit)))) }
}

/// Commits a transaction or batch without waiting for the device. *ticket, which may be NULL,
/// receives a number for lsmkv_wait. A later ticket covers all earlier ones.
///
/// The statuses of lsmkv_commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_commit_async(
    db: *mut lsmkv_db,
    ticket: *mut u64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let ticket = Out::emptied(ticket, 0);
        handle_call(db, err, |handle| {
            ticket.set(handle.commit_async()?.number());
            Ok(LSMKV_OK)
        })
    }
}

/// Waits until the writes of a ticket are durable, in any sync mode, for at most timeout_ms
/// milliseconds; 0 does not wait. It requests a sync if none is running. If another thread closes
/// the store, the wait ends at once, or after the sync that this call itself runs. When another
/// process takes a shared store over, all earlier tickets are durable.
///
/// OK: durable; TIMEOUT: not yet; CLOSED: the store was closed before the writes were known to be
/// durable; they are durable if that lsmkv_close returns OK; INVALID: no such ticket; DEGRADED, IO:
/// the sync failed; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_wait(
    db: *mut lsmkv_db,
    ticket: u64,
    timeout_ms: u64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        read_call(db, err, |target| {
            let limit = Duration::from_millis(timeout_ms);
            if target.wait(Ticket::from_number(ticket), limit)? {
                return Ok(LSMKV_OK);
            }
            let message = format!("not durable after {timeout_ms} ms; it will be, wait again");
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }
}

/// Discards all writes of a transaction, which is then over and can only be closed. On a batch it
/// does what lsmkv_batch_clear does.
///
/// OK; CLOSED: it was over already; UNSUPPORTED: neither a transaction nor a batch; MISUSE, FORKED,
/// PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_rollback(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { handle_call(db, err, |handle| done(handle.rollback())) }
}

fn done(result: Result<()>) -> Result<lsmkv_status> {
    result.map(|()| LSMKV_OK)
}
