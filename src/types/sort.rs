//! SORT: the elements of a list, set or sorted set, by themselves or by other keys.
//!
//! A pattern names a key for each element: its first `*` stands for the element, and `->field`
//! after it for a field of the hash there. A key that is missing, or of another type, has no value:
//! it sorts as 0 or before all text, and is returned as nil.
//!
//! The elements and their sort keys are held in memory; a stored result is not: see
//! `collection_builder`.

use std::cmp::Ordering;

use bytes::Bytes;

use crate::encoding::meta::Type;
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::errors::wrong_type;
use crate::txn::db::commands;
use crate::txn::{Record, Tx, Walk};
use crate::types::list::Side;
use crate::types::number::parse_float;

/// What the elements are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy<'a> {
    /// By themselves.
    #[default]
    Elements,
    /// The values that this pattern names. A pattern without `*` names nothing: the elements keep
    /// their order.
    Pattern(&'a [u8]),
}

/// The options of SORT.
#[derive(Clone, Debug)]
pub struct SortOptions<'a> {
    /// What the elements are sorted by.
    pub by: SortBy<'a>,
    /// The patterns of the values to return for each element, `#` for the element itself; empty:
    /// the element itself.
    pub get: Vec<&'a [u8]>,
    /// The elements to return: how many to skip and how many follow; negative: all.
    pub limit: (i64, i64),
    /// Compare as text instead of numbers.
    pub alpha: bool,
    /// Return the largest element first.
    pub descending: bool,
}

impl Default for SortOptions<'_> {
    fn default() -> Self {
        let limit = (0, -1);
        Self { by: SortBy::Elements, get: Vec::new(), limit, alpha: false, descending: false }
    }
}

commands! {
    /// SORT: the elements of a list, set or sorted set in order, or what the GET patterns name for
    /// each.
    read fn sort(key: &[u8], options: &SortOptions<'_>) -> Vec<Option<Bytes>>;
    /// SORT with STORE: makes the result a list at `to`; its length. Waits until no other write is
    /// running.
    alone fn sort_store(key: &[u8], options: &SortOptions<'_>, to: &[u8]) -> i64;
}

/// The sort key of an element.
#[derive(Clone, Debug)]
enum Weight {
    Number(f64),
    Text(Option<Bytes>),
}

impl Tx<'_> {
    pub(crate) fn sort(&self, key: &[u8], options: &SortOptions<'_>) -> Result<Vec<Option<Bytes>>> {
        let mut shown = Vec::new();
        for element in self.elements_for(key, options, false)? {
            self.each_shown(element, options, |value| {
                shown.push(value);
                Ok(())
            })?;
        }
        Ok(shown)
    }

    pub(crate) fn sort_store(
        &mut self,
        key: &[u8],
        options: &SortOptions<'_>,
        to: &[u8],
    ) -> Result<i64> {
        let elements = self.as_read(|tx| tx.elements_for(key, options, true))?;
        let mut list = self.build_list(to)?;
        for element in elements {
            self.each_shown(element, options, |shown| list.push(self, &shown.unwrap_or_default()))?;
        }
        self.store_list(to, list)
    }

    /// The elements in the order asked for, within the limit.
    fn elements_for(
        &self,
        key: &[u8],
        options: &SortOptions<'_>,
        store: bool,
    ) -> Result<Vec<Bytes>> {
        let Some(record) = self.record(key)? else { return Ok(Vec::new()) };
        if !matches!(record.header.kind, Type::List | Type::Set | Type::ZSet) {
            return Err(wrong_type());
        }
        let unsorted = matches!(options.by, SortBy::Pattern(pattern) if !pattern.contains(&b'*'));
        if unsorted && store && record.header.kind == Type::Set {
            // A stored result must not depend on an undefined order.
            let by_text = SortOptions { by: SortBy::Elements, alpha: true, ..options.clone() };
            self.sorted(key, &record, &by_text)
        } else if unsorted {
            self.in_stored_order(key, &record, options)
        } else {
            self.sorted(key, &record, options)
        }
    }

    /// Calls `show` with each value to return for an element.
    fn each_shown(
        &self,
        element: Bytes,
        options: &SortOptions<'_>,
        mut show: impl FnMut(Option<Bytes>) -> Result<()>,
    ) -> Result<()> {
        if options.get.is_empty() {
            return show(Some(element));
        }
        options.get.iter().try_for_each(|pattern| show(self.named(pattern, &element)?))
    }

    fn sorted(&self, key: &[u8], record: &Record, options: &SortOptions<'_>) -> Result<Vec<Bytes>> {
        let all = SortOptions { limit: (0, -1), descending: false, ..options.clone() };
        let elements = self.in_stored_order(key, record, &all)?;
        let mut weighed = Vec::with_capacity(elements.len());
        for element in elements {
            weighed.push((self.weight(&element, options)?, element));
        }
        weighed.sort_by(|a, b| {
            let order = compare(a, b);
            if options.descending { order.reverse() } else { order }
        });
        let (skip, take) = clamp(options.limit);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let take = usize::try_from(take).unwrap_or(usize::MAX);
        Ok(weighed.into_iter().skip(skip).take(take).map(|(_, element)| element).collect())
    }

    /// The elements within the limit, in the order of the list or the scores, or reversed.
    fn in_stored_order(
        &self,
        key: &[u8],
        record: &Record,
        options: &SortOptions<'_>,
    ) -> Result<Vec<Bytes>> {
        let (skip, take) = clamp(options.limit);
        let backward = options.descending;
        if record.header.kind == Type::List {
            let Some(list) = self.list(key)? else { return Ok(Vec::new()) };
            let first = skip.min(list.len());
            let end = first.saturating_add(take).min(list.len());
            return match backward {
                false => list.walk(self, first..end, Side::Left)?.collect(),
                true => {
                    let from_back = list.len() - end..list.len() - first;
                    list.walk(self, from_back, Side::Right)?.collect()
                }
            };
        }
        let kind = record.header.kind;
        let Some(collection) = self.collection(key, kind)? else { return Ok(Vec::new()) };
        if kind == Type::ZSet {
            let walk = collection.walk_scores(self, b"", None, backward)?;
            return collect(walk, (skip, take), |walk| {
                let scored = collection.sub_key(walk.key());
                Bytes::copy_from_slice(scored.get(8..).unwrap_or_default())
            });
        }
        let walk = collection.walk(self)?;
        collect(walk, (skip, take), |walk| Bytes::copy_from_slice(collection.sub_key(walk.key())))
    }

    fn weight(&self, element: &Bytes, options: &SortOptions<'_>) -> Result<Weight> {
        let value = match options.by {
            SortBy::Elements => Some(element.clone()),
            SortBy::Pattern(pattern) => self.named(pattern, element)?,
        };
        if options.alpha {
            return Ok(Weight::Text(value));
        }
        value.map_or(Ok(Weight::Number(0.0)), |value| weigh(&value).map(Weight::Number))
    }

    /// The value that the pattern names for this element.
    fn named(&self, pattern: &[u8], element: &Bytes) -> Result<Option<Bytes>> {
        if pattern == b"#" {
            return Ok(Some(element.clone()));
        }
        let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return Ok(None) };
        let (before, after) = pattern.split_at_checked(star).unwrap_or_default();
        let after = after.get(1..).unwrap_or_default();
        let arrow = after.windows(2).position(|two| two == b"->");
        // An arrow at the end is a part of the name.
        let arrow = arrow.filter(|at| at + 2 < after.len());
        let (after, field) = match arrow.and_then(|at| after.split_at_checked(at)) {
            Some((after, field)) => (after, field.get(2..)),
            None => (after, None),
        };
        let key = [before, &element[..], after].concat();
        let Some(record) = self.record(&key)? else { return Ok(None) };
        match (field, record.header.kind) {
            (None, Type::String) => self.value_of(&key, record).map(Some),
            (Some(field), Type::Hash) => match self.collection(&key, Type::Hash)? {
                Some(hash) => hash.get(self, field),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}

/// How many elements to skip and how many follow.
fn clamp((skip, take): (i64, i64)) -> (u64, u64) {
    (u64::try_from(skip).unwrap_or(0), u64::try_from(take).unwrap_or(u64::MAX))
}

fn collect(
    mut walk: Walk,
    (skip, take): (u64, u64),
    element: impl Fn(&Walk) -> Bytes,
) -> Result<Vec<Bytes>> {
    let mut elements = Vec::new();
    for _ in 0..skip {
        if !walk.advance()? {
            return Ok(elements);
        }
    }
    while (elements.len() as u64) < take && walk.advance()? {
        elements.push(element(&walk));
    }
    Ok(elements)
}

/// Compares two elements. Equal numbers are ordered by the elements; a missing text sorts before
/// all text.
fn compare(a: &(Weight, Bytes), b: &(Weight, Bytes)) -> Ordering {
    match (&a.0, &b.0) {
        (Weight::Number(x), Weight::Number(y)) => {
            x.partial_cmp(y).unwrap_or(Ordering::Equal).then_with(|| a.1.cmp(&b.1))
        }
        (Weight::Text(x), Weight::Text(y)) => x.cmp(y),
        _ => Ordering::Equal,
    }
}

/// Parses a number as C's `strtod` does with a C string: leading space is skipped, a zero byte ends
/// it, the empty text is 0, and what no double can hold is an error.
fn weigh(text: &[u8]) -> Result<f64> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    let text = text.get(..end).unwrap_or_default();
    if text.is_empty() {
        return Ok(0.0);
    }
    let space = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let text = text.get(space..).unwrap_or_default();
    let parsed = parse_float(text).ok();
    parsed.filter(|value| is_exact_enough(*value, text)).ok_or_else(|| {
        Error::new(ErrorKind::NotFloat, "ERR One or more scores can't be converted into double")
    })
}

/// Whether a double can hold the number: it became neither infinite nor 0 nor subnormal.
fn is_exact_enough(value: f64, text: &[u8]) -> bool {
    let digit = |byte: &u8| byte.is_ascii_digit();
    if value.is_infinite() {
        return !text.iter().any(digit);
    }
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E' | b'p' | b'P')).next();
    let is_zero = !mantissa.unwrap_or_default().iter().any(|byte| matches!(byte, b'1'..=b'9'));
    value.is_normal() || is_zero
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::keys::score_key;
    use crate::keyspace::trees::SCORE;
    use crate::txn::Db;
    use crate::types::testing::unpacked;

    fn db_with(elements: &[&str]) -> Db {
        let db = Db::open(":memory:", unpacked()).unwrap();
        let elements: Vec<&[u8]> = elements.iter().map(|e| e.as_bytes()).collect();
        db.rpush(b"l", &elements).unwrap();
        db
    }

    fn texts(values: Vec<Option<Bytes>>) -> Vec<String> {
        let text = |value: Bytes| String::from_utf8(value.to_vec()).unwrap();
        values.into_iter().map(|value| value.map_or_else(|| "nil".into(), text)).collect()
    }

    fn sorted(db: &Db, options: &SortOptions<'_>) -> Vec<String> {
        texts(db.sort(b"l", options).unwrap())
    }

    fn options<'a>() -> SortOptions<'a> {
        SortOptions::default()
    }

    #[test]
    fn elements_sort_as_numbers_or_as_text() {
        let db = db_with(&["3", "10", "1", "2"]);
        assert_eq!(sorted(&db, &options()), ["1", "2", "3", "10"]);
        let alpha = SortOptions { alpha: true, descending: true, ..options() };
        assert_eq!(sorted(&db, &alpha), ["3", "2", "10", "1"]);
        for (limit, expected) in [
            ((1, 2), &["2", "3"][..]),
            ((-5, 2), &["1", "2"]),
            ((9, 2), &[]),
            ((1, -1), &["2", "3", "10"]),
            ((2, 0), &[]),
            ((i64::MAX, i64::MAX), &[]),
        ] {
            assert_eq!(sorted(&db, &SortOptions { limit, ..options() }), expected, "{limit:?}");
        }
    }

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (text, value) in [
            ("", 0.0),
            (" 5", 5.0),
            ("0x10", 16.0),
            ("5\0x", 5.0),
            ("-inf", f64::NEG_INFINITY),
            ("0e9", 0.0),
        ] {
            assert_eq!(weigh(text.as_bytes()).unwrap(), value, "{text:?}");
        }
        for text in [" ", "5 ", "a", "nan", "1e999", "1e-999", "1e-310"] {
            assert!(weigh(text.as_bytes()).is_err(), "{text:?}");
        }
        let message = "ERR One or more scores can't be converted into double";
        assert_eq!(db_with(&["a"]).sort(b"l", &options()).unwrap_err().message(), message);
    }

    #[test]
    fn patterns_name_strings_and_fields() {
        let db = db_with(&["a", "b", "c"]);
        for (key, value) in [(b"w:a", b"3"), (b"w:b", b"1"), (b"n:a", b"A")] {
            db.set(key, value).unwrap();
        }
        db.write(&[b"h:b"], |tx| {
            let mut hash = tx.collection_or_new(b"h:b", Type::Hash)?;
            hash.put(tx, b"f", &b"field"[..])?;
            tx.save(hash)
        })
        .unwrap();
        let by = SortOptions { by: SortBy::Pattern(b"w:*"), ..options() };
        assert_eq!(sorted(&db, &by), ["c", "b", "a"], "a missing weight is 0");
        let get = vec![&b"#"[..], b"n:*", b"h:*->f", b"h:*", b"w:*->f", b"nothing"];
        let shown = sorted(&db, &SortOptions { get: get.clone(), ..by.clone() });
        assert_eq!(shown[6..12], ["b", "nil", "field", "nil", "nil", "nil"]);
        assert_eq!(shown[12..14], ["a", "A"]);
        let alpha = SortOptions { alpha: true, by: SortBy::Pattern(b"n:*"), ..options() };
        assert_eq!(sorted(&db, &alpha), ["b", "c", "a"], "no text comes first");
        assert_eq!(db.sort_store(b"l", &SortOptions { get, ..by }, b"to").unwrap(), 18);
        let stored = SortOptions { by: SortBy::Pattern(b"nosort"), ..options() };
        let stored = texts(db.sort(b"to", &stored).unwrap());
        assert_eq!(stored[6..9], ["b", "", "field"], "nil is stored as nothing");
    }

    #[test]
    fn without_sorting_lists_and_sorted_sets_keep_their_order() {
        let db = db_with(&["3", "1", "2", "10"]);
        let unsorted = SortOptions { by: SortBy::Pattern(b"nosort"), ..options() };
        assert_eq!(sorted(&db, &unsorted), ["3", "1", "2", "10"]);
        let back = SortOptions { descending: true, limit: (1, 2), ..unsorted.clone() };
        assert_eq!(sorted(&db, &back), ["2", "1"]);
        assert_eq!(sorted(&db, &SortOptions { limit: (2, 100), ..unsorted.clone() }), ["2", "10"]);
        db.write(&[b"l"], |tx| {
            let mut zset = tx.new_collection(b"l", Type::ZSet)?;
            for (member, score) in [(b"a", 3.0), (b"b", 1.0), (b"c", 2.0)] {
                zset.put(tx, member, Vec::new())?;
                tx.put_row(SCORE, &score_key(zset.prefix(), score, member), Vec::new());
            }
            tx.save(zset)
        })
        .unwrap();
        assert_eq!(sorted(&db, &unsorted), ["b", "c", "a"]);
        assert_eq!(sorted(&db, &back), ["c", "b"]);
    }

    #[test]
    fn an_empty_result_deletes_the_destination_and_may_be_the_source() {
        let db = db_with(&["2", "1"]);
        assert_eq!(db.sort_store(b"l", &options(), b"l").unwrap(), 2);
        db.set(b"to", b"v").unwrap();
        assert_eq!(db.sort_store(b"none", &options(), b"to").unwrap(), 0);
        assert_eq!(db.exists(&[b"to", b"l"]).unwrap(), 1);
        db.set(b"s", b"v").unwrap();
        assert!(db.sort(b"s", &options()).is_err());
    }
}
