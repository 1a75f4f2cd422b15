//! Strings as arrays of bits: bit 0 is the highest bit of the first byte.
//!
//! - here: single bits and ranges of bits; `combine`: several strings; `field`: small integers.

mod combine;
mod field;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};
use crate::messages::events::Classes;
use crate::txn::Tx;
use crate::txn::db::commands;
use crate::types::string::{clamp, length, resolve};

pub use combine::BitOp;
pub(crate) use field::bad_type;
pub use field::{BitfieldOp, FieldAction, FieldType, Overflow};

commands! {
    /// BITCOUNT: the number of set bits, in all or in a range.
    read fn bitcount(key: &[u8], range: Option<BitRange>) -> i64;
    /// BITPOS: the first set, or clear, bit of the string; `None` if there is none. Bits after the
    /// end of a string are clear, unless `range` has an end.
    read fn bitpos(key: &[u8], bit: bool, range: BitSearch) -> Option<i64>;
    /// GETBIT: the bit at an offset; clear after the end of the string.
    read fn getbit(key: &[u8], offset: u64) -> bool;
    /// SETBIT: sets or clears the bit at an offset, padding the string with zeros; the old bit.
    write [key] fn setbit(key: &[u8], offset: u64, bit: bool) -> bool;
}

/// The unit of the indexes of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitUnit {
    /// Bytes.
    #[default]
    Byte,
    /// Bits.
    Bit,
}

/// A range, both ends included; negative indexes count from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRange {
    /// The first index.
    pub start: i64,
    /// The last index.
    pub end: i64,
    /// The unit of the indexes.
    pub unit: BitUnit,
}

/// The range that BITPOS searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitSearch {
    /// The first index.
    pub start: i64,
    /// The last index; without one, the end of the string.
    pub end: Option<i64>,
    /// The unit of the indexes.
    pub unit: BitUnit,
}

impl BitUnit {
    fn len_of(self, value: &[u8]) -> usize {
        match self {
            Self::Byte => value.len(),
            Self::Bit => value.len() * 8,
        }
    }

    fn in_bits(self, range: &Range<usize>) -> Range<usize> {
        match self {
            Self::Byte => range.start * 8..range.end * 8,
            Self::Bit => range.clone(),
        }
    }
}

impl Tx<'_> {
    pub(crate) fn bitcount(&self, key: &[u8], range: Option<BitRange>) -> Result<i64> {
        Ok(count(&self.get(key)?.unwrap_or_default(), range))
    }

    pub(crate) fn bitpos(&self, key: &[u8], bit: bool, range: BitSearch) -> Result<Option<i64>> {
        let value = self.get(key)?;
        Ok(value.map_or_else(|| (!bit).then_some(0), |value| position(&value, bit, range)))
    }

    pub(crate) fn getbit(&self, key: &[u8], offset: u64) -> Result<bool> {
        let byte = self.byte_of(offset)?;
        let value = self.get(key)?.unwrap_or_default();
        Ok(value.get(byte).is_some_and(|byte| byte & mask(offset) != 0))
    }

    pub(crate) fn setbit(&mut self, key: &[u8], offset: u64, bit: bool) -> Result<bool> {
        let at = self.byte_of(offset)?;
        let mut draft = self.draft(key)?;
        let grows = !draft.exists() || at >= draft.len();
        draft.grow(at + 1);
        let Some(byte) = draft.value_mut().get_mut(at) else { return Ok(false) };
        let was = *byte & mask(offset) != 0;
        *byte = if bit { *byte | mask(offset) } else { *byte & !mask(offset) };
        if grows || was != bit {
            self.put_draft(key, draft)?;
            self.notify(Classes::STRING, "setbit", key);
        }
        Ok(was)
    }

    /// The index of the byte that holds a bit, if a string can be that long.
    pub(crate) fn byte_of(&self, offset: u64) -> Result<usize> {
        let byte = Some(offset / 8).filter(|byte| *byte < self.store().limits().value);
        byte.and_then(|byte| usize::try_from(byte).ok()).ok_or_else(bad_offset)
    }
}

/// The error for an offset that no bit has.
pub(crate) fn bad_offset() -> Error {
    Error::new(ErrorKind::OutOfRange, "ERR bit offset is not an integer or out of range")
}

fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// The number of set bits in a range.
pub(crate) fn count(value: &[u8], range: Option<BitRange>) -> i64 {
    let Some(BitRange { start, end, unit }) = range else { return ones(value) };
    let bits = unit.in_bits(&resolve(start, end, unit.len_of(value)));
    let bytes = value.get(bits.start / 8..bits.end.div_ceil(8)).unwrap_or_default();
    let before = bytes.first().map_or(0, |byte| byte & !(0xff >> (bits.start % 8)));
    let after = bytes.last().map_or(0, |byte| byte & (0xff >> (bits.end % 8)));
    let after = if bits.end % 8 == 0 { 0 } else { after };
    ones(bytes) - i64::from(before.count_ones() + after.count_ones())
}

fn ones(bytes: &[u8]) -> i64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: i64 = words.iter().map(|w| i64::from(u64::from_ne_bytes(*w).count_ones())).sum();
    in_words + rest.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>()
}

/// The first bit of a range with this value.
pub(crate) fn position(value: &[u8], bit: bool, range: BitSearch) -> Option<i64> {
    let range_of = |end| clamp(range.start, end, range.unit.len_of(value));
    let bits = range.unit.in_bits(&range_of(range.end.unwrap_or(-1)));
    if bits.is_empty() {
        return None;
    }
    match first_bit(value, &bits, bit) {
        Some(at) => Some(length(at)),
        // The clear bits after the end.
        None if !bit && range.end.is_none() => Some(length(bits.end)),
        None => None,
    }
}

fn first_bit(value: &[u8], bits: &Range<usize>, bit: bool) -> Option<usize> {
    // With the bits inverted if a clear one is wanted.
    let turned = if bit { 0 } else { 0xff };
    let first = bits.start / 8;
    let head = (value.get(first)? ^ turned) & (0xff >> (bits.start % 8));
    let (index, byte) = if head != 0 {
        (first, head)
    } else {
        let rest = value.get(first + 1..bits.end.div_ceil(8))?;
        let found = rest.iter().position(|byte| *byte != turned)?;
        (first + 1 + found, rest.get(found)? ^ turned)
    };
    Some(index * 8 + byte.leading_zeros() as usize).filter(|at| *at < bits.end)
}
