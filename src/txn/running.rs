//! The state of a transaction and its commit.

use std::cell::Ref;
use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;

use crate::encoding::keys::Space;
use crate::engine::{Commit, Sequence};
use crate::error::{Error, ErrorKind, Result};
use crate::txn::conflicts::ConflictObserver;
use crate::txn::execution::ChangeTracking;
use crate::txn::overlay::Overlay;
use crate::txn::snapshot::PinnedReadPoint;
use crate::txn::store::Store;
use crate::txn::touched::{Touched, TouchedKey};
use crate::txn::tx::Tx;

/// The state that a transaction and its handles share; `None` once it is over.
#[derive(Debug)]
pub(crate) struct RunningTransaction(Mutex<Option<Box<TransactionState>>>);

#[derive(Debug)]
struct TransactionState {
    point: PinnedReadPoint,
    overlay: Overlay,
    /// The spaces of databases at the read point.
    spaces: BTreeMap<u32, Space>,
    /// Dropped after the read point: until then changes are noted.
    _registered: ConflictObserver,
}

fn over() -> Error {
    Error::new(ErrorKind::Closed, "the transaction is over")
}

impl RunningTransaction {
    pub(super) fn begin(store: &Store) -> Result<Self> {
        // Before the read point is taken: see `Conflicts`.
        let registered = store.conflicts().register(store.engine().sequence());
        let state = TransactionState {
            point: PinnedReadPoint::take(store)?,
            overlay: Overlay::tracking(store.txn_max_bytes()),
            spaces: BTreeMap::new(),
            _registered: registered,
        };
        Ok(Self(Mutex::new(Some(Box::new(state)))))
    }

    /// Runs a command. It sees what earlier commands have written, and leaves no trace if it fails.
    pub(crate) fn run<T>(
        &self,
        store: &Store,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut slot = self.0.lock();
        // Taken out: if the command panics, the transaction is over.
        let mut state = slot.take().ok_or_else(over)?;
        let result = state.run(store, database, work);
        *slot = Some(state);
        result
    }

    pub(super) fn commit(
        &self,
        store: &Store,
        deadline: Option<Instant>,
    ) -> Result<Option<Commit>> {
        let mut slot = self.0.lock();
        let state = slot.take().ok_or_else(over)?;
        let result = store.commit_transaction(&state, deadline);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Timeout) {
            *slot = Some(state);
        }
        result
    }

    pub(super) fn end(&self) -> Result<()> {
        self.0.lock().take().map(drop).ok_or_else(over)
    }
}

impl TransactionState {
    fn run<T>(
        &mut self,
        store: &Store,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let space = self.space(store, database)?;
        let point = self.point.read_point(database, space)?;
        let mut tx = Tx::new(store, point, std::mem::take(&mut self.overlay));
        let result = tx.attempt(work);
        self.overlay = tx.into_overlay();
        result
    }

    fn space(&mut self, store: &Store, number: u32) -> Result<Space> {
        let assigned = self.overlay.assignments().iter().rev().find(|(of, _)| *of == number);
        if let Some((_, space)) = assigned {
            return Ok(*space);
        }
        if let Some(space) = self.spaces.get(&number) {
            return Ok(*space);
        }
        let space = store.spaces().at(&self.point.reader()?, number)?;
        self.spaces.insert(number, space);
        Ok(space)
    }
}

impl Store {
    /// Commits a transaction if nothing that it touched has changed since its read point.
    fn commit_transaction(
        &self,
        state: &TransactionState,
        deadline: Option<Instant>,
    ) -> Result<Option<Commit>> {
        let Some(touched) = state.overlay.touched() else { return Ok(None) };
        let maps = !state.overlay.assignments().is_empty();
        let mut held = match maps {
            true => self.lock_every(deadline)?,
            false => {
                let hashes = touched.keys().map(|(_, key)| self.hash_of(key.space, &key.key));
                self.lock_hashes(hashes, deadline)?
            }
        };
        // A held stripe keeps databases from being emptied or swapped.
        if !maps && touched.keys().any(|(_, key)| self.has_moved(key)) {
            drop(held);
            held = self.lock_every(deadline)?;
        }
        self.validate(state.point.sequence(), state.point.changes(), &touched, maps)?;
        let commit = self.commit(&state.overlay, ChangeTracking::Noted)?;
        drop(held);
        self.serve_waiters();
        Ok(commit)
    }

    /// Fails if a touched key was changed since a read point. `mapping`: how often the mapping of
    /// databases had changed by then; `maps`: the writes change it.
    pub(super) fn validate(
        &self,
        since: Sequence,
        mapping: u64,
        touched: &Ref<'_, Touched>,
        maps: bool,
    ) -> Result<()> {
        if maps && self.spaces().changes() != mapping {
            return Err(conflict("a database was emptied or swapped meanwhile"));
        }
        let changes = self.conflicts().changes();
        if changes.forgot_after(since) {
            return Err(conflict("more keys were changed meanwhile than are kept track of"));
        }
        if let Some((_, key)) = touched.keys().find(|(id, _)| changes.changed_after(*id, since)) {
            return Err(changed(key));
        }
        drop(changes);
        let (reader, now) = (self.engine().reader()?, self.clock().now());
        for (_, key) in touched.keys() {
            if self.is_lost(key, &reader, now)? {
                return Err(changed(key));
            }
            if !maps && self.has_moved(key) && self.differs_elsewhere(key, since, &reader, now)? {
                return Err(changed(key));
            }
        }
        Ok(())
    }
}

fn conflict(why: &str) -> Error {
    Error::new(ErrorKind::Conflict, why)
}

fn changed(key: &TouchedKey) -> Error {
    let shown = String::from_utf8_lossy(key.key.get(..64).unwrap_or(&key.key));
    conflict(&format!("the key {shown:?} was changed meanwhile"))
}
