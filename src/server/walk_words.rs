//! Walks over keys in words: how a process that shares a store asks the holder for one, and what
//! comes back.
//!
//! A range is a sequence of REVERSE, VALUES, NOFILL, LO key, HI key, PREFIX key and TYPE number. A page
//! is an array with key, number of the type and value of each entry in turn; the value is nil if it
//! was not asked for, or the key is no string. A page may be empty; after the last entry it is nil.

use bytes::Bytes;

use crate::commands::{Head, Reply, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{CacheFill, KeyEntry, KeyRange, Type};

/// The types by their numbers.
const TYPES: [Type; 5] = [Type::String, Type::Hash, Type::List, Type::Set, Type::ZSet];

/// The words of a range.
pub(crate) fn words_of(range: &KeyRange) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let skips = !range.cache_fill.fills();
    for (is_set, word) in [(range.reverse, "REVERSE"), (range.values, "VALUES"), (skips, "NOFILL")]
    {
        words.extend(is_set.then(|| word.into()));
    }
    let kind = range.kind.map(|kind| number_of(kind).to_string().into_bytes());
    for (word, value) in
        [("LO", &range.lo), ("HI", &range.hi), ("PREFIX", &range.prefix), ("TYPE", &kind)]
    {
        words.extend(value.iter().flat_map(|value| [word.into(), value.clone()]));
    }
    words
}

/// The range of words.
pub(crate) fn range_of(words: &[&[u8]]) -> Result<KeyRange> {
    let wrong = || Error::new(ErrorKind::Invalid, "the words are no range of keys");
    let mut range = KeyRange::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            b"REVERSE" => range.reverse = true,
            b"VALUES" => range.values = true,
            b"NOFILL" => range.cache_fill = CacheFill::skip_if(true),
            named => {
                let value = words.next().ok_or_else(wrong)?.to_vec();
                match named {
                    b"LO" => range.lo = Some(value),
                    b"HI" => range.hi = Some(value),
                    b"PREFIX" => range.prefix = Some(value),
                    b"TYPE" => range.kind = Some(type_of(&value).ok_or_else(wrong)?),
                    _ => return Err(wrong()),
                }
            }
        }
    }
    Ok(range)
}

/// Writes a page; `None` is the end.
pub(crate) fn write_page(page: Option<Vec<KeyEntry>>, sink: &mut dyn ReplySink) {
    let Some(entries) = page else { return sink.nil() };
    sink.head(Head::Array, 3 * entries.len());
    for entry in entries {
        sink.shared_bulk(entry.key);
        sink.integer(number_of(entry.kind));
        match entry.value {
            Some(value) => sink.shared_bulk(value),
            None => sink.nil(),
        }
    }
}

/// The entries of a page; `None` if it is something else.
pub(crate) fn entries_of(page: Reply) -> Option<Vec<KeyEntry>> {
    let Reply::Array(parts) = page else { return None };
    let mut entries = Vec::with_capacity(parts.len() / 3);
    let mut parts = parts.into_iter();
    while let Some(key) = parts.next() {
        let Reply::Bulk(key) = key else { return None };
        let Reply::Int(number) = parts.next()? else { return None };
        let value: Option<Bytes> = match parts.next()? {
            Reply::Bulk(value) => Some(value),
            Reply::Nil => None,
            _ => return None,
        };
        let kind = TYPES.get(usize::try_from(number).ok()?).copied()?;
        entries.push(KeyEntry { key, kind, value });
    }
    Some(entries)
}

fn number_of(kind: Type) -> i64 {
    match kind {
        Type::String => 0,
        Type::Hash => 1,
        Type::List => 2,
        Type::Set => 3,
        Type::ZSet => 4,
    }
}

fn type_of(word: &[u8]) -> Option<Type> {
    TYPES.get(std::str::from_utf8(word).ok()?.parse::<usize>().ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ReplyBuilder;

    #[test]
    fn ranges_and_pages_read_back_and_what_is_none_is_refused() {
        let full = KeyRange {
            lo: Some(b"REVERSE".to_vec()),
            hi: Some(Vec::new()),
            prefix: Some(b"\0\xff".to_vec()),
            reverse: true,
            kind: Some(Type::ZSet),
            values: true,
            cache_fill: CacheFill::skip_if(true),
        };
        for range in [KeyRange::default(), full] {
            let words = words_of(&range);
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            assert_eq!(format!("{:?}", range_of(&words).unwrap()), format!("{range:?}"));
        }
        let no_ranges: [&[&[u8]]; 5] =
            [&[b"LO"], &[b"lo", b"x"], &[b"TYPE", b"5"], &[b"TYPE", b"-1"], &[b"", b""]];
        for words in no_ranges {
            assert_eq!(range_of(words).unwrap_err().kind(), ErrorKind::Invalid);
        }
        let entries: Vec<KeyEntry> = TYPES
            .into_iter()
            .map(|kind| {
                let value = (kind == Type::String).then(|| Bytes::from_static(b"value"));
                KeyEntry { key: Bytes::from_static(b"key"), kind, value }
            })
            .collect();
        let written = |page: Option<Vec<KeyEntry>>| {
            ReplyBuilder::collect(|sink| {
                write_page(page, sink);
                Result::Ok(())
            })
        };
        assert_eq!(entries_of(written(Some(entries.clone())).unwrap()).unwrap(), entries);
        assert_eq!(entries_of(written(Some(Vec::new())).unwrap()).unwrap(), []);
        assert_eq!(written(None).unwrap(), Reply::Nil);
        let key = || Reply::Bulk("k".into());
        for page in [
            Reply::Nil,
            Reply::Array(vec![key()]),
            Reply::Array(vec![key(), Reply::Int(5), Reply::Nil]),
            Reply::Array(vec![key(), Reply::Int(-1), Reply::Nil]),
            Reply::Array(vec![Reply::Int(0), Reply::Int(0), Reply::Nil]),
            Reply::Array(vec![key(), Reply::Int(0), Reply::Int(0)]),
        ] {
            assert!(entries_of(page).is_none());
        }
    }
}
