//! Scans: a cursor is the bytes of an element in C, and a number in commands by name.

use crate::commands::{Head, InPairs, ReplySink, WriteTo};
use crate::error::Result;
use crate::ffi::flags::choice;
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
    out.fill(|sink| page(&next, found, sink))
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
    out.fill(|sink| page(&next, InPairs(found), sink))
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
    out.fill(|sink| page(&next, found, sink))
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
    out.fill(|sink| page(&next, InPairs(found), sink))
}

fn options(pattern: Option<&[u8]>, count: u64) -> ScanOptions<'_> {
    let usual = ScanOptions::default();
    ScanOptions { pattern, count: if count == 0 { usual.count } else { count }, ..usual }
}

/// Writes the next cursor, which is known after what was found, and then that.
fn page(next: &[u8], found: impl WriteTo, sink: &mut dyn ReplySink) {
    sink.head(Head::Array, 2);
    sink.bulk(next);
    found.write_to(sink);
}
