//! Transactions: commands at one read point, committed together if nothing that they touched has
//! changed meanwhile.
//!
//! Transactions are optimistic: commands take no locks. The commit locks the stripes of all keys
//! that were read or written by name, checks whether one has changed since the transaction's read
//! point, and writes everything in one batch. Keys found by walking the key space (KEYS, SCAN,
//! DBSIZE, RANDOMKEY) are not tracked.
//!
//! Threads: several may use one transaction; its commands run one after the other.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Commit;
use crate::error::{Error, ErrorKind, Result};
use crate::txn::db::Db;
use crate::txn::execution::deadline_in;
use crate::txn::running::RunningTransaction;
use crate::txn::ticket::Ticket;
use crate::txn::view::View;

/// A transaction: a [`Db`] whose commands read one snapshot and their own writes, and change
/// nothing for others before the commit. Dropping it rolls it back.
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
    running: Arc<RunningTransaction>,
}

impl Transaction {
    /// Makes all writes visible at once, and durable as the sync mode says.
    ///
    /// Fails with [`ErrorKind::Conflict`] if, since the transaction began, a key that it read or
    /// wrote has changed or expired, or the key's database was emptied or swapped. Nothing is
    /// changed then, and the whole transaction may be tried again. The transaction is over either
    /// way.
    pub fn commit(&self) -> Result<()> {
        self.settle(self.running.commit(self.db.store(), None)?)
    }

    /// Commits, but waits at most `limit` for other writers of its keys. After
    /// [`ErrorKind::Timeout`] nothing has changed and the transaction goes on.
    pub fn commit_timeout(&self, limit: Duration) -> Result<()> {
        self.settle(self.running.commit(self.db.store(), deadline_in(limit))?)
    }

    /// Commits without waiting for the device. [`Db::wait`] waits for the ticket.
    pub fn commit_async(&self) -> Result<Ticket> {
        Ok(Ticket::of(self.running.commit(self.db.store(), None)?))
    }

    /// Discards all writes and ends the transaction.
    pub fn rollback(&self) -> Result<()> {
        self.running.end()
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
        // Handles made from it may live on: their commands fail from now on.
        let _ = self.running.end();
    }
}

impl Db {
    /// Begins a transaction on this database. [`Db::select`] on the transaction reaches the other
    /// databases.
    pub fn begin(&self) -> Result<Transaction> {
        if !matches!(self.view(), View::Live) {
            let text = "a transaction begins on a database, not on a snapshot or a transaction";
            return Err(Error::new(ErrorKind::Unsupported, text));
        }
        let running = Arc::new(RunningTransaction::begin(self.store())?);
        Ok(Transaction { db: self.on(View::Transaction(Arc::clone(&running))), running })
    }

    /// Runs `work` in a transaction and commits it. Repeats both while the commit conflicts with
    /// others. If `work` fails, the transaction is rolled back and the error returned.
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

/// Waits before the next attempt, longer after more of them.
fn step_back(attempt: u32) {
    match attempt {
        0..4 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(20 << (attempt - 4).min(6))),
    }
}

#[cfg(test)]
mod tests;
