//! Option values as text: sizes (`64MiB`, `64MB`, bytes), counts, switches and choices.
//!
//! A refusal is the phrase that completes "use …": the values that are allowed.

use super::{ClientCertificates, Compression, SyncMode};

/// The values that an option accepts.
pub(super) enum Rule {
    /// Bytes in an inclusive range.
    Size(u64, u64),
    /// Bytes in an inclusive range, or 0.
    SizeOrZero(u64, u64),
    /// A number in an inclusive range.
    Count(u64, u64),
    /// One of the words of the option's type.
    Choice,
    /// Any of these letters, or none.
    Letters(&'static str),
    /// Any text.
    Text,
}

/// A parsed value, or the values that are allowed.
type Parsed<T> = Result<T, String>;

/// A type that an option can have.
pub(super) trait Value: Sized {
    fn parse(text: &str, rule: &Rule) -> Parsed<Self>;
    fn show(&self, rule: &Rule) -> String;
    fn check(&self, rule: &Rule) -> Parsed<()>;
}

impl Rule {
    fn admits(&self, value: u64) -> bool {
        match *self {
            Self::Size(low, high) | Self::Count(low, high) => (low..=high).contains(&value),
            Self::SizeOrZero(low, high) => value == 0 || (low..=high).contains(&value),
            Self::Choice | Self::Letters(_) | Self::Text => true,
        }
    }

    fn allowed(&self) -> String {
        match *self {
            Self::Size(low, high) => {
                format!("bytes or a size like 64MiB, {} to {}", size(low), size(high))
            }
            Self::SizeOrZero(low, high) => {
                format!("bytes or a size like 64MiB, {} to {}, or 0", size(low), size(high))
            }
            Self::Count(low, high) => format!("a number, {low} to {high}"),
            Self::Choice | Self::Text => String::new(),
            Self::Letters(letters) => format!("letters of {letters}"),
        }
    }
}

impl Value for u64 {
    fn parse(text: &str, rule: &Rule) -> Parsed<Self> {
        let value = match rule {
            Rule::Size(..) | Rule::SizeOrZero(..) => parse_size(text),
            Rule::Count(..) | Rule::Choice | Rule::Letters(_) | Rule::Text => parse_digits(text),
        };
        value.filter(|&value| rule.admits(value)).ok_or_else(|| rule.allowed())
    }

    fn show(&self, rule: &Rule) -> String {
        match rule {
            Rule::Size(..) | Rule::SizeOrZero(..) => size(*self),
            Rule::Count(..) | Rule::Choice | Rule::Letters(_) | Rule::Text => self.to_string(),
        }
    }

    fn check(&self, rule: &Rule) -> Parsed<()> {
        if rule.admits(*self) { Ok(()) } else { Err(rule.allowed()) }
    }
}

impl Value for u32 {
    fn parse(text: &str, rule: &Rule) -> Parsed<Self> {
        Self::try_from(u64::parse(text, rule)?).map_err(|_| rule.allowed())
    }

    fn show(&self, rule: &Rule) -> String {
        u64::from(*self).show(rule)
    }

    fn check(&self, rule: &Rule) -> Parsed<()> {
        u64::from(*self).check(rule)
    }
}

impl Value for String {
    fn parse(text: &str, rule: &Rule) -> Parsed<Self> {
        let value = text.to_owned();
        value.check(rule).map(|()| value)
    }

    fn show(&self, _: &Rule) -> String {
        self.clone()
    }

    fn check(&self, rule: &Rule) -> Parsed<()> {
        match rule {
            Rule::Letters(letters) if !self.chars().all(|letter| letters.contains(letter)) => {
                Err(rule.allowed())
            }
            _ => Ok(()),
        }
    }
}

/// A type whose values are words. A value is shown as its first word.
trait Words: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];
    const ALLOWED: &'static str;
}

impl Words for bool {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("on", true),
        ("off", false),
        ("true", true),
        ("false", false),
        ("yes", true),
        ("no", false),
        ("1", true),
        ("0", false),
    ];
    const ALLOWED: &'static str = "on or off (also true/false, yes/no, 1/0)";
}

impl Words for SyncMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("always", Self::Always), ("interval", Self::Interval), ("off", Self::Off)];
    const ALLOWED: &'static str = "always, interval or off";
}

impl Words for Compression {
    const WORDS: &'static [(&'static str, Self)] = &[("none", Self::None), ("lz4", Self::Lz4)];
    const ALLOWED: &'static str = "none or lz4";
}

impl Words for ClientCertificates {
    const WORDS: &'static [(&'static str, Self)] =
        &[("yes", Self::Required), ("no", Self::Ignored), ("optional", Self::Optional)];
    const ALLOWED: &'static str = "yes, no or optional";
}

impl<T: Words> Value for T {
    fn parse(text: &str, _: &Rule) -> Parsed<Self> {
        let word = T::WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        word.map(|&(_, value)| value).ok_or_else(|| T::ALLOWED.to_owned())
    }

    fn show(&self, _: &Rule) -> String {
        let word = T::WORDS.iter().find(|(_, value)| value == self);
        word.map(|(word, _)| (*word).to_owned()).unwrap_or_default()
    }

    fn check(&self, _: &Rule) -> Parsed<()> {
        Ok(())
    }
}

/// Units of sizes, largest first, so that a size is shown in the largest unit that divides it.
const BINARY_UNITS: [(&str, u64); 4] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const DECIMAL_UNITS: [(&str, u64); 4] =
    [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000)];

/// Parses digits, then nothing (bytes), `B`, or a unit. A bare `k` or `m` is refused, since readers
/// differ on whether it means 1000 or 1024.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at_checked(digits)?;
    let unit = unit.trim_start();
    let number = parse_digits(number)?;
    if unit.is_empty() || unit.eq_ignore_ascii_case("B") {
        return Some(number);
    }
    let mut units = BINARY_UNITS.iter().chain(&DECIMAL_UNITS);
    let (_, factor) = units.find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
    number.checked_mul(*factor)
}

/// Parses plain digits only: `u64::from_str` would also accept a leading plus sign.
fn parse_digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Shows `bytes` in the largest binary unit that divides it.
fn size(bytes: u64) -> String {
    let unit = BINARY_UNITS.iter().find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    match unit {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_bytes_or_a_number_with_a_unit() {
        assert_eq!(parse_size("0"), Some(0));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("4096B"), Some(4096));
        assert_eq!(parse_size("64KiB"), Some(65_536));
        assert_eq!(parse_size("64kib"), Some(65_536));
        assert_eq!(parse_size("64KB"), Some(64_000));
        assert_eq!(parse_size("1 GiB"), Some(1_073_741_824));
        assert_eq!(parse_size("2TB"), Some(2_000_000_000_000));
    }

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in ["", "MiB", "-1", "+1", "1.5MiB", "64M", "64k", "1 MiB x", "é", "1é"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        assert_eq!(parse_size("18446744073709551616"), None);
        assert_eq!(parse_size("18446744073709551615KiB"), None);
    }

    proptest! {
        #[test]
        fn a_size_reads_back_from_what_it_is_shown_as(bytes: u64, shift in 0u32..50) {
            let bytes = bytes >> shift << shift;
            prop_assert_eq!(parse_size(&size(bytes)), Some(bytes));
        }

        #[test]
        fn arbitrary_text_never_panics(text: String) {
            let _ = parse_size(&text);
            let _ = bool::parse(&text, &Rule::Choice);
        }
    }
}
