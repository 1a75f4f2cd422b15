//! Scans: a cursor is the bytes of an element in C, and a number in commands by name.

use crate::commands::{IntoReply, Reply};
use crate::error::Result;
use crate::ffi::flags::choice;
use crate::ffi::output::WriteOutput;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::Out;
use crate::ffi::status::lsmkv_status;
use crate::ffi::target::CommandTarget;
use crate::types::{ScanOptions, Type};

/// The types by their numbers in C; 0 is any type.
const KINDS: [Option<Type>; 6] = [
    None,
    Some(Type::String),
    Some(Type::Hash),
    Some(Type::List),
    Some(Type::Set),
    Some(Type::ZSet),
];

pub(crate) fn scan(
    target: &CommandTarget<'_>,
    cursor: &[u8],
    pattern: Option<&[u8]>,
    count: u64,
    kind: i32,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    let kind = choice("kind", kind, &KINDS)?;
    let options = ScanOptions { kind, ..options(pattern, count) };
    let (next, found) = target.db().scan(cursor, &options)?;
    out.write(page(next, Reply::list(found)))
}

pub(crate) fn hscan(
    target: &CommandTarget<'_>,
    key: &[u8],
    cursor: &[u8],
    pattern: Option<&[u8]>,
    count: u64,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    let (next, found) = target.db().hscan(key, cursor, &options(pattern, count))?;
    let found = found.into_iter().flat_map(|(field, value)| [field, value]);
    out.write(page(next, Reply::list(found)))
}

pub(crate) fn sscan(
    target: &CommandTarget<'_>,
    key: &[u8],
    cursor: &[u8],
    pattern: Option<&[u8]>,
    count: u64,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    let (next, found) = target.db().sscan(key, cursor, &options(pattern, count))?;
    out.write(page(next, Reply::list(found)))
}

pub(crate) fn zscan(
    target: &CommandTarget<'_>,
    key: &[u8],
    cursor: &[u8],
    pattern: Option<&[u8]>,
    count: u64,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    let (next, found) = target.db().zscan(key, cursor, &options(pattern, count))?;
    out.write(page(next, found.into_reply()))
}

fn options(pattern: Option<&[u8]>, count: u64) -> ScanOptions<'_> {
    let usual = ScanOptions::default();
    ScanOptions { pattern, count: if count == 0 { usual.count } else { count }, ..usual }
}

fn page(next: Vec<u8>, found: Reply) -> Reply {
    Reply::Array(vec![Reply::Bulk(next.into()), found])
}
