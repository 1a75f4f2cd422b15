//! The operations of BITFIELD in C.

use crate::error::{Error, Result};
use crate::ffi::flags::choice;
use crate::types::{BitfieldOp, FieldAction, FieldType, Overflow};

/// BITFIELD: returns the integer.
pub const LSMKV_FIELD_GET: i32 = 0;
/// BITFIELD: replaces the integer; returns the old one.
pub const LSMKV_FIELD_SET: i32 = 1;
/// BITFIELD: adds to the integer; returns the sum.
pub const LSMKV_FIELD_INCRBY: i32 = 2;

/// BITFIELD: a result that does not fit loses its higher bits.
pub const LSMKV_FIELD_WRAP: i32 = 0;
/// BITFIELD: a result that does not fit becomes the nearest number that does.
pub const LSMKV_FIELD_SAT: i32 = 1;
/// BITFIELD: a result that does not fit is not written, and nil is returned.
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
    /// The width in bits: 1 to 64, or to 63 if unsigned.
    pub bits: u32,
    /// The offset of the first bit.
    pub offset: u64,
    /// The number to set or to add.
    pub value: i64,
}

impl TryFrom<&lsmkv_bitfield_op> for BitfieldOp {
    type Error = Error;

    fn try_from(op: &lsmkv_bitfield_op) -> Result<Self> {
        let signed = choice("is_signed", op.is_signed, &[false, true])?;
        let actions = [FieldAction::Get, FieldAction::Set(op.value), FieldAction::IncrBy(op.value)];
        let overflows = [Overflow::Wrap, Overflow::Saturate, Overflow::Fail];
        Ok(Self {
            field: if signed { FieldType::signed(op.bits)? } else { FieldType::unsigned(op.bits)? },
            offset: op.offset,
            action: choice("action", op.action, &actions)?,
            overflow: choice("overflow", op.overflow, &overflows)?,
        })
    }
}
