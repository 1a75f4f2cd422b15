//! Strings as rows of bits.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::commands::{IntoReply, Reply};
use crate::error::Result;
use crate::ffi::boundary::{call, write};
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_BIT, choice, invalid};
use crate::ffi::give::{Give, Take, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, array, lsmkv_slice};
use crate::ffi::status::lsmkv_status;
use crate::types::{BitRange, BitSearch, BitUnit, BitfieldOp, FieldAction, FieldType, Overflow};

/// BITFIELD: answers with the integer.
pub const LSMKV_FIELD_GET: i32 = 0;
/// BITFIELD: replaces the integer; answers with what it was.
pub const LSMKV_FIELD_SET: i32 = 1;
/// BITFIELD: adds to the integer; answers with the sum.
pub const LSMKV_FIELD_INCRBY: i32 = 2;

/// BITFIELD: of a result that does not fit the higher bits are lost.
pub const LSMKV_FIELD_WRAP: i32 = 0;
/// BITFIELD: a result that does not fit becomes the nearest number that does.
pub const LSMKV_FIELD_SAT: i32 = 1;
/// BITFIELD: a result that does not fit is not written, and nil is answered.
pub const LSMKV_FIELD_FAIL: i32 = 2;

/// An operation of lsmkv_bitfield.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct lsmkv_bitfield_op {
    /// LSMKV_FIELD_GET, LSMKV_FIELD_SET or LSMKV_FIELD_INCRBY.
    pub action: i32,
    /// LSMKV_FIELD_WRAP, LSMKV_FIELD_SAT or LSMKV_FIELD_FAIL.
    pub overflow: i32,
    /// 1 for a signed integer, 0 for an unsigned one.
    pub is_signed: i32,
    /// How many bits it has: 1 to 64, unsigned to 63.
    pub bits: u32,
    /// Its first bit.
    pub offset: u64,
    /// What is set or added.
    pub value: i64,
}

/// BITCOUNT: how many bits of a value are set. *out, which may be NULL, receives the number.
///
/// OK; WRONGTYPE; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_bitcount(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            out.give(on.db().bitcount(key, None)?)
        })
    }
}

/// BITCOUNT with a range: from start to end, both included, in bytes or with the flag BIT in
/// bits; negative ones count from the end. *out, which may be NULL, receives the number.
///
/// OK; WRONGTYPE; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_bitcount_range(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    start: i64,
    end: i64,
    flags: u32,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let range = BitRange { start, end, unit: unit(flags)? };
            out.give(on.db().bitcount(key, Some(range))?)
        })
    }
}

/// BITPOS: the first bit that is 1, or 0, as bit says, from byte start on. Behind the end of a
/// value all bits are 0. *out, which may be NULL, receives its index, or -1 if there is none.
///
/// OK; WRONGTYPE; INVALID: bit is neither 0 nor 1; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_bitpos(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    bit: i32,
    start: i64,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let bit = choice("bit", bit, &[false, true])?;
            let search = BitSearch { start, end: None, unit: BitUnit::Byte };
            out.give(on.db().bitpos(key, bit, search)?.unwrap_or(-1))
        })
    }
}

/// BITPOS with a range: from start to end, both included, in bytes or with the flag BIT in
/// bits. *out, which may be NULL, receives the index of the bit, or -1 if there is none.
///
/// OK; WRONGTYPE; INVALID: a flag, or bit is neither 0 nor 1; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_bitpos_range(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    bit: i32,
    start: i64,
    end: i64,
    flags: u32,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let bit = choice("bit", bit, &[false, true])?;
            let search = BitSearch { start, end: Some(end), unit: unit(flags)? };
            out.give(on.db().bitpos(key, bit, search)?.unwrap_or(-1))
        })
    }
}

/// GETBIT: the bit at an offset; 0 behind the end. *out, which may be NULL, receives 0 or 1.
///
/// OK; WRONGTYPE; OUT_OF_RANGE: the offset; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_getbit(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    offset: u64,
    out: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, 0);
        call(db, err, |on| {
            let key = on.key("key", key, klen)?;
            out.give(on.db().getbit(key, offset)?)
        })
    }
}

/// SETBIT: makes the bit at an offset 0 or 1, with zeros where there was nothing. *old, which
/// may be NULL, receives what it was.
///
/// OK; WRONGTYPE; OUT_OF_RANGE: the offset; INVALID: bit is neither 0 nor 1; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_setbit(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    offset: u64,
    bit: i32,
    old: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let old = Out::emptied(old, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let set = choice("bit", bit, &[false, true])?;
            if on.records() {
                return on.record("SETBIT", &[key, text(offset).as_bytes(), text(bit).as_bytes()]);
            }
            old.give(on.db().setbit(key, offset, set)?)
        })
    }
}

/// BITOP: gives destination the combination of n values, as op says: LSMKV_AND, LSMKV_OR,
/// LSMKV_XOR, or LSMKV_NOT of one. *length, which may be NULL, receives its length.
///
/// OK; WRONGTYPE; INVALID: op names none; SYNTAX: NOT of several; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_bitop(
    db: *mut lsmkv_db,
    op: i32,
    destination: *const c_void,
    dlen: usize,
    keys: *const lsmkv_slice,
    n: usize,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let destination = on.key("destination", destination, dlen)?;
            let keys = on.keys("keys", keys, n)?;
            let names: [&[u8]; 4] = [b"AND", b"OR", b"XOR", b"NOT"];
            length.take(on.run("BITOP", &[choice("op", op, &names)?, destination], keys)?)
        })
    }
}

/// BITFIELD: runs n operations on integers inside a value, one after the other. *out, which may
/// be NULL, receives an array with the number that each answers, nil for one that failed for
/// overflow, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; OUT_OF_RANGE: an offset; INVALID: an operation; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_bitfield(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    ops: *const lsmkv_bitfield_op,
    n: usize,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let ops = operations(ops, n)?;
            if on.records() {
                let words: Vec<String> = ops.iter().flat_map(words).collect();
                return on.record_with("BITFIELD", &[key], words.iter().map(String::as_bytes));
            }
            out.give(numbers(on.db().bitfield(key, &ops)?))
        })
    }
}

/// BITFIELD_RO: BITFIELD with operations that only read. *out receives an array with the number
/// that each answers, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; OUT_OF_RANGE: an offset; INVALID: an operation; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_bitfield_ro(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    ops: *const lsmkv_bitfield_op,
    n: usize,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let ops = operations(ops, n)?;
            if ops.iter().any(|op| op.action != FieldAction::Get) {
                return Err(invalid("BITFIELD_RO only reads"));
            }
            out.give(numbers(on.db().bitfield_ro(key, &ops)?))
        })
    }
}

fn unit(flags: u32) -> Result<BitUnit> {
    let in_bits = Flags::checked(flags, LSMKV_BIT, &[])?.has(LSMKV_BIT);
    Ok(if in_bits { BitUnit::Bit } else { BitUnit::Byte })
}

fn numbers(answers: Vec<Option<i64>>) -> Reply {
    Reply::Array(answers.into_iter().map(IntoReply::into_reply).collect())
}

/// # Safety
/// `ops` is NULL or points to `n` operations that nobody writes during the call.
unsafe fn operations(ops: *const lsmkv_bitfield_op, n: usize) -> Result<Vec<BitfieldOp>> {
    if n == 0 {
        return Err(invalid("there are no ops: name at least one"));
    }
    // SAFETY: the caller's promise.
    let ops = unsafe { array("ops", ops, n)? };
    ops.iter().map(operation).collect()
}

fn operation(op: &lsmkv_bitfield_op) -> Result<BitfieldOp> {
    let signed = choice("is_signed", op.is_signed, &[false, true])?;
    let actions = [FieldAction::Get, FieldAction::Set(op.value), FieldAction::IncrBy(op.value)];
    let overflows = [Overflow::Wrap, Overflow::Saturate, Overflow::Fail];
    Ok(BitfieldOp {
        field: if signed { FieldType::signed(op.bits)? } else { FieldType::unsigned(op.bits)? },
        offset: op.offset,
        action: choice("action", op.action, &actions)?,
        overflow: choice("overflow", op.overflow, &overflows)?,
    })
}

/// The operation as BITFIELD reads it.
fn words(op: &BitfieldOp) -> Vec<String> {
    let overflow = match op.overflow {
        Overflow::Wrap => "WRAP",
        Overflow::Saturate => "SAT",
        Overflow::Fail => "FAIL",
    };
    let (action, value) = match op.action {
        FieldAction::Get => ("GET", None),
        FieldAction::Set(value) => ("SET", Some(value)),
        FieldAction::IncrBy(value) => ("INCRBY", Some(value)),
    };
    let field = format!("{}{}", if op.field.is_signed() { 'i' } else { 'u' }, op.field.bits());
    let mut words = vec!["OVERFLOW".to_owned(), overflow.to_owned(), action.to_owned()];
    words.extend([field, op.offset.to_string()]);
    words.extend(value.map(|value| value.to_string()));
    words
}
