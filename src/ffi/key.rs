//! The key space: functions of commands with options.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;

use bytes::Bytes;

use crate::ffi::boundary::{call, write};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{
    Flags, LSMKV_HASH, LSMKV_LIST, LSMKV_REPLACE, LSMKV_SET, LSMKV_STRING, LSMKV_ZSET,
};
use crate::ffi::give::{Give, Take, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, lsmkv_status};
use crate::types::Type;

/// COPY: gives another key the same value and expiry, with the flag REPLACE also in place of
/// what has that name. Takes as long as it has members. *copied, which may be NULL, receives 1
/// if it was done: not if the source is missing or the destination in the way.
///
/// OK; INVALID: a flag, or both are the same key; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_copy(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    destination: *const c_void,
    dlen: usize,
    flags: u32,
    copied: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let copied = Out::emptied(copied, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let destination = on.key("destination", destination, dlen)?;
            let flags = Flags::checked(flags, LSMKV_REPLACE, &[])?;
            copied.take(on.run(
                "COPY",
                &[key, destination],
                flags.words(&[(LSMKV_REPLACE, "REPLACE")]),
            )?)
        })
    }
}

/// COPY with DB: as lsmkv_copy, into another database.
///
/// OK; INVALID: a flag, or both are the same key; OUT_OF_RANGE: no such database; any of a
/// write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_copy_to(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    destination: *const c_void,
    dlen: usize,
    database: u32,
    flags: u32,
    copied: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let copied = Out::emptied(copied, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let destination = on.key("destination", destination, dlen)?;
            let flags = Flags::checked(flags, LSMKV_REPLACE, &[])?;
            let database = text(database);
            let args = [key, destination, b"DB", database.as_bytes()];
            copied.take(on.run("COPY", &args, flags.words(&[(LSMKV_REPLACE, "REPLACE")]))?)
        })
    }
}

/// MOVE: takes a key to another database. Waits until no other write is under way. *moved,
/// which may be NULL, receives 1 if it was done: not if the key is missing here or exists
/// there.
///
/// OK; INVALID: it is this database; OUT_OF_RANGE: no such database; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_move(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    database: u32,
    moved: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let moved = Out::emptied(moved, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            moved.take(on.run("MOVE", &[key, text(database).as_bytes()], [])?)
        })
    }
}

/// TYPE: what a key holds. *kind, which may be NULL, receives LSMKV_STRING, LSMKV_HASH,
/// LSMKV_LIST, LSMKV_SET or LSMKV_ZSET.
///
/// OK; NOT_FOUND: *kind is 0; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_type(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    kind: *mut i32,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let kind = Out::emptied(kind, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let Some(found) = on.db().kind(key)? else { return Ok(LSMKV_NOT_FOUND) };
            kind.set(type_number(found));
            Ok(LSMKV_OK)
        })
    }
}

/// OBJECT ENCODING: the name of the encoding in which Redis would hold a value. *out receives
/// it, to be released by lsmkv_buf_release.
///
/// OK; NOT_FOUND; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_object_encoding(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    out: *mut lsmkv_buf,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, lsmkv_buf::EMPTY);
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let encoding = on.db().object_encoding(key)?;
            out.give(encoding.map(|name| Bytes::from_static(name.as_bytes())))
        })
    }
}

/// FLUSHDB: removes all keys of the database, in the same time however many there are. Waits
/// until no other write is under way.
///
/// OK; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_flushdb(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { write(db, err, |on| on.run("FLUSHDB", &[], []).map(|_| LSMKV_OK)) }
}

/// FLUSHALL: removes all keys of all databases.
///
/// OK; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_flushall(db: *mut lsmkv_db, err: *mut lsmkv_err) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe { write(db, err, |on| on.run("FLUSHALL", &[], []).map(|_| LSMKV_OK)) }
}

/// SWAPDB: exchanges what two databases hold, in the same time however much it is. Waits until
/// no other write is under way.
///
/// OK; INVALID, OUT_OF_RANGE: no such database; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_swapdb(
    db: *mut lsmkv_db,
    first: u32,
    second: u32,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        write(db, err, |on| {
            let (first, second) = (text(first), text(second));
            on.run("SWAPDB", &[first.as_bytes(), second.as_bytes()], []).map(|_| LSMKV_OK)
        })
    }
}

/// The number of a type.
pub(super) fn type_number(kind: Type) -> i32 {
    match kind {
        Type::String => LSMKV_STRING,
        Type::Hash => LSMKV_HASH,
        Type::List => LSMKV_LIST,
        Type::Set => LSMKV_SET,
        Type::ZSet => LSMKV_ZSET,
    }
}
