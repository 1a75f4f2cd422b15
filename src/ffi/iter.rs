//! `lsmkv_iter`: keys in order.
//!
//! An iterator keeps the store's inside alive and may be freed before or after the store is closed.
//! It is used by one thread at a time; a second one is told so.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ptr::null_mut;

use parking_lot::Mutex;

use crate::commands::Reply;
use crate::error::Result;
use crate::ffi::boundary::{call, call_on, caught};
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::Flags;
use crate::ffi::fork;
use crate::ffi::give::Give;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::inside::alone;
use crate::ffi::key::type_number;
use crate::ffi::on::On;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice, misuse};
use crate::ffi::status::{LSMKV_DONE, LSMKV_OK, lsmkv_status};
use crate::types::{Db, KeyEntry, KeyIter, KeyRange};

/// lsmkv_iter_new: from the last key to the first.
pub const LSMKV_ITER_REVERSE: u32 = 1;
/// lsmkv_iter_new: with the values of strings.
pub const LSMKV_ITER_VALUES: u32 = 2;
/// lsmkv_iter_new: leave the block cache as it is, for a walk that will not come again.
pub const LSMKV_ITER_NO_FILL: u32 = 4;

/// A walk over keys. Made by lsmkv_iter_new, freed by lsmkv_iter_free, before or after the store is
/// closed; used by one thread at a time.
pub struct lsmkv_iter {
    /// The fork generation of the process that made it.
    forks: u32,
    /// Whose iterator it is.
    db: Db,
    values: bool,
    state: Mutex<State>,
}

struct State {
    keys: KeyIter,
    /// What the slices of the last call point to.
    shown: Option<KeyEntry>,
}

/// Begins a walk over the keys from lo to hi, hi not included, in the order of their bytes, as they
/// are now: what happens later does not show. NULL for lo or hi is open. Flags
/// LSMKV_ITER_REVERSE, LSMKV_ITER_VALUES, LSMKV_ITER_NO_FILL. *out is to be freed by
/// lsmkv_iter_free; it keeps the files of its moment until it has come to its end or is freed.
///
/// OK; MISUSE: out is NULL; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_iter_new(
    db: *mut lsmkv_db,
    lo: *const lsmkv_slice,
    hi: *const lsmkv_slice,
    flags: u32,
    out: *mut *mut lsmkv_iter,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let (lo, hi) = (on.optional("lo", lo)?, on.optional("hi", hi)?);
            out.set(Box::into_raw(Box::new(new(on, lo, hi, flags)?)));
            Ok(LSMKV_OK)
        })
    }
}

fn new(on: &On<'_>, lo: Option<&[u8]>, hi: Option<&[u8]>, flags: u32) -> Result<lsmkv_iter> {
    let known = LSMKV_ITER_REVERSE | LSMKV_ITER_VALUES | LSMKV_ITER_NO_FILL;
    let flags = Flags::checked(flags, known, &[])?;
    let values = flags.has(LSMKV_ITER_VALUES);
    let range = KeyRange {
        lo: lo.map(<[u8]>::to_vec),
        hi: hi.map(<[u8]>::to_vec),
        reverse: flags.has(LSMKV_ITER_REVERSE),
        values,
        no_fill: flags.has(LSMKV_ITER_NO_FILL),
        ..KeyRange::default()
    };
    let state = Mutex::new(State { keys: on.db().iter(range)?, shown: None });
    Ok(lsmkv_iter { forks: fork::generation(), db: on.db().clone(), values, state })
}

/// The next key. *key and *value are valid until the next call on this iterator; *kind is
/// LSMKV_STRING and so on; *value is that of a string if LSMKV_ITER_VALUES was given, else empty.
/// Each output may be NULL.
///
/// OK; DONE: there are no more, also at every further call; MISUSE: iter is NULL, or two threads
/// use it; CORRUPT, IO: and again at every further call; CLOSED: the store; FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_iter_next(
    iter: *mut lsmkv_iter,
    key: *mut lsmkv_slice,
    kind: *mut i32,
    value: *mut lsmkv_slice,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let (key, kind) = (Out::emptied(key, lsmkv_slice::EMPTY), Out::emptied(kind, 0));
        let value = Out::emptied(value, lsmkv_slice::EMPTY);
        call_iter(iter, err, |_, state| {
            state.shown = state.keys.next()?;
            let Some(shown) = &state.shown else { return Ok(LSMKV_DONE) };
            key.set(lsmkv_slice::of(&shown.key));
            kind.set(type_number(shown.kind));
            shown.value.iter().for_each(|bytes| value.set(lsmkv_slice::of(bytes)));
            Ok(LSMKV_OK)
        })
    }
}

/// Several keys in one call: up to max_items, and no further than the one that makes max_bytes of
/// keys and values full; always at least one. *out receives an array, to be freed by
/// lsmkv_reply_free: key and type in turn, or key, type and value (nil for what is no string) if
/// LSMKV_ITER_VALUES was given.
///
/// OK; DONE: there are no more, *out is NULL; MISUSE: iter or out is NULL, or two threads use it;
/// CORRUPT, IO: and again at every further call; CLOSED: the store; FORKED, PANIC.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_iter_next_chunk(
    iter: *mut lsmkv_iter,
    max_items: usize,
    max_bytes: usize,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call_iter(iter, err, |values, state| {
            let out = out.required("out")?;
            let entries = state.keys.next_chunk(max_items, max_bytes)?;
            if entries.is_empty() {
                return Ok(LSMKV_DONE);
            }
            let parts = entries.into_iter().flat_map(|entry| {
                let value = values.then(|| entry.value.map_or(Reply::Nil, Reply::Bulk));
                let kind = Reply::Int(i64::from(type_number(entry.kind)));
                [Reply::Bulk(entry.key), kind].into_iter().chain(value)
            });
            out.give(Reply::Array(parts.collect()))
        })
    }
}

/// Frees an iterator, at most once. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_iter_free(iter: *mut lsmkv_iter) {
    // SAFETY: the caller promises NULL or an iterator that was not freed.
    let Some(held) = (unsafe { iter.as_ref() }) else { return };
    // A forked child must not touch the locks of its parent's store: it lets the memory go.
    if held.forks == fork::generation() {
        // SAFETY: made by lsmkv_iter_new from a box, and not freed before.
        let iter = unsafe { Box::from_raw(iter) };
        let _ = caught(|| {
            drop(iter);
            Ok(())
        });
    }
}

/// Runs a call on an iterator.
///
/// # Safety
/// `iter` is NULL or an iterator that was not freed; the rest as for [`call`].
unsafe fn call_iter(
    iter: *mut lsmkv_iter,
    err: *mut lsmkv_err,
    body: impl FnOnce(bool, &mut State) -> Result<lsmkv_status>,
) -> lsmkv_status {
    // SAFETY: the caller's promises.
    unsafe {
        let iter = match iter.as_ref() {
            None => Err(misuse("iter is NULL: pass an iterator made by lsmkv_iter_new")),
            Some(iter) if iter.forks != fork::generation() => Err(fork::forked()),
            Some(iter) => Ok(iter),
        };
        call_on(err, iter, |iter| &iter.db, |iter| body(iter.values, &mut *alone(&iter.state)?))
    }
}
