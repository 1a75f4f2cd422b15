//! One command's, or one transaction's, look at the store: reads at one moment and one time, and
//! writes that are kept aside until they are committed as one batch, or dropped.
//!
//! Every command is a method of [`Tx`], in the file of its type. So the same code serves a single
//! command, a snapshot, a transaction and EXEC: reads see the writes kept aside over the moment's
//! data.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::encoding::keys::{MetaKey, Space, meta_key};
use crate::encoding::meta::{Body, HEADER_BYTES, Header, Malformed, Type};
use crate::engine::{Batch, Iter, IterOptions, Reader, ReservedNumber, TreeId};
use crate::error::{Error, ErrorKind, Result};
use crate::types::spaces::Spaces;
use crate::types::store::Store;

/// One record for each user key.
pub(crate) const META: TreeId = TreeId(0);
/// Fields, members, elements.
pub(crate) const DATA: TreeId = TreeId(1);
/// Members of sorted sets by score.
pub(crate) const SCORE: TreeId = TreeId(2);
/// Their names, in the order of their ids.
pub(crate) const TREES: [&str; 3] = ["meta", "data", "score"];

type Writes = BTreeMap<Vec<u8>, Option<Bytes>>;

/// See the module's documentation.
pub(crate) struct Tx<'a> {
    store: &'a Store,
    reader: Reader,
    now: u64,
    database: u32,
    space: Space,
    writes: [Writes; 3],
    /// Versions of collections made here: compactions leave their rows alone until the record
    /// that names them is visible.
    building: Vec<ReservedNumber>,
    frees_space: bool,
    /// Databases this empties or swaps, in order: in force for others once it is committed.
    assignments: Vec<(u32, Space)>,
}

/// What a [`Tx`] wants to be committed.
pub(crate) struct Pending {
    pub(crate) batch: Batch,
    pub(crate) frees_space: bool,
    /// To be kept until the batch is visible.
    pub(crate) building: Vec<ReservedNumber>,
    /// To be applied once the batch is visible, in order.
    pub(crate) assignments: Vec<(u32, Space)>,
}

/// A record of the meta tree whose key exists now.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) header: Header,
    pub(crate) bytes: Bytes,
}

impl Record {
    /// The part after the header: the value of a String.
    pub(crate) fn value(&self) -> Bytes {
        self.bytes.slice(HEADER_BYTES.min(self.bytes.len())..)
    }
}

/// The error for a key of another type.
pub(crate) fn wrong_type() -> Error {
    let text = "WRONGTYPE Operation against a key holding the wrong kind of value";
    Error::new(ErrorKind::WrongType, text)
}

fn malformed(key: &[u8], why: Malformed) -> Error {
    let shown = String::from_utf8_lossy(key.get(..64).unwrap_or(key));
    let kind = match why {
        Malformed::Encoding(_) => ErrorKind::Incompatible,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("the record of key {shown:?} cannot be read: {why}"))
}

impl<'a> Tx<'a> {
    pub(crate) fn new(store: &'a Store, reader: Reader, now: u64, database: u32) -> Result<Self> {
        let space = store.spaces().of(database)?;
        Ok(Self {
            store,
            reader,
            now,
            database,
            space,
            writes: Default::default(),
            building: Vec::new(),
            frees_space: false,
            assignments: Vec::new(),
        })
    }

    /// The store.
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// The time this command looks at, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The number of the selected database.
    pub(crate) fn database(&self) -> u32 {
        self.database
    }

    /// The space of the selected database.
    pub(crate) fn space(&self) -> Space {
        self.space
    }

    /// The space of a database, as this has left it so far.
    pub(crate) fn space_of(&self, number: u32) -> Result<Space> {
        match self.assignments.iter().rev().find(|(assigned, _)| *assigned == number) {
            Some((_, space)) => Ok(*space),
            None => self.store.spaces().of(number),
        }
    }

    /// Points a database at a space. Only for those who run alone.
    pub(crate) fn assign_space(&mut self, number: u32, space: Space) {
        let (key, value) = Spaces::assignment(number, space);
        self.put_row(META, &key, value.to_vec());
        self.assignments.push((number, space));
        if number == self.database {
            self.space = space;
        }
    }

    /// Points a database at a space that was never used. Only for those who run alone.
    pub(crate) fn empty_database(&mut self, number: u32) -> Result<()> {
        let (space, key, value) = self.store.spaces().fresh(&self.assignments)?;
        self.put_row(META, &key, value.to_vec());
        self.assign_space(number, space);
        Ok(())
    }

    /// Runs `work` on another database.
    pub(crate) fn on_database<T>(
        &mut self,
        number: u32,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let (database, space) = (self.database, self.space);
        self.space = self.space_of(number)?;
        self.database = number;
        let result = work(self);
        (self.database, self.space) = (database, space);
        result
    }

    fn written(&self, tree: TreeId) -> Option<&Writes> {
        self.writes.get(tree.index())
    }

    /// The value of a physical key.
    #[inline]
    pub(crate) fn row(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(write) = self.written(tree).filter(|w| !w.is_empty()).and_then(|w| w.get(key)) {
            return Ok(write.clone());
        }
        self.reader.get(tree, key)
    }

    /// Sets a physical key.
    pub(crate) fn put_row(&mut self, tree: TreeId, key: &[u8], value: impl Into<Bytes>) {
        if let Some(writes) = self.writes.get_mut(tree.index()) {
            writes.insert(key.to_vec(), Some(value.into()));
        }
    }

    /// Removes a physical key.
    pub(crate) fn remove_row(&mut self, tree: TreeId, key: &[u8]) {
        if let Some(writes) = self.writes.get_mut(tree.index()) {
            writes.insert(key.to_vec(), None);
        }
    }

    /// The rows of `[lower, upper)`, in order or backward, as they are at this point.
    pub(crate) fn rows(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
    ) -> Result<Walk> {
        let empty = upper.is_some_and(|upper| upper <= lower);
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            no_fill: false,
        };
        let base = if empty { None } else { Some(self.reader.iter(tree, options)?) };
        let bounds = (Bound::Included(lower), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let mut aside: Vec<(Vec<u8>, Option<Bytes>)> = Vec::new();
        if let Some(writes) = self.written(tree).filter(|writes| !empty && !writes.is_empty()) {
            let range = writes.range::<[u8], _>(bounds);
            aside.extend(range.map(|(key, value)| (key.clone(), value.clone())));
        }
        if !backward {
            // Taken from the back.
            aside.reverse();
        }
        Walk::new(base, aside, backward)
    }

    /// The record of a key that exists: it has not expired.
    #[inline]
    pub(crate) fn record(&self, key: &[u8]) -> Result<Option<Record>> {
        self.store.limits().check_key(key)?;
        self.record_at(key, &meta_key(self.space, key))
    }

    fn record_at(&self, key: &[u8], meta: &MetaKey) -> Result<Option<Record>> {
        let Some(bytes) = self.row(META, meta)? else { return Ok(None) };
        let header = self.header_of(key, &bytes)?;
        // Expiry before type: an expired key of another type is missing, not of the wrong type.
        if header.expired(self.now) {
            return Ok(None);
        }
        Ok(Some(Record { header, bytes }))
    }

    /// The header of a record of `key`.
    #[inline]
    pub(crate) fn header_of(&self, key: &[u8], record: &[u8]) -> Result<Header> {
        Header::decode(record).map_err(|why| malformed(key, why))
    }

    /// The record of a key that must be of this type if it exists.
    #[inline]
    pub(crate) fn typed(&self, key: &[u8], kind: Type) -> Result<Option<Record>> {
        match self.record(key)? {
            Some(record) if record.header.kind != kind => Err(wrong_type()),
            other => Ok(other),
        }
    }

    /// The part of a collection's record after the header.
    pub(crate) fn body(&self, key: &[u8], record: &Record) -> Result<Body> {
        Body::decode(record.header.kind, &record.bytes).map_err(|why| malformed(key, why))
    }

    /// Gives the key this record, whatever it had.
    pub(crate) fn put_record(&mut self, key: &[u8], record: Vec<u8>) -> Result<()> {
        self.store.limits().check_key(key)?;
        let meta = meta_key(self.space, key);
        self.put_row(META, &meta, record);
        Ok(())
    }

    /// Makes the key cease to exist, whatever its size: its rows become unreachable.
    pub(crate) fn delete_record(&mut self, key: &[u8]) {
        let meta = meta_key(self.space, key);
        self.remove_row(META, &meta);
    }

    /// On a full disk this command may use the space set aside for those that free some.
    pub(crate) fn frees_space(&mut self) {
        self.frees_space = true;
    }

    /// A version for a new collection: never used before, and smaller than every later commit.
    pub(crate) fn new_version(&mut self) -> u64 {
        let reserved = self.store.engine().reserve_number();
        let number = reserved.number();
        self.building.push(reserved);
        number
    }

    /// Whether anything is to be committed.
    pub(crate) fn is_dirty(&self) -> bool {
        self.writes.iter().any(|writes| !writes.is_empty())
    }

    /// The earliest expiry among the records written.
    pub(crate) fn soonest_expiry(&self) -> Option<u64> {
        let records = self.written(META)?.values().flatten();
        let headers = records.filter_map(|record| Header::decode(record).ok());
        headers.map(|header| header.expire_ms).filter(|expire_ms| *expire_ms != 0).min()
    }

    /// The writes as a batch, and what goes with it.
    pub(crate) fn into_pending(self) -> Pending {
        let mut batch = Batch::new();
        for (tree, writes) in (0u8..).zip(&self.writes) {
            for (key, value) in writes {
                match value {
                    Some(value) => batch.put(TreeId(tree), key, value),
                    None => batch.delete(TreeId(tree), key),
                }
            }
        }
        Pending {
            batch,
            frees_space: self.frees_space,
            building: self.building,
            assignments: self.assignments,
        }
    }
}

/// Rows of a range, one after the other: the engine's, with the writes kept aside over them.
#[derive(Debug)]
pub(crate) struct Walk {
    base: Option<Iter>,
    /// The next one is at the back.
    aside: Vec<(Vec<u8>, Option<Bytes>)>,
    backward: bool,
    started: bool,
    /// Whether the row shown is the last of `aside`.
    from_aside: bool,
}

impl Walk {
    fn new(
        mut base: Option<Iter>,
        aside: Vec<(Vec<u8>, Option<Bytes>)>,
        backward: bool,
    ) -> Result<Self> {
        if let Some(iter) = &mut base {
            if backward { iter.seek_to_last()? } else { iter.seek_to_first()? }
        }
        Ok(Self { base, aside, backward, started: false, from_aside: false })
    }

    /// Moves to the next row, the first at the first call; `false` when there are no more.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        if self.started {
            self.leave_current()?;
        }
        self.started = true;
        loop {
            let base = self.base.as_ref().filter(|iter| iter.valid()).map(Iter::key);
            let Some((key, value)) = self.aside.last() else {
                self.from_aside = false;
                return Ok(base.is_some());
            };
            let order = base.map(|base| {
                let order = base.cmp(key.as_slice());
                if self.backward { order.reverse() } else { order }
            });
            let exists = value.is_some();
            match order {
                Some(std::cmp::Ordering::Less) => {
                    self.from_aside = false;
                    return Ok(true);
                }
                Some(std::cmp::Ordering::Equal) => self.step_base()?,
                Some(std::cmp::Ordering::Greater) | None => {}
            }
            if exists {
                self.from_aside = true;
                return Ok(true);
            }
            self.aside.pop();
        }
    }

    fn leave_current(&mut self) -> Result<()> {
        if self.from_aside {
            self.aside.pop();
            return Ok(());
        }
        self.step_base()
    }

    fn step_base(&mut self) -> Result<()> {
        match &mut self.base {
            Some(iter) if self.backward => iter.prev(),
            Some(iter) => iter.next(),
            None => Ok(()),
        }
    }

    /// The key of the row.
    pub(crate) fn key(&self) -> &[u8] {
        match self.aside.last() {
            Some((key, _)) if self.from_aside => key,
            _ => self.base.as_ref().map_or(&[], Iter::key),
        }
    }

    /// The value of the row.
    pub(crate) fn value(&self) -> &[u8] {
        match self.aside.last() {
            Some((_, Some(value))) if self.from_aside => value,
            _ => self.base.as_ref().map_or(&[], Iter::value),
        }
    }

    /// The value of the row, to keep.
    pub(crate) fn value_bytes(&self) -> Bytes {
        match self.aside.last() {
            Some((_, Some(value))) if self.from_aside => value.clone(),
            _ => self.base.as_ref().map_or_else(Bytes::new, Iter::value_bytes),
        }
    }
}
