//! Moments that stay as they are: what a snapshot and a transaction look at.
//!
//! A moment is a sequence and a time, and the mapping of database numbers as of that sequence. The
//! time is registered before the sequence is pinned: a compaction that drops what has expired
//! either respects the time, or had dropped it before anything was pinned.

use std::sync::Arc;

use crate::encoding::keys::Space;
use crate::engine::{Reader, Sequence, Snapshot};
use crate::error::{Error, ErrorKind, Result};
use crate::types::store::Store;
use crate::types::times::RegisteredTime;
use crate::types::transaction::Running;
use crate::types::txn::{Look, Overlay, Tx};

/// What the commands of a handle look at.
#[derive(Clone)]
pub(crate) enum View {
    /// The store as it is when the command runs.
    Live,
    /// The store as it was.
    Snapshot(Past),
    /// The store as it was, with what the transaction has written.
    Transaction(Arc<Running>),
}

/// A sequence and a time that stay.
#[derive(Debug)]
pub(crate) struct Moment {
    snapshot: Snapshot,
    time: RegisteredTime,
    changes: u64,
}

impl Moment {
    /// This moment.
    pub(crate) fn take(store: &Store) -> Result<Self> {
        let time = store.times().register();
        // What the records of this moment say of databases is in force.
        let _steady = store.spaces().steady();
        let changes = store.spaces().changes();
        Ok(Self { snapshot: store.engine().snapshot()?, time, changes })
    }

    pub(crate) fn sequence(&self) -> Sequence {
        self.snapshot.sequence()
    }

    /// How often the mapping of databases had changed: see [`crate::types::spaces::Spaces`].
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn reader(&self) -> Result<Reader> {
        self.snapshot.reader()
    }

    /// For a command on this moment.
    pub(crate) fn look(&self, database: u32, space: Space) -> Result<Look> {
        let reader = self.snapshot.reader()?;
        Ok(Look { reader, now: self.time.now(), database, space, as_of_reader: true })
    }
}

/// A snapshot with a database selected.
#[derive(Clone, Debug)]
pub(crate) struct Past {
    moment: Arc<Moment>,
    space: Space,
}

impl Past {
    /// This moment, with a database selected.
    pub(crate) fn take(store: &Store, database: u32) -> Result<Self> {
        Self::of(Arc::new(Moment::take(store)?), store, database)
    }

    fn of(moment: Arc<Moment>, store: &Store, database: u32) -> Result<Self> {
        let space = store.spaces().at(&moment.reader()?, database)?;
        Ok(Self { moment, space })
    }

    /// The same moment with another database selected.
    pub(crate) fn select(&self, store: &Store, database: u32) -> Result<Self> {
        Self::of(Arc::clone(&self.moment), store, database)
    }

    pub(crate) fn read<T>(
        &self,
        store: &Store,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let look = self.moment.look(database, self.space)?;
        work(&mut Tx::new(store, look, Overlay::default()))
    }
}

/// The error for a write on a snapshot.
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "a snapshot takes no writes")
}
