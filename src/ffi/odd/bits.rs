//! BITFIELD: its operations are structures in C.

use crate::commands::{WriteTo, entries};
use crate::error::Result;
use crate::ffi::argv::{Argv, text};
use crate::ffi::flags::invalid;
use crate::ffi::output::WriteReply;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, lsmkv_status};
use crate::ffi::target::CommandTarget;
use crate::types::{BitfieldOp, FieldAction, Overflow};

pub(crate) fn bitfield(
    target: &CommandTarget<'_>,
    key: &[u8],
    ops: &[BitfieldOp],
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::BITFIELD);
        argv.push(key);
        for op in ops {
            argv.word("OVERFLOW");
            argv.word(match op.overflow {
                Overflow::Wrap => "WRAP",
                Overflow::Saturate => "SAT",
                Overflow::Fail => "FAIL",
            });
            push(&mut argv, op);
        }
        return out.run(target, &entries::BITFIELD, &argv, LSMKV_NOT_FOUND);
    }
    let answers = target.db()?.bitfield(key, ops)?;
    out.fill(|sink| answers.write_to(sink))
}

pub(crate) fn bitfield_ro(
    target: &CommandTarget<'_>,
    key: &[u8],
    ops: &[BitfieldOp],
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    if ops.iter().any(|op| op.action != FieldAction::Get) {
        return Err(invalid("BITFIELD_RO only reads"));
    }
    if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::BITFIELD_RO);
        argv.push(key);
        ops.iter().for_each(|op| push(&mut argv, op));
        return out.run(target, &entries::BITFIELD_RO, &argv, LSMKV_NOT_FOUND);
    }
    let answers = target.db()?.bitfield_ro(key, ops)?;
    out.fill(|sink| answers.write_to(sink))
}

/// Adds an operation in the words of BITFIELD.
fn push(argv: &mut Argv<'_>, op: &BitfieldOp) {
    let (action, value) = match op.action {
        FieldAction::Get => ("GET", None),
        FieldAction::Set(value) => ("SET", Some(value)),
        FieldAction::IncrBy(value) => ("INCRBY", Some(value)),
    };
    argv.word(action);
    let sign = if op.field.is_signed() { 'i' } else { 'u' };
    argv.own(text(format_args!("{sign}{}", op.field.bits())));
    argv.own(text(op.offset));
    if let Some(value) = value {
        argv.own(text(value));
    }
}
