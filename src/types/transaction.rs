//! Transactions: any commands over a moment that stays, committed together if nothing they
//! touched was changed meanwhile.
//!
//! Optimistic: commands take no locks. The commit locks the stripes of all keys that were read or
//! written by name, asks whether one was changed since the transaction's moment, and writes all in
//! one batch. What was found by walking the key space (KEYS, SCAN, DBSIZE, RANDOMKEY) is not
//! tracked.
//!
//! Threads: several may use one transaction; its commands run one after the other.

use std::cell::Ref;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::encoding::keys::{Space, meta_key};
use crate::engine::{Commit, hash_key};
use crate::error::{Error, ErrorKind, Result};
use crate::types::Db;
use crate::types::conflicts::Registered;
use crate::types::store::{Counts, Store, deadline_in};
use crate::types::ticket::Ticket;
use crate::types::txn::{Overlay, Touched, TouchedKey, Tx};
use crate::types::view::{Moment, View};

/// A transaction: a [`Db`] whose commands see one moment and what they themselves have written,
/// and change nothing for others before the commit. Dropping it rolls it back.
///
/// ```
/// use lsmkv::{Db, ErrorKind, Options};
///
/// let db = Db::open(":memory:", Options::default())?;
/// let txn = db.begin()?;
/// txn.incr(b"visits")?;
/// txn.rpush(b"log", &[b"came by"])?;
/// assert_eq!(db.get(b"visits")?, None);
/// txn.commit()?;
/// assert_eq!(db.get(b"visits")?.as_deref(), Some(&b"1"[..]));
///
/// let txn = db.begin()?;
/// txn.incr(b"visits")?;
/// db.incr(b"visits")?;
/// assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Conflict);
/// assert_eq!(db.get(b"visits")?.as_deref(), Some(&b"2"[..]));
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction {
    db: Db,
    running: Arc<Running>,
}

impl Transaction {
    /// Makes all of it visible at once, and durable as the sync mode says.
    ///
    /// [`ErrorKind::Conflict`]: a key that was read or written was changed, has expired, or was in
    /// a database that was emptied or swapped, since the transaction began; nothing was changed,
    /// and the whole transaction may be tried again. It is over either way.
    pub fn commit(&self) -> Result<()> {
        self.settle(self.running.commit(self.db.store(), None)?)
    }

    /// As `commit`, but waits for other writers of its keys no longer than `limit`. After
    /// [`ErrorKind::Timeout`] nothing was changed and the transaction goes on.
    pub fn commit_timeout(&self, limit: Duration) -> Result<()> {
        self.settle(self.running.commit(self.db.store(), deadline_in(limit))?)
    }

    /// As `commit`, but does not wait for the device: see [`Db::wait`].
    pub fn commit_async(&self) -> Result<Ticket> {
        Ok(Ticket::of(self.running.commit(self.db.store(), None)?))
    }

    /// Forgets all of it.
    pub fn rollback(&self) -> Result<()> {
        self.running.end().map(drop)
    }

    fn settle(&self, commit: Option<Commit>) -> Result<()> {
        self.db.store().settle(commit, self.db.sync_mode())
    }
}

impl Deref for Transaction {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // Handles made from it may live on: they find it over.
        let _ = self.running.end();
    }
}

impl Db {
    /// Begins a transaction on this database; [`Db::select`] on it reaches the others.
    pub fn begin(&self) -> Result<Transaction> {
        if !matches!(self.view(), View::Live) {
            let text = "a transaction begins on a database, not on a snapshot or a transaction";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let running = Arc::new(Running::begin(self.store())?);
        Ok(Transaction { db: self.on(View::Transaction(Arc::clone(&running))), running })
    }

    /// Runs `work` in a transaction and commits it, again and again while it conflicts with
    /// others. An error of `work` rolls back and is the result.
    ///
    /// ```
    /// # use lsmkv::{Db, Options};
    /// # let db = Db::open(":memory:", Options::default())?;
    /// # db.mset(&[(b"alice", b"10"), (b"bob", b"0")])?;
    /// db.transact(|txn| {
    ///     txn.decrby(b"alice", 3)?;
    ///     txn.incrby(b"bob", 3)
    /// })?;
    /// assert_eq!(db.get(b"bob")?.as_deref(), Some(&b"3"[..]));
    /// # Ok::<(), lsmkv::Error>(())
    /// ```
    pub fn transact<T>(&self, mut work: impl FnMut(&Db) -> Result<T>) -> Result<T> {
        for attempt in 0.. {
            let transaction = self.begin()?;
            let answer = work(&transaction)?;
            match transaction.commit() {
                Err(error) if error.kind() == ErrorKind::Conflict => step_back(attempt),
                result => return result.map(|()| answer),
            }
        }
        Err(Error::new(ErrorKind::Conflict, "a transaction was tried for ever in vain"))
    }
}

/// Lets those go first that a transaction has met, the longer the more often it did.
fn step_back(attempt: u32) {
    match attempt {
        0..4 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(20 << (attempt - 4).min(6))),
    }
}

/// What a transaction and the handles made from it share: nothing once it is over.
#[derive(Debug)]
pub(crate) struct Running(Mutex<Option<Box<State>>>);

#[derive(Debug)]
struct State {
    moment: Moment,
    overlay: Overlay,
    /// What databases stood for at the moment.
    spaces: BTreeMap<u32, Space>,
    /// After the moment's pin: changes are noted until nobody asks any more.
    _registered: Registered,
}

fn over() -> Error {
    Error::new(ErrorKind::Closed, "the transaction is over")
}

impl Running {
    fn begin(store: &Store) -> Result<Self> {
        // Before the moment: see `Conflicts`.
        let registered = store.conflicts().register(store.engine().sequence());
        let state = State {
            moment: Moment::take(store)?,
            overlay: Overlay::tracking(store.txn_max_bytes()),
            spaces: BTreeMap::new(),
            _registered: registered,
        };
        Ok(Self(Mutex::new(Some(Box::new(state)))))
    }

    /// Runs a command: it sees what those before it have written, and leaves no trace if it fails.
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

    fn commit(&self, store: &Store, deadline: Option<Instant>) -> Result<Option<Commit>> {
        let mut slot = self.0.lock();
        let state = slot.take().ok_or_else(over)?;
        let result = store.commit_transaction(&state, deadline);
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Timeout) {
            *slot = Some(state);
        }
        result
    }

    fn end(&self) -> Result<Box<State>> {
        self.0.lock().take().ok_or_else(over)
    }
}

impl State {
    fn run<T>(
        &mut self,
        store: &Store,
        database: u32,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T>,
    ) -> Result<T> {
        let space = self.space(store, database)?;
        let look = self.moment.look(database, space)?;
        let mut tx = Tx::new(store, look, std::mem::take(&mut self.overlay));
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
        let space = store.spaces().at(&self.moment.reader()?, number)?;
        self.spaces.insert(number, space);
        Ok(space)
    }
}

impl Store {
    /// Commits a transaction, if nothing it touched was changed since its moment.
    fn commit_transaction(
        &self,
        state: &State,
        deadline: Option<Instant>,
    ) -> Result<Option<Commit>> {
        let Some(touched) = state.overlay.touched() else { return Ok(None) };
        let maps = !state.overlay.assignments().is_empty();
        let mut held = match maps {
            true => self.lock_every(deadline)?,
            false => self.lock_hashes(hashes_of(&touched), deadline)?,
        };
        // Held, a stripe keeps databases from being emptied or swapped.
        if !maps && touched.keys().any(|(_, key)| self.has_moved(key)) {
            drop(held);
            held = self.lock_every(deadline)?;
        }
        self.validate(state, &touched, maps)?;
        let commit = self.commit(&state.overlay, Counts::AsChange)?;
        drop(held);
        Ok(commit)
    }

    fn validate(&self, state: &State, touched: &Ref<'_, Touched>, maps: bool) -> Result<()> {
        let since = state.moment.sequence();
        if maps && self.spaces().changes() != state.moment.changes() {
            return Err(conflict("a database was emptied or swapped meanwhile"));
        }
        let changes = self.conflicts().look();
        if changes.forgot_after(since) {
            return Err(conflict("more keys were changed meanwhile than are kept track of"));
        }
        if let Some((_, key)) = touched.keys().find(|(id, _)| changes.changed_after(*id, since)) {
            return Err(changed(key));
        }
        drop(changes);
        let (reader, now) = (self.engine().reader()?, self.times().now());
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

fn hashes_of(touched: &Touched) -> impl Iterator<Item = u64> {
    touched.keys().map(|(_, key)| hash_key(&meta_key(key.space, &key.key)))
}

fn conflict(why: &str) -> Error {
    Error::new(ErrorKind::Conflict, why)
}

fn changed(key: &TouchedKey) -> Error {
    let shown = String::from_utf8_lossy(key.key.get(..64).unwrap_or(&key.key));
    conflict(&format!("the key {shown:?} was changed meanwhile"))
}

#[cfg(test)]
mod tests;
