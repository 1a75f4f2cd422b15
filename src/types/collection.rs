//! Members of hashes, sets and sorted sets: the one place that knows how they are stored.
//!
//! A [`Collection`] is loaded from its record, changed member by member, and saved: the record is
//! written when the number of members changed, and deleted with the last one. Other encodings can
//! stand behind this without touching the commands.

use bytes::Bytes;

use crate::encoding::keys::{Prefix, after_prefix, prefix, row_key};
use crate::encoding::meta::{Body, Header, Type, encode_collection};
use crate::encoding::wear::Wear;
use crate::error::{Error, ErrorKind, Result};
use crate::types::txn::{DATA, SCORE, Tx, Walk};

/// A hash, set or sorted set that exists or is being made.
#[derive(Clone, Debug)]
pub(crate) struct Collection {
    key: Vec<u8>,
    header: Header,
    version: u64,
    size: u64,
    wear: Wear,
    prefix: Prefix,
    changed: bool,
    /// Made by this command: all its rows are kept aside.
    is_new: bool,
}

impl Tx<'_> {
    /// The collection at `key`, if the key exists; an error if it is of another type.
    pub(crate) fn collection(&self, key: &[u8], kind: Type) -> Result<Option<Collection>> {
        let Some(record) = self.typed(key, kind)? else { return Ok(None) };
        match self.body(key, &record)? {
            Body::Members { version, size, wear } => {
                let new = Collection::new(self, key, record.header, version);
                Ok(Some(Collection { size, wear, is_new: false, ..new }))
            }
            Body::Span { .. } => Err(Error::new(ErrorKind::Corrupt, "a list where none belongs")),
        }
    }

    /// The collection at `key`, or a new empty one. It exists once it is saved with a member.
    pub(crate) fn collection_or_new(&mut self, key: &[u8], kind: Type) -> Result<Collection> {
        match self.collection(key, kind)? {
            Some(collection) => Ok(collection),
            None => self.new_collection(key, kind),
        }
    }

    /// A new empty collection that will replace whatever `key` is, once it is saved with a member.
    pub(crate) fn new_collection(&mut self, key: &[u8], kind: Type) -> Result<Collection> {
        self.store().limits().check_key(key)?;
        let version = self.new_version();
        Ok(Collection::new(self, key, Header { kind, expire_ms: 0 }, version))
    }

    /// Writes the record of a collection that changed, or deletes it if no member is left.
    pub(crate) fn save(&mut self, collection: &Collection) -> Result<()> {
        if !collection.changed {
            return Ok(());
        }
        if collection.size == 0 {
            self.delete_record(&collection.key);
            return Ok(());
        }
        let mut wear = collection.wear.clone();
        if collection.is_worn() && self.has_room_to_renew() {
            if self.renew(collection)? {
                return Ok(());
            }
            wear.forget_removed();
        }
        let body = Body::Members { version: collection.version, size: collection.size, wear };
        self.put_record(&collection.key, encode_collection(collection.header, &body))
    }
}

impl Collection {
    /// Without members.
    fn new(tx: &Tx<'_>, key: &[u8], header: Header, version: u64) -> Self {
        let prefix = prefix(tx.space(), key, version);
        let (key, wear) = (key.to_vec(), Wear::default());
        Self { key, header, version, size: 0, wear, prefix, changed: false, is_new: true }
    }

    /// Whose it is.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Type and expiry.
    pub(crate) fn header(&self) -> Header {
        self.header
    }

    /// What removals left behind.
    pub(crate) fn wear(&self) -> &Wear {
        &self.wear
    }

    /// The same, to be changed; the record will be written.
    pub(crate) fn wear_mut(&mut self) -> &mut Wear {
        self.changed = true;
        &mut self.wear
    }

    /// Number of members.
    pub(crate) fn len(&self) -> u64 {
        self.size
    }

    /// What the rows of this collection begin with, in the data and the score tree.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// What is stored beside a member.
    pub(crate) fn get(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        match (self.size, self.is_new) {
            (0, _) => Ok(None),
            (_, true) => Ok(tx.row_aside(DATA, &row_key(&self.prefix, member))),
            (_, false) => tx.row(DATA, &row_key(&self.prefix, member)),
        }
    }

    /// Sets what is stored beside a member; returns what was there.
    pub(crate) fn put(
        &mut self,
        tx: &mut Tx<'_>,
        member: &[u8],
        value: impl Into<Bytes>,
    ) -> Result<Option<Bytes>> {
        let old = self.get(tx, member)?;
        self.put_over(tx, member, value, old.is_some())?;
        Ok(old)
    }

    /// Sets what is stored beside a member of which the caller knows whether it is there.
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
        tx.put_row(DATA, &row_key(&self.prefix, member), value);
        if !exists {
            self.size += 1;
            self.changed = true;
        }
        Ok(())
    }

    /// Removes a member; returns what was stored beside it.
    pub(crate) fn remove(&mut self, tx: &mut Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        let old = self.get(tx, member)?;
        if old.is_some() {
            tx.remove_row(DATA, &row_key(&self.prefix, member));
            self.size = self.size.saturating_sub(1);
            self.wear.count_removed(1);
            self.changed = true;
        }
        Ok(old)
    }

    /// All members in the order of their bytes: [`Walk::key`] less the prefix is the member.
    pub(crate) fn walk(&self, tx: &Tx<'_>) -> Result<Walk> {
        self.walk_from(tx, b"", false)
    }

    /// Members from `first` on (`backward`: before it, the last one first; all if it is empty).
    pub(crate) fn walk_from(&self, tx: &Tx<'_>, first: &[u8], backward: bool) -> Result<Walk> {
        let end = after_prefix(&self.prefix);
        let bound = row_key(&self.prefix, first);
        match backward {
            false => tx.rows(DATA, &bound, end.as_deref(), false),
            true if first.is_empty() => tx.rows(DATA, &self.prefix, end.as_deref(), true),
            true => tx.rows(DATA, &self.prefix, Some(&bound), true),
        }
    }

    /// Notes that a score row is about to be written.
    pub(crate) fn admit_score(&mut self, row: &[u8]) {
        let sub_key = row.get(self.prefix.len()..).unwrap_or_default();
        self.changed |= self.wear.admit(sub_key);
    }

    /// Notes that a score row was removed.
    pub(crate) fn score_removed(&mut self, row: &[u8]) {
        let sub_key = row.get(self.prefix.len()..).unwrap_or_default();
        self.changed |= self.wear.row_removed(sub_key);
    }

    /// The rows of the score tree with sub keys in `[lower, upper)`; `None`: to the end.
    pub(crate) fn walk_scores(
        &self,
        tx: &Tx<'_>,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
    ) -> Result<Walk> {
        let lower = row_key(&self.prefix, self.wear.not_before(lower));
        let upper = match self.wear.at_most(upper) {
            Some(upper) => Some(row_key(&self.prefix, upper).to_vec()),
            None => after_prefix(&self.prefix),
        };
        tx.rows(SCORE, &lower, upper.as_deref(), backward)
    }

    /// The sub key of a row of this collection: the member, in the data tree.
    pub(crate) fn sub_key<'k>(&self, row: &'k [u8]) -> &'k [u8] {
        row.get(self.prefix.len()..).unwrap_or_default()
    }

    /// Rows are missing, or there are more than the record counts.
    pub(crate) fn miscounted(&self) -> Error {
        let shown = String::from_utf8_lossy(self.key.get(..64).unwrap_or(&self.key));
        let message = format!("the key {shown:?} does not have its {} members", self.size);
        Error::new(ErrorKind::Corrupt, message)
    }
}
