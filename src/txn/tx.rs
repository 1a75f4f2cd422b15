//! The view that a command or transaction has of the store: reads at one read point, and writes
//! that stay pending until they are committed as one batch or dropped.
//!
//! Every command is a method of [`Tx`], in the file of its type. The same code serves a single
//! command, a snapshot, a transaction and EXEC: reads see the pending writes on top of the data at
//! the read point. A transaction keeps the [`Overlay`] between its commands.
//!
//! - `rows`: physical keys; `records`: user keys; `scripts`: what scripts ask.

use crate::encoding::keys::Space;
use crate::engine::{CacheFill, Reader, Sequence};
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::spaces::Spaces;
use crate::keyspace::trees::META;
use crate::txn::collection::Collection;
use crate::txn::outgoing::{Origin, Outbox, Outgoing};
use crate::txn::overlay::Overlay;
use crate::txn::store::Store;

mod records;
mod rows;
mod scripts;

pub(crate) use scripts::{ScriptBudget, ScriptStart};

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

    /// Whether the pending writes may be of any size.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.overlay.most_bytes() == usize::MAX
    }

    /// Roughly the bytes of the pending writes.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.overlay.bytes()
    }
}
