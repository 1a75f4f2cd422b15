//! Read points that stay: what a snapshot and a transaction read.
//!
//! A pinned read point is a sequence and a time, and the mapping of database numbers as of that
//! sequence. The time is registered before the sequence is pinned: a compaction that drops what has
//! expired either respects the time, or had dropped it before anything was pinned.

use std::sync::Arc;

use crate::encoding::keys::Space;
use crate::engine::{Reader, Sequence, Snapshot};
use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::read_clock::RegisteredTime;
use crate::txn::overlay::Overlay;
use crate::txn::store::Store;
use crate::txn::tx::{ReadPoint, Tx};

/// A sequence and a time at which several commands read.
#[derive(Debug)]
pub(crate) struct PinnedReadPoint {
    snapshot: Snapshot,
    time: RegisteredTime,
    changes: u64,
}

impl PinnedReadPoint {
    /// Pins the current sequence and time.
    pub(crate) fn take(store: &Store) -> Result<Self> {
        let time = store.clock().register();
        // Meanwhile the records agree with the mapping of databases in force.
        let _steady = store.spaces().steady();
        let changes = store.spaces().changes();
        Ok(Self { snapshot: store.engine().snapshot()?, time, changes })
    }

    pub(crate) fn sequence(&self) -> Sequence {
        self.snapshot.sequence()
    }

    /// How often the mapping of databases had changed by then.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn reader(&self) -> Result<Reader> {
        self.snapshot.reader()
    }

    /// A read point for one command.
    pub(crate) fn read_point(&self, database: u32, space: Space) -> Result<ReadPoint> {
        Ok(self.point_of(self.snapshot.reader()?, database, space))
    }

    fn point_of(&self, reader: Reader, database: u32, space: Space) -> ReadPoint {
        ReadPoint { reader, now: self.time.now(), database, space, as_of_reader: true }
    }
}

/// A snapshot with one of its databases selected.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotView {
    point: Arc<PinnedReadPoint>,
    space: Space,
}

impl SnapshotView {
    /// Takes a snapshot and selects a database.
    pub(crate) fn take(store: &Store, database: u32) -> Result<Self> {
        Self::of(Arc::new(PinnedReadPoint::take(store)?), store, database)
    }

    fn of(point: Arc<PinnedReadPoint>, store: &Store, database: u32) -> Result<Self> {
        let space = store.spaces().at(&point.reader()?, database)?;
        Ok(Self { point, space })
    }

    /// Selects another database of the same snapshot.
    pub(crate) fn select(&self, store: &Store, database: u32) -> Result<Self> {
        Self::of(Arc::clone(&self.point), store, database)
    }

    pub(crate) fn read<T>(
        &self,
        store: &Store,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let point = self.point.read_point(database, self.space)?;
        work(&mut Tx::new(store, point, Overlay::default()))
    }

    /// Runs a read whose result goes on to read: an iterator.
    pub(crate) fn read_for_long<T>(
        &self,
        store: &Store,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let reader = self.point.snapshot.lasting_reader()?;
        let point = self.point.point_of(reader, database, self.space);
        work(&mut Tx::new(store, point, Overlay::default()))
    }
}

/// The error for a write on a snapshot.
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "a snapshot takes no writes")
}
