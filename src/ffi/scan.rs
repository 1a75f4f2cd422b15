//! Walks through keys and members, and sorting.
#![expect(unsafe_code, reason = "dereferences the caller's pointers")]

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::commands::{IntoReply, Reply};
use crate::error::Result;
use crate::ffi::boundary::{call, write};
use crate::ffi::err::lsmkv_err;
use crate::ffi::flags::{Flags, LSMKV_ALPHA, LSMKV_REV, choice, invalid};
use crate::ffi::give::{Give, text};
use crate::ffi::handle::lsmkv_db;
use crate::ffi::on::On;
use crate::ffi::reply::lsmkv_reply;
use crate::ffi::slice::{Out, lsmkv_slice};
use crate::ffi::status::lsmkv_status;
use crate::types::{ScanOptions, SortBy, SortOptions, Type};

const KINDS: [Option<Type>; 6] = [
    None,
    Some(Type::String),
    Some(Type::Hash),
    Some(Type::List),
    Some(Type::Set),
    Some(Type::ZSet),
];

/// SCAN: some keys, in the order of their bytes; cursor is empty at the beginning, then what
/// the call before gave; pattern, which may be NULL, chooses what is answered; about count of
/// them are looked at, 0 = 10. kind is a type such as LSMKV_HASH, 0 = any. *out receives an
/// array of the next cursor, empty when there are no more, and an array of keys; to be freed by
/// lsmkv_reply_free.
///
/// OK; INVALID: no such type, or the count is negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_scan(
    db: *mut lsmkv_db,
    cursor: *const c_void,
    clen: usize,
    pattern: *const lsmkv_slice,
    count: i64,
    kind: i32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let cursor = on.key("cursor", cursor, clen)?;
            let pattern = on.optional("pattern", pattern)?;
            let kind = choice("kind", kind, &KINDS)?;
            let options = ScanOptions { kind, ..options(pattern, count)? };
            let (next, found) = on.db().scan(cursor, &options)?;
            out.give(page(next, Reply::list(found)))
        })
    }
}

/// HSCAN: some fields of a hash; cursor is empty at the beginning, then what the call before
/// gave; pattern, which may be NULL, chooses what is answered; about count of them are looked
/// at, 0 = 10. *out receives an array of the next cursor, empty when there are no more, and an
/// array of fields and values in turn; to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: the count is negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_hscan(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    cursor: *const c_void,
    clen: usize,
    pattern: *const lsmkv_slice,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let cursor = on.bytes("cursor", cursor, clen)?;
            let pattern = on.optional("pattern", pattern)?;
            let (next, found) = on.db().hscan(key, cursor, &options(pattern, count)?)?;
            let found = found.into_iter().flat_map(|(field, value)| [field, value]);
            out.give(page(next, Reply::list(found)))
        })
    }
}

/// SSCAN: some members of a set; cursor is empty at the beginning, then what the call before
/// gave; pattern, which may be NULL, chooses what is answered; about count of them are looked
/// at, 0 = 10. *out receives an array of the next cursor, empty when there are no more, and an
/// array of members; to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: the count is negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sscan(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    cursor: *const c_void,
    clen: usize,
    pattern: *const lsmkv_slice,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let cursor = on.bytes("cursor", cursor, clen)?;
            let pattern = on.optional("pattern", pattern)?;
            let (next, found) = on.db().sscan(key, cursor, &options(pattern, count)?)?;
            out.give(page(next, Reply::list(found)))
        })
    }
}

/// ZSCAN: some members of a sorted set, in the order of their bytes; cursor is empty at the
/// beginning, then what the call before gave; pattern, which may be NULL, chooses what is
/// answered; about count of them are looked at, 0 = 10. *out receives an array of the next
/// cursor, empty when there are no more, and an array of members and scores in turn; to be
/// freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; INVALID: the count is negative; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_zscan(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    cursor: *const c_void,
    clen: usize,
    pattern: *const lsmkv_slice,
    count: i64,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let cursor = on.bytes("cursor", cursor, clen)?;
            let pattern = on.optional("pattern", pattern)?;
            let (next, found) = on.db().zscan(key, cursor, &options(pattern, count)?)?;
            out.give(page(next, found.into_reply()))
        })
    }
}

/// SORT: the elements of a list, set or sorted set in order: of their numbers or with the flag
/// ALPHA of their bytes, with REV the largest first. by, which may be NULL, is a pattern that
/// names the keys to sort by; get is nget patterns of what is shown for each, or NULL and 0 for
/// the elements themselves; offset elements are passed and at most count shown, count < 0 =
/// all. *out receives an array of byte strings or nil, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; NOT_FLOAT: an element is no number; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sort(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    by: *const lsmkv_slice,
    get: *const lsmkv_slice,
    nget: usize,
    offset: i64,
    count: i64,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let by = on.optional("by", by)?;
            let get = some(on, get, nget)?;
            let options = sort_options(by, get, (offset, count), flags)?;
            out.give(on.db().sort(key, &options)?)
        })
    }
}

/// SORT_RO: the elements of a list, set or sorted set in order: of their numbers or with the
/// flag ALPHA of their bytes, with REV the largest first. by, which may be NULL, is a pattern
/// that names the keys to sort by; get is nget patterns of what is shown for each, or NULL and
/// 0 for the elements themselves; offset elements are passed and at most count shown, count < 0
/// = all. *out receives an array of byte strings or nil, to be freed by lsmkv_reply_free.
///
/// OK; WRONGTYPE; NOT_FLOAT: an element is no number; INVALID: a flag; any of a read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sort_ro(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    by: *const lsmkv_slice,
    get: *const lsmkv_slice,
    nget: usize,
    offset: i64,
    count: i64,
    flags: u32,
    out: *mut *mut lsmkv_reply,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let out = Out::emptied(out, null_mut());
        call(db, err, |on| {
            let out = out.required("out")?;
            let key = on.key("key", key, klen)?;
            let by = on.optional("by", by)?;
            let get = some(on, get, nget)?;
            let options = sort_options(by, get, (offset, count), flags)?;
            out.give(on.db().sort(key, &options)?)
        })
    }
}

/// SORT with STORE: makes the result a list at destination; see lsmkv_sort. Waits until no
/// other write is under way. *length, which may be NULL, receives its length.
///
/// OK; WRONGTYPE; NOT_FLOAT: an element is no number; INVALID: a flag; any of a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmkv_sort_store(
    db: *mut lsmkv_db,
    key: *const c_void,
    klen: usize,
    destination: *const c_void,
    dlen: usize,
    by: *const lsmkv_slice,
    get: *const lsmkv_slice,
    nget: usize,
    offset: i64,
    count: i64,
    flags: u32,
    length: *mut i64,
    err: *mut lsmkv_err,
) -> lsmkv_status {
    // SAFETY: the caller keeps the rules at the head of the header.
    unsafe {
        let length = Out::emptied(length, 0);
        write(db, err, |on| {
            let key = on.key("key", key, klen)?;
            let destination = on.key("destination", destination, dlen)?;
            let by = on.optional("by", by)?;
            let get = some(on, get, nget)?;
            let options = sort_options(by, get, (offset, count), flags)?;
            if on.records() {
                return on.record_with(
                    "SORT",
                    &[key],
                    sort_words(&options, destination).iter().map(Vec::as_slice),
                );
            }
            length.give(on.db().sort_store(key, &options, destination)?)
        })
    }
}

fn options(pattern: Option<&[u8]>, count: i64) -> Result<ScanOptions<'_>> {
    let count = u64::try_from(count).map_err(|_| invalid("count is negative"))?;
    let usual = ScanOptions::default();
    Ok(ScanOptions { pattern, count: if count == 0 { usual.count } else { count }, ..usual })
}

fn page(next: Vec<u8>, found: Reply) -> Reply {
    Reply::Array(vec![Reply::Bulk(next.into()), found])
}

/// `n` patterns, perhaps none.
///
/// # Safety
/// As for [`On::items`].
unsafe fn some<'s>(on: &On<'_>, slices: *const lsmkv_slice, n: usize) -> Result<Vec<&'s [u8]>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    unsafe { on.items("get", slices, n) }
}

fn sort_options<'s>(
    by: Option<&'s [u8]>,
    get: Vec<&'s [u8]>,
    limit: (i64, i64),
    flags: u32,
) -> Result<SortOptions<'s>> {
    let flags = Flags::checked(flags, LSMKV_ALPHA | LSMKV_REV, &[])?;
    Ok(SortOptions {
        by: by.map_or(SortBy::Elements, SortBy::Pattern),
        get,
        limit,
        alpha: flags.has(LSMKV_ALPHA),
        descending: flags.has(LSMKV_REV),
    })
}

/// The options as SORT reads them.
fn sort_words(options: &SortOptions<'_>, destination: &[u8]) -> Vec<Vec<u8>> {
    let (offset, count) = options.limit;
    let mut words = vec![b"LIMIT".to_vec(), text(offset).into(), text(count).into()];
    if let SortBy::Pattern(pattern) = options.by {
        words.extend([b"BY".to_vec(), pattern.to_vec()]);
    }
    words.extend(options.get.iter().flat_map(|pattern| [b"GET".to_vec(), pattern.to_vec()]));
    words.extend(options.alpha.then(|| b"ALPHA".to_vec()));
    words.extend(options.descending.then(|| b"DESC".to_vec()));
    words.extend([b"STORE".to_vec(), destination.to_vec()]);
    words
}
