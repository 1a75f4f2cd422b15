//! Bounds of ranges: numbers or slices with the flags MINEX and MAXEX, as the methods take them and
//! as commands write them.

use std::ops::Bound;

use crate::error::Result;
use crate::ffi::flags::{Flags, LSMKV_MAXEX, LSMKV_MINEX};

/// Flags of every function that takes bounds.
pub(super) const EXCLUSIONS: u32 = LSMKV_MINEX | LSMKV_MAXEX;

/// The least and the greatest of a range.
pub(super) struct Bounds<T> {
    pub(super) min: Bound<T>,
    pub(super) max: Bound<T>,
}

/// Of scores.
pub(super) fn scores(min: f64, max: f64, flags: Flags) -> Bounds<f64> {
    Bounds { min: bound(min, flags.has(LSMKV_MINEX)), max: bound(max, flags.has(LSMKV_MAXEX)) }
}

/// Of members; without one the range is open.
pub(super) fn members<'s>(
    min: Option<&'s [u8]>,
    max: Option<&'s [u8]>,
    flags: Flags,
) -> Bounds<&'s [u8]> {
    let ends = |end: Option<&'s [u8]>, flag| {
        end.map_or(Bound::Unbounded, |end| bound(end, flags.has(flag)))
    };
    Bounds { min: ends(min, LSMKV_MINEX), max: ends(max, LSMKV_MAXEX) }
}

/// The flags of a function whose only ones are about bounds.
pub(super) fn exclusions(flags: u32) -> Result<Flags> {
    Flags::checked(flags, EXCLUSIONS, &[])
}

fn bound<T>(end: T, exclusive: bool) -> Bound<T> {
    if exclusive { Bound::Excluded(end) } else { Bound::Included(end) }
}

impl Bounds<f64> {
    /// The least and the greatest as a command writes them.
    pub(super) fn texts(&self) -> [Vec<u8>; 2] {
        [&self.min, &self.max].map(|bound| match bound {
            Bound::Excluded(score) => format!("({score}").into(),
            Bound::Included(score) => format!("{score}").into(),
            Bound::Unbounded => b"inf".to_vec(),
        })
    }
}

impl Bounds<&[u8]> {
    /// The least and the greatest as a command writes them.
    pub(super) fn texts(&self) -> [Vec<u8>; 2] {
        let text = |bound: &Bound<&[u8]>, open: &[u8]| match bound {
            Bound::Excluded(member) => [b"(", *member].concat(),
            Bound::Included(member) => [b"[", *member].concat(),
            Bound::Unbounded => open.to_vec(),
        };
        [text(&self.min, b"-"), text(&self.max, b"+")]
    }
}
