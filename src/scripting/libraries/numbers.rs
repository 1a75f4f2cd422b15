//! Numbers as text, as C's `printf` and `strtod` have them.

/// Formats a number like C's `%.<precision>g`.
pub(super) fn general(number: f64, precision: usize) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan".to_owned() } else { "nan".to_owned() };
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let precision = precision.max(1);
    let scientific = format!("{number:.*e}", precision - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let most = i64::try_from(precision).unwrap_or(i64::MAX);
    if (-4..most).contains(&exponent) {
        let places = usize::try_from(most - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{number:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Reads a number at the beginning of a text as C's `strtod` does; returns it and its length.
pub(super) fn leading(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let negative = text.first() == Some(&b'-');
    let rest = text.get(sign..).unwrap_or_default();
    let signed = |number: f64| if negative { -number } else { number };
    let starts =
        |word: &[u8]| rest.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    for (word, number) in
        [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY), (b"nan", f64::NAN)]
    {
        if starts(word) {
            return Some((signed(number), sign + word.len()));
        }
    }
    if starts(b"0x") {
        let digits = rest.get(2..).unwrap_or_default();
        let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if count > 0 {
            let value = digits.iter().take(count).fold(0.0, |value, byte| {
                value * 16.0 + f64::from(char::from(*byte).to_digit(16).unwrap_or(0))
            });
            return Some((signed(value), sign + 2 + count));
        }
    }
    let digits = |from: usize| {
        rest.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let mut end = whole;
    let mut fraction = 0;
    if rest.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let signs = usize::from(matches!(rest.get(end + 1), Some(b'-' | b'+')));
        let count = digits(end + 1 + signs);
        if count > 0 {
            end += 1 + signs + count;
        }
    }
    let number = std::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()?;
    Some((signed(number), sign + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts are those of C's printf.
    #[test]
    fn numbers_are_shortened_as_in_c() {
        for (number, text) in [
            (0.1, "0.1"),
            (1e15, "1e+15"),
            (123_456_789_012_345.0, "1.2345678901234e+14"),
            (12_345_678_901_234.0, "12345678901234"),
            (1e-5, "1e-05"),
            (-0.5, "-0.5"),
            (0.0, "0"),
            (1.0 / 3.0, "0.33333333333333"),
        ] {
            assert_eq!(general(number, 14), text);
        }
    }

    #[test]
    fn numbers_end_where_c_ends_them() {
        for (text, number, len) in [
            ("12,", 12.0, 2),
            ("-1.5e3x", -1500.0, 6),
            ("1e", 1.0, 1),
            ("1.", 1.0, 2),
            ("0x1F", 31.0, 4),
            ("Infinity", f64::INFINITY, 8),
        ] {
            assert_eq!(leading(text.as_bytes()), Some((number, len)), "{text}");
        }
        assert_eq!(leading(b"-"), None);
        assert_eq!(leading(b".e1"), None);
    }
}
