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
use crate::types::string::chunks::{ChunkedString, StringValue, place};
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
    /// Indexes count bytes.
    #[default]
    Byte,
    /// Indexes count bits.
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

impl BitRange {
    /// The bits of the range in a string of `len` bytes.
    fn bits(&self, len: usize) -> Range<usize> {
        self.unit.in_bits(&resolve(self.start, self.end, self.unit.len_of(len)))
    }
}

impl BitSearch {
    /// The bits of the range in a string of `len` bytes.
    fn bits(&self, len: usize) -> Range<usize> {
        let range = clamp(self.start, self.end.unwrap_or(-1), self.unit.len_of(len));
        self.unit.in_bits(&range)
    }

    /// What BITPOS answers if `found` is the first such bit among `bits`.
    fn answer(&self, found: Option<usize>, bits: &Range<usize>, bit: bool) -> Option<i64> {
        match found {
            Some(at) => Some(length(at)),
            // The clear bits after the end.
            None if !bit && self.end.is_none() && !bits.is_empty() => Some(length(bits.end)),
            None => None,
        }
    }
}

impl BitUnit {
    /// How many there are in a string of `bytes` bytes.
    fn len_of(self, bytes: usize) -> usize {
        match self {
            Self::Byte => bytes,
            Self::Bit => bytes * 8,
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
        self.string(key)?.map_or(Ok(0), |value| self.bitcount_of(&value, range))
    }

    /// The number of set bits in a range of a value.
    pub(crate) fn bitcount_of(&self, value: &StringValue, range: Option<BitRange>) -> Result<i64> {
        match value {
            StringValue::Whole(value) => Ok(count(value, range)),
            StringValue::Chunked(string) => {
                let len = place(string.chunks.len);
                let bits = range.map_or(0..len * 8, |range| range.bits(len));
                count_in_chunks(self, string, &bits)
            }
        }
    }

    pub(crate) fn bitpos(&self, key: &[u8], bit: bool, range: BitSearch) -> Result<Option<i64>> {
        match self.string(key)? {
            None => Ok((!bit).then_some(0)),
            Some(value) => self.bitpos_of(&value, bit, range),
        }
    }

    /// The first set, or clear, bit in a range of a value.
    pub(crate) fn bitpos_of(
        &self,
        value: &StringValue,
        bit: bool,
        range: BitSearch,
    ) -> Result<Option<i64>> {
        match value {
            StringValue::Whole(value) => Ok(position(value, bit, range)),
            StringValue::Chunked(string) => {
                let bits = range.bits(place(string.chunks.len));
                let found = first_in_chunks(self, string, &bits, bit)?;
                Ok(range.answer(found, &bits, bit))
            }
        }
    }

    pub(crate) fn getbit(&self, key: &[u8], offset: u64) -> Result<bool> {
        let byte = self.byte_of(offset)?;
        let Some(value) = self.string(key)? else { return Ok(false) };
        let byte = value.range(self, byte..byte.saturating_add(1))?;
        Ok(byte.first().is_some_and(|byte| byte & mask(offset) != 0))
    }

    pub(crate) fn setbit(&mut self, key: &[u8], offset: u64, bit: bool) -> Result<bool> {
        let at = self.byte_of(offset)?;
        let mut draft = self.draft(key)?;
        let grows = !draft.exists() || at >= draft.len();
        let mut byte = [0];
        draft.read(self, at, &mut byte)?;
        let [old] = byte;
        let was = old & mask(offset) != 0;
        if grows || was != bit {
            let new = if bit { old | mask(offset) } else { old & !mask(offset) };
            draft.write(self, at, &[new])?;
            self.put_draft(draft)?;
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
    range.map_or_else(|| ones(value), |range| count_bits(value, &range.bits(value.len())))
}

fn count_bits(value: &[u8], bits: &Range<usize>) -> i64 {
    let bytes = value.get(bits.start / 8..bits.end.div_ceil(8)).unwrap_or_default();
    let before = bytes.first().map_or(0, |byte| byte & !(0xff >> (bits.start % 8)));
    let after = bytes.last().map_or(0, |byte| byte & (0xff >> (bits.end % 8)));
    let after = if bits.end.is_multiple_of(8) { 0 } else { after };
    ones(bytes) - i64::from(before.count_ones() + after.count_ones())
}

fn ones(bytes: &[u8]) -> i64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: i64 = words.iter().map(|w| i64::from(u64::from_ne_bytes(*w).count_ones())).sum();
    in_words + rest.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>()
}

/// The first bit of a range with this value.
pub(crate) fn position(value: &[u8], bit: bool, range: BitSearch) -> Option<i64> {
    let bits = range.bits(value.len());
    let found = if bits.is_empty() { None } else { first_bit(value, &bits, bit) };
    range.answer(found, &bits, bit)
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

/// The bytes that hold these bits.
fn bytes_of(bits: &Range<usize>) -> Range<u64> {
    (bits.start / 8) as u64..bits.end.div_ceil(8) as u64
}

/// Those of `bits` that lie in the `len` bytes at `offset`, counted from there.
fn bits_within(bits: &Range<usize>, offset: usize, len: usize) -> Range<usize> {
    let from = offset * 8;
    bits.start.saturating_sub(from)..bits.end.saturating_sub(from).min(len * 8)
}

fn count_in_chunks(tx: &Tx<'_>, string: &ChunkedString, bits: &Range<usize>) -> Result<i64> {
    let mut sum = 0;
    string.each_row(tx, bytes_of(bits), |offset, row| {
        sum += count_bits(row, &bits_within(bits, place(offset), row.len()));
        Ok(true)
    })?;
    Ok(sum)
}

fn first_in_chunks(
    tx: &Tx<'_>,
    string: &ChunkedString,
    bits: &Range<usize>,
    bit: bool,
) -> Result<Option<usize>> {
    if bits.is_empty() {
        return Ok(None);
    }
    // All bits before this byte are others.
    let (mut at, mut found) = (bits.start / 8, None);
    string.each_row(tx, bytes_of(bits), |offset, row| {
        let offset = place(offset);
        if !bit && offset > at {
            return Ok(false);
        }
        let within = first_bit(row, &bits_within(bits, offset, row.len()), bit);
        found = within.map(|within| offset * 8 + within);
        at = offset + row.len();
        Ok(found.is_none())
    })?;
    // The first clear bit may be in a hole.
    let hole = (!bit && found.is_none()).then(|| (at * 8).max(bits.start));
    Ok(found.or(hole.filter(|at| *at < bits.end)))
}
