//! Collections whose members are inside the record.
//!
//! A small hash, set or sorted set has no rows: a lookup reads its record, a walk runs along the
//! record's bytes, and a change writes the record. A collection that outgrows the options gets a
//! version and rows in the commit that makes it grow. It is packed again only when it is rewritten
//! as a whole (`collection_builder`), so that a collection near the limit does not alternate.

use std::ops::Range;

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::encoding::order::score_bytes;
use crate::encoding::packed::Packed;
use crate::error::Result;
use crate::keyspace::errors::malformed;
use crate::txn::{PackedRows, Walk};
use crate::types::scores::stored_score;

/// Walks over packed members from `first` on; backward, over those before `first`, or all if it is
/// empty.
pub(super) fn walk(packed: &Packed, key: &[u8], first: &[u8], backward: bool) -> Result<Walk> {
    let bytes = packed.to_bytes();
    let wanted = |member: &[u8]| match backward {
        false => member >= first,
        true => first.is_empty() || member < first,
    };
    // A member takes at least two bytes, whatever count a damaged record claims.
    let most = usize::try_from(packed.size()).unwrap_or(0).min(bytes.len() / 2);
    let mut rows = Vec::with_capacity(most);
    each(packed, key, |member, value| {
        if wanted(bytes.get(member.clone()).unwrap_or_default()) {
            rows.push((member, value));
        }
        Ok(())
    })?;
    Ok(Walk::packed(PackedRows { bytes, rows }, backward))
}

/// Walks over the score rows that packed members would have, with sub keys in `[lower, upper)`. The
/// value of each is the stored score, so that the sign of a zero needs no lookup.
pub(super) fn walk_scores(
    packed: &Packed,
    key: &[u8],
    (lower, upper): (&[u8], Option<&[u8]>),
    backward: bool,
) -> Result<Walk> {
    let members = packed.bytes();
    let part = |range: &Range<usize>| members.get(range.clone()).unwrap_or_default();
    let mut scored = Vec::new();
    each(packed, key, |member, value| {
        scored.push((score_bytes(stored_score(part(&value))?), member, value));
        Ok(())
    })?;
    // Members of equal score are in byte order already.
    scored.sort_by_key(|(score, ..)| *score);
    let (mut bytes, mut rows) = (Vec::with_capacity(2 * members.len()), Vec::new());
    for (score, member, value) in scored {
        let start = bytes.len();
        bytes.extend_from_slice(&score);
        bytes.extend_from_slice(part(&member));
        let end = bytes.len();
        let row = bytes.get(start..).unwrap_or_default();
        if row >= lower && upper.is_none_or(|upper| row < upper) {
            bytes.extend_from_slice(part(&value));
            rows.push((start..end, end..bytes.len()));
        }
    }
    Ok(Walk::packed(PackedRows { bytes: Bytes::from(bytes), rows }, backward))
}

/// Visits the ranges of all members and values; fails if they are out of order.
fn each(
    packed: &Packed,
    key: &[u8],
    mut visit: impl FnMut(Range<usize>, Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut entries = packed.entries();
    while let Some(entry) = entries.next_ascending().map_err(|why| malformed(key, why))? {
        visit(entry.member, entry.value)?;
    }
    Ok(())
}

/// Visits the members with their values, and in a sorted set with their scores.
pub(crate) fn each_member(
    packed: &Packed,
    key: &[u8],
    kind: Type,
    mut visit: impl FnMut(&[u8], &[u8], Option<f64>),
) -> Result<()> {
    let bytes = packed.bytes();
    each(packed, key, |member, value| {
        let member = bytes.get(member).unwrap_or_default();
        let value = bytes.get(value).unwrap_or_default();
        let score = if kind == Type::ZSet { Some(stored_score(value)?) } else { None };
        visit(member, value, score);
        Ok(())
    })
}

#[cfg(test)]
mod tests;
