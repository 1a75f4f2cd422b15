//! Sorted sets: giving members scores.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;

use crate::ffi::boundary::write;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_CH, LSMKV_GT, LSMKV_LT, LSMKV_NX, LSMKV_XX};
use crate::ffi::give::{Give, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::slice::{Out, array, lsmkv_slice};
use crate::ffi::status::{LSMKV_SKIPPED, lsmkv_status};
use crate::types::ZAdd;

const FLAGS: u32 = LSMKV_NX | LSMKV_XX | LSMKV_GT | LSMKV_LT | LSMKV_CH;
const EXCLUSIVE: &[u32] =
    &[LSMKV_NX | LSMKV_XX, LSMKV_NX | LSMKV_GT, LSMKV_NX | LSMKV_LT, LSMKV_GT | LSMKV_LT];
const WORDS: &[(u32, &str)] =
    &[(LSMKV_NX, "NX"), (LSMKV_XX, "XX"), (LSMKV_GT, "GT"), (LSMKV_LT, "LT"), (LSMKV_CH, "CH")];

/// ZADD: gives a member a score. *added, which may be NULL, receives 1 if the member is new,
/// else 0.
///
/// OK; WRONGTYPE; NOT_FLOAT: the score is NaN; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zadd(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    score: f64,
    member: *const c_void,
    mlen: usize,
    added: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let added = Out::emptied(added, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let member = on.bytes("member", member, mlen)?;
            if on.records() {
                return on.record("ZADD", &[key, text(score).as_bytes(), member]);
            }
            added.give(on.db().zadd(key, &[(score, member)], ZAdd::default())?)
        })
    }
}

/// ZADD with options: flags NX or XX, GT or LT, CH. *changed, which may be NULL, receives 1 if
/// the member is new or, with CH, its score has changed, else 0.
///
/// OK; WRONGTYPE; NOT_FLOAT: the score is NaN; INVALID: a flag; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zadd_opt(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    score: f64,
    member: *const c_void,
    mlen: usize,
    flags: u32,
    changed: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let changed = Out::emptied(changed, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let member = on.bytes("member", member, mlen)?;
            let flags = Flags::checked(flags, FLAGS, EXCLUSIVE)?;
            if on.records() {
                let score = text(score);
                let pair = [score.as_bytes(), member];
                return on.record_with("ZADD", &[key], flags.words(WORDS).into_iter().chain(pair));
            }
            changed.give(on.db().zadd(key, &[(score, member)], options(flags))?)
        })
    }
}

/// ZADD: gives n members scores: items[i] gets scores[i]. Flags as in lsmkv_zadd_opt. *changed,
/// which may be NULL, receives how many members are new or, with CH, changed.
///
/// OK; WRONGTYPE; NOT_FLOAT: a score is NaN; INVALID: a flag; MISUSE: scores is NULL; any of a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zadd_many(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    items: *const lsmkv_slice,
    n: usize,
    scores: *const f64,
    flags: u32,
    changed: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let changed = Out::emptied(changed, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let items = on.items("items", items, n)?;
            let flags = Flags::checked(flags, FLAGS, EXCLUSIVE)?;
            let scores = array("scores", scores, items.len())?;
            if on.records() {
                let scores: Vec<String> = scores.iter().map(|score| text(*score)).collect();
                let pairs =
                    scores.iter().zip(items).flat_map(|(score, item)| [score.as_bytes(), item]);
                return on.record_with("ZADD", &[key], flags.words(WORDS).into_iter().chain(pairs));
            }
            let members: Vec<_> = scores.iter().copied().zip(items).collect();
            changed.give(on.db().zadd(key, &members, options(flags))?)
        })
    }
}

/// ZADD with INCR: adds to the score of a member, 0 if it is not there, as far as the flags of
/// lsmkv_zadd_opt allow. *out, which may be NULL, receives the new score.
///
/// OK; SKIPPED: a flag forbade it; WRONGTYPE; NOT_FLOAT: the sum is no number; INVALID: a flag;
/// any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zadd_incr(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    increment: f64,
    member: *const c_void,
    mlen: usize,
    flags: u32,
    out: *mut f64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0.0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let member = on.bytes("member", member, mlen)?;
            let flags = Flags::checked(flags, FLAGS, EXCLUSIVE)?;
            if on.records() {
                let increment = text(increment);
                let rest = [b"INCR", increment.as_bytes(), member];
                return on.record_with("ZADD", &[key], flags.words(WORDS).into_iter().chain(rest));
            }
            match on.db().zadd_incr(key, increment, member, options(flags))? {
                Some(score) => out.give(score),
                None => Ok(LSMKV_SKIPPED),
            }
        })
    }
}

/// ZINCRBY: adds to the score of a member, 0 if it is not there. *out, which may be NULL,
/// receives the new score.
///
/// OK; WRONGTYPE; NOT_FLOAT: the sum is no number; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zincrby(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    increment: f64,
    member: *const c_void,
    mlen: usize,
    out: *mut f64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0.0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let member = on.bytes("member", member, mlen)?;
            if on.records() {
                return on.record("ZINCRBY", &[key, text(increment).as_bytes(), member]);
            }
            out.give(on.db().zincrby(key, increment, member)?)
        })
    }
}

fn options(flags: Flags) -> ZAdd {
    ZAdd {
        nx: flags.has(LSMKV_NX),
        xx: flags.has(LSMKV_XX),
        gt: flags.has(LSMKV_GT),
        lt: flags.has(LSMKV_LT),
        ch: flags.has(LSMKV_CH),
    }
}
