//! Transactions and tickets.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::boundary::{call, call_inside};
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::inside::Inside;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::ffi::views::made;
use crate::types::Ticket;

/// Begins a transaction: commands on *out see the store as it is now and what they themselves have
/// written, and change nothing for others before lsmkv_commit. One thread at a time. *out is to be
/// closed by lsmkv_close, which rolls back what was not committed.
///
/// OK; MISUSE: out is NULL; UNSUPPORTED: on a snapshot, a transaction or a batch; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_begin(
    db: *mut lsmkv_db,
    out: *mut *mut lsmkv_db,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { made(db, out, err, |on| on.db().begin().map(Inside::Transaction)) }
}

/// Makes all writes of a transaction or batch visible at once, and as durable as the sync mode
/// says. The handle is then over: it is only to be closed, or a batch to be cleared.
///
/// OK; CONFLICT: a key that the transaction has read or written was changed meanwhile, and nothing
/// was written: begin again; UNSUPPORTED: neither a transaction nor a batch; of a batch also what
/// its commands give, and then nothing was written and err names the command; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_commit(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call_inside(db, err, |inside| done(inside.commit(None))) }
}

/// lsmkv_commit that waits for other writers of its keys no longer than ms milliseconds.
///
/// As lsmkv_commit; TIMEOUT: nothing was written, and the transaction or batch can be committed
/// again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_commit_timeout(
    db: *mut lsmkv_db,
    ms: u64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let limit = Duration::from_millis(ms);
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call_inside(db, err, |inside| done(inside.commit(Some(limit)))) }
}

/// lsmkv_commit that does not wait for the device. *ticket, which may be NULL, receives a number
/// for lsmkv_wait; a later one stands for those before it too.
///
/// As lsmkv_commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_commit_async(
    db: *mut lsmkv_db,
    ticket: *mut u64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let ticket = Out::emptied(ticket, 0);
        call_inside(db, err, |inside| {
            ticket.set(inside.commit_async()?.number());
            Ok(LSMKV_OK)
        })
    }
}

/// Waits until the writes of a ticket are durable, in any sync mode, at most timeout_ms
/// milliseconds; 0 only asks. Asks for a sync if none is under way. lsmkv_close of the store in
/// another thread ends the wait at once, or with the sync that this call itself runs.
///
/// OK: durable; TIMEOUT: not yet; CLOSED: the store is being closed or was, before they were seen
/// to be durable: they are if that lsmkv_close gives OK; INVALID: no such ticket; DEGRADED, IO: the
/// sync failed; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_wait(
    db: *mut lsmkv_db,
    ticket: u64,
    timeout_ms: u64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        call(db, err, |on| {
            let limit = Duration::from_millis(timeout_ms);
            if on.db().wait(Ticket::from_number(ticket), Some(limit))? {
                return Ok(LSMKV_OK);
            }
            let message = format!("not durable after {timeout_ms} ms; it will be, wait again");
            Err(Error::new(ErrorKind::Timeout, message))
        })
    }
}

/// Forgets all writes of a transaction, which is then over and only to be closed; of a batch the
/// same as lsmkv_batch_clear.
///
/// OK; CLOSED: it was over already; UNSUPPORTED: neither a transaction nor a batch; MISUSE, FORKED,
/// PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_rollback(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call_inside(db, err, |inside| done(inside.rollback())) }
}

fn done(result: Result<()>) -> Result<lsmkv_status> {
    result.map(|()| LSMKV_OK)
}
