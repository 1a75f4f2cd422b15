//! Numbers as text, exactly as the reference reads and writes them.

use crate::error::{Error, ErrorKind, Result};

/// The error for text that is no 64-bit integer.
pub(crate) fn not_an_integer() -> Error {
    Error::new(ErrorKind::NotInteger, "ERR value is not an integer or out of range")
}

/// The error for an integer outside of the range that a command accepts; `detail` is appended.
pub(crate) fn out_of_range(detail: &str) -> Error {
    Error::new(ErrorKind::OutOfRange, format!("ERR value is out of range{detail}"))
}

/// The error for text that is no float.
pub(crate) fn not_a_float() -> Error {
    Error::new(ErrorKind::NotFloat, "ERR value is not a valid float")
}

/// Parses a 64-bit integer: an optional minus and digits, no plus, no leading zero, no space.
pub(crate) fn parse_integer(text: &[u8]) -> Result<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        b"0" => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit) && digits.len() < 20,
        _ => false,
    };
    let text = std::str::from_utf8(text).map_err(|_| not_an_integer())?;
    if canonical { text.parse().map_err(|_| not_an_integer()) } else { Err(not_an_integer()) }
}

/// Parses a float like C's `strtod`: decimal, hexadecimal or `inf`, but not `nan`. All of the text
/// must belong to it, without leading space.
pub(crate) fn parse_float(text: &[u8]) -> Result<f64> {
    let text = std::str::from_utf8(text).map_err(|_| not_a_float())?;
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let value = match unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        // Most scores.
        true => unsigned.parse().ok(),
        false => parse_unsigned(unsigned),
    };
    let value = value.ok_or_else(not_a_float)?;
    Ok(if text.starts_with('-') { -value } else { value })
}

fn parse_unsigned(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => Some(f64::INFINITY),
        lower if lower.starts_with("0x") => parse_hexadecimal(lower.get(2..).unwrap_or_default()),
        lower if lower.starts_with(|c: char| c.is_ascii_digit() || c == '.') => lower.parse().ok(),
        _ => None,
    }
}

/// Parses `digits[.digits][p[+-]exponent]` in base 16.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once('p') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    Some(value * 2f64.powi(exponent.saturating_sub(places.saturating_mul(4))))
}

/// Formats a double like C's `%.17g`, as replies show scores.
pub(crate) fn format_double(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    if let Some(whole) = as_whole(value) {
        return whole.to_string();
    }
    let scientific = format!("{value:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let places = usize::try_from(16 - exponent).unwrap_or(0);
        return trim_zeros(&format!("{value:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
}

/// The value as an integer, if it is one with so few digits that all are printed.
fn as_whole(value: f64) -> Option<i64> {
    const LARGEST: f64 = 1e15;
    #[expect(clippy::cast_possible_truncation, reason = "it has at most fifteen digits")]
    (value.abs() < LARGEST && value.fract() == 0.0).then_some(value as i64)
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_only_in_their_one_form() {
        for (text, value) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX)] {
            assert_eq!(parse_integer(text.as_bytes()).unwrap(), value);
        }
        assert_eq!(parse_integer(b"-9223372036854775808").unwrap(), i64::MIN);
        for text in ["", "-", "+1", " 1", "1 ", "01", "-0", "1.0", "9223372036854775808", "x"] {
            assert!(parse_integer(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn floats_are_read_as_c_does() {
        for (text, value) in [
            ("1", 1.0),
            ("-1.5e3", -1500.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x10", 16.0),
            ("0x1.8p1", 3.0),
            ("-0", 0.0),
        ] {
            assert_eq!(parse_float(text.as_bytes()).unwrap(), value, "{text}");
        }
        for text in ["", "nan", "-nan", " 1", "1 ", "e5", "1e", "abc", "0x", "--1", "+-1"] {
            assert!(parse_float(text.as_bytes()).is_err(), "{text}");
        }
    }

    /// Expected values are what C's printf("%.17g") gives.
    #[test]
    fn doubles_print_as_c_does() {
        for (value, text) in [
            (1.0, "1"),
            (0.1, "0.10000000000000001"),
            (-2.5, "-2.5"),
            (1e17, "1e+17"),
            (123_456_789.0, "123456789"),
            (1e-5, "1.0000000000000001e-05"),
            (1e16, "10000000000000000"),
            (-0.0, "-0"),
            (3.0e300, "3.0000000000000002e+300"),
            (0.0001, "0.0001"),
            (-999_999_999_999_999.0, "-999999999999999"),
            (1e15, "1000000000000000"),
            (999_999_999_999_999.5, "999999999999999.5"),
        ] {
            assert_eq!(format_double(value), text);
        }
    }
}
