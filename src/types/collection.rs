//! Members of hashes, sets and sorted sets: the one place that knows how they are stored.
//!
//! A [`Collection`] is loaded from its record, changed member by member, and saved. The members are
//! rows of the data tree, and the record is written when their number changed; or, of a small one,
//! they are in the record itself (`packing`), which is written with every change. It is deleted with
//! the last one.

use bytes::Bytes;

use crate::encoding::keys::{Prefix, after_prefix, prefix, row_key, score_key};
use crate::encoding::meta::{Body, Header, Type, encode_collection, is_packed};
use crate::encoding::packed::{Index, Packed};
use crate::encoding::wear::Wear;
use crate::error::{Error, ErrorKind, Result};
use crate::types::packing;
use crate::types::txn::{DATA, SCORE, Tx, Walk, malformed, wrong_type};

/// Of more members than this the places in a record are noted before they are looked for.
const FEW_LOOKS: u64 = 2;

/// Many looks at one collection.
#[derive(Debug)]
pub(crate) struct Looks<'c> {
    of: &'c Collection,
    index: Option<Index<'c>>,
}

impl Looks<'_> {
    /// See [`Collection::look`].
    pub(crate) fn look<T>(
        &self,
        tx: &Tx<'_>,
        member: &[u8],
        make: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        match &self.index {
            Some(index) => Ok(index.get(member).map(make)),
            None => self.of.look(tx, member, make),
        }
    }

    /// See [`Collection::get`].
    pub(crate) fn get(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        match &self.index {
            Some(index) => Ok(index.get(member).map(Bytes::copy_from_slice)),
            None => self.of.get(tx, member),
        }
    }

    /// See [`Collection::has`].
    pub(crate) fn has(&self, tx: &Tx<'_>, member: &[u8]) -> Result<bool> {
        Ok(self.look(tx, member, |_| ())?.is_some())
    }
}

/// A hash, set or sorted set that exists or is being made.
#[derive(Debug)]
pub(crate) struct Collection {
    key: Vec<u8>,
    header: Header,
    size: u64,
    changed: bool,
    /// Its key has a record, with the expiry of the header.
    is_recorded: bool,
    /// The members, if they are in the record. Then it has no version, no wear, and no prefix.
    packed: Option<Packed>,
    version: u64,
    wear: Wear,
    prefix: Prefix,
    /// It has no rows but those that are kept aside.
    is_new: bool,
}

impl Tx<'_> {
    /// The collection at `key`, if the key exists; an error if it is of another type.
    pub(crate) fn collection(&self, key: &[u8], kind: Type) -> Result<Option<Collection>> {
        // To decode a packed one is less work than to copy its members.
        if let Some(recent) = self.recent(key).filter(|recent| !recent.is_packed()) {
            return recent.of(kind).map(|recent| Some(recent.clone()));
        }
        let Some(record) = self.typed(key, kind)? else { return Ok(None) };
        if is_packed(&record.bytes) {
            let packed = Packed::decode(&record.bytes).map_err(|why| malformed(key, why))?;
            let found = Collection::packed(key, record.header, packed);
            return Ok(Some(Collection { is_recorded: true, ..found }));
        }
        match self.body(key, &record)? {
            Body::Members { version, size, wear } => {
                let new = Collection::with_rows(self, key, record.header, version);
                Ok(Some(Collection { size, wear, is_new: false, is_recorded: true, ..new }))
            }
            _ => Err(Error::new(ErrorKind::Corrupt, "a list where none belongs")),
        }
    }

    /// The collection at `key`, or a new empty one. It exists once it is saved with a member.
    pub(crate) fn collection_or_new(&mut self, key: &[u8], kind: Type) -> Result<Collection> {
        if let Some(recent) = self.take_recent(key) {
            recent.of(kind)?;
            return Ok(recent);
        }
        match self.collection(key, kind)? {
            Some(collection) => Ok(collection),
            None => self.new_collection(key, kind),
        }
    }

    /// A new empty collection that will replace whatever `key` is, once it is saved with a member.
    pub(crate) fn new_collection(&mut self, key: &[u8], kind: Type) -> Result<Collection> {
        self.store().limits().check_key(key)?;
        let header = Header { kind, expire_ms: 0 };
        if self.store().packing().is_on() {
            return Ok(Collection::packed(key, header, Packed::default()));
        }
        let version = self.new_version();
        Ok(Collection::with_rows(self, key, header, version))
    }

    /// Gives `key` the members of a record, as they would be stored now, in place of whatever it
    /// has.
    pub(crate) fn put_copy(&mut self, key: &[u8], header: Header, packed: Packed) -> Result<()> {
        let fits = self.store().packing().holds(&packed);
        let mut copy = Collection { changed: true, ..Collection::packed(key, header, packed) };
        if !fits {
            copy.unpack(self)?;
        }
        self.save(copy)
    }

    /// Writes the record of a collection that changed, or deletes it if no member is left.
    pub(crate) fn save(&mut self, mut collection: Collection) -> Result<()> {
        if collection.size == 0 {
            if collection.changed {
                self.delete_record(&collection.key);
            }
            return Ok(());
        }
        if collection.changed {
            if collection.is_worn() && self.has_room_to_renew() {
                if self.renew(&collection)? {
                    return Ok(());
                }
                collection.wear.forget_removed();
            }
            let record = collection.record();
            self.put_record_over(&collection.key, record, collection.is_recorded)?;
        }
        (collection.changed, collection.is_recorded) = (false, true);
        self.remember(collection);
        Ok(())
    }
}

impl Clone for Collection {
    /// Not derived: a `SmallVec` clones itself byte by byte.
    fn clone(&self) -> Self {
        let prefix = Prefix::from_slice(&self.prefix);
        let (packed, wear) = (self.packed.clone(), self.wear.clone());
        Self { key: self.key.clone(), packed, wear, prefix, ..*self }
    }
}

impl Collection {
    /// Without members, which will have rows.
    fn with_rows(tx: &Tx<'_>, key: &[u8], header: Header, version: u64) -> Self {
        let prefix = prefix(tx.space(), key, version);
        Self { version, prefix, packed: None, ..Self::packed(key, header, Packed::default()) }
    }

    /// With these members.
    fn packed(key: &[u8], header: Header, packed: Packed) -> Self {
        Self {
            key: key.to_vec(),
            header,
            size: packed.size(),
            changed: false,
            is_recorded: false,
            packed: Some(packed),
            version: 0,
            wear: Wear::default(),
            prefix: Prefix::new(),
            is_new: true,
        }
    }

    /// Whether the members are in the record.
    pub(crate) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }

    /// Gives the members rows, and room for more.
    fn unpack(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        let Some(packed) = self.packed.take() else { return Ok(()) };
        (self.version, self.changed, self.is_new) = (tx.new_version(), true, true);
        self.prefix = prefix(tx.space(), &self.key, self.version);
        let (key, kind) = (std::mem::take(&mut self.key), self.header.kind);
        let unpacked = packing::each_member(&packed, &key, kind, |member, value, score| {
            tx.put_row(DATA, &row_key(&self.prefix, member), Bytes::copy_from_slice(value));
            if let Some(score) = score {
                let row = score_key(&self.prefix, score, member);
                self.admit_score(&row);
                tx.put_row(SCORE, &row, Bytes::new());
            }
        });
        self.key = key;
        unpacked
    }

    /// The record, for which the parts it is made of are lent.
    fn record(&mut self) -> Vec<u8> {
        let body = match self.packed.take() {
            Some(packed) => Body::Packed(packed),
            None => {
                let wear = std::mem::take(&mut self.wear);
                Body::Members { version: self.version, size: self.size, wear }
            }
        };
        let record = encode_collection(self.header, &body);
        match body {
            Body::Packed(packed) => self.packed = Some(packed),
            Body::Members { wear, .. } => self.wear = wear,
            Body::Span { .. } => {}
        }
        record
    }

    /// Itself, if it is of this type.
    fn of(&self, kind: Type) -> Result<&Self> {
        if self.header.kind == kind { Ok(self) } else { Err(wrong_type()) }
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

    /// What is stored beside a member. Of a packed one a copy: a few bytes that are kept shall not
    /// keep a record in memory, nor what that may be a part of.
    pub(crate) fn get(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        match &self.packed {
            Some(_) => self.look(tx, member, Bytes::copy_from_slice),
            None => self.row(tx, member),
        }
    }

    /// Whether it has a member.
    pub(crate) fn has(&self, tx: &Tx<'_>, member: &[u8]) -> Result<bool> {
        Ok(self.look(tx, member, |_| ())?.is_some())
    }

    /// What is made of what is stored beside a member.
    pub(crate) fn look<T>(
        &self,
        tx: &Tx<'_>,
        member: &[u8],
        make: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let Some(packed) = &self.packed else {
            return Ok(self.row(tx, member)?.map(|value| make(&value)));
        };
        let value = packed.get(member).map_err(|why| malformed(&self.key, why))?;
        Ok(value.map(make))
    }

    /// For looking for so many members.
    pub(crate) fn looks(&self, members: u64) -> Result<Looks<'_>> {
        let packed = self.packed.as_ref().filter(|_| members > FEW_LOOKS);
        let index = packed.map(Packed::index).transpose();
        Ok(Looks { of: self, index: index.map_err(|why| malformed(&self.key, why))? })
    }

    /// What the row of a member holds.
    fn row(&self, tx: &Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        match (self.size, self.is_new) {
            (0, _) => Ok(None),
            (_, true) => Ok(tx.row_aside(DATA, &row_key(&self.prefix, member))),
            (_, false) => tx.row(DATA, &row_key(&self.prefix, member)),
        }
    }

    /// Sets what is stored beside a member.
    pub(crate) fn put(
        &mut self,
        tx: &mut Tx<'_>,
        member: &[u8],
        value: impl Into<Bytes>,
    ) -> Result<()> {
        let exists = self.has(tx, member)?;
        self.put_over(tx, member, value, exists)
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
        if self.put_packed(tx, member, &value, exists)? {
            return Ok(());
        }
        tx.put_row(DATA, &row_key(&self.prefix, member), value);
        if !exists {
            self.size += 1;
            self.changed = true;
        }
        Ok(())
    }

    /// Sets a member in the record, if it is there that they are and there is room.
    fn put_packed(
        &mut self,
        tx: &mut Tx<'_>,
        member: &[u8],
        value: &[u8],
        exists: bool,
    ) -> Result<bool> {
        let Some(packed) = &mut self.packed else { return Ok(false) };
        let (packing, members) = (tx.store().packing(), self.size + u64::from(!exists));
        let put = members <= packing.members
            && packed.put(member, value, packing.bytes).map_err(|why| malformed(&self.key, why))?;
        if !put {
            self.unpack(tx)?;
            return Ok(false);
        }
        (self.size, self.changed) = (members, true);
        Ok(true)
    }

    /// Removes a member; returns what was stored beside it.
    pub(crate) fn remove(&mut self, tx: &mut Tx<'_>, member: &[u8]) -> Result<Option<Bytes>> {
        if let Some(packed) = &mut self.packed {
            let old = packed.remove(member).map_err(|why| malformed(&self.key, why))?;
            self.size = packed.size();
            self.changed |= old.is_some();
            return Ok(old);
        }
        let old = self.get(tx, member)?;
        if old.is_some() {
            self.remove_present(tx, member)?;
        }
        Ok(old)
    }

    /// Removes a member that is there.
    pub(crate) fn remove_present(&mut self, tx: &mut Tx<'_>, member: &[u8]) -> Result<()> {
        if self.is_packed() {
            return self.remove(tx, member).map(drop);
        }
        tx.remove_row(DATA, &row_key(&self.prefix, member));
        self.size = self.size.saturating_sub(1);
        self.wear.count_removed(1);
        self.changed = true;
        Ok(())
    }

    /// All members in the order of their bytes: [`Walk::key`] less the prefix is the member.
    pub(crate) fn walk(&self, tx: &Tx<'_>) -> Result<Walk> {
        self.walk_from(tx, b"", false)
    }

    /// Members from `first` on (`backward`: before it, the last one first; all if it is empty).
    pub(crate) fn walk_from(&self, tx: &Tx<'_>, first: &[u8], backward: bool) -> Result<Walk> {
        if let Some(packed) = &self.packed {
            return packing::walk(packed, &self.key, first, backward);
        }
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
        if let Some(packed) = &self.packed {
            return packing::walk_scores(packed, &self.key, (lower, upper), backward);
        }
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
