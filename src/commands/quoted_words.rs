//! A line of words with quotes and escapes: inline requests, and the first lines of scripts.

/// Splits a line into words; `None` if a quote is not closed or not followed by a blank. As in
/// Redis, a zero byte ends the line.
pub(crate) fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after.trim_ascii_start();
    }
    Some(words)
}

/// The first word and the rest of the line.
fn word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] => return Some((word, rest)),
            [b'"', after @ ..] => {
                let after = double_quoted(after, &mut word)?;
                return Some((word, after));
            }
            [b'\'', after @ ..] => {
                let after = single_quoted(after, &mut word)?;
                return Some((word, after));
            }
            [blank, ..] if blank.is_ascii_whitespace() => return Some((word, rest)),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

/// Checks that a word ends after its closing quote.
fn closed(after: &[u8]) -> Option<&[u8]> {
    after.first().is_none_or(u8::is_ascii_whitespace).then_some(after)
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [b'\'', after @ ..] => return closed(after),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                word.push(unescaped(*escaped));
                rest = after;
            }
            [b'"', after @ ..] => return closed(after),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit.to_ascii_lowercase() - b'a') + 10,
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_the_reference_splits_them() {
        for (line, words) in [
            ("", Some(vec![])),
            ("  a  b ", Some(vec!["a", "b"])),
            ("a\"b c\" d", Some(vec!["ab c", "d"])),
            (r#""\x41\n\q""#, Some(vec!["A\nq"])),
            (r"'it\'s' '\n'", Some(vec!["it's", r"\n"])),
            ("''", Some(vec![""])),
            ("\"a", None),
            ("'a", None),
            ("\"a\"b", None),
            ("a b\0c d", Some(vec!["a", "b"])),
            ("\0", Some(vec![])),
            (" \0 a", Some(vec![])),
            ("\"a\0\"", None),
        ] {
            let words = words.map(|w: Vec<&str>| w.iter().map(|w| w.as_bytes().to_vec()).collect());
            assert_eq!(split(line.as_bytes()), words, "{line}");
        }
    }

    #[test]
    fn every_line_of_two_bytes_and_blanks_comes_to_an_end() {
        for (a, b) in (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| (a, b))) {
            for line in [[a, b, b' '], [a, b' ', b], [b' ', a, b]] {
                assert!(split(&line).is_none_or(|words| words.len() <= 3), "{line:?}");
            }
        }
    }
}
