//! EXPIRE and its kin, which differ in how a time is given.
//!
//! Each signature stands here in full: what makes the header does not look into macros. The command
//! table has no form for options, so they are not generated either.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;

use crate::error::Result;
use crate::ffi::boundary::write;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_GT, LSMKV_LT, LSMKV_NX, LSMKV_XX};
use crate::ffi::give::{Give, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::slice::Out;
use crate::ffi::status::lsmkv_status;
use crate::types::{Db, ExpireIf};

const FLAGS: u32 = LSMKV_NX | LSMKV_XX | LSMKV_GT | LSMKV_LT;
const EXCLUSIVE: &[u32] =
    &[LSMKV_NX | LSMKV_XX, LSMKV_NX | LSMKV_GT, LSMKV_NX | LSMKV_LT, LSMKV_GT | LSMKV_LT];
const WORDS: &[(u32, &str)] =
    &[(LSMKV_NX, "NX"), (LSMKV_XX, "XX"), (LSMKV_GT, "GT"), (LSMKV_LT, "LT")];

/// What any of these functions was given.
struct Call {
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    time: i64,
    flags: u32,
    set: *mut i64,
    err: *mut lsmkv_err,
}

impl Call {
    /// # Safety
    /// The caller keeps the rules at the head of the header.
    unsafe fn run(
        self,
        name: &str,
        method: impl FnOnce(&Db, &[u8], i64, ExpireIf) -> Result<bool>,
    ) -> lsmkv_status {
        let Self { db, key, klen, time, flags, set, err } = self;
        // SAFETY: the caller's promise.
        unsafe {
            let set = Out::emptied(set, 0);
            write(db, err, |on| {
                let key = on.key("key", key, klen)?;
                let flags = Flags::checked(flags, FLAGS, EXCLUSIVE)?;
                if on.records() {
                    let time = text(time);
                    return on.record_with(name, &[key, time.as_bytes()], flags.words(WORDS));
                }
                set.give(method(on.db(), key, time, condition(flags))?)
            })
        }
    }
}

fn condition(flags: Flags) -> ExpireIf {
    ExpireIf {
        none: flags.has(LSMKV_NX),
        some: flags.has(LSMKV_XX),
        later: flags.has(LSMKV_GT),
        earlier: flags.has(LSMKV_LT),
    }
}

/// EXPIRE: lets a key expire in so many seconds; one that has passed deletes it. *set, which
/// may be NULL, receives 1 if the key exists, else 0.
///
/// OK; INVALID: too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_expire(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    seconds: i64,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: seconds, flags: 0, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("EXPIRE", Db::expire) }
}

/// EXPIRE with options: only if the key has no expiry (NX), has one (XX), or the new one is
/// later (GT) or earlier (LT). *set, which may be NULL, receives 1 if the key exists and the
/// condition holds, else 0.
///
/// OK; INVALID: a flag, or too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_expire_opt(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    seconds: i64,
    flags: u32,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: seconds, flags, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("EXPIRE", Db::expire) }
}

/// PEXPIRE: lets a key expire in so many milliseconds; one that has passed deletes it. *set,
/// which may be NULL, receives 1 if the key exists, else 0.
///
/// OK; INVALID: too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_pexpire(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    ms: i64,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: ms, flags: 0, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("PEXPIRE", Db::pexpire) }
}

/// PEXPIRE with options: only if the key has no expiry (NX), has one (XX), or the new one is
/// later (GT) or earlier (LT). *set, which may be NULL, receives 1 if the key exists and the
/// condition holds, else 0.
///
/// OK; INVALID: a flag, or too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_pexpire_opt(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    ms: i64,
    flags: u32,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: ms, flags, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("PEXPIRE", Db::pexpire) }
}

/// EXPIREAT: lets a key expire at this second since 1970; one that has passed deletes it. *set,
/// which may be NULL, receives 1 if the key exists, else 0.
///
/// OK; INVALID: too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_expireat(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    seconds: i64,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: seconds, flags: 0, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("EXPIREAT", Db::expireat) }
}

/// EXPIREAT with options: only if the key has no expiry (NX), has one (XX), or the new one is
/// later (GT) or earlier (LT). *set, which may be NULL, receives 1 if the key exists and the
/// condition holds, else 0.
///
/// OK; INVALID: a flag, or too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_expireat_opt(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    seconds: i64,
    flags: u32,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: seconds, flags, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("EXPIREAT", Db::expireat) }
}

/// PEXPIREAT: lets a key expire at this millisecond since 1970; one that has passed deletes it.
/// *set, which may be NULL, receives 1 if the key exists, else 0.
///
/// OK; INVALID: too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_pexpireat(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    ms: i64,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: ms, flags: 0, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("PEXPIREAT", Db::pexpireat) }
}

/// PEXPIREAT with options: only if the key has no expiry (NX), has one (XX), or the new one is
/// later (GT) or earlier (LT). *set, which may be NULL, receives 1 if the key exists and the
/// condition holds, else 0.
///
/// OK; INVALID: a flag, or too large a time; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_pexpireat_opt(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    ms: i64,
    flags: u32,
    set: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    let call = Call { db, key, klen, time: ms, flags, set, err };
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { call.run("PEXPIREAT", Db::pexpireat) }
}
