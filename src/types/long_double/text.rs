//! Parses like C's `strtold`, prints like `%.17Lf` without trailing zeros.

use std::fmt;

use super::LongDouble;
use super::magnitude::{Magnitude, quotient};

/// The reference reads into a buffer of this size, with a zero byte at the end.
const BUFFER: usize = 5 * 1024;
/// Numbers from here on are infinite, their inverses zero: powers of ten and of two.
const FAR_TENS: i64 = 5_000;
const FAR_BITS: i64 = 20_000;
/// Digits after the point, and their power of ten.
const PLACES: u128 = 100_000_000_000_000_000;

/// Digits without the point, and the exponent of the last of them.
struct Digits<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl LongDouble {
    /// Parses a decimal or hexadecimal number or `inf`, all of the text. Refuses `nan`, and what is
    /// too large or too small for the format.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= BUFFER {
            return None;
        }
        let (negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        match unsigned {
            [b'0', b'x' | b'X', rest @ ..] => parse_hexadecimal(negative, rest),
            word if word.eq_ignore_ascii_case(b"inf") => Some(Self::Infinite),
            word if word.eq_ignore_ascii_case(b"infinity") => Some(Self::Infinite),
            _ => parse_decimal(negative, unsigned),
        }
    }
}

fn parse_decimal(negative: bool, text: &[u8]) -> Option<LongDouble> {
    let digits = split(text, b'e', u8::is_ascii_digit)?;
    let (number, count) = digits.read(10)?;
    let exponent = digits.exponent;
    if number.is_zero() {
        return Some(LongDouble::zero(negative));
    }
    if (count + exponent).abs() > FAR_TENS {
        return None;
    }
    let (mut above, mut below) = (number, Magnitude::new(1));
    let scale = usize::try_from(exponent.unsigned_abs()).ok()?;
    if exponent < 0 {
        below.scale_by_ten(scale);
    } else {
        above.scale_by_ten(scale);
    }
    nearest(negative, above, below, 0)
}

fn parse_hexadecimal(negative: bool, text: &[u8]) -> Option<LongDouble> {
    let digits = split(text, b'p', u8::is_ascii_hexdigit)?;
    let (number, _) = digits.read(16)?;
    if number.is_zero() {
        return Some(LongDouble::zero(negative));
    }
    // A digit of the fraction is four bits.
    let fraction = i64::try_from(digits.fraction.len()).ok()?;
    let exponent = digits.exponent + fraction - fraction * 4;
    let top = exponent + i64::try_from(number.bits()).ok()?;
    if top.abs() > FAR_BITS {
        return None;
    }
    nearest(negative, number, Magnitude::new(1), exponent)
}

/// `above / below * 2^exponent`, unless it overflows or rounds to zero.
fn nearest(
    negative: bool,
    above: Magnitude,
    below: Magnitude,
    exponent: i64,
) -> Option<LongDouble> {
    let (mantissa, last_bit, more) = quotient(above, below);
    let exponent = i32::try_from(last_bit + exponent).ok()?;
    let number = LongDouble::rounded(negative, mantissa, exponent, more);
    number.finite().filter(|number| *number != LongDouble::zero(negative))
}

/// `digits[.digits][mark[+-]digits]`, with a digit before the mark.
fn split(text: &[u8], mark: u8, is_digit: fn(&u8) -> bool) -> Option<Digits<'_>> {
    let run = |text: &[u8], is_digit: fn(&u8) -> bool| {
        text.iter().position(|byte| !is_digit(byte)).unwrap_or(text.len())
    };
    let (whole, rest) = text.split_at_checked(run(text, is_digit))?;
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at_checked(run(rest, is_digit))?,
        _ => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent = match rest {
        [] => 0,
        [first, rest @ ..] if first.to_ascii_lowercase() == mark => signed_digits(rest)?,
        _ => return None,
    };
    let places = i64::try_from(fraction.len()).ok()?;
    Some(Digits { whole, fraction, exponent: exponent - places })
}

/// Parses an exponent; one beyond all numbers of the format may be clamped.
fn signed_digits(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(1_000_000)
    });
    Some(if negative { -value } else { value })
}

impl Digits<'_> {
    /// The number the digits make, and how many there are without zeros in front.
    fn read(&self, base: u32) -> Option<(Magnitude, i64)> {
        let mut number = Magnitude::new(0);
        let digits = self.whole.iter().chain(self.fraction).skip_while(|digit| **digit == b'0');
        let mut count = 0;
        for digit in digits {
            number.multiply_add(base, char::from(*digit).to_digit(base)?);
            count += 1;
        }
        Some((number, count))
    }
}

impl fmt::Display for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Finite { negative, mantissa, exponent } = *self else {
            return f.write_str("inf");
        };
        let text = match u32::try_from(exponent) {
            Ok(exponent) => {
                let mut number = Magnitude::new(mantissa);
                number.shift_left(exponent as usize);
                number.decimal()
            }
            Err(_) => with_fraction(mantissa, exponent.unsigned_abs()),
        };
        // What rounds to zero has no sign.
        let sign = if negative && text != "0" { "-" } else { "" };
        write!(f, "{sign}{text}")
    }
}

/// `mantissa / 2^bits` with 17 digits after the point, ties to even, zeros at the end removed.
fn with_fraction(mantissa: u64, bits: u32) -> String {
    // Below 2^121: no carry, and with more bits than that the result is zero.
    let wide = u128::from(mantissa) * PLACES;
    let Some(half) = 1u128.checked_shl(bits.saturating_sub(1)) else { return "0".to_owned() };
    let kept = wide.checked_shr(bits).unwrap_or(0);
    let rest = wide - kept.checked_shl(bits).unwrap_or(0);
    let up = rest > half || (rest == half && kept & 1 == 1);
    let kept = kept + u128::from(up);
    let text = format!("{}.{:017}", kept / PLACES, kept % PLACES);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
