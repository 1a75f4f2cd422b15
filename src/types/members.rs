//! Members of hashes, sets and sorted sets: the one place that knows how they are stored.
//!
//! A [`Collection`] is loaded from its record, changed member by member, and saved. Its members are
//! rows of the data tree, and the record is written when their number changes; the members of a
//! small one are in the record itself (`packing`), which is written with every change. The record
//! is deleted with the last member.

use bytes::Bytes;

use crate::encoding::keys::{RowKey, after_prefix, row_key, score_key};
use crate::encoding::meta::{Header, Type};
use crate::encoding::packed::{Index, Packed};
use crate::encoding::tombstones::TombstoneStats;
use crate::engine::TreeId;
use crate::error::Result;
use crate::keyspace::errors::{malformed, wrong_type};
use crate::keyspace::trees::{DATA, SCORE};
use crate::txn::collection::{Collection, Form, RowForm};
use crate::txn::{Tx, Walk};
use crate::types::packing;

/// A lookup of more packed members than this builds an index of the record first.
const FEW_LOOKUPS: u64 = 2;

/// Looks up many members of one collection.
#[derive(Debug)]
pub(crate) struct MultiLookup<'c> {
    collection: &'c Collection,
    index: Option<Index<'c>>,
}

impl MultiLookup<'_> {
    /// Applies `read` to the value of a member, if the member exists.
    pub(crate) fn with_value<T>(
        &self,
        tx: &Tx<'_>,
        member: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        match &self.index {
            Some(index) => Ok(index.get(member).map(read)),
            None => self.collection.with_value(tx, member, read),
        }
    }

    /// The value of a member.
    pub(crate) fn get(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        match &self.index {
            Some(index) => Ok(index.get(member).map(Bytes::copy_from_slice)),
            None => self.collection.get(tx, member),
        }
    }

    /// Whether a member exists.
    pub(crate) fn has(&self, tx: &Tx<'_>, member: &[u8]) -> Result<bool> {
        Ok(self.with_value(tx, member, |_| ())?.is_some())
    }
}

fn of_type(collection: &Collection, kind: Type) -> Result<()> {
    if collection.header.kind == kind { Ok(()) } else { Err(wrong_type()) }
}

impl Tx<'_> {
    /// The collection at `key`, if the key exists; an error if it is of another type.
    pub(crate) fn collection(&self, key: &[u8], kind: Type) -> Result<Option<Collection>> {
        // Decoding a packed collection is less work than copying its members.
        if let Some(recent) = self.recent(key).filter(|recent| !recent.is_packed()) {
            return of_type(recent, kind).map(|()| Some(recent.clone()));
        }
        let Some(record) = self.typed(key, kind)? else { return Ok(None) };
        Collection::decode(self.space(), key, record).map(Some)
    }

    /// The collection at `key`, or a new empty one. It exists once it is saved with a member.
    pub(crate) fn collection_or_new(&mut self, key: &[u8], kind: Type) -> Result<Collection> {
        if let Some(recent) = self.take_recent(key) {
            of_type(&recent, kind)?;
            return Ok(recent);
        }
        match self.collection(key, kind)? {
            Some(collection) => Ok(collection),
            None => self.new_collection(key, kind),
        }
    }

    /// A new empty collection that replaces whatever `key` holds, once it is saved with a member.
    pub(crate) fn new_collection(&mut self, key: &[u8], kind: Type) -> Result<Collection> {
        self.store().limits().check_key(key)?;
        let form = match self.store().packing().is_enabled() {
            true => Form::Packed(Packed::default()),
            false => Form::Rows(RowForm::new(self.space(), key, self.new_version())),
        };
        Ok(Collection::new(key, Header { kind, expire_ms: 0 }, form))
    }

    /// Replaces whatever `key` holds by packed members, in the form that new collections of their
    /// size have.
    pub(crate) fn put_copy(&mut self, key: &[u8], header: Header, packed: Packed) -> Result<()> {
        let fits = self.store().packing().fits(&packed);
        let mut copy = Collection::new(key, header, Form::Packed(packed));
        copy.changed = true;
        if !fits {
            copy.unpack(self)?;
        }
        self.save(copy)
    }

    /// Writes the record of a collection that changed, or deletes it if no member is left.
    pub(crate) fn save(&mut self, mut collection: Collection) -> Result<()> {
        if collection.len() == 0 {
            if collection.changed {
                self.delete_record(&collection.key);
            }
            return Ok(());
        }
        if collection.changed {
            if collection.needs_rewrite() && self.has_room_to_rewrite() {
                if self.rewrite_collection(&collection)? {
                    return Ok(());
                }
                // Without this every later command would try again.
                collection.tombstones_mut().into_iter().for_each(TombstoneStats::forget_removed);
            }
            let record = collection.encode();
            self.put_record_over(&collection.key, record, collection.is_recorded)?;
        }
        (collection.changed, collection.is_recorded) = (false, true);
        self.remember(collection);
        Ok(())
    }
}

impl Collection {
    /// Moves packed members into rows.
    fn unpack(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        let Form::Packed(packed) = &self.form else { return Ok(()) };
        let mut rows = RowForm::new(tx.space(), &self.key, tx.new_version());
        rows.size = packed.size();
        packing::each_member(packed, &self.key, self.header.kind, |member, value, score| {
            let value = Bytes::copy_from_slice(value);
            rows.put(tx, DATA, &row_key(&rows.prefix, member), value, false);
            if let Some(score) = score {
                let row = score_key(&rows.prefix, score, member);
                rows.tombstones.admit(row.get(rows.prefix.len()..).unwrap_or_default());
                rows.put(tx, SCORE, &row, Bytes::new(), false);
            }
        })?;
        self.change_form(Form::Rows(rows));
        Ok(())
    }

    /// The value of a member. That of a packed member is a copy: a few bytes that a caller keeps
    /// must not keep the whole record, or the block it is part of, in memory.
    pub(crate) fn get(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        match &self.form {
            Form::Packed(_) => self.with_value(tx, member, Bytes::copy_from_slice),
            Form::Rows(rows) => rows.get(tx, member),
        }
    }

    /// Whether a member exists.
    pub(crate) fn has(&self, tx: &Tx<'_>, member: &[u8]) -> Result<bool> {
        Ok(self.with_value(tx, member, |_| ())?.is_some())
    }

    /// Applies `read` to the value of a member, if the member exists.
    pub(crate) fn with_value<T>(
        &self,
        tx: &Tx<'_>,
        member: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        match &self.form {
            Form::Packed(packed) => {
                let value = packed.get(member).map_err(|why| malformed(&self.key, why))?;
                Ok(value.map(read))
            }
            Form::Rows(rows) => Ok(rows.get(tx, member)?.map(|value| read(&value))),
        }
    }

    /// Prepares for looking up this many members.
    pub(crate) fn multi_lookup(&self, members: u64) -> Result<MultiLookup<'_>> {
        let index = match &self.form {
            Form::Packed(packed) if members > FEW_LOOKUPS => {
                Some(packed.index().map_err(|why| malformed(&self.key, why))?)
            }
            _ => None,
        };
        Ok(MultiLookup { collection: self, index })
    }

    /// Sets the value of a member.
    pub(crate) fn put(
        &mut self,
        tx: &mut Tx<'_>,
        member: &[u8],
        value: impl Into<Bytes>,
    ) -> Result<()> {
        let exists = self.has(tx, member)?;
        self.put_over(tx, member, value, exists)
    }

    /// Sets the value of a member; `exists` saves the lookup.
    pub(crate) fn put_over(
        &mut self,
        tx: &mut Tx<'_>,
        member: &[u8],
        value: impl Into<Bytes>,
        exists: bool,
    ) -> Result<()> {
        let value = value.into();
        let limits = tx.store().limits();
        limits.check_value(member)?;
        limits.check_value(&value)?;
        if let Form::Packed(_) = self.form {
            if self.put_packed(tx, member, &value, exists)? {
                return Ok(());
            }
            self.unpack(tx)?;
        }
        if let Form::Rows(rows) = &mut self.form {
            rows.put(tx, DATA, &row_key(&rows.prefix, member), value, exists);
            rows.size += u64::from(!exists);
            self.changed |= !exists;
        }
        Ok(())
    }

    /// Sets the value of a packed member; `false` if it does not fit into the record.
    fn put_packed(
        &mut self,
        tx: &Tx<'_>,
        member: &[u8],
        value: &[u8],
        exists: bool,
    ) -> Result<bool> {
        let Form::Packed(packed) = &mut self.form else { return Ok(false) };
        let limits = tx.store().packing();
        let fits = packed.size() + u64::from(!exists) <= limits.members
            && packed.put(member, value, limits.bytes).map_err(|why| malformed(&self.key, why))?;
        self.changed |= fits;
        Ok(fits)
    }

    /// Removes a member and returns the value it had.
    pub(crate) fn remove(&mut self, tx: &mut Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        let old = match &mut self.form {
            Form::Packed(packed) => {
                let old = packed.remove(member).map_err(|why| malformed(&self.key, why))?;
                self.changed |= old.is_some();
                return Ok(old);
            }
            Form::Rows(rows) => rows.get(tx, member)?,
        };
        if old.is_some() {
            self.remove_present(tx, member)?;
        }
        Ok(old)
    }

    /// Removes a member that exists.
    pub(crate) fn remove_present(&mut self, tx: &mut Tx<'_>, member: &[u8]) -> Result<()> {
        match &mut self.form {
            Form::Packed(_) => return self.remove(tx, member).map(drop),
            Form::Rows(rows) => {
                rows.remove(tx, DATA, &row_key(&rows.prefix, member));
                rows.size = rows.size.saturating_sub(1);
                rows.tombstones.count_removed(1);
            }
        }
        self.changed = true;
        Ok(())
    }

    /// All members in byte order: [`Walk::key`] less the prefix is the member.
    pub(crate) fn walk(&self, tx: &Tx<'_>) -> Result<Walk> {
        self.walk_from(tx, b"", false)
    }

    /// Members from `first` on; backward, those before it with the last one first, or all if
    /// `first` is empty.
    pub(crate) fn walk_from(&self, tx: &Tx<'_>, first: &[u8], backward: bool) -> Result<Walk> {
        let rows = match &self.form {
            Form::Packed(packed) => return packing::walk(packed, &self.key, first, backward),
            Form::Rows(rows) => rows,
        };
        let end = after_prefix(&rows.prefix);
        let bound = row_key(&rows.prefix, first);
        match backward {
            false => tx.rows(DATA, &bound, end.as_deref(), false),
            true if first.is_empty() => tx.rows(DATA, &rows.prefix, end.as_deref(), true),
            true => tx.rows(DATA, &rows.prefix, Some(&bound), true),
        }
    }

    /// Widens the bounds of the score rows for one that is about to be written.
    pub(crate) fn admit_score(&mut self, row: &[u8]) {
        if let Form::Rows(rows) = &mut self.form {
            let sub_key = rows.sub_key(row);
            self.changed |= rows.tombstones.admit(sub_key);
        }
    }

    /// Writes a score row that is not there.
    pub(crate) fn put_score(&self, tx: &mut Tx<'_>, row: &[u8]) {
        if let Form::Rows(rows) = &self.form {
            rows.put(tx, SCORE, row, Bytes::new(), false);
        }
    }

    /// Removes a score row that is there.
    pub(crate) fn remove_score(&mut self, tx: &mut Tx<'_>, row: &[u8]) {
        if let Form::Rows(rows) = &mut self.form {
            rows.remove(tx, SCORE, row);
            let sub_key = rows.sub_key(row);
            self.changed |= rows.tombstones.row_removed(sub_key);
        }
    }

    /// The score rows with sub keys in `[lower, upper)`; without `upper` to the end.
    pub(crate) fn walk_scores(
        &self,
        tx: &Tx<'_>,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
    ) -> Result<Walk> {
        let rows = match &self.form {
            Form::Packed(packed) => {
                return packing::walk_scores(packed, &self.key, (lower, upper), backward);
            }
            Form::Rows(rows) => rows,
        };
        let (lower, upper) = rows.score_bounds(lower, upper);
        tx.rows(SCORE, &lower, upper.as_deref(), backward)
    }
}

impl RowForm {
    /// Writes a row of a member; `exists` tells whether it is there.
    #[inline]
    fn put(&self, tx: &mut Tx<'_>, tree: TreeId, row: &[u8], value: Bytes, exists: bool) {
        match tx.is_counted(self.version) {
            true => tx.put_counted(tree, row, value, exists),
            false => tx.put_row(tree, row, value),
        }
    }

    /// Removes a row of a member, which is there.
    #[inline]
    fn remove(&self, tx: &mut Tx<'_>, tree: TreeId, row: &[u8]) {
        match tx.is_counted(self.version) {
            true => tx.remove_counted(tree, row),
            false => tx.remove_row(tree, row),
        }
    }

    /// The bounds of the score rows with sub keys in `[lower, upper)`, as narrow as they are known.
    pub(super) fn score_bounds(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> (RowKey, Option<Vec<u8>>) {
        let lower = row_key(&self.prefix, self.tombstones.not_before(lower));
        let upper = match self.tombstones.at_most(upper) {
            Some(upper) => Some(row_key(&self.prefix, upper).to_vec()),
            None => after_prefix(&self.prefix),
        };
        (lower, upper)
    }

    /// The value in the row of a member.
    fn get(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        match (self.size, self.is_new) {
            (0, _) => Ok(None),
            (_, true) => Ok(tx.pending_row(DATA, &row_key(&self.prefix, member))),
            (_, false) => tx.row(DATA, &row_key(&self.prefix, member)),
        }
    }
}
