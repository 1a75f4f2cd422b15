//! TYPE: its reply is a number in C.

use crate::error::Result;
use crate::ffi::flags::{LSMKV_HASH, LSMKV_LIST, LSMKV_SET, LSMKV_STRING, LSMKV_ZSET};
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, lsmkv_status};
use crate::ffi::target::CommandTarget;
use crate::types::Type;

pub(crate) fn r#type(
    target: &CommandTarget<'_>,
    key: &[u8],
    kind: &Out<i32>,
) -> Result<lsmkv_status> {
    let Some(found) = target.db().kind(key)? else { return Ok(LSMKV_NOT_FOUND) };
    kind.set(type_number(found));
    Ok(LSMKV_OK)
}

/// The number of a type in C.
pub(crate) fn type_number(kind: Type) -> i32 {
    match kind {
        Type::String => LSMKV_STRING,
        Type::Hash => LSMKV_HASH,
        Type::List => LSMKV_LIST,
        Type::Set => LSMKV_SET,
        Type::ZSet => LSMKV_ZSET,
    }
}
