//! SET and GETEX, which take a time to live as a number and a flag, and GET into the caller's
//! memory.

use crate::commands::{Reply, entries};
use crate::error::Result;
use crate::ffi::argv::{Argv, text};
use crate::ffi::buffer::lsmkv_buf;
use crate::ffi::flags::{
    Flags, LSMKV_AT, LSMKV_KEEPTTL, LSMKV_NX, LSMKV_PERSIST, LSMKV_XX, invalid,
};
use crate::ffi::output::{WriteOutput, WriteReply, unexpected};
use crate::ffi::slice::{Out, Room};
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, LSMKV_SKIPPED, LSMKV_TOO_SMALL, lsmkv_status};
use crate::ffi::target::CommandTarget;
use crate::types::{Condition, Expiry, GetExpiry, SetExpiry, SetOptions};

pub(crate) fn set_opt(
    target: &CommandTarget<'_>,
    key: &[u8],
    value: &[u8],
    flags: Flags,
    ttl_ms: i64,
    old: &Out<lsmkv_buf>,
) -> Result<lsmkv_status> {
    let options = set_options(flags, ttl_ms, old.is_wanted())?;
    if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::SET);
        argv.push(key);
        argv.push(value);
        argv.flag(flags, LSMKV_NX, "NX");
        argv.flag(flags, LSMKV_XX, "XX");
        argv.flag(flags, LSMKV_KEEPTTL, "KEEPTTL");
        if options.get {
            argv.word("GET");
        }
        if let SetExpiry::At(expiry) = options.expiry {
            argv.word(unit(expiry));
            argv.own(text(ttl_ms));
        }
        return match target.reply(&entries::SET, &argv)? {
            None => Ok(LSMKV_OK),
            Some(Reply::Bulk(value)) => {
                old.write(value)?;
                Ok(if options.condition == Condition::IfMissing { LSMKV_SKIPPED } else { LSMKV_OK })
            }
            // With GET, nil says that there was no value; without, that nothing was written.
            Some(Reply::Nil) if options.get && options.condition != Condition::IfExists => {
                Ok(LSMKV_OK)
            }
            Some(Reply::Nil) => Ok(LSMKV_SKIPPED),
            Some(_) => Ok(LSMKV_OK),
        };
    }
    let outcome = target.db()?.set_with(key, value, options)?;
    outcome.old.map_or(Ok(LSMKV_OK), |value| old.write(value))?;
    Ok(if outcome.written { LSMKV_OK } else { LSMKV_SKIPPED })
}

pub(crate) fn getex(
    target: &CommandTarget<'_>,
    key: &[u8],
    ttl_ms: i64,
    flags: Flags,
    out: &Out<lsmkv_buf>,
) -> Result<lsmkv_status> {
    let change = match expiry(flags, ttl_ms)? {
        Some(_) if flags.has(LSMKV_PERSIST) => return Err(invalid("PERSIST goes with no time")),
        Some(expiry) => GetExpiry::At(expiry),
        None if flags.has(LSMKV_PERSIST) => GetExpiry::Persist,
        None => GetExpiry::Keep,
    };
    if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::GETEX);
        argv.push(key);
        match change {
            GetExpiry::At(expiry) => {
                argv.word(unit(expiry));
                argv.own(text(ttl_ms));
            }
            GetExpiry::Persist => argv.word("PERSIST"),
            GetExpiry::Keep => {}
        }
        return out.run(target, &entries::GETEX, &argv, LSMKV_NOT_FOUND);
    }
    out.write(target.db()?.getex(key, change)?)
}

pub(crate) fn get_into(
    target: &CommandTarget<'_>,
    key: &[u8],
    dst: &Room,
    len: &Out<usize>,
) -> Result<lsmkv_status> {
    let (mut needed, mut copied) = (0, 0);
    let exists = if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::GET);
        argv.push(key);
        match target.reply(&entries::GET, &argv)? {
            Some(Reply::Bulk(value)) => {
                needed = value.len();
                copied = dst.fill(0, &value);
                true
            }
            Some(Reply::Nil) | None => false,
            Some(other) => return Err(unexpected(&other)),
        }
    } else {
        let begin = |bytes| {
            needed = bytes;
            bytes <= dst.size()
        };
        let part = |bytes: &[u8]| copied += dst.fill(copied, bytes);
        target.db()?.read(|tx| tx.get_parts(key, begin, part))?
    };
    if !exists {
        return Ok(LSMKV_NOT_FOUND);
    }
    len.set(needed);
    Ok(if copied == needed { LSMKV_OK } else { LSMKV_TOO_SMALL })
}

fn set_options(flags: Flags, ttl_ms: i64, get: bool) -> Result<SetOptions> {
    let condition = match (flags.has(LSMKV_NX), flags.has(LSMKV_XX)) {
        (true, _) => Condition::IfMissing,
        (_, true) => Condition::IfExists,
        _ => Condition::Always,
    };
    let expiry = match expiry(flags, ttl_ms)? {
        Some(_) if flags.has(LSMKV_KEEPTTL) => return Err(invalid("KEEPTTL goes with no time")),
        Some(expiry) => SetExpiry::At(expiry),
        None if flags.has(LSMKV_KEEPTTL) => SetExpiry::Keep,
        None => SetExpiry::Never,
    };
    Ok(SetOptions { condition, expiry, get })
}

/// A time to live or, with AT, a Unix time; `None` for 0.
fn expiry(flags: Flags, ms: i64) -> Result<Option<Expiry>> {
    match ms {
        0 if flags.has(LSMKV_AT) => Err(invalid("AT needs a moment")),
        0 => Ok(None),
        ..0 => Err(invalid(format!("a time of {ms} ms is none"))),
        _ if flags.has(LSMKV_AT) => Ok(Some(Expiry::AtMilliseconds(ms))),
        _ => Ok(Some(Expiry::Milliseconds(ms))),
    }
}

fn unit(expiry: Expiry) -> &'static str {
    if matches!(expiry, Expiry::AtMilliseconds(_)) { "PXAT" } else { "PX" }
}
