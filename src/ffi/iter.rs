//! `lsmkv_iter`: walks over keys in order.
//!
//! An iterator keeps the store's memory alive and may be freed before or after the store is closed.
//! One thread at a time may use it; a second one gets an error.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ptr::null_mut;

use parking_lot::Mutex;

use crate::commands::{Head, WriteTo};
use crate::engine::CacheFill;
use crate::error::Result;
use crate::ffi::boundary::{caught, guarded_call, read_call};
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::Flags;
use crate::ffi::fork;
use crate::ffi::handle::lsmkv_db;
use crate::ffi::handle_kind::alone;
use crate::ffi::odd::type_number;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice, misuse};
use crate::ffi::status::{LSMKV_DONE, LSMKV_OK, lsmkv_status};
use crate::ffi::target::{CommandTarget, KeySource};
use crate::txn::Db;
use crate::types::{KeyEntry, KeyIter, KeyRange};

/// lsmkv_iter_new: walks from the last key to the first.
pub const LSMKV_ITER_REVERSE: u32 = 1;
/// lsmkv_iter_new: returns the values of strings too.
pub const LSMKV_ITER_VALUES: u32 = 2;
/// lsmkv_iter_new: leaves the block cache unchanged, for a walk that will not be repeated.
pub const LSMKV_ITER_NO_FILL: u32 = 4;

/// A walk over keys. lsmkv_iter_new makes it and lsmkv_iter_free frees it, before or after the
/// store is closed. One thread at a time may use it.
pub struct lsmkv_iter {
    /// The fork generation of the process that made it.
    forks: u32,
    /// The database of the iterator, if it is of this process.
    db: Option<Db>,
    values: bool,
    state: Mutex<State>,
}

struct State {
    keys: Keys,
    /// The entry that the slices of the last call point to.
    shown: Option<KeyEntry>,
}

enum Keys {
    Here(Box<KeyIter>),
    Elsewhere(Box<dyn KeySource>),
}

impl Keys {
    fn next(&mut self) -> Result<Option<KeyEntry>> {
        match self {
            Self::Here(keys) => KeyIter::next(keys),
            Self::Elsewhere(keys) => keys.next(),
        }
    }

    fn next_chunk(&mut self, max_items: usize, max_bytes: usize) -> Result<Vec<KeyEntry>> {
        match self {
            Self::Here(keys) => KeyIter::next_chunk(keys, max_items, max_bytes),
            Self::Elsewhere(keys) => keys.next_chunk(max_items, max_bytes),
        }
    }
}

/// Begins a walk over the keys from lo to hi, hi excluded, in byte order. It sees the store as it
/// is now; later writes do not show. NULL for lo or hi leaves that end open. Flags:
/// LSMKV_ITER_REVERSE, LSMKV_ITER_VALUES, LSMKV_ITER_NO_FILL. Free *out with lsmkv_iter_free. Until
/// it reaches its end or is freed, it keeps the files that it reads, and in memory what was not yet in
/// files when it began: at most three eighths of memory_budget, or three times write_buffer. The
/// process that holds a shared store keeps that for the others; when it ends, their iterators return
/// IO.
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
        read_call(db, err, |target| {
            let out = out.required("out")?;
            let (lo, hi) = (target.optional("lo", lo)?, target.optional("hi", hi)?);
            out.set(Box::into_raw(Box::new(new(target, lo, hi, flags)?)));
            Ok(LSMKV_OK)
        })
    }
}

fn new(
    target: &CommandTarget<'_>,
    lo: Option<&[u8]>,
    hi: Option<&[u8]>,
    flags: u32,
) -> Result<lsmkv_iter> {
    let known = LSMKV_ITER_REVERSE | LSMKV_ITER_VALUES | LSMKV_ITER_NO_FILL;
    let flags = Flags::checked(flags, known, &[])?;
    let values = flags.has(LSMKV_ITER_VALUES);
    let range = KeyRange {
        lo: lo.map(<[u8]>::to_vec),
        hi: hi.map(<[u8]>::to_vec),
        reverse: flags.has(LSMKV_ITER_REVERSE),
        values,
        cache_fill: CacheFill::skip_if(flags.has(LSMKV_ITER_NO_FILL)),
        ..KeyRange::default()
    };
    let (keys, db) = match target.keys_elsewhere(range)? {
        Ok(keys) => (Keys::Elsewhere(keys), None),
        Err(range) => {
            let db = target.db()?;
            (Keys::Here(Box::new(db.iter(range)?)), Some(db.clone()))
        }
    };
    let state = Mutex::new(State { keys, shown: None });
    Ok(lsmkv_iter { forks: fork::generation(), db, values, state })
}

/// Returns the next key. *key and *value are valid until the next call on this iterator. *kind is
/// the type, LSMKV_STRING and so on. *value is the value of a string if LSMKV_ITER_VALUES was
/// given, otherwise empty. Each output may be NULL.
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

/// Returns several keys in one call: at least one, at most max_items, and none after the one that
/// reaches max_bytes of keys and values. *out receives an array; free it with lsmkv_reply_free. It
/// holds key and type in turn, or key, type and value if LSMKV_ITER_VALUES was given (nil if the
/// key is no string).
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
            out.fill(|sink| {
                let parts = if values { 3 } else { 2 };
                sink.head(Head::Array, parts * entries.len());
                for entry in entries {
                    sink.shared_bulk(entry.key);
                    sink.integer(i64::from(type_number(entry.kind)));
                    if values {
                        entry.value.write_to(sink);
                    }
                }
            })
        })
    }
}

/// Frees an iterator, at most once. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_iter_free(iter: *mut lsmkv_iter) {
    // SAFETY: the caller promises NULL or an iterator that was not freed.
    let Some(held) = (unsafe { iter.as_ref() }) else { return };
    // A forked child must not touch the locks of its parent's store, so it leaks the memory.
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
/// `iter` is NULL or an iterator that was not freed; `err` is as [`read_call`] requires.
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
        guarded_call(
            err,
            iter,
            |iter| iter.db.as_ref(),
            |iter| body(iter.values, &mut *alone(&iter.state)?),
        )
    }
}
