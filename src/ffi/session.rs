//! Exported functions for messages: how a session receives them, and what is sent.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_char;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind};
use crate::ffi::boundary::{handle_call, read_call};
use crate::ffi::err::lsmkv_err;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::options::text;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::reply_writer::ReplyWriter;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
use crate::messages::OutputLimits;

/// Waits until a message arrives for a session that has subscribed (SUBSCRIBE, PSUBSCRIBE or
/// SSUBSCRIBE by lsmkv_command), for at most timeout_ms milliseconds; 0 does not wait, UINT64_MAX
/// waits for ever. *out receives the message; free it with lsmkv_reply_free. It is of kind
/// LSMKV_REPLY_PUSH: "message", the channel and the message, or "pmessage", the pattern, the channel
/// and the message. If another thread closes the session or the store, the wait ends at once.
///
/// OK; TIMEOUT: none has arrived; CLOSED: the store or the session was closed; TOO_LARGE: more
/// waited for the session than the limits allow, so its messages and subscriptions are gone; it may
/// subscribe again; UNSUPPORTED: no session; MISUSE: out is NULL; FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_session_wait(
    session: *mut lsmkv_db,
    timeout_ms: u64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        handle_call(session, err, |handle| {
            let out = out.required("out")?;
            let deadline = match timeout_ms {
                u64::MAX => None,
                limit => Instant::now().checked_add(Duration::from_millis(limit)),
            };
            let Some(message) = handle.wait_for_message(deadline)? else {
                let text = format!("no message has arrived in {timeout_ms} ms");
                return Err(Error::new(ErrorKind::Timeout, text));
            };
            let mut reply = ReplyWriter::default();
            message.write_to(&mut reply);
            out.finish(reply);
            Ok(LSMKV_OK)
        })
    }
}

/// Returns a descriptor for poll, epoll or select that is readable while lsmkv_session_wait would
/// return at once, or while a command that lsmkv_command_nowait did not finish can be tried again.
/// *fd receives it. It belongs to the session: do not read from it or close it.
///
/// OK; UNSUPPORTED: no session; IO: there is no descriptor left; MISUSE: fd is NULL; CLOSED,
/// FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_session_fd(
    session: *mut lsmkv_db,
    fd: *mut i32,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let fd = Out::emptied(fd, -1);
        handle_call(session, err, |handle| {
            fd.required("fd")?.set(handle.message_descriptor()?);
            Ok(LSMKV_OK)
        })
    }
}

/// Turns on key events for all handles of the store: letters of "KEg$lshzxetdmnA", as in Redis's
/// notify-keyspace-events. Events are sent to the channels __keyspace@N__:key (K) and
/// __keyevent@N__:event (E) after the commit. "" turns them off, as they are at first.
///
/// OK; INVALID: a letter names no class; MISUSE: classes is NULL; UNSUPPORTED: on a batch; CLOSED,
/// FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_set_keyspace_events(
    db: *mut lsmkv_db,
    classes: *const c_char,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        read_call(db, err, |target| {
            target.db()?.set_keyspace_events(text("classes", classes)?)?;
            Ok(LSMKV_OK)
        })
    }
}

/// Sets how much may wait for a subscriber before it is cut off: more than hard_bytes at once, or
/// more than soft_bytes for soft_seconds. 0 bytes are no limit. At first they are 32 MiB, 8 MiB and
/// 60 seconds.
///
/// OK; UNSUPPORTED: on a batch; MISUSE, CLOSED, FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_set_message_limits(
    db: *mut lsmkv_db,
    hard_bytes: usize,
    soft_bytes: usize,
    soft_seconds: u64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        read_call(db, err, |target| {
            let limits = OutputLimits { hard_bytes, soft_bytes, soft_seconds };
            target.db()?.set_message_limits(limits);
            Ok(LSMKV_OK)
        })
    }
}
