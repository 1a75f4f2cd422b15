//! Guesses the intended name behind a misspelt one.

/// The candidate with the smallest edit distance to `name`, if it is small enough for a typo: a
/// third of the letters, at least two.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // A very long name is no typo, and the distance is quadratic.
    if name.len() > 64 {
        return None;
    }
    let limit = (name.len() / 3).max(2);
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, _)| distance <= limit)
        .map(|(_, candidate)| candidate)
}

/// The Levenshtein distance: the insertions, deletions and replacements of bytes that turn `a` into
/// `b`. It keeps one row of the matrix; `diagonal` is the value up and to the left.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let above = *cell;
            left = (left + 1).min(above + 1).min(diagonal + usize::from(x != y));
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letter_changes() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("flaw", "lawn"), 2);
        assert_eq!(distance("sync", "sync"), 0);
    }

    #[test]
    fn only_a_close_name_is_suggested() {
        let names = || ["sync", "read_only", "compression"].into_iter();
        assert_eq!(nearest("compresion", names()), Some("compression"));
        assert_eq!(nearest("readonly", names()), Some("read_only"));
        assert_eq!(nearest("timeout", names()), None);
        assert_eq!(nearest(&"s".repeat(1000), names()), None);
    }
}
