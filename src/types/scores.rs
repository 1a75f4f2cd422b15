//! Scores as they are stored beside the members of a sorted set.

use crate::error::{Error, ErrorKind, Result};

/// Decodes the score in a row of the data tree.
pub(crate) fn stored_score(value: &[u8]) -> Result<f64> {
    let bits = <[u8; 8]>::try_from(value).map(u64::from_le_bytes);
    let score = bits.map(f64::from_bits).ok().filter(|score| !score.is_nan());
    score.ok_or_else(|| damaged("the score of a member is no number"))
}

/// The error for a sorted set whose rows contradict each other.
pub(crate) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a sorted set cannot be read: {what}"))
}
