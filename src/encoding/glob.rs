//! Patterns of KEYS, SCAN and the other scans: `*`, `?`, `[abc]`, `[a-z]`, `[^a]`, `\x`.
//!
//! An unclosed class ends with the pattern; a range may be written in either order; in `[a-]` the
//! bracket is the end of a range. No pattern takes longer than its length times the text's: only
//! the last `*` is ever retried, because an earlier one can match nothing that a later one cannot.

/// Whether the pattern matches all of `text`.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if pattern == b"*" {
        return true;
    }
    if text.is_empty() {
        // As in the reference: of all patterns with stars only `*` itself matches the empty text.
        return pattern.is_empty();
    }
    let (mut rest, mut left) = (pattern, text);
    // The pattern after the last star, and the text from which it is tried next.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', after @ ..] = rest {
            rest = after;
            retry = Some((rest, left));
            continue;
        }
        let Some((byte, after)) = left.split_first() else { return rest.is_empty() };
        if let Some(after_item) = one(rest, *byte) {
            (rest, left) = (after_item, after);
            continue;
        }
        let Some((after_star, tried)) = retry else { return false };
        let Some((_, shorter)) = tried.split_first() else { return false };
        (rest, left) = (after_star, shorter);
        retry = Some((after_star, shorter));
    }
}

/// Matches a byte with the first item of the pattern, which is no star; the pattern after it.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', b'^', class @ ..] => one_of(class, byte, true),
        [b'[', class @ ..] => one_of(class, byte, false),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some(rest),
    }
}

/// Matches a byte with a class, given without its opening; the pattern after it.
fn one_of(class: &[u8], byte: u8, negated: bool) -> Option<&[u8]> {
    let mut class = class;
    let mut found = false;
    loop {
        class = match class {
            [] => break,
            [b'\\', literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [b']', rest @ ..] => {
                class = rest;
                break;
            }
            [a, b'-', b, rest @ ..] => {
                found |= (*a.min(b)..=*a.max(b)).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
        };
    }
    (found != negated).then_some(class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_in_the_reference() {
        for (pattern, yes, no) in [
            ("h?llo", &["hello", "hallo"][..], &["hllo", "heello", "Hello"][..]),
            ("h*llo", &["hllo", "heeello"], &["hell", "xhllo"]),
            ("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo"]),
            ("h[^e]llo", &["hallo", "hbllo"], &["hello", "hllo"]),
            ("h[a-b]llo", &["hallo", "hbllo"], &["hcllo", "h-llo"]),
            ("[c-a]", &["a", "b", "c"], &["d", "-"]),
            ("\\*", &["*"], &["a", "\\*", ""]),
            ("a\\", &["a\\"], &["a"]),
            ("[\\]]x", &["]x"], &["\\x", "x"]),
            ("[]", &[], &["", "]", "[]"]),
            ("[^]", &["a", "]"], &["", "ab"]),
            ("[^", &["a"], &["", "ab"]),
            ("[a", &["a"], &["b", "[a"]),
            ("[", &[], &["[", ""]),
            ("[a-]", &["a", "_", "]"], &["b", "-"]),
            ("[a-", &["a", "-"], &["b"]),
            ("[\\", &["\\"], &["a"]),
            ("*", &["", "a"], &[]),
            ("**", &["a", "abc"], &[""]),
            ("", &[""], &["a"]),
            ("a*b*c", &["abc", "axbxc", "abcbc"], &["ab", "acb"]),
            ("*[*]", &["*", "a*"], &["a"]),
        ] {
            for text in yes {
                assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
            for text in no {
                assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(60) + "b";
        assert!(!matches(pattern.as_bytes(), &[b'a'; 20_000]));
    }

    /// By trying every length for every star.
    fn tried_out(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|skipped| tried_out(rest, &text[skipped..]))
            }
            (_, [byte, after @ ..]) => one(pattern, *byte).is_some_and(|p| tried_out(p, after)),
            (_, []) => pattern.is_empty(),
        }
    }

    proptest! {
        #[test]
        fn trying_only_the_last_star_again_misses_nothing(
            pattern in "[ab?*\\[\\]^\\\\-]{0,10}", text in "[ab^\\[\\-]{1,8}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text), tried_out(pattern, text), "{:?}", pattern);
        }

        #[test]
        fn a_text_matches_itself_with_every_byte_escaped(text: Vec<u8>) {
            let escaped: Vec<u8> = text.iter().flat_map(|byte| [b'\\', *byte]).collect();
            prop_assert!(matches(&escaped, &text));
        }
    }
}
