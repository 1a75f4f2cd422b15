//! One command's, or one transaction's, look at the store: reads at one moment and one time, and
//! writes that are kept aside until they are committed as one batch, or dropped.
//!
//! Every command is a method of [`Tx`], in the file of its type. So the same code serves a single
//! command, a snapshot, a transaction and EXEC: reads see the writes kept aside over the moment's
//! data. A transaction keeps the [`Overlay`] between its commands.

mod ahead;
mod overlay;
mod seen;
mod touched;
mod walk;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Bound;

use bytes::Bytes;

use crate::encoding::keys::{MetaKey, Prefix, Space, meta_key};
use crate::encoding::meta::{Body, HEADER_BYTES, Header, Malformed, Type};
use crate::engine::{IterOptions, Reader, Sampler, Sequence, TreeId};
use crate::error::{Error, ErrorKind, Result};
use crate::types::collection::Collection;
use crate::types::spaces::Spaces;
use crate::types::store::Store;

pub(crate) use overlay::Overlay;
use overlay::Writes;
pub(crate) use touched::{Touched, TouchedKey};
pub(crate) use walk::{PackedRows, Walk};

/// One record for each user key.
pub(crate) const META: TreeId = TreeId(0);
/// Fields, members, elements.
pub(crate) const DATA: TreeId = TreeId(1);
/// Members of sorted sets by score.
pub(crate) const SCORE: TreeId = TreeId(2);
/// Their names, in the order of their ids.
pub(crate) const TREES: [&str; 3] = ["meta", "data", "score"];

/// See the module's documentation.
pub(crate) struct Tx<'a> {
    store: &'a Store,
    reader: Reader,
    now: u64,
    database: u32,
    space: Space,
    /// Whether walks that begin now leave the block cache as it is.
    spares_cache: bool,
    /// Databases stand for what they did at the reader's moment, not for what they do now.
    as_of_reader: bool,
    overlay: Overlay,
    /// Whether several commands run here.
    several: bool,
    /// The collection that was saved last, and its space, as its record tells it by now: commands
    /// that run together often come back to one. Forgotten whenever a record is written otherwise.
    recent: Option<(Space, Collection)>,
}

/// The look at the store that a [`Tx`] is given.
pub(crate) struct Look {
    pub(crate) reader: Reader,
    pub(crate) now: u64,
    pub(crate) database: u32,
    /// What the database stands for.
    pub(crate) space: Space,
    /// See [`Tx`].
    pub(crate) as_of_reader: bool,
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

fn too_large(most_bytes: usize) -> Error {
    let message = format!("the transaction would exceed txn_max_bytes, {most_bytes} bytes");
    Error::new(ErrorKind::TooLarge, message)
}

/// The error for a record that cannot be read.
pub(crate) fn malformed(key: &[u8], why: Malformed) -> Error {
    let shown = String::from_utf8_lossy(key.get(..64).unwrap_or(key));
    let kind = match why {
        Malformed::Encoding(_) => ErrorKind::Incompatible,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, format!("the record of key {shown:?} cannot be read: {why}"))
}

impl<'a> Tx<'a> {
    pub(crate) fn new(store: &'a Store, look: Look, overlay: Overlay) -> Self {
        let Look { reader, now, database, space, as_of_reader } = look;
        Self {
            store,
            reader,
            now,
            database,
            space,
            spares_cache: false,
            as_of_reader,
            overlay,
            several: false,
            recent: None,
        }
    }

    /// Keeps a collection that is as its record tells it, for the next command that asks for it.
    pub(crate) fn remember(&mut self, collection: Collection) {
        self.recent = self.several.then_some((self.space, collection));
    }

    /// The collection at `key`, if it was saved last.
    #[inline]
    pub(crate) fn recent(&self, key: &[u8]) -> Option<&Collection> {
        let (space, recent) = self.recent.as_ref()?;
        (recent.key() == key && *space == self.space).then_some(recent)
    }

    /// The same, to be changed and saved again.
    #[inline]
    pub(crate) fn take_recent(&mut self, key: &[u8]) -> Option<Collection> {
        self.recent(key)?;
        self.recent.take().map(|(_, recent)| recent)
    }

    /// What is kept aside.
    pub(crate) fn into_overlay(self) -> Overlay {
        self.overlay
    }

    /// Runs `work`; if it fails, it has changed nothing.
    pub(crate) fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (database, space) = (self.database, self.space);
        self.several = true;
        let mark = self.overlay.mark();
        let mut result = work(self);
        if self.overlay.is_too_large() {
            result = Err(too_large(self.overlay.most_bytes()));
        }
        match result {
            Ok(_) => self.overlay.keep(&mark),
            Err(_) => {
                self.overlay.go_back(&mark);
                self.recent = None;
                (self.database, self.space) = (database, space);
            }
        }
        result
    }

    /// The store.
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// The time this command looks at, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The newest commit it sees.
    pub(crate) fn sequence(&self) -> Sequence {
        self.reader.sequence()
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
        match self.overlay.assignments.iter().rev().find(|(assigned, _)| *assigned == number) {
            Some((_, space)) => Ok(*space),
            None if self.as_of_reader => self.store.spaces().at(&self.reader, number),
            None => self.store.spaces().of(number),
        }
    }

    /// Points a database at a space. Only for those who run alone.
    pub(crate) fn assign_space(&mut self, number: u32, space: Space) {
        let (key, value) = Spaces::assignment(number, space);
        self.put_row(META, &key, value.to_vec());
        self.overlay.assignments.push((number, space));
        if number == self.database {
            self.space = space;
        }
    }

    /// Points a database at a space that was never used. Only for those who run alone.
    pub(crate) fn empty_database(&mut self, number: u32) -> Result<()> {
        let (space, key, value) = self.store.spaces().fresh(&self.overlay.assignments)?;
        self.put_row(META, &key, value.to_vec());
        self.overlay.own_spaces_from = self.overlay.own_spaces_from.min(space.id());
        self.assign_space(number, space);
        Ok(())
    }

    /// Runs `work` on another database.
    pub(crate) fn on_database<T>(
        &mut self,
        number: u32,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let database = self.database;
        self.space = self.space_of(number)?;
        self.database = number;
        let result = work(self);
        // Anew: the work may have emptied or swapped it.
        self.space = self.space_of(database)?;
        self.database = database;
        result
    }

    /// Runs `work`, whose walks put nothing into the block cache if `spare` says so, also when they
    /// outlive this.
    pub(crate) fn sparing_cache<T>(
        &mut self,
        spare: bool,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.spares_cache, spare);
        let result = work(self);
        self.spares_cache = before;
        result
    }

    /// The value of a physical key.
    #[inline]
    pub(crate) fn row(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(write) = self.overlay.get(tree, key) {
            return Ok(write.clone());
        }
        self.moment_of(key)?.get(tree, key)
    }

    /// The row, if it is kept aside here.
    pub(crate) fn row_aside(&self, tree: TreeId, key: &[u8]) -> Option<Bytes> {
        self.overlay.get(tree, key)?.clone()
    }

    /// Whether the row is kept aside here, or that it is removed.
    pub(crate) fn is_written(&self, tree: TreeId, key: &[u8]) -> bool {
        self.overlay.get(tree, key).is_some()
    }

    /// Whether rows may be written before the rest: see `build`.
    pub(crate) fn may_spill(&self) -> bool {
        self.overlay.assignments().is_empty()
    }

    /// Whether what is kept aside may be of any size.
    pub(crate) fn unlimited(&self) -> bool {
        self.overlay.most_bytes() == usize::MAX
    }

    /// Bytes that are kept aside, about.
    pub(crate) fn bytes_aside(&self) -> usize {
        self.overlay.bytes()
    }

    /// Whether a walk along `tree` costs no more than the rows it passes: there is nothing to sort
    /// first, and little is kept aside.
    pub(crate) fn walks_at_once(&self, tree: TreeId) -> bool {
        const LITTLE: usize = 1024;
        let aside = self.overlay.of(tree).map_or(0, Writes::len);
        aside <= LITTLE && self.reader.is_ordered(tree)
    }

    /// Rows that begin with this are in the store, newer than the moment this looks at.
    pub(crate) fn note_spilled(&mut self, prefix: Prefix) {
        self.overlay.spilled.push(prefix);
    }

    /// The moment at which a physical key, and those of its collection, are to be read.
    #[inline]
    fn moment_of(&self, key: &[u8]) -> Result<Cow<'_, Reader>> {
        if self.overlay.spilled.iter().any(|prefix| key.starts_with(prefix)) {
            return self.store.engine().reader().map(Cow::Owned);
        }
        Ok(Cow::Borrowed(&self.reader))
    }

    /// Sets a physical key.
    pub(crate) fn put_row(&mut self, tree: TreeId, key: &[u8], value: impl Into<Bytes>) {
        self.forget_recent(tree);
        self.overlay.write(tree, key, Some(value.into()));
    }

    /// Removes a physical key.
    pub(crate) fn remove_row(&mut self, tree: TreeId, key: &[u8]) {
        self.forget_recent(tree);
        self.overlay.write(tree, key, None);
    }

    /// Something is about to be written to a tree.
    #[inline]
    fn forget_recent(&mut self, tree: TreeId) {
        if tree == META {
            self.recent = None;
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
        self.rows_cached(tree, lower, upper, backward, true)
    }

    /// [`Tx::rows`]; `keep` tells whether blocks that are read stay in the cache.
    pub(crate) fn rows_cached(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
        keep: bool,
    ) -> Result<Walk> {
        let empty = upper.is_some_and(|upper| upper <= lower);
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            no_fill: !keep || self.spares_cache,
        };
        let base = if empty { None } else { Some(self.moment_of(lower)?.iter(tree, options)?) };
        let bounds = (Bound::Included(lower), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let mut aside = Vec::new();
        if let Some(writes) = self.overlay.of(tree).filter(|_| !empty) {
            aside = copied(writes, bounds);
        }
        if !backward {
            // Taken from the back.
            aside.reverse();
        }
        Walk::new(base, aside, backward)
    }

    /// What is kept aside of the rows of `[lower, upper)`; `None`: removed.
    pub(crate) fn written(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> impl Iterator<Item = (&[u8], Option<&Bytes>)> {
        let bounds = (Bound::Included(lower), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let writes = self.overlay.of(tree).filter(|writes| !writes.is_empty());
        let range = writes.map(|writes| writes.range::<[u8], _>(bounds));
        range.into_iter().flatten().map(|(row, value)| (row.as_slice(), value.as_ref()))
    }

    /// Draws rows of `[lower, upper)` at random, of those in the store, not of those that are kept
    /// aside. `keep` as in [`Tx::rows_cached`].
    pub(crate) fn row_sampler(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        keep: bool,
    ) -> Result<Sampler> {
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            no_fill: !keep,
        };
        self.moment_of(lower)?.sampler(tree, options)
    }

    /// The record of a key that exists: it has not expired.
    #[inline]
    pub(crate) fn record(&self, key: &[u8]) -> Result<Option<Record>> {
        self.store.limits().check_key(key)?;
        self.record_at(key, &meta_key(self.space, key))
    }

    #[inline]
    fn record_at(&self, key: &[u8], meta: &MetaKey) -> Result<Option<Record>> {
        let found = self.live_record(key, meta)?;
        if let Some(touched) = self.tracker() {
            let expire_ms = found.as_ref().map(|record| record.header.expire_ms);
            touched.borrow_mut().read(self.database, self.space, key, expire_ms);
        }
        Ok(found)
    }

    fn live_record(&self, key: &[u8], meta: &MetaKey) -> Result<Option<Record>> {
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
        self.touch_record(key);
        let meta = meta_key(self.space, key);
        self.put_row(META, &meta, record);
        Ok(())
    }

    /// The same; `exists`: the key was read as one that exists, and keeps its expiry. Then nothing
    /// changes in which keys there are.
    pub(crate) fn put_record_over(
        &mut self,
        key: &[u8],
        record: Vec<u8>,
        exists: bool,
    ) -> Result<()> {
        if !exists {
            return self.put_record(key, record);
        }
        self.store.limits().check_key(key)?;
        self.touch_record(key);
        self.forget_recent(META);
        self.overlay.replace_record(&meta_key(self.space, key), record.into());
        Ok(())
    }

    /// Makes the key cease to exist, whatever its size: its rows become unreachable.
    pub(crate) fn delete_record(&mut self, key: &[u8]) {
        self.touch_record(key);
        let meta = meta_key(self.space, key);
        self.remove_row(META, &meta);
    }

    /// The record of a key is about to be written.
    fn touch_record(&self, key: &[u8]) {
        if let Some(touched) = self.tracker() {
            touched.borrow_mut().write(self.database, self.space, key);
        }
    }

    /// Where to note the keys of the selected database that are touched, if that is wanted.
    #[inline]
    fn tracker(&self) -> Option<&RefCell<Touched>> {
        let wanted = self.space.id() < self.overlay.own_spaces_from;
        self.overlay.touched.as_deref().filter(|_| wanted)
    }

    /// On a full disk this command may use the space set aside for those that free some.
    pub(crate) fn frees_space(&mut self) {
        self.overlay.frees_space = true;
    }

    /// A version for a new collection: never used before, and smaller than every later commit.
    pub(crate) fn new_version(&mut self) -> u64 {
        let reserved = self.store.engine().reserve_number();
        let number = reserved.number();
        self.overlay.building.push(reserved);
        number
    }

    /// The moment this looks at, unless it has written records itself.
    pub(crate) fn recorded_at(&self) -> Option<Sequence> {
        let unwritten = self.overlay.of(META).is_some_and(Writes::is_empty);
        unwritten.then(|| self.reader.sequence())
    }
}

fn copied(writes: &Writes, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Vec<(Vec<u8>, Option<Bytes>)> {
    let range = writes.range::<[u8], _>(bounds);
    range.map(|(key, value)| (key.clone(), value.clone())).collect()
}
