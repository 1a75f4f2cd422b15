//! SCAN, HSCAN, SSCAN, ZSCAN: walks in byte order, a few rows per call.
//!
//! The cursor is the bytes of the element at or after which the next call continues; it is empty at
//! the beginning and at the end. So whatever exists during the whole scan is returned exactly once,
//! whatever else comes and goes. For clients of Redis it is a number: `keyspace::scan_cursors`.

use bytes::Bytes;

use crate::encoding::glob;
use crate::encoding::meta::Type;
use crate::error::Result;
use crate::keyspace::scan_cursors::{Gap, NumberedEnd};
use crate::txn::db::commands;
use crate::txn::{Tx, Walk};
use crate::types::databases::user_key;
use crate::types::scores::stored_score;

/// The cursor for the next call, and the elements of this one.
pub type Page<T> = (Vec<u8>, Vec<T>);

/// What a scan looks for, and how far it goes in one call.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions<'a> {
    /// Only elements that match this pattern.
    pub pattern: Option<&'a [u8]>,
    /// The number of elements looked at per call, at least one. More may exist after a call that
    /// found none.
    pub count: u64,
    /// Only keys of this type. Only SCAN uses it.
    pub kind: Option<Type>,
}

impl Default for ScanOptions<'_> {
    fn default() -> Self {
        Self { pattern: None, count: 10, kind: None }
    }
}

impl ScanOptions<'_> {
    fn wants(&self, element: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, element))
    }
}

commands! {
    /// SCAN: some keys from the cursor on, and the cursor for the next call. An empty cursor means
    /// the beginning, and in the result the end.
    read fn scan(cursor: &[u8], options: &ScanOptions<'_>) -> Page<Bytes>;
    /// HSCAN: some fields of a hash with their values, with cursors as in `scan`.
    read fn hscan(key: &[u8], cursor: &[u8], options: &ScanOptions<'_>) -> Page<(Bytes, Bytes)>;
    /// SSCAN: some members of a set, with cursors as in `scan`.
    read fn sscan(key: &[u8], cursor: &[u8], options: &ScanOptions<'_>) -> Page<Bytes>;
    /// ZSCAN: some members of a sorted set with their scores, in byte order of the members, with
    /// cursors as in `scan`.
    read fn zscan(key: &[u8], cursor: &[u8], options: &ScanOptions<'_>) -> Page<(Bytes, f64)>;
}

/// Decides where a page ends.
trait PageEnd {
    /// How many rows the page has at least, if `count` were asked for.
    fn rows(&self, count: u64) -> u64;
    /// Whether the page ends in this gap.
    fn ends(&mut self, gap: Gap<'_>) -> bool;
    /// How many elements the page keeps.
    fn kept(&self) -> usize;
}

/// Ends as soon as it may, and remembers where.
#[derive(Default)]
struct AtOnce(Vec<u8>);

impl PageEnd for AtOnce {
    fn rows(&self, count: u64) -> u64 {
        count
    }

    fn ends(&mut self, gap: Gap<'_>) -> bool {
        self.0 = gap.next.to_vec();
        true
    }

    fn kept(&self) -> usize {
        usize::MAX
    }
}

impl PageEnd for NumberedEnd<'_> {
    fn rows(&self, count: u64) -> u64 {
        NumberedEnd::rows(self, count)
    }

    fn ends(&mut self, gap: Gap<'_>) -> bool {
        NumberedEnd::ends(self, gap)
    }

    fn kept(&self) -> usize {
        self.number().1
    }
}

/// Takes from the rows of a page what `take` makes of them. Positions are the keys of rows from
/// `skip` on.
fn walk_page<T>(
    walk: &mut Walk,
    count: u64,
    skip: usize,
    end: &mut impl PageEnd,
    mut take: impl FnMut(&Walk) -> Result<Option<T>>,
) -> Result<Vec<T>> {
    let (mut found, mut last, mut row_bytes) = (Vec::new(), Vec::new(), 0);
    let mut left = end.rows(count.max(1));
    while walk.advance()? {
        let next = walk.key().get(skip..).unwrap_or_default();
        if left == 0 && end.ends(Gap { last: &last, next, row_bytes, taken: found.len() }) {
            break;
        }
        left = left.saturating_sub(1);
        if left == 0 {
            last.clear();
            last.extend_from_slice(next);
            row_bytes = last.len() + walk.value().len();
        }
        found.extend(take(walk)?);
    }
    found.truncate(end.kept());
    Ok(found)
}

impl Tx<'_> {
    pub(crate) fn scan(&self, cursor: &[u8], options: &ScanOptions<'_>) -> Result<Page<Bytes>> {
        let mut end = AtOnce::default();
        let found = self.scan_keys(cursor, options, &mut end)?;
        Ok((end.0, found))
    }

    pub(crate) fn hscan(
        &self,
        key: &[u8],
        cursor: &[u8],
        options: &ScanOptions<'_>,
    ) -> Result<Page<(Bytes, Bytes)>> {
        let mut end = AtOnce::default();
        let found = self.scan_members(key, Type::Hash, cursor, options, &mut end)?;
        Ok((end.0, found))
    }

    pub(crate) fn sscan(
        &self,
        key: &[u8],
        cursor: &[u8],
        options: &ScanOptions<'_>,
    ) -> Result<Page<Bytes>> {
        let mut end = AtOnce::default();
        let found = self.scan_members(key, Type::Set, cursor, options, &mut end)?;
        Ok((end.0, found.into_iter().map(|(member, _)| member).collect()))
    }

    pub(crate) fn zscan(
        &self,
        key: &[u8],
        cursor: &[u8],
        options: &ScanOptions<'_>,
    ) -> Result<Page<(Bytes, f64)>> {
        let mut end = AtOnce::default();
        let found = self.scan_members(key, Type::ZSet, cursor, options, &mut end)?;
        let scored = found.into_iter().map(|(member, score)| Ok((member, stored_score(&score)?)));
        Ok((end.0, scored.collect::<Result<_>>()?))
    }

    /// SCAN by number.
    pub(crate) fn scan_numbered(
        &self,
        number: u64,
        options: &ScanOptions<'_>,
    ) -> Result<(u64, Vec<Bytes>)> {
        let (position, mut end) = self.store().cursors().resume(number);
        let found = self.scan_keys(&position, options, &mut end)?;
        Ok((end.number().0, found))
    }

    /// HSCAN, SSCAN or ZSCAN by number: members with what is stored beside them.
    pub(crate) fn scan_members_numbered(
        &self,
        key: &[u8],
        kind: Type,
        number: u64,
        options: &ScanOptions<'_>,
    ) -> Result<(u64, Vec<(Bytes, Bytes)>)> {
        let (position, mut end) = self.store().cursors().resume(number);
        let found = self.scan_members(key, kind, &position, options, &mut end)?;
        Ok((end.number().0, found))
    }

    fn scan_keys(
        &self,
        position: &[u8],
        options: &ScanOptions<'_>,
        end: &mut impl PageEnd,
    ) -> Result<Vec<Bytes>> {
        let mut walk = self.records(position, false)?;
        let skip = self.space().to_bytes().len();
        walk_page(&mut walk, options.count, skip, end, |walk| {
            let key = user_key(walk);
            if options.wants(key)
                && let Some(header) = self.live_header(walk)?
                && options.kind.is_none_or(|kind| kind == header.kind)
            {
                return Ok(Some(Bytes::copy_from_slice(key)));
            }
            Ok(None)
        })
    }

    fn scan_members(
        &self,
        key: &[u8],
        kind: Type,
        position: &[u8],
        options: &ScanOptions<'_>,
        end: &mut impl PageEnd,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let Some(collection) = self.collection(key, kind)? else { return Ok(Vec::new()) };
        let mut walk = collection.walk_from(self, position, false)?;
        let skip = collection.prefix().len();
        walk_page(&mut walk, options.count, skip, end, |walk| {
            let member = collection.sub_key(walk.key());
            let wanted = options.wants(member);
            Ok(wanted.then(|| (Bytes::copy_from_slice(member), walk.value_bytes())))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::options::Options;
    use crate::txn::Db;
    use crate::types::testing::both;

    fn db() -> Db {
        Db::open(":memory:", Options::default()).unwrap()
    }

    fn scan_all(db: &Db, options: &ScanOptions<'_>) -> Vec<Bytes> {
        let (mut cursor, mut all) = (Vec::new(), Vec::new());
        loop {
            let (next, found) = db.scan(&cursor, options).unwrap();
            all.extend(found);
            if next.is_empty() {
                return all;
            }
            assert!(next > cursor, "a scan that does not get on");
            cursor = next;
        }
    }

    #[test]
    fn the_empty_key_is_a_key_like_any_other() {
        let db = db();
        for key in [&b""[..], b"\0", b"a"] {
            db.set(key, b"v").unwrap();
        }
        let options = ScanOptions { count: 1, ..ScanOptions::default() };
        assert_eq!(scan_all(&db, &options), [&b""[..], b"\0", b"a"]);
        assert_eq!(scan_all(&db.select(1).unwrap(), &options), [""; 0]);
    }

    #[test]
    fn a_call_visits_no_more_than_its_count_and_filters_by_pattern_and_type() {
        let db = db();
        for n in 0..30 {
            db.set(format!("k{n:02}").as_bytes(), b"v").unwrap();
        }
        let pattern = ScanOptions { pattern: Some(b"k2*"), count: 10, kind: None };
        let (next, found) = db.scan(b"", &pattern).unwrap();
        assert_eq!((next, found.len()), (b"k10".to_vec(), 0));
        assert_eq!(scan_all(&db, &pattern).len(), 10);
        let hashes = ScanOptions { kind: Some(Type::Hash), ..ScanOptions::default() };
        assert_eq!(scan_all(&db, &hashes).len(), 0);
    }

    #[test]
    fn members_are_scanned_in_their_order_with_what_is_beside_them() {
        for db in both() {
            db.write(&[b"h", b"z"], |tx| {
                for (key, kind) in [(b"h", Type::Hash), (b"z", Type::ZSet)] {
                    let mut collection = tx.new_collection(key, kind)?;
                    for n in 0..25u8 {
                        let value = f64::from(n).to_bits().to_le_bytes();
                        collection.put(tx, format!("m{n:02}").as_bytes(), value.to_vec())?;
                    }
                    tx.save(collection)?;
                }
                Ok(())
            })
            .unwrap();
            let options = ScanOptions::default();
            let (next, first) = db.zscan(b"z", b"", &options).unwrap();
            assert_eq!((&next[..], first.len()), (&b"m10"[..], 10));
            assert_eq!(first[3], (Bytes::from("m03"), 3.0));
            let (next, rest) = db.hscan(b"h", b"m20", &options).unwrap();
            assert_eq!((next.len(), rest.len()), (0, 5));
            assert!(db.sscan(b"h", b"", &options).is_err());
            assert_eq!(db.sscan(b"none", b"", &options).unwrap(), (vec![], vec![]));
        }
    }

    proptest! {
        /// Keys named `stay` are there all the time; the others come and go between calls.
        #[test]
        fn what_is_there_during_the_whole_scan_is_returned_exactly_once(
            staying in prop::collection::btree_set(0u16..500, 0..60),
            changes in prop::collection::vec((0u16..500, any::<bool>()), 0..60),
            count in 1u64..9,
        ) {
            let db = db();
            for n in &staying {
                db.set(format!("{n:03}stay").as_bytes(), b"v").unwrap();
            }
            let options = ScanOptions { count, ..ScanOptions::default() };
            let (mut cursor, mut seen) = (Vec::new(), BTreeMap::new());
            let mut changes = changes.iter();
            loop {
                let (next, found) = db.scan(&cursor, &options).unwrap();
                for key in found {
                    *seen.entry(key).or_insert(0) += 1;
                }
                if next.is_empty() {
                    break;
                }
                cursor = next;
                if let Some((n, set)) = changes.next() {
                    let key = format!("{n:03}");
                    if *set { db.set(key.as_bytes(), b"v").unwrap() }
                    else { db.del(&[key.as_bytes()]).map(|_| ()).unwrap() }
                }
            }
            prop_assert!(seen.values().all(|times| *times == 1));
            let stayed = seen.keys().filter(|key| key.ends_with(b"stay")).count();
            prop_assert_eq!(stayed, staying.len());
            prop_assert_eq!(db.check().unwrap(), Vec::<String>::new());
        }
    }
}
