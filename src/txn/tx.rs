//! The view that a command or transaction has of the store: reads at one read point, and writes
//! that stay pending until they are committed as one batch or dropped.
//!
//! Every command is a method of [`Tx`], in the file of its type. The same code serves a single
//! command, a snapshot, a transaction and EXEC: reads see the pending writes on top of the data at
//! the read point. A transaction keeps the [`Overlay`] between its commands.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Bound;
use std::time::Duration;

use bytes::Bytes;

use crate::encoding::keys::{MetaKey, Prefix, Space, meta_key};
use crate::encoding::meta::{Header, Type};
use crate::engine::{CacheFill, IterOptions, Reader, Sampler, Sequence, TreeId};
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::errors::{malformed, wrong_type};
use crate::keyspace::spaces::Spaces;
use crate::keyspace::trees::META;
use crate::messages::events::{Classes, Event};
use crate::txn::collection::Collection;
use crate::txn::outgoing::{Origin, Outbox, Outgoing};
use crate::txn::overlay::Overlay;
use crate::txn::pending_write::{PendingWrite, Writes};
use crate::txn::record::Record;
use crate::txn::store::Store;
use crate::txn::touched::Touched;
use crate::txn::walk::Walk;

/// Runs commands at one read point and collects their writes.
pub(crate) struct Tx<'a> {
    store: &'a Store,
    reader: Reader,
    now: u64,
    database: u32,
    space: Space,
    /// Whether walks that begin now put blocks into the block cache.
    cache_fill: CacheFill,
    /// Whether database numbers are resolved as of the reader's sequence instead of now.
    as_of_reader: bool,
    overlay: Overlay,
    /// Whether several commands run on this `Tx`.
    several: bool,
    /// Whether the current command only reads.
    reads: bool,
    /// Whether pending writes are committed in the end.
    commits: bool,
    /// The collection that was saved last, and its space. Commands that run together often return
    /// to the same one. Any other write of a record clears it.
    recent: Option<(Space, Collection)>,
    /// Whether a script that runs here may be started again alone.
    restartable: bool,
    /// Whether the script asked for that.
    wants_alone: bool,
    /// What a second run of a script has from the first.
    script_start: Option<ScriptStart>,
}

/// What both runs of a script that starts again have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptStart {
    /// The seed of its random numbers.
    pub(crate) seed: u64,
    /// The time that it sees, in milliseconds since 1970.
    pub(crate) now: u64,
    /// The time that it may take before it is given up.
    pub(crate) budget: Option<Duration>,
}

/// Where a [`Tx`] reads: a reader, a time and a database.
pub(crate) struct ReadPoint {
    pub(crate) reader: Reader,
    pub(crate) now: u64,
    pub(crate) database: u32,
    /// The space of the database.
    pub(crate) space: Space,
    /// Whether database numbers are resolved as of the reader's sequence instead of now.
    pub(crate) as_of_reader: bool,
}

fn too_large(most_bytes: usize, option: &str) -> Error {
    let what = if option == "script_max_bytes" { "script" } else { "transaction" };
    let message = format!("ERR the {what} would exceed {most_bytes} bytes: see {option}");
    Error::new(ErrorKind::TooLarge, message)
}

impl<'a> Tx<'a> {
    pub(crate) fn new(store: &'a Store, point: ReadPoint, overlay: Overlay) -> Self {
        let ReadPoint { reader, now, database, space, as_of_reader } = point;
        Self {
            store,
            reader,
            now,
            database,
            space,
            cache_fill: CacheFill::Fill,
            as_of_reader,
            overlay,
            several: false,
            reads: false,
            commits: true,
            recent: None,
            restartable: false,
            wants_alone: false,
            script_start: None,
        }
    }

    /// Prepares for a script. `restartable`: it may ask to be started again alone.
    pub(super) fn start_script(&mut self, start: ScriptStart, restartable: bool) {
        (self.script_start, self.restartable) = (Some(start), restartable);
    }

    /// Gives a script that only reads the time that it may take.
    pub(crate) fn limit_script(&mut self, budget: Duration) {
        let start =
            ScriptStart { seed: self.store.random_seed(), now: self.now, budget: Some(budget) };
        self.start_script(start, false);
    }

    /// The seed of a script's random numbers.
    pub(crate) fn script_seed(&self) -> u64 {
        self.script_start.map_or_else(|| self.store.random_seed(), |start| start.seed)
    }

    /// The time that a script sees, in milliseconds since 1970.
    pub(crate) fn script_time(&self) -> u64 {
        self.script_start.map_or(self.now, |start| start.now)
    }

    /// The time that a script may take before it is given up.
    pub(crate) fn script_budget(&self) -> Option<Duration> {
        self.script_start.and_then(|start| start.budget)
    }

    /// Whether a script that needs to be alone must be started again.
    pub(crate) fn is_restartable(&self) -> bool {
        self.restartable
    }

    /// Asks for the script to be started again alone.
    pub(crate) fn restart_alone(&mut self) {
        self.wants_alone = true;
    }

    /// Whether the script asked to be started again alone.
    pub(super) fn wants_alone(&self) -> bool {
        self.wants_alone
    }

    /// Tells that only reads run, and nothing is committed.
    #[inline]
    pub(super) fn only_reads(&mut self) {
        (self.reads, self.commits) = (true, false);
    }

    /// Whether commands have something to say.
    #[inline]
    pub(super) fn has_said(&self) -> bool {
        self.overlay.has_said()
    }

    /// Takes out what the commands have to say.
    pub(super) fn take_outbox(&self) -> Outbox {
        self.overlay.take_outbox()
    }

    /// Runs the lookups of a command that Redis counts as reads although it writes.
    pub(crate) fn as_read<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.reads, true);
        let result = work(self);
        self.reads = before;
        result
    }

    /// Tells whether the command that runs next only reads.
    pub(crate) fn set_reads(&mut self, reads: bool) {
        self.reads = reads;
    }

    /// Keeps a collection that was just saved for the next command that asks for it.
    pub(crate) fn remember(&mut self, collection: Collection) {
        self.recent = self.several.then_some((self.space, collection));
    }

    /// The collection at `key`, if it is the one saved last.
    #[inline]
    pub(crate) fn recent(&self, key: &[u8]) -> Option<&Collection> {
        let (space, recent) = self.recent.as_ref()?;
        (recent.key == key && *space == self.space).then_some(recent)
    }

    /// Takes the collection at `key` for a change, if it is the one saved last.
    #[inline]
    pub(crate) fn take_recent(&mut self, key: &[u8]) -> Option<Collection> {
        self.recent(key)?;
        self.recent.take().map(|(_, recent)| recent)
    }

    /// The pending writes, for a change.
    pub(super) fn overlay_mut(&mut self) -> &mut Overlay {
        &mut self.overlay
    }

    /// The pending writes.
    pub(crate) fn into_overlay(self) -> Overlay {
        self.overlay
    }

    /// Runs `work`, and undoes its writes if it fails.
    pub(crate) fn attempt<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (database, space) = (self.database, self.space);
        self.several = true;
        let savepoint = self.overlay.savepoint();
        let mut result = work(self);
        if self.overlay.is_too_large() {
            result = Err(too_large(self.overlay.most_bytes(), self.overlay.limited_by()));
        }
        match result {
            Ok(_) => self.overlay.release(&savepoint),
            Err(_) => {
                self.overlay.rollback_to(&savepoint);
                self.recent = None;
                (self.database, self.space) = (database, space);
            }
        }
        result
    }

    /// Tells which client runs the next command, if it tracks keys.
    pub(crate) fn set_origin(&mut self, origin: Option<Origin>) {
        self.overlay.set_origin(origin);
    }

    /// Notes that the command of a client that tracks keys has read.
    #[inline]
    pub(crate) fn note_read(&mut self) {
        self.overlay.note_read();
    }

    /// Tells clients that track keys that a database was emptied.
    pub(crate) fn announce_flush(&mut self) {
        self.say(Outgoing::Flushed);
    }

    /// Adds something to say after the commit.
    pub(super) fn say(&mut self, outgoing: Outgoing) {
        self.overlay.say(outgoing);
    }

    /// The engine's reader at the read point.
    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The store.
    pub(crate) fn store(&self) -> &'a Store {
        self.store
    }

    /// The time at which the command reads, in milliseconds since 1970.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// The sequence of the newest visible commit.
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

    /// The space of a database, with pending changes of the mapping applied.
    pub(crate) fn space_of(&self, number: u32) -> Result<Space> {
        match self.overlay.assignments.iter().rev().find(|(assigned, _)| *assigned == number) {
            Some((_, space)) => Ok(*space),
            None if self.as_of_reader => self.store.spaces().at(&self.reader, number),
            None => self.store.spaces().of(number),
        }
    }

    /// Points a database at a space. The caller holds all locks.
    pub(crate) fn assign_space(&mut self, number: u32, space: Space) {
        let (key, value) = Spaces::assignment(number, space);
        self.put_row(META, &key, value.to_vec());
        self.overlay.assignments.push((number, space));
        if number == self.database {
            self.space = space;
        }
    }

    /// Points a database at a space that was never used. The caller holds all locks.
    pub(crate) fn empty_database(&mut self, number: u32) -> Result<()> {
        let (space, key, value) = self.store.spaces().fresh(&self.overlay.assignments)?;
        self.put_row(META, &key, value.to_vec());
        self.overlay.own_spaces_from = self.overlay.own_spaces_from.min(space.id());
        self.assign_space(number, space);
        Ok(())
    }

    /// Runs `work` with another database selected.
    pub(crate) fn on_database<T>(
        &mut self,
        number: u32,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let database = self.database;
        self.space = self.space_of(number)?;
        self.database = number;
        let result = work(self);
        // Resolved again: the work may have emptied or swapped the database.
        self.space = self.space_of(database)?;
        self.database = database;
        result
    }

    /// Runs `work`. Its walks fill the block cache only if `cache_fill` says so, even if they
    /// outlive this call.
    pub(crate) fn with_cache_fill<T>(
        &mut self,
        cache_fill: CacheFill,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.cache_fill, cache_fill);
        let result = work(self);
        self.cache_fill = before;
        result
    }

    /// The value of a physical key.
    #[inline]
    pub(crate) fn row(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(write) = self.overlay.get(tree, key) {
            return Ok(write.clone());
        }
        self.reader_for(key)?.get(tree, key)
    }

    /// The pending value of a row, if there is one.
    pub(crate) fn pending_row(&self, tree: TreeId, key: &[u8]) -> Option<Bytes> {
        self.overlay.get(tree, key)?.clone()
    }

    /// Whether a collection under construction may write rows before the commit: see
    /// `collection_builder`.
    pub(crate) fn may_spill(&self) -> bool {
        self.overlay.assignments().is_empty()
    }

    /// Whether the pending writes may be of any size.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.overlay.most_bytes() == usize::MAX
    }

    /// Roughly the bytes of the pending writes.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.overlay.bytes()
    }

    /// Whether walks along `tree` are usual and cost no more than the rows they pass: few writes are
    /// pending.
    pub(crate) fn walk_is_cheap(&self, tree: TreeId) -> bool {
        const LITTLE: usize = 1024;
        let pending = self.overlay.of(tree).map_or(0, Writes::len);
        pending <= LITTLE && self.reader.was_walked(tree)
    }

    /// Notes that rows with this prefix are in the store and newer than the read point.
    pub(crate) fn note_spilled(&mut self, prefix: Prefix) {
        self.overlay.spilled.push(prefix);
    }

    /// The prefixes of rows that are newer than the read point.
    pub(super) fn spilled(&self) -> &[Prefix] {
        &self.overlay.spilled
    }

    /// The reader for a physical key and the rows of its collection.
    #[inline]
    pub(super) fn reader_for(&self, key: &[u8]) -> Result<Cow<'_, Reader>> {
        if self.overlay.spilled.iter().any(|prefix| key.starts_with(prefix)) {
            return self.store.engine().reader().map(Cow::Owned);
        }
        Ok(Cow::Borrowed(&self.reader))
    }

    /// Sets a physical key that is not counted.
    pub(crate) fn put_row(&mut self, tree: TreeId, key: &[u8], value: impl Into<Bytes>) {
        self.forget_recent(tree);
        self.overlay.write(tree, key, Some(value.into()));
    }

    /// Removes a physical key that is not counted.
    pub(crate) fn remove_row(&mut self, tree: TreeId, key: &[u8]) {
        self.forget_recent(tree);
        self.overlay.write(tree, key, None);
    }

    /// Clears the remembered collection if a record is about to be written.
    #[inline]
    fn forget_recent(&mut self, tree: TreeId) {
        if tree == META {
            self.recent = None;
        }
    }

    /// The rows of `[lower, upper)`, in order or backward, with pending writes applied.
    pub(crate) fn rows(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
    ) -> Result<Walk> {
        self.rows_cached(tree, lower, upper, backward, CacheFill::Fill)
    }

    /// The rows of [`Tx::rows`]; `cache_fill` tells whether blocks that are read are cached.
    pub(crate) fn rows_cached(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        backward: bool,
        cache_fill: CacheFill,
    ) -> Result<Walk> {
        let empty = upper.is_some_and(|upper| upper <= lower);
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            cache_fill: cache_fill.and(self.cache_fill),
        };
        let base = if empty { None } else { Some(self.reader_for(lower)?.iter(tree, options)?) };
        let bounds = (Bound::Included(lower), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let mut pending = Vec::new();
        if let Some(writes) = self.overlay.of(tree).filter(|_| !empty) {
            pending = copied(writes, bounds);
        }
        if !backward {
            // Taken from the back.
            pending.reverse();
        }
        Walk::new(base, pending, backward)
    }

    /// The pending writes of the rows in `[lower, upper)`, which is no inverted range.
    pub(super) fn pending_in(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> impl Iterator<Item = (&[u8], &PendingWrite)> {
        let bounds = (Bound::Included(lower), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let writes = self.overlay.of(tree).filter(|writes| !writes.is_empty());
        let range = writes.map(|writes| writes.range::<[u8], _>(bounds));
        range.into_iter().flatten().map(|(row, write)| (row.as_slice(), write))
    }

    /// Whether writes of rows in `[lower, upper)` are pending.
    pub(crate) fn has_pending(&self, tree: TreeId, lower: &[u8], upper: Option<&[u8]>) -> bool {
        self.pending_in(tree, lower, upper).next().is_some()
    }

    /// Draws rows of `[lower, upper)` at random from the store, without pending writes. `cache_fill`
    /// tells whether blocks that are read are cached.
    pub(crate) fn row_sampler(
        &self,
        tree: TreeId,
        lower: &[u8],
        upper: Option<&[u8]>,
        cache_fill: CacheFill,
    ) -> Result<Sampler> {
        let options = IterOptions {
            lower: Some(Bytes::copy_from_slice(lower)),
            upper: upper.map(Bytes::copy_from_slice),
            cache_fill,
        };
        self.reader_for(lower)?.sampler(tree, options)
    }

    /// The record of a key that exists and has not expired.
    #[inline]
    pub(crate) fn record(&self, key: &[u8]) -> Result<Option<Record>> {
        self.store.limits().check_key(key)?;
        self.record_at(key, &meta_key(self.space, key))
    }

    #[inline]
    fn record_at(&self, key: &[u8], meta: &MetaKey) -> Result<Option<Record>> {
        let found = self.live_record(key, meta)?;
        if found.is_none() && self.reads {
            self.miss(key);
        }
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
            self.meet_expired(key);
            return Ok(None);
        }
        Ok(Some(Record { header, bytes }))
    }

    /// Announces an expired key that a command has met, once.
    #[cold]
    fn meet_expired(&self, key: &[u8]) {
        if !self.store.hub().wants_expired() || self.as_of_reader {
            return;
        }
        // What a read has met is deleted afterwards, which announces it.
        if self.overlay.meet_expired(self.space, key) && self.commits {
            self.say_from(Classes::EXPIRED, "expired", key);
        }
    }

    /// Announces a read of a key that does not exist.
    #[cold]
    fn miss(&self, key: &[u8]) {
        if self.store.hub().classes().has(Classes::KEY_MISS) && !self.as_of_reader {
            self.say_from(Classes::KEY_MISS, "keymiss", key);
        }
    }

    fn say_from(&self, class: Classes, name: &'static str, key: &[u8]) {
        let event = Event { class, name, database: self.database, key: key.into() };
        self.overlay.say_found(Outgoing::Event(event));
    }

    /// Announces a key that is about to be made.
    #[cold]
    fn announce_new(&self, key: &[u8]) -> Result<()> {
        if self.store.hub().classes().has(Classes::NEW)
            && self.live_record(key, &meta_key(self.space, key))?.is_none()
        {
            self.say_from(Classes::NEW, "new", key);
        }
        Ok(())
    }

    /// Announces a key that is about to be deleted and made again.
    pub(crate) fn announce_replaced(&self, key: &[u8]) -> Result<()> {
        if self.store.hub().classes().has(Classes::NEW)
            && self.live_record(key, &meta_key(self.space, key))?.is_some()
        {
            self.say_from(Classes::NEW, "new", key);
        }
        Ok(())
    }

    /// Decodes the header of a record of `key`.
    #[inline]
    pub(crate) fn header_of(&self, key: &[u8], record: &[u8]) -> Result<Header> {
        Header::decode(record).map_err(|why| malformed(key, why))
    }

    /// The record of a key, which must be of this type if it exists.
    #[inline]
    pub(crate) fn typed(&self, key: &[u8], kind: Type) -> Result<Option<Record>> {
        match self.record(key)? {
            Some(record) if record.header.kind != kind => Err(wrong_type()),
            other => Ok(other),
        }
    }

    /// Sets the record of a key.
    pub(crate) fn put_record(&mut self, key: &[u8], record: Vec<u8>) -> Result<()> {
        self.store.limits().check_key(key)?;
        if self.store.hub().wants_any() {
            self.announce_new(key)?;
        }
        self.touch_record(key);
        let meta = meta_key(self.space, key);
        self.put_row(META, &meta, record);
        Ok(())
    }

    /// Sets the record of a key; `exists` says that the key has a record with the same expiry. Then
    /// the set of keys does not change.
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

    /// Deletes a key in constant time: its rows become unreachable.
    pub(crate) fn delete_record(&mut self, key: &[u8]) {
        self.touch_record(key);
        let meta = meta_key(self.space, key);
        self.remove_row(META, &meta);
    }

    /// Tracks a write of a key's record.
    fn touch_record(&self, key: &[u8]) {
        if let Some(touched) = self.tracker() {
            touched.borrow_mut().write(self.database, self.space, key);
        }
    }

    /// Where to track keys of the selected database, if they need tracking.
    #[inline]
    fn tracker(&self) -> Option<&RefCell<Touched>> {
        let wanted = self.space.id() < self.overlay.own_spaces_from;
        self.overlay.touched.as_deref().filter(|_| wanted)
    }

    /// Lets this command use the space reserved for a full disk, because it frees some.
    pub(crate) fn frees_space(&mut self) {
        self.overlay.frees_space = true;
    }

    /// Reserves a version for a new collection: never used before, and smaller than every later
    /// commit.
    pub(crate) fn new_version(&mut self) -> u64 {
        let reserved = self.store.engine().reserve_number();
        let number = reserved.number();
        self.overlay.building.push(reserved);
        number
    }

    /// The sequence of the reader, unless writes of records are pending.
    pub(crate) fn sequence_if_unwritten(&self) -> Option<Sequence> {
        let unwritten = self.overlay.of(META).is_none_or(Writes::is_empty);
        unwritten.then(|| self.reader.sequence())
    }
}

fn copied(writes: &Writes, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Vec<(Vec<u8>, Option<Bytes>)> {
    let range = writes.range::<[u8], _>(bounds);
    range.map(|(key, write)| (key.clone(), write.value.clone())).collect()
}
