//! [`Db`]: a handle on an open store. It runs the commands.

use std::sync::{Arc, Weak};
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::keyspace::limits::Limits;
use crate::messages::HandleWaits;
use crate::options::SyncMode;
use crate::txn::dependents::Dependent;
use crate::txn::execution::{ChangeTracking, Done, Scope};
use crate::txn::snapshot::{SnapshotView, read_only};
use crate::txn::store::Store;
use crate::txn::tx::{ScriptBudget, Tx};
use crate::txn::view::View;

/// A handle on an open store, with one of its databases selected.
///
/// Every command is a method. Any number of threads may use one handle at the same time.
///
/// ```
/// use lsmkv::{Db, Options};
///
/// let db = Db::open(":memory:", Options::default())?;
/// db.set(b"greeting", b"hello")?;
/// assert_eq!(db.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// assert_eq!(db.del(&[b"greeting"])?, 1);
/// assert_eq!(db.get(b"greeting")?, None);
/// db.close()?;
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Clone)]
pub struct Db {
    store: Arc<Store>,
    database: u32,
    /// Overrides the sync mode of the store.
    sync: Option<SyncMode>,
    view: View,
    /// The calls of this handle that wait, for a handle that is closed before the store is.
    waits: Option<Arc<HandleWaits>>,
    /// The time that a script may take before it is given up.
    script_budget: Option<ScriptBudget>,
}

impl Db {
    /// Makes a handle on a store that was just opened.
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, database: 0, sync: None, view: View::Live, waits: None, script_budget: None }
    }

    /// Returns a handle with database `number` selected. It reads the same snapshot or transaction
    /// as this handle.
    pub fn select(&self, number: u32) -> Result<Self> {
        self.store.spaces().of(number)?;
        let view = match &self.view {
            View::Snapshot(past) => View::Snapshot(past.select(&self.store, number)?),
            other => other.clone(),
        };
        Ok(Self { database: number, ..self.on(view) })
    }

    /// Takes a snapshot: a handle that reads the store as it is now. A command that writes fails on
    /// it with [`crate::ErrorKind::ReadOnly`]. Taking a snapshot is cheap. Until it is dropped, the
    /// space of what is deleted later cannot be reclaimed.
    ///
    /// ```
    /// # use lsmkv::{Db, ErrorKind, Options};
    /// # let db = Db::open(":memory:", Options::default())?;
    /// db.set(b"k", b"before")?;
    /// let then = db.snapshot()?;
    /// db.set(b"k", b"after")?;
    /// assert_eq!(then.get(b"k")?.as_deref(), Some(&b"before"[..]));
    /// assert_eq!(then.del(&[b"k"]).unwrap_err().kind(), ErrorKind::ReadOnly);
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn snapshot(&self) -> Result<Self> {
        match &self.view {
            View::Live => {
                Ok(self.on(View::Snapshot(SnapshotView::take(&self.store, self.database)?)))
            }
            View::Snapshot(_) => Ok(self.clone()),
            View::Transaction(_) => {
                let text = "a transaction has no snapshots: take one of the database";
                Err(Error::new(ErrorKind::Unsupported, text))
            }
        }
    }

    /// Returns a handle whose writes are flushed to the device as `mode` says, whatever the store's
    /// options say. `Interval` makes the store flush in the background from now on.
    pub fn with_sync(&self, mode: SyncMode) -> Self {
        Self { sync: Some(mode), ..self.clone() }
    }

    /// Returns a handle that gives a script up once it takes more than this.
    pub(crate) fn with_script_budget(&self, budget: ScriptBudget) -> Self {
        Self { script_budget: Some(budget), ..self.clone() }
    }

    pub(crate) fn script_budget(&self) -> Option<ScriptBudget> {
        self.script_budget
    }

    /// Returns a handle with another view.
    pub(crate) fn on(&self, view: View) -> Self {
        Self { view, ..self.clone() }
    }

    /// Returns a handle whose waiting calls are listed there.
    pub(crate) fn with_waits(&self, waits: Arc<HandleWaits>) -> Self {
        Self { waits: Some(waits), ..self.clone() }
    }

    /// Interrupts the calls that wait on this handle, now and later.
    pub(crate) fn end_own_waits(&self) {
        if let Some(waits) = &self.waits {
            waits.close();
        }
    }

    /// The list of this handle's waiting calls, if it has one.
    pub(crate) fn waits(&self) -> Option<&HandleWaits> {
        self.waits.as_deref()
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn sync_mode(&self) -> Option<SyncMode> {
        self.sync
    }

    /// Whether commands run on the store as it is now, not on a snapshot or in a transaction.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.view, View::Live)
    }

    /// The sync mode of this handle's writes.
    pub(crate) fn durability(&self) -> SyncMode {
        self.sync.unwrap_or(self.store.sync_mode())
    }

    /// The number of the selected database.
    pub fn database(&self) -> u32 {
        self.database
    }

    /// The number of databases.
    pub(crate) fn databases(&self) -> u32 {
        self.store.spaces().count()
    }

    /// Lists what uses the store on threads of its own, so that a close ends it first.
    pub(crate) fn add_dependent(&self, dependent: Weak<dyn Dependent>) -> Result<()> {
        match self.store.dependents().add(dependent) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Closed, "the store is closed")),
        }
    }

    /// Fails once the store is closed.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        self.store.engine().check_open()
    }

    /// The longest key and value that the store accepts.
    pub fn limits(&self) -> Limits {
        self.store.limits()
    }

    pub(crate) fn shared_store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Runs a read at one read point.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        match &self.view {
            View::Live => self.store.read(self.database, work),
            View::Snapshot(past) => past.read(&self.store, self.database, work),
            View::Transaction(running) => running.run(&self.store, self.database, work),
        }
    }

    /// Runs a read whose result goes on to read: an iterator.
    pub(crate) fn read_for_long<T>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        match &self.view {
            View::Live => self.store.read_for_long(self.database, work),
            View::Snapshot(past) => past.read_for_long(&self.store, self.database, work),
            View::Transaction(running) => running.run(&self.store, self.database, work),
        }
    }

    /// Runs a write that depends on these keys only, and commits all of it or nothing.
    pub(crate) fn write<T>(
        &self,
        keys: &[&[u8]],
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        match &self.view {
            View::Live => {
                let done = self.store.write(self.database, keys, ChangeTracking::Noted, work)?;
                self.settled(done)
            }
            View::Snapshot(_) => Err(read_only()),
            View::Transaction(running) => running.run(&self.store, self.database, work),
        }
    }

    /// Runs a write that may read and change any key of any database.
    pub(crate) fn write_alone<T>(&self, work: impl FnOnce(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        let done = self.write_in(&Scope::Every, None, work)?;
        self.settled(done)
    }

    /// Runs a write that may touch what `scope` says. Does not wait for the device.
    pub(crate) fn write_in<T>(
        &self,
        scope: &Scope<'_>,
        deadline: Option<Instant>,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<Done<T>> {
        match &self.view {
            View::Live => self.store.write_in(self.database, scope, deadline, work),
            View::Snapshot(_) => Err(read_only()),
            View::Transaction(running) => {
                Ok((running.run(&self.store, self.database, work)?, None))
            }
        }
    }

    /// Waits until a write is as durable as the sync mode says, and returns its result.
    pub(crate) fn settled<T>(&self, (answer, commit): Done<T>) -> Result<T> {
        self.store.settle(commit, self.sync)?;
        Ok(answer)
    }
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let view = match &self.view {
            View::Live => "live",
            View::Snapshot(_) => "snapshot",
            View::Transaction(_) => "transaction",
        };
        let mut shown = f.debug_struct("Db");
        shown.field("database", &self.database).field("view", &view).finish_non_exhaustive()
    }
}

/// Defines methods of [`Db`] that run the command of the same name on a [`Tx`]: `read` at one read
/// point, `write` under the locks of the keys in brackets, `alone` under all locks.
macro_rules! commands {
    ($($(#[$doc:meta])* $how:ident $([$($key:expr),*])? fn $name:ident(
        $($arg:ident: $type:ty),* $(,)?
    ) -> $answer:ty;)*) => {
        impl $crate::txn::db::Db {
            $($(#[$doc])*
            pub fn $name(&self, $($arg: $type),*) -> $crate::error::Result<$answer> {
                $crate::txn::db::commands!(@run self, $how, [$($($key),*)?], |tx| tx.$name($($arg),*))
            })*
        }
    };
    (@run $db:ident, read, [], $work:expr) => { $db.read($work) };
    (@run $db:ident, alone, [], $work:expr) => { $db.write_alone($work) };
    (@run $db:ident, write, [$($key:expr),*], $work:expr) => { $db.write(&[$($key),*], $work) };
    (@run $db:ident, write_keys, [$keys:expr], $work:expr) => { $db.write($keys, $work) };
}
pub(crate) use commands;
