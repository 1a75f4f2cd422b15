//! How two answers must compare.

use std::collections::BTreeSet;

use super::resp::Resp;

#[derive(Clone, Debug)]
pub(crate) enum Check {
    Exact,
    /// Equal elements, in any order.
    Unordered,
    /// Equal pairs, in any order.
    UnorderedPairs,
    /// Numbers that depend on the clock: as near as the two sides run to each other.
    Near(i64),
    /// Ours is the number of their elements.
    Length,
    /// All that our iteration found, against one reply of theirs.
    Scan {
        pairs: bool,
    },
    /// All members with scores that our iteration found, against one reply of theirs.
    ScanScores,
    /// Exact but for the sign of a score of zero.
    Scores,
    /// Ours was drawn from their whole collection.
    Sample {
        count: Option<i64>,
        /// The collection comes with values.
        pairs: bool,
        /// The sample too.
        with_values: bool,
    },
    /// Both are names of encodings of one type.
    Encoding,
    /// Both are a number above zero, or neither is.
    SomeNumber,
    /// There is no value: RESP3, which stores of other processes speak, has one form of that.
    NoValue,
    /// Done only for its effect.
    Nothing,
}

const ENCODINGS: [&[&str]; 5] = [
    &["int", "embstr", "raw"],
    &["listpack", "hashtable"],
    &["quicklist", "listpack"],
    &["intset", "hashtable", "listpack"],
    &["listpack", "skiplist"],
];

impl Check {
    /// How the replies of most commands compare.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "SMEMBERS" | "SINTER" | "SUNION" | "SDIFF" | "HKEYS" | "HVALS" | "KEYS" => {
                Self::Unordered
            }
            "HGETALL" => Self::UnorderedPairs,
            "TTL" | "EXPIRETIME" => Self::Near(10),
            "PTTL" | "PEXPIRETIME" => Self::Near(10_000),
            "MEMORY" => Self::SomeNumber,
            "OBJECT" => Self::Encoding,
            name if name.starts_with('Z') => Self::Scores,
            _ => Self::Exact,
        }
    }

    pub(crate) fn holds(&self, ours: &Resp, theirs: &Resp) -> bool {
        if ours.is_error() || theirs.is_error() {
            return ours == theirs || matches!(self, Self::Nothing);
        }
        match self {
            Self::Exact => ours == theirs,
            Self::NoValue => {
                matches!(theirs, Resp::Bulk(None) | Resp::Array(None) | Resp::Null)
            }
            Self::Unordered => {
                is_array(ours, theirs) && groups(ours.items(), 1) == groups(theirs.items(), 1)
            }
            Self::UnorderedPairs => {
                is_array(ours, theirs) && groups(ours.items(), 2) == groups(theirs.items(), 2)
            }
            Self::Near(most) => match (ours, theirs) {
                (Resp::Int(a), Resp::Int(b)) if *a > 0 && *b > 0 => {
                    a.abs_diff(*b) <= most.unsigned_abs()
                }
                _ => ours == theirs,
            },
            Self::Length => *ours == Resp::Int(i64::try_from(theirs.items().len()).unwrap()),
            Self::Scores => without_minus_zero(ours) == without_minus_zero(theirs),
            Self::ScanScores => {
                let theirs = theirs.items().get(1).map(Resp::items).unwrap_or_default();
                scored(ours.items()) == scored(theirs)
            }
            Self::Scan { pairs } => {
                let size = if *pairs { 2 } else { 1 };
                let theirs = theirs.items().get(1).map(Resp::items).unwrap_or_default();
                let distinct = |items| groups(items, size).into_iter().collect::<BTreeSet<_>>();
                ours.items().len().is_multiple_of(size)
                    && distinct(ours.items()) == distinct(theirs)
            }
            Self::Sample { count, pairs, with_values } => {
                is_sample(ours, theirs, *count, *pairs, *with_values)
            }
            Self::Encoding => match (ours.bytes(), theirs.bytes()) {
                (Some(a), Some(b)) => ENCODINGS.iter().any(|names| {
                    let has = |name: &[u8]| names.iter().any(|n| n.as_bytes() == name);
                    has(a) && has(b)
                }),
                _ => ours == theirs,
            },
            Self::SomeNumber => match (ours, theirs) {
                (Resp::Int(a), Resp::Int(b)) => *a > 0 && *b > 0,
                _ => ours == theirs,
            },
            Self::Nothing => true,
        }
    }
}

/// Whether both have elements, and are of one kind; or else are equal.
fn is_array(ours: &Resp, theirs: &Resp) -> bool {
    let has_items =
        |resp: &Resp| matches!(resp, Resp::Array(Some(_)) | Resp::Map(_) | Resp::Set(_));
    let same_kind = std::mem::discriminant(ours) == std::mem::discriminant(theirs);
    if has_items(ours) && has_items(theirs) { same_kind } else { ours == theirs }
}

/// Members with their scores as numbers.
fn scored(items: &[Resp]) -> BTreeSet<(Option<Vec<u8>>, String)> {
    let score = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    let pair = |pair: &[Resp]| {
        let number = pair.get(1).and_then(Resp::bytes).and_then(score).map(|n| n + 0.0);
        let member = pair.first().and_then(Resp::bytes);
        (member.map(<[u8]>::to_vec), format!("{number:?}"))
    };
    items.chunks(2).map(pair).collect()
}

fn without_minus_zero(reply: &Resp) -> Resp {
    let all = |items: &[Resp]| items.iter().map(without_minus_zero).collect();
    match reply {
        Resp::Bulk(Some(bytes)) if bytes == b"-0" => Resp::Bulk(Some(b"0".to_vec())),
        Resp::Double(text) if text == "-0" => Resp::Double("0".to_owned()),
        Resp::Array(Some(items)) => Resp::Array(Some(all(items))),
        Resp::Map(items) => Resp::Map(all(items)),
        Resp::Set(items) => Resp::Set(all(items)),
        other => other.clone(),
    }
}

/// The elements, `size` together, sorted.
fn groups(items: &[Resp], size: usize) -> Vec<&[Resp]> {
    let mut groups: Vec<_> = items.chunks(size).collect();
    groups.sort();
    groups
}

fn is_sample(
    ours: &Resp,
    theirs: &Resp,
    count: Option<i64>,
    pairs: bool,
    with_values: bool,
) -> bool {
    let plain = |reply: &Resp| without_minus_zero(&reply.without_pairs());
    let (ours, theirs) = (&plain(ours), &plain(theirs));
    let whole = theirs.items().chunks(if pairs { 2 } else { 1 });
    let whole: BTreeSet<&[Resp]> =
        whole.map(|group| if with_values { group } else { &group[..1] }).collect();
    let Some(count) = count else {
        return whole.contains(std::slice::from_ref(ours));
    };
    let drawn: Vec<_> = ours.items().chunks(if with_values { 2 } else { 1 }).collect();
    let distinct: BTreeSet<_> = drawn.iter().copied().collect();
    let expected = match usize::try_from(count) {
        Ok(count) => count.min(whole.len()),
        Err(_) => usize::try_from(count.unsigned_abs()).unwrap(),
    };
    let different = count < 0 || distinct.len() == drawn.len();
    drawn.len() == expected && different && distinct.iter().all(|group| whole.contains(group))
}

#[test]
fn a_sample_must_be_of_the_collection_and_as_large_as_asked() {
    let array = |texts: &[&str]| {
        Resp::Array(Some(texts.iter().map(|t| Resp::Bulk(Some(t.as_bytes().to_vec()))).collect()))
    };
    let whole = array(&["a", "b", "c"]);
    let holds = |drawn: &[&str], count| is_sample(&array(drawn), &whole, Some(count), false, false);
    assert!(holds(&["a", "c"], 2) && holds(&["a", "a"], -2) && holds(&["c", "a", "b"], 9));
    assert!(!holds(&["a", "a"], 2) && !holds(&["a"], 2) && !holds(&["a", "x"], 2));
    assert!(!holds(&["a", "b", "c"], -4));
}
