//! The elements of a list: the one place that knows how they are stored.
//!
//! The record holds the range of indexes `[head, tail)`; each index has a row in the data tree,
//! without holes, at the index in big-endian. Commands use positions, 0 being the first element,
//! and know nothing of indexes. Rows outside of `[head, tail)` are dead and left to compaction:
//! removing elements at an end only writes the record, so a queue leaves no tombstones. A reused
//! index is overwritten before it counts.
//!
//! [`Elements`] is loaded from its record, changed, and saved: the record is written when the
//! bounds changed, and deleted with the last element.

use std::ops::Range;

use bytes::Bytes;

use crate::encoding::keys::{Prefix, RowKey, prefix, row_key};
use crate::encoding::meta::{Body, Header, Type, encode_collection};
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::trees::DATA;
use crate::txn::{Tx, Walk};
use crate::types::list::Side;

/// The index of the first element of a new list: there is room on both sides.
pub(crate) const MIDDLE: u64 = 1 << 63;

/// The index of an element as bytes.
pub(crate) type Mark = [u8; 8];

/// A list that exists or is being made.
#[derive(Clone, Debug)]
pub(crate) struct Elements<'k> {
    key: &'k [u8],
    header: Header,
    version: u64,
    head: u64,
    tail: u64,
    prefix: Prefix,
    changed: bool,
    /// Whether the key has a record, with the expiry of the header.
    is_recorded: bool,
}

impl Tx<'_> {
    /// The list at `key`, if the key exists; an error if it is of another type.
    pub(crate) fn list<'k>(&self, key: &'k [u8]) -> Result<Option<Elements<'k>>> {
        let Some(record) = self.typed(key, Type::List)? else { return Ok(None) };
        match record.body(key)? {
            Body::Span { version, head, tail } => {
                let found = Elements::new(self, key, record.header, version, head..tail);
                Ok(Some(Elements { is_recorded: true, ..found }))
            }
            Body::Members { .. } | Body::Packed(_) => {
                Err(Error::new(ErrorKind::Corrupt, "a list without bounds"))
            }
        }
    }

    /// The list at `key`, or a new empty one. It exists once it is saved with an element.
    pub(crate) fn list_or_new<'k>(&mut self, key: &'k [u8]) -> Result<Elements<'k>> {
        match self.list(key)? {
            Some(list) => Ok(list),
            None => self.new_list(key),
        }
    }

    /// A new empty list that replaces whatever `key` holds, once it is saved with an element.
    pub(crate) fn new_list<'k>(&mut self, key: &'k [u8]) -> Result<Elements<'k>> {
        self.store().limits().check_key(key)?;
        let header = Header { kind: Type::List, expire_ms: 0 };
        let version = self.new_version();
        Ok(Elements::new(self, key, header, version, MIDDLE..MIDDLE))
    }

    /// Writes the record of a list whose bounds changed, or deletes it if no element is left.
    pub(crate) fn save_list(&mut self, list: &Elements<'_>) -> Result<()> {
        if !list.changed {
            return Ok(());
        }
        if list.len() == 0 {
            self.delete_record(list.key);
            return Ok(());
        }
        let body = Body::Span { version: list.version, head: list.head, tail: list.tail };
        let record = encode_collection(list.header, &body);
        self.put_record_over(list.key, record, list.is_recorded)
    }
}

impl<'k> Elements<'k> {
    fn new(tx: &Tx<'_>, key: &'k [u8], header: Header, version: u64, span: Range<u64>) -> Self {
        let prefix = prefix(tx.space(), key, version);
        let Range { start: head, end: tail } = span;
        Self { key, header, version, head, tail, prefix, changed: false, is_recorded: false }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.tail.saturating_sub(self.head)
    }

    /// The position of a user's index, which counts from the end if it is negative.
    pub(crate) fn position(&self, index: i64) -> Option<u64> {
        let distance = index.unsigned_abs();
        let position = if index < 0 { self.len().checked_sub(distance)? } else { distance };
        (position < self.len()).then_some(position)
    }

    /// The existing positions from one user's index to another, inclusive.
    pub(crate) fn positions(&self, start: i64, stop: i64) -> Range<u64> {
        let len = self.len();
        let from_end = |index: i64| len.checked_sub(index.unsigned_abs());
        let first =
            if start < 0 { from_end(start).unwrap_or(0) } else { start.unsigned_abs().min(len) };
        let end = match stop {
            ..0 => from_end(stop).map_or(0, |last| last + 1),
            0.. => (stop.unsigned_abs() + 1).min(len),
        };
        first..end.max(first)
    }

    fn row(&self, index: u64) -> RowKey {
        row_key(&self.prefix, &index.to_be_bytes())
    }

    fn put_at(&self, tx: &mut Tx<'_>, index: u64, element: Bytes) {
        tx.put_row(DATA, &self.row(index), element);
    }

    /// The element at a position below the length.
    pub(crate) fn get(&self, tx: &Tx<'_>, position: u64) -> Result<Bytes> {
        let index = self.head.saturating_add(position);
        tx.row(DATA, &self.row(index))?.ok_or_else(|| missing(self.key, index))
    }

    /// Replaces the element at a position below the length.
    pub(crate) fn put(&mut self, tx: &mut Tx<'_>, position: u64, element: Bytes) -> Result<()> {
        tx.store().limits().check_value(&element)?;
        self.put_at(tx, self.head.saturating_add(position), element);
        Ok(())
    }

    /// Adds an element at an end.
    pub(crate) fn push(&mut self, tx: &mut Tx<'_>, side: Side, element: Bytes) -> Result<()> {
        tx.store().limits().check_value(&element)?;
        self.grow(side)?;
        let index = match side {
            Side::Left => self.head,
            Side::Right => self.tail.saturating_sub(1),
        };
        self.put_at(tx, index, element);
        Ok(())
    }

    /// Adds an index at an end; its row is still to be written.
    fn grow(&mut self, side: Side) -> Result<()> {
        let bound = match side {
            Side::Left => self.head.checked_sub(1),
            Side::Right => self.tail.checked_add(1),
        };
        let bound = bound.ok_or_else(no_index_left)?;
        match side {
            Side::Left => self.head = bound,
            Side::Right => self.tail = bound,
        }
        self.changed = true;
        Ok(())
    }

    /// Removes the element at an end and returns it.
    pub(crate) fn pop(&mut self, tx: &Tx<'_>, side: Side) -> Result<Option<Bytes>> {
        let Some(last) = self.len().checked_sub(1) else { return Ok(None) };
        let (position, rest) = match side {
            Side::Left => (0, 1..last + 1),
            Side::Right => (last, 0..last),
        };
        let element = self.get(tx, position)?;
        self.keep(&rest);
        Ok(Some(element))
    }

    /// Removes up to `count` elements at an end and returns them, the outermost first.
    pub(crate) fn pop_many(&mut self, tx: &Tx<'_>, side: Side, count: u64) -> Result<Vec<Bytes>> {
        let len = self.len();
        let count = count.min(len);
        if count == 1 {
            return Ok(self.pop(tx, side)?.into_iter().collect());
        }
        let (taken, rest) = match side {
            Side::Left => (0..count, count..len),
            Side::Right => (len - count..len, 0..len - count),
        };
        let elements = self.walk(tx, taken, side)?.collect()?;
        self.keep(&rest);
        Ok(elements)
    }

    /// Removes all elements except those at these positions.
    pub(crate) fn keep(&mut self, positions: &Range<u64>) {
        if *positions == (0..self.len()) {
            return;
        }
        let head = self.head;
        self.head = head.saturating_add(positions.start).min(self.tail);
        self.tail = head.saturating_add(positions.end).clamp(self.head, self.tail);
        self.changed = true;
    }

    /// Walks over the elements at these positions, beginning at that side: one seek, then steps.
    /// The walk shows the current state of the list, whatever changes during it.
    pub(crate) fn walk(
        &self,
        tx: &Tx<'_>,
        positions: Range<u64>,
        from: Side,
    ) -> Result<ElementWalk> {
        let first = self.head.saturating_add(positions.start);
        let end = self.head.saturating_add(positions.end);
        let backward = from == Side::Right;
        let rows = tx.rows(DATA, &self.row(first), Some(&self.row(end)), backward)?;
        Ok(ElementWalk {
            key: self.key.to_vec(),
            rows,
            head: self.head,
            left: positions,
            from,
            position: 0,
        })
    }

    /// Walks over all elements, beginning at that side.
    pub(crate) fn walk_all(&self, tx: &Tx<'_>, from: Side) -> Result<ElementWalk> {
        self.walk(tx, 0..self.len(), from)
    }

    /// The positions that are left to a walk from that side once it has passed `mark`, even if that
    /// element is gone.
    pub(crate) fn positions_behind(&self, mark: Mark, from: Side) -> Range<u64> {
        let index = u64::from_be_bytes(mark);
        match from {
            Side::Left => {
                let first = index.saturating_add(1).saturating_sub(self.head);
                first.min(self.len())..self.len()
            }
            Side::Right => 0..index.saturating_sub(self.head).min(self.len()),
        }
    }

    /// Inserts an element at this position; the shorter side moves away.
    pub(crate) fn insert(&mut self, tx: &mut Tx<'_>, position: u64, element: Bytes) -> Result<()> {
        let len = self.len();
        let old = self.clone();
        if position < len.saturating_sub(position) {
            self.grow(Side::Left)?;
            old.rewrite(tx, 0..position, &[], self.head)?;
        } else {
            self.grow(Side::Right)?;
            old.rewrite(tx, position..len, &[], old.head.saturating_add(position + 1))?;
        }
        self.put(tx, position, element)
    }

    /// Removes the elements at these positions, which ascend. The elements towards the head move
    /// up, or those towards the tail move down, whichever is cheaper.
    pub(crate) fn remove(&mut self, tx: &mut Tx<'_>, positions: &[u64]) -> Result<()> {
        let len = self.len();
        let (low, high) = positions.split_at(cheapest_split(positions, len));
        let (below, above) = (low.len() as u64, high.len() as u64);
        if let Some(last) = low.last() {
            self.rewrite(tx, 0..last + 1, low, self.head.saturating_add(below))?;
        }
        if let Some(first) = high.first() {
            self.rewrite(tx, *first..len, high, self.head.saturating_add(*first))?;
        }
        self.keep(&(below..len.saturating_sub(above)));
        Ok(())
    }

    /// Writes the elements at `positions`, except those at `removed`, to the indexes from `index`
    /// on.
    fn rewrite(
        &self,
        tx: &mut Tx<'_>,
        positions: Range<u64>,
        removed: &[u64],
        mut index: u64,
    ) -> Result<()> {
        let mut removed = removed.iter().peekable();
        let mut run = self.walk(tx, positions, Side::Left)?;
        while run.advance()? {
            if removed.next_if(|position| **position == run.position()).is_none() {
                self.put_at(tx, index, run.element_bytes());
                index = index.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// The number of removed positions to fill from below, the others from above, so that the fewest of
/// `len` elements move.
fn cheapest_split(removed: &[u64], len: u64) -> usize {
    let moved = |split: usize| {
        let (low, high) = removed.split_at(split.min(removed.len()));
        let up = low.last().map_or(0, |last| last + 1 - low.len() as u64);
        let down = high.first().map_or(0, |first| len - first - high.len() as u64);
        up + down
    };
    (0..=removed.len()).min_by_key(|split| moved(*split)).unwrap_or(0)
}

/// Walks over elements. A row that should exist and does not is damage, never an end.
#[derive(Debug)]
pub(crate) struct ElementWalk {
    key: Vec<u8>,
    rows: Walk,
    head: u64,
    left: Range<u64>,
    from: Side,
    position: u64,
}

impl ElementWalk {
    /// Moves to the next element, the first at the first call; `false` when there are no more.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let position = match self.from {
            Side::Left => self.left.next(),
            Side::Right => self.left.next_back(),
        };
        let Some(position) = position else { return Ok(false) };
        let index = self.head.saturating_add(position);
        if !self.rows.advance()? || !self.rows.key().ends_with(&index.to_be_bytes()) {
            return Err(missing(&self.key, index));
        }
        self.position = position;
        Ok(true)
    }

    /// The number of elements left.
    pub(crate) fn len(&self) -> u64 {
        self.left.end.saturating_sub(self.left.start)
    }

    /// The position of the current element.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Identifies the current element for [`Elements::positions_behind`], even after others are
    /// added or removed at the ends.
    pub(crate) fn mark(&self) -> Mark {
        self.head.saturating_add(self.position).to_be_bytes()
    }

    /// The current element.
    pub(crate) fn element(&self) -> &[u8] {
        self.rows.value()
    }

    /// The current element, for keeping.
    pub(crate) fn element_bytes(&self) -> Bytes {
        self.rows.value_bytes()
    }

    /// Collects the elements left.
    pub(crate) fn collect(mut self) -> Result<Vec<Bytes>> {
        let mut elements = Vec::new();
        while self.advance()? {
            elements.push(self.element_bytes());
        }
        Ok(elements)
    }
}

fn missing(key: &[u8], index: u64) -> Error {
    let shown = String::from_utf8_lossy(key.get(..64).unwrap_or(key));
    let message = format!("the list {shown:?} has no row for its index {index}");
    Error::new(ErrorKind::Corrupt, message)
}

fn no_index_left() -> Error {
    Error::new(ErrorKind::Overflow, "ERR the list has used up all indexes on this side")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use crate::txn::Db;

    #[test]
    fn removed_places_are_filled_from_the_nearer_end() {
        assert_eq!(cheapest_split(&[], 5), 0);
        assert_eq!(cheapest_split(&[1], 10), 1);
        assert_eq!(cheapest_split(&[8], 10), 0);
        assert_eq!(cheapest_split(&[0, 9], 10), 1, "both ends: nothing moves");
        assert_eq!(cheapest_split(&[1, 2, 98], 100), 2);
        assert_eq!(cheapest_split(&[0, 1, 2], 3), 0, "all: nothing moves either way");
    }

    #[test]
    fn a_missing_row_is_damage_and_not_the_end_of_the_list() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.rpush(b"l", &[b"a", b"b", b"c"]).unwrap();
        db.write(&[b"l"], |tx| {
            let list = tx.list(b"l")?.unwrap();
            tx.remove_row(DATA, &list.row(MIDDLE + 1));
            Ok(())
        })
        .unwrap();
        let corrupt = |error: Error| assert_eq!(error.kind(), ErrorKind::Corrupt);
        corrupt(db.lrange(b"l", 0, -1).unwrap_err());
        corrupt(db.lrange(b"l", 0, 1).unwrap_err());
        corrupt(db.lindex(b"l", 1).unwrap_err());
        corrupt(db.lrem(b"l", -2, b"a").unwrap_err());
        assert_eq!(db.lrange(b"l", 2, 2).unwrap(), ["c"]);
    }

    #[test]
    fn a_list_stands_on_disk_as_documented() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        db.rpush(b"l", &[b"b", b"c"]).unwrap();
        db.lpush(b"l", &[b"a"]).unwrap();
        db.rpop(b"l").unwrap();
        db.read(|tx| {
            let record = tx.record(b"l")?.unwrap();
            let Body::Span { version, head, tail } = record.body(b"l")? else { panic!() };
            assert_eq!((head, tail), (MIDDLE - 1, MIDDLE + 1));
            let prefix = prefix(tx.space(), b"l", version);
            for (index, element) in [(MIDDLE - 1, "a"), (MIDDLE, "b")] {
                let row = tx.row(DATA, &row_key(&prefix, &index.to_be_bytes()))?;
                assert_eq!(row.unwrap(), element);
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn an_end_without_indexes_refuses_a_push() {
        let db = Db::open(":memory:", Options::default()).unwrap();
        let full = |tx: &mut Tx<'_>| {
            let mut list = tx.new_list(b"l")?;
            (list.head, list.tail) = (0, u64::MAX);
            list.push(tx, Side::Left, Bytes::new()).unwrap_err();
            list.push(tx, Side::Right, Bytes::new()).unwrap_err();
            Ok((list.head, list.tail))
        };
        assert_eq!(db.write(&[b"l"], full).unwrap(), (0, u64::MAX));
    }
}
