//! TYPE: its reply is a number in C.

use crate::commands::{Reply, entries};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::argv::Argv;
use crate::ffi::flags::{LSMKV_HASH, LSMKV_LIST, LSMKV_SET, LSMKV_STRING, LSMKV_ZSET};
use crate::ffi::output::unexpected;
use crate::ffi::slice::Out;
use crate::ffi::status::{LSMKV_NOT_FOUND, LSMKV_OK, lsmkv_status};
use crate::ffi::target::CommandTarget;
use crate::types::Type;

pub(crate) fn r#type(
    target: &CommandTarget<'_>,
    key: &[u8],
    kind: &Out<i32>,
) -> Result<lsmkv_status> {
    let found = if target.is_elsewhere() {
        let mut argv = Argv::new(&entries::TYPE);
        argv.push(key);
        match target.reply(&entries::TYPE, &argv)? {
            Some(Reply::Text(name)) => type_named(&name)?,
            Some(other) => return Err(unexpected(&other)),
            None => return Ok(LSMKV_OK),
        }
    } else {
        target.db()?.kind(key)?
    };
    let Some(found) = found else { return Ok(LSMKV_NOT_FOUND) };
    kind.set(type_number(found));
    Ok(LSMKV_OK)
}

/// The types by name.
const NAMES: [(&str, Type); 5] = [
    ("string", Type::String),
    ("hash", Type::Hash),
    ("list", Type::List),
    ("set", Type::Set),
    ("zset", Type::ZSet),
];

/// The type of this name, as TYPE replies it; `None` if there is no key.
fn type_named(name: &[u8]) -> Result<Option<Type>> {
    if name == b"none" {
        return Ok(None);
    }
    let named = NAMES.iter().find(|(known, _)| known.as_bytes() == name);
    named.map(|(_, kind)| Some(*kind)).ok_or_else(|| {
        let name = name.escape_ascii();
        let message = format!("the key holds a '{name}', for which C has no number");
        Error::new(ErrorKind::Unsupported, message)
    })
}

/// The name of a type, as TYPE replies it.
pub(super) fn type_name(kind: Type) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == kind).map_or("none", |(name, _)| name)
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
