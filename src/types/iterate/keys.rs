//! Iterators over keys in byte order.

use std::sync::Arc;

use bytes::Bytes;

use super::{Progress, chunk};
use crate::encoding::chunked::StringBody;
use crate::encoding::keys::{MetaKey, Space, after_prefix, meta_key};
use crate::encoding::meta::{Header, Type};
use crate::engine::CacheFill;
use crate::error::Result;
use crate::keyspace::errors::malformed;
use crate::keyspace::trees::META;
use crate::txn::Db;
use crate::txn::store::Store;
use crate::txn::{FrozenRows, Tx, Walk};
use crate::types::databases::user_key;
use crate::types::string::chunks::ChunkedString;

/// Which keys to iterate over. The default is all keys in order, without values.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// The smallest key.
    pub lo: Option<Vec<u8>>,
    /// The first key that is not in the range.
    pub hi: Option<Vec<u8>>,
    /// The prefix of all keys.
    pub prefix: Option<Vec<u8>>,
    /// Iterate from the last key to the first.
    pub reverse: bool,
    /// Only keys of this type.
    pub kind: Option<Type>,
    /// Return the values of strings, too.
    pub values: bool,
    /// Leave the block cache as it is: for a walk that is not repeated.
    pub cache_fill: CacheFill,
}

impl KeyRange {
    /// The bounds of the range in the meta tree.
    fn bounds(&self, space: Space) -> (MetaKey, Option<Vec<u8>>) {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let lower = meta_key(space, prefix.max(self.lo.as_deref().unwrap_or_default()));
        let hi = self.hi.as_deref().map(|hi| meta_key(space, hi).to_vec());
        let upper = [hi, after_prefix(&meta_key(space, prefix))].into_iter().flatten().min();
        (lower, upper)
    }
}

/// A key that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEntry {
    /// The key.
    pub key: Bytes,
    /// The type of the key.
    pub kind: Type,
    /// The value of a string, if [`KeyRange::values`] asked for it.
    pub value: Option<Bytes>,
}

impl KeyEntry {
    fn bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// An iterator over the keys of a range, made by [`Db::iter`].
///
/// As an [`Iterator`] it returns a failure once and then ends; [`KeyIter::next`] returns it on
/// every further call.
pub struct KeyIter {
    store: Arc<Store>,
    progress: Progress<Walk>,
    now: u64,
    range: KeyRange,
    space: Space,
    /// Where the values of large strings are read, if they were asked for.
    rows: Option<FrozenRows>,
}

impl std::fmt::Debug for KeyIter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyIter").field("progress", &self.progress).finish_non_exhaustive()
    }
}

impl Db {
    /// Iterates over the keys of a range that exist now, in order. Later changes are not seen.
    ///
    /// ```
    /// use lsmkv::types::KeyRange;
    /// use lsmkv::{Db, Options};
    ///
    /// let db = Db::open(":memory:", Options::default())?;
    /// for key in [b"a:1", b"a:2", b"b:1"] {
    ///     db.set(key, b"v")?;
    /// }
    /// let range = KeyRange { prefix: Some(b"a:".to_vec()), reverse: true, ..KeyRange::default() };
    /// let mut keys = db.iter(range)?;
    /// assert_eq!(keys.next()?.map(|entry| entry.key).as_deref(), Some(&b"a:2"[..]));
    /// assert_eq!(keys.next()?.map(|entry| entry.key).as_deref(), Some(&b"a:1"[..]));
    /// assert_eq!(keys.next()?, None);
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn iter(&self, range: KeyRange) -> Result<KeyIter> {
        let store = Arc::clone(self.shared_store());
        self.read_for_long(|tx| {
            let walk = tx.with_cache_fill(range.cache_fill, |tx| tx.keys_of(&range))?;
            let rows = range.values.then(|| FrozenRows::of(tx));
            let (progress, now, space) = (Progress::new(Some(walk)), tx.now(), tx.space());
            Ok(KeyIter { store, progress, now, range, space, rows })
        })
    }
}

impl Tx<'_> {
    fn keys_of(&self, range: &KeyRange) -> Result<Walk> {
        let (lower, upper) = range.bounds(self.space());
        self.rows(META, &lower, upper.as_deref(), range.reverse)
    }
}

impl KeyIter {
    /// The next key; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it is there too; this one keeps failing")]
    pub fn next(&mut self) -> Result<Option<KeyEntry>> {
        let mut records = u64::MAX;
        self.next_within(&mut records).map(Option::flatten)
    }

    /// The next key, or `None` in its place once as many records as `records` says were looked at,
    /// which counts them down. The outer `None` is the end.
    fn next_within(&mut self, records: &mut u64) -> Result<Option<Option<KeyEntry>>> {
        self.store.engine().check_open()?;
        let (kind, now, cache_fill) = (self.range.kind, self.now, self.range.cache_fill);
        let values =
            Values { store: &self.store, rows: self.rows.as_ref(), space: self.space, cache_fill };
        self.progress.step(|walk| {
            loop {
                if *records == 0 {
                    return Ok(Some(None));
                }
                if !walk.advance()? {
                    return Ok(None);
                }
                *records -= 1;
                let header = Header::decode(walk.value());
                let header = header.map_err(|why| malformed(user_key(walk), why))?;
                if !header.expired(now) && kind.is_none_or(|kind| kind == header.kind) {
                    return values.entry(walk, header.kind).map(|entry| Some(Some(entry)));
                }
            }
        })
    }

    /// Up to `max_items` keys, at least one; ends early once keys and values reach `max_bytes`.
    /// Empty at the end.
    pub fn next_chunk(&mut self, max_items: usize, max_bytes: usize) -> Result<Vec<KeyEntry>> {
        chunk_of_keys(max_items, max_bytes, || KeyIter::next(self))
    }

    /// Like [`KeyIter::next_chunk`], but looks at `records` records at most, of keys that the range
    /// leaves out or that are expired among others. Such a chunk may be empty; `None` is the end.
    #[cfg(feature = "server")]
    pub(crate) fn next_page(
        &mut self,
        max_items: usize,
        max_bytes: usize,
        mut records: u64,
    ) -> Result<Option<Vec<KeyEntry>>> {
        let mut has_ended = false;
        let page = chunk_of_keys(max_items, max_bytes, || {
            let next = self.next_within(&mut records)?;
            has_ended = next.is_none();
            Ok(next.flatten())
        })?;
        Ok((!page.is_empty() || !has_ended).then_some(page))
    }
}

/// Up to `max_items` keys of `next`, at least one; ends early once keys and values reach
/// `max_bytes`. Empty at the end.
pub(crate) fn chunk_of_keys(
    max_items: usize,
    max_bytes: usize,
    next: impl FnMut() -> Result<Option<KeyEntry>>,
) -> Result<Vec<KeyEntry>> {
    chunk(max_items, max_bytes, KeyEntry::bytes, next)
}

/// Makes entries, with the values of strings if there are rows to read them from.
struct Values<'a> {
    store: &'a Store,
    rows: Option<&'a FrozenRows>,
    space: Space,
    cache_fill: CacheFill,
}

impl Values<'_> {
    fn entry(&self, walk: &Walk, kind: Type) -> Result<KeyEntry> {
        let key = Bytes::copy_from_slice(user_key(walk));
        let value = match self.rows.filter(|_| kind == Type::String) {
            Some(rows) => Some(self.value(&key, walk.value_bytes(), rows)?),
            None => None,
        };
        Ok(KeyEntry { key, kind, value })
    }

    fn value(&self, key: &[u8], record: Bytes, rows: &FrozenRows) -> Result<Bytes> {
        match StringBody::decode(record).map_err(|why| malformed(key, why))? {
            StringBody::Whole(value) => Ok(value),
            StringBody::Chunked(chunks) => {
                let string = ChunkedString::new(self.space, key, chunks);
                rows.read(self.store, string.prefix(), |tx| {
                    tx.with_cache_fill(self.cache_fill, |tx| string.read(tx, 0..chunks.len))
                })
            }
        }
    }
}

impl Iterator for KeyIter {
    type Item = Result<KeyEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = KeyIter::next(self);
        self.progress.tell(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    #[cfg(feature = "server")]
    #[test]
    fn a_page_looks_at_so_many_records_and_the_end_is_told_apart() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        (0..100).for_each(|n: u32| db.set(&n.to_be_bytes(), b"v").map(drop).unwrap());
        db.sadd(b"set", &[b"m"]).unwrap();
        let range = KeyRange { kind: Some(Type::Set), ..KeyRange::default() };
        let mut keys = db.iter(range).unwrap();
        let mut pages = Vec::new();
        while let Some(page) = keys.next_page(10, 1000, 30).unwrap() {
            pages.push(page.len());
        }
        assert_eq!(pages, [0, 0, 0, 1]);
        assert!(keys.next_page(10, 1000, 30).unwrap().is_none());
    }

    #[test]
    fn a_walk_inside_a_write_sees_what_that_has_written_and_deleted_both_ways() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        for key in [b"a", b"c", b"e", b"g"] {
            db.set(key, b"old").unwrap();
        }
        let keys = [&b"b"[..], b"c", b"g", b"h"];
        for reverse in [false, true] {
            let walk = db.write(&keys, |tx| {
                tx.set(b"b", b"new")?;
                tx.del(&[b"c", b"g"])?;
                tx.set(b"h", b"new")?;
                let range = KeyRange { hi: Some(b"h".to_vec()), reverse, ..KeyRange::default() };
                let walk = tx.keys_of(&range)?;
                tx.set(b"d", b"later")?;
                Ok(walk)
            });
            let (mut walk, mut shown) = (walk.unwrap(), Vec::new());
            while walk.advance().unwrap() {
                shown.push(user_key(&walk).to_vec());
            }
            if reverse {
                shown.reverse();
            }
            assert_eq!(shown, [b"a", b"b", b"e"]);
            db.set(b"c", b"old").unwrap();
            db.set(b"g", b"old").unwrap();
            db.del(&[b"b", b"d", b"h"]).unwrap();
        }
    }
}
