//! Scans: a cursor is the bytes of an element in C, and a number in commands by name.

use crate::commands::entry::Entry;
use crate::commands::{Head, InPairs, Reply, ReplySink, WriteTo, entries};
use crate::error::Result;
use crate::ffi::argv::{Argv, text};
use crate::ffi::flags::choice;
use crate::ffi::odd::key::type_name;
use crate::ffi::output::{number, unexpected};
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_OK, lsmkv_status};
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
    if target.is_elsewhere() {
        let kind = kind.map(type_name);
        return forward(target, &entries::SCAN, None, cursor, &options, kind, out);
    }
    let (next, found) = target.db()?.scan(cursor, &options)?;
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
    if target.is_elsewhere() {
        let options = options(pattern, count);
        return forward(target, &entries::HSCAN, Some(key), cursor, &options, None, out);
    }
    let (next, found) = target.db()?.hscan(key, cursor, &options(pattern, count))?;
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
    if target.is_elsewhere() {
        let options = options(pattern, count);
        return forward(target, &entries::SSCAN, Some(key), cursor, &options, None, out);
    }
    let (next, found) = target.db()?.sscan(key, cursor, &options(pattern, count))?;
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
    if target.is_elsewhere() {
        let options = options(pattern, count);
        return forward(target, &entries::ZSCAN, Some(key), cursor, &options, None, out);
    }
    let (next, found) = target.db()?.zscan(key, cursor, &options(pattern, count))?;
    out.fill(|sink| page(&next, InPairs(found), sink))
}

/// Sends a scan to a store elsewhere. There a cursor is a number, and 0 both begins and ends a scan;
/// in C it is those digits, and empty bytes begin and end.
fn forward(
    target: &CommandTarget<'_>,
    entry: &'static Entry,
    key: Option<&[u8]>,
    cursor: &[u8],
    options: &ScanOptions<'_>,
    kind: Option<&'static str>,
    out: &Out<*mut lsmkv_reply>,
) -> Result<lsmkv_status> {
    let mut argv = Argv::new(entry);
    argv.extend(key.as_slice());
    argv.push(if cursor.is_empty() { b"0" } else { cursor });
    argv.option("MATCH", options.pattern);
    argv.word("COUNT");
    argv.own(text(options.count));
    if let Some(kind) = kind {
        argv.word("TYPE");
        argv.word(kind);
    }
    let page = match target.reply(entry, &argv)? {
        Some(Reply::Array(page)) => page,
        Some(other) => return Err(unexpected(&other)),
        None => return Ok(LSMKV_OK),
    };
    let mut parts = page.into_iter();
    match (parts.next(), parts.next()) {
        (Some(Reply::Bulk(next)), Some(found)) => out.fill(|sink| {
            sink.head(Head::Array, 2);
            sink.bulk(if next.as_ref() == b"0" { b"" } else { &next });
            match found {
                Reply::Array(pairs) if entry.command.name == "ZSCAN" => scored(&pairs, sink),
                found => found.write_to(sink),
            }
        }),
        _ => Err(unexpected(&Reply::NilArray)),
    }
}

/// Writes members and their scores, which a server sends as text.
fn scored(pairs: &[Reply], sink: &mut dyn ReplySink) {
    sink.head(Head::Array, pairs.len());
    for (at, part) in pairs.iter().enumerate() {
        match part {
            Reply::Bulk(score) if at % 2 == 1 => sink.double(number(score)),
            other => other.write_to(sink),
        }
    }
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
