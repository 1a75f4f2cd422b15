//! Parses scores and bounds of ranges.

use std::ops::Bound;

use crate::error::{Error, ErrorKind, Result};
use crate::types::number::{not_a_float, parse_float};

/// The least and the greatest member of a range.
pub(crate) type LexBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The error for a bound of scores that is no number.
pub(crate) fn not_a_bound() -> Error {
    Error::new(ErrorKind::NotFloat, "ERR min or max is not a float")
}

/// Parses a score. What a double cannot hold is refused, except when it is written as infinite.
pub(crate) fn parse_score(text: &[u8]) -> Result<f64> {
    let score = parse_float(text)?;
    if score.is_normal() {
        return Ok(score);
    }
    let lower = text.to_ascii_lowercase();
    let vanished = score == 0.0 && has_digits(&lower);
    if vanished || (score.is_infinite() && !lower.contains(&b'i')) {
        return Err(not_a_float());
    }
    Ok(score)
}

/// Whether the digits before the exponent are not all zero.
fn has_digits(lower: &[u8]) -> bool {
    let hexadecimal = lower.contains(&b'x');
    let exponent = if hexadecimal { b'p' } else { b'e' };
    let digits = lower.split(|byte| *byte == exponent).next().unwrap_or_default();
    digits.iter().any(|byte| matches!(byte, b'1'..=b'9' | b'a'..=b'f'))
}

/// Parses a bound of a range of scores: a number, exclusive after `(`. As in the reference,
/// whatever C's `strtod` accepts is a number: the empty text is 0, and leading spaces are skipped.
pub(crate) fn parse_score_bound(text: &[u8]) -> Result<Bound<f64>> {
    let number = text.strip_prefix(b"(");
    let parsed = c_number(number.unwrap_or(text)).ok_or_else(not_a_bound)?;
    Ok(if number.is_some() { Bound::Excluded(parsed) } else { Bound::Included(parsed) })
}

fn c_number(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte))?;
    parse_float(text.get(start..)?).ok()
}

/// Parses both bounds of a range of members: `-`, `+`, `[member` or `(member`.
pub(crate) fn parse_lex_bounds<'a>(min: &'a [u8], max: &'a [u8]) -> Result<LexBounds<'a>> {
    // Nothing sorts before the empty member: an empty range.
    const NOTHING: LexBounds<'_> = (Bound::Included(b""), Bound::Excluded(b""));
    Ok(match (parse_lex_bound(min)?, parse_lex_bound(max)?) {
        (Lex::Greatest, _) | (_, Lex::Least) => NOTHING,
        (min, max) => (min.into_bound(), max.into_bound()),
    })
}

enum Lex<'a> {
    Least,
    Greatest,
    At(Bound<&'a [u8]>),
}

impl<'a> Lex<'a> {
    fn into_bound(self) -> Bound<&'a [u8]> {
        match self {
            Self::Least | Self::Greatest => Bound::Unbounded,
            Self::At(bound) => bound,
        }
    }
}

fn parse_lex_bound(text: &[u8]) -> Result<Lex<'_>> {
    match text {
        [b'-'] | [b'-', 0, ..] => Ok(Lex::Least),
        [b'+'] | [b'+', 0, ..] => Ok(Lex::Greatest),
        [b'[', member @ ..] => Ok(Lex::At(Bound::Included(member))),
        [b'(', member @ ..] => Ok(Lex::At(Bound::Excluded(member))),
        _ => {
            let text = "ERR min or max not valid string range item";
            Err(Error::new(ErrorKind::Syntax, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_that_a_double_cannot_hold_is_refused() {
        for text in ["1e400", "-1e400", "1e-400", "0x1p-9999", "0x1p9999", "nan", "", " 1", "1 "] {
            assert!(parse_score(text.as_bytes()).is_err(), "{text}");
        }
        let cases = [
            ("inf", f64::INFINITY),
            ("-INFinity", f64::NEG_INFINITY),
            ("0e-999", 0.0),
            ("0x0", 0.0),
        ];
        for (text, score) in cases {
            assert_eq!(parse_score(text.as_bytes()).unwrap(), score, "{text}");
        }
        assert_eq!(parse_score(b"1e-310").unwrap(), 1e-310);
        assert!(parse_score(b"-0").unwrap().is_sign_negative());
    }

    #[test]
    fn a_bound_is_read_with_all_the_freedom_of_c() {
        use Bound::{Excluded, Included};
        for (text, bound) in [
            ("", Included(0.0)),
            ("(", Excluded(0.0)),
            (" 1", Included(1.0)),
            ("( 1", Excluded(1.0)),
            ("1e400", Included(f64::INFINITY)),
            ("(-inf", Excluded(f64::NEG_INFINITY)),
            ("1\0x", Included(1.0)),
        ] {
            assert_eq!(parse_score_bound(text.as_bytes()).unwrap(), bound, "{text:?}");
        }
        for text in [" ", "1 ", "((1", "nan", "x", "1x"] {
            assert!(parse_score_bound(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn bounds_of_members_say_whether_they_are_inside() {
        use Bound::{Excluded, Included, Unbounded};
        assert_eq!(parse_lex_bounds(b"-", b"+").unwrap(), (Unbounded, Unbounded));
        let some: LexBounds<'_> = (Included(b"a"), Excluded(b""));
        assert_eq!(parse_lex_bounds(b"[a", b"(").unwrap(), some);
        for text in ["", "a", "+a", "-a", " [a"] {
            assert!(parse_lex_bounds(text.as_bytes(), b"+").is_err(), "{text:?}");
            assert!(parse_lex_bounds(b"-", text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
