//! Errors about the record of a key.

use crate::encoding::meta::Malformed;
use crate::error::{Error, ErrorKind};

/// The error for a command on a key of another type.
pub(crate) fn wrong_type() -> Error {
    let text = "WRONGTYPE Operation against a key holding the wrong kind of value";
    Error::new(ErrorKind::WrongType, text)
}

/// The error for a record that cannot be decoded.
pub(crate) fn malformed(key: &[u8], why: Malformed) -> Error {
    let shown = String::from_utf8_lossy(key.get(..64).unwrap_or(key));
    let kind = match why {
        Malformed::Encoding(_) => ErrorKind::Incompatible,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("the record of key {shown:?} cannot be read: {why}"))
}
