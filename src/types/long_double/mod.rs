//! The 80-bit floats of the x87 in software, for INCRBYFLOAT and HINCRBYFLOAT.
//!
//! C's `long double` is another format on other machines, and the replies would differ with it.
//! Reading, adding and printing here are exact, then rounded once to the nearest 64-bit mantissa,
//! ties to even, as the hardware and the C library do.

mod magnitude;
mod text;

use std::cmp::Ordering;

use crate::error::{Error, ErrorKind, Result};
use crate::types::number::not_a_float;

/// The exponent of the last bit of the smallest numbers.
const MIN_EXPONENT: i32 = -16445;
/// The exponent of the last bit of the largest numbers.
const MAX_EXPONENT: i32 = 16320;
/// The number of bits below the mantissa that an addition keeps.
const GUARD_BITS: i32 = 62;

/// A number of the format. There is no NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongDouble {
    /// `mantissa * 2^exponent`; the mantissa's top bit is set unless the exponent is the smallest.
    Finite { negative: bool, mantissa: u64, exponent: i32 },
    /// Infinity of either sign.
    Infinite,
}

/// The error for a sum that is no finite number.
pub(crate) fn not_finite() -> Error {
    Error::new(ErrorKind::Overflow, "ERR increment would produce NaN or Infinity")
}

/// Adds two numbers given as text, as INCRBYFLOAT does; the sum as text.
pub(crate) fn add_long_double(a: &[u8], b: &[u8]) -> Result<String> {
    let a = LongDouble::parse(a).ok_or_else(not_a_float)?;
    let b = LongDouble::parse(b).ok_or_else(not_a_float)?;
    Ok(a.plus(b).ok_or_else(not_finite)?.to_string())
}

impl LongDouble {
    /// The sum, if it is finite.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let (Some(a), Some(b)) = (self.parts(), other.parts()) else { return None };
        let (high, low) = if a.2 >= b.2 { (a, b) } else { (b, a) };
        let apart = u32::try_from(high.2 - low.2).unwrap_or(u32::MAX);
        let wide = |mantissa: u64| u128::from(mantissa) << GUARD_BITS;
        let kept = wide(low.1).checked_shr(apart).unwrap_or(0);
        let lost = kept.checked_shl(apart) != Some(wide(low.1)) && low.1 != 0;
        let exponent = high.2 - GUARD_BITS;
        if high.0 == low.0 {
            return Self::rounded(high.0, wide(high.1) + kept, exponent, lost).finite();
        }
        let (negative, difference) = match wide(high.1).cmp(&kept) {
            Ordering::Less => (low.0, kept - wide(high.1)),
            Ordering::Equal => (false, 0),
            // What is lost of the smaller one makes the difference smaller still.
            Ordering::Greater => (high.0, wide(high.1) - kept - u128::from(lost)),
        };
        Self::rounded(negative, difference, exponent, lost).finite()
    }

    fn parts(self) -> Option<(bool, u64, i32)> {
        match self {
            Self::Finite { negative, mantissa, exponent } => Some((negative, mantissa, exponent)),
            Self::Infinite => None,
        }
    }

    fn finite(self) -> Option<Self> {
        (self != Self::Infinite).then_some(self)
    }

    fn zero(negative: bool) -> Self {
        Self::Finite { negative, mantissa: 0, exponent: MIN_EXPONENT }
    }

    /// The number nearest to `mantissa * 2^exponent`, or to a little more if `more`. With `more`
    /// the mantissa has at least two bits beyond those of the format.
    fn rounded(negative: bool, mantissa: u128, exponent: i32, more: bool) -> Self {
        if mantissa == 0 {
            return Self::zero(negative);
        }
        let bits = i32::try_from(u128::BITS - mantissa.leading_zeros()).unwrap_or(0);
        let last_bit = (exponent + bits - 64).max(MIN_EXPONENT);
        let Ok(shift) = u32::try_from(last_bit - exponent) else {
            let mantissa = mantissa << (exponent - last_bit).unsigned_abs();
            return Self::from_bits(negative, mantissa, last_bit);
        };
        let kept = mantissa.checked_shr(shift).unwrap_or(0);
        let rest = mantissa - kept.checked_shl(shift).unwrap_or(0);
        let half = 1u128.checked_shl(shift.wrapping_sub(1)).unwrap_or(0);
        let up = match rest.cmp(&half) {
            _ if shift == 0 || shift > u128::BITS => false,
            Ordering::Less => false,
            Ordering::Equal => more || kept & 1 == 1,
            Ordering::Greater => true,
        };
        Self::from_bits(negative, kept + u128::from(up), last_bit)
    }

    /// `mantissa` has at most 64 bits, or is 2^64 after rounding up.
    fn from_bits(negative: bool, mantissa: u128, exponent: i32) -> Self {
        let (mantissa, exponent) = match u64::try_from(mantissa) {
            Ok(0) => return Self::zero(negative),
            Ok(mantissa) => (mantissa, exponent),
            Err(_) => (1 << 63, exponent + 1),
        };
        if exponent > MAX_EXPONENT {
            return Self::Infinite;
        }
        Self::Finite { negative, mantissa, exponent }
    }
}

#[cfg(test)]
mod tests;
