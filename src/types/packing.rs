//! Which collections are kept whole in their record, and how one that is becomes one that is not.
//!
//! A small hash, set or sorted set has no rows: a look at it is a look at its record, a walk runs
//! along the record's bytes, and a change writes the record. One that outgrows the options gets a
//! version and rows, in the commit that makes it grow. It goes back into its record only when it
//! is written anew as a whole (`build`), so that one on the border does not go to and fro.

use std::ops::Range;

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::encoding::order::score_bytes;
use crate::encoding::packed::{MOST_BYTES, MOST_MEMBERS, Packed};
use crate::error::Result;
use crate::options::Options;
use crate::types::txn::{PackedRows, Walk, malformed};
use crate::types::zset::rows::stored_score;

/// What fits into a record: as the user set it, but no more than can be written again where there
/// is little room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    /// Most members.
    pub(crate) members: u64,
    /// Most bytes of all.
    pub(crate) bytes: usize,
}

impl Packing {
    /// `spare_bytes`: see `Store::spare_bytes`. A removal writes all that is left, and must go
    /// through on a full disk and in a transaction that may take little.
    pub(crate) fn of(options: &Options, spare_bytes: usize) -> Self {
        let bytes = u64::from(options.packed_max_bytes).min(MOST_BYTES);
        let bytes = usize::try_from(bytes.min(options.txn_max_bytes / 4)).unwrap_or(0);
        Self {
            members: u64::from(options.packed_max_members.min(MOST_MEMBERS)),
            bytes: bytes.min(spare_bytes),
        }
    }

    /// Whether all of this may be in a record.
    pub(crate) fn holds(self, packed: &Packed) -> bool {
        packed.size() <= self.members && packed.bytes().len() <= self.bytes
    }

    /// Whether new collections are packed at all.
    pub(crate) fn is_on(self) -> bool {
        self.members > 0
    }
}

/// A walk over packed members: those from `first` on, or before it if it is not empty and the walk
/// goes backward.
pub(super) fn walk(packed: &Packed, key: &[u8], first: &[u8], backward: bool) -> Result<Walk> {
    let bytes = packed.to_bytes();
    let wanted = |member: &[u8]| match backward {
        false => member >= first,
        true => first.is_empty() || member < first,
    };
    // A member takes two bytes at least, whatever a damaged record says their number is.
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

/// A walk over the score rows that packed members would have, with sub keys in `[lower, upper)`.
/// Beside each is the member's score as it is stored, so that nobody needs to look for its sign.
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
    // Members of one score stand in the order of their bytes already.
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

/// Visits the places of all members and of what is beside them; an error if they are out of order.
fn each(
    packed: &Packed,
    key: &[u8],
    mut visit: impl FnMut(Range<usize>, Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut places = packed.places();
    while let Some(place) = places.ascend().map_err(|why| malformed(key, why))? {
        visit(place.member, place.value)?;
    }
    Ok(())
}

/// Visits the members with what is beside them, in a sorted set also as a number.
pub(super) fn each_member(
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
