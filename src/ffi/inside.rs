//! What a handle is, behind its shell: the store, a view of it, a transaction, a session, a batch.
//!
//! Handles made from others keep the store's inside alive; once the store is closed their calls
//! give CLOSED. A session or batch is used by one thread at a time, and a second one is told so.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::commands::{Batch, Reply, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::on::{On, Record};
use crate::ffi::slice::misuse;
use crate::types::{Db, Ticket, Transaction};

/// See the module's documentation.
pub(super) enum Inside {
    /// Made by lsmkv_open: closing it closes the store, for all handles made from it.
    Root(Db),
    /// The same store otherwise: another database, a snapshot, another sync mode.
    View(Db),
    /// Made by lsmkv_begin: closing it rolls it back.
    Transaction(Transaction),
    /// Made by lsmkv_session.
    Session {
        /// For what needs no look at the session.
        db: Db,
        session: Mutex<Session>,
    },
    /// Made by lsmkv_batch: notes writes until the commit.
    Batch {
        /// Where they will run.
        db: Db,
        batch: Mutex<Batch>,
    },
}

/// Runs one command by name; no reply when it was only noted.
pub(super) type Runner<'a> = dyn FnMut(&[&[u8]]) -> Result<Option<Reply>> + 'a;

impl Inside {
    pub(super) fn session(db: &Db) -> Self {
        Self::Session { db: db.clone(), session: Mutex::new(db.session()) }
    }

    pub(super) fn new_batch(db: &Db, strict: bool) -> Self {
        let batch = if strict { db.batch().strict() } else { db.batch() };
        Self::Batch { db: db.clone(), batch: Mutex::new(batch) }
    }

    /// Runs a call here.
    #[inline]
    pub(super) fn run<T>(&self, body: impl FnOnce(&On<'_>) -> Result<T>) -> Result<T> {
        self.check_open()?;
        match self {
            Self::Root(db) | Self::View(db) => body(&On::database(db)),
            Self::Transaction(transaction) => body(&On::database(transaction)),
            Self::Session { session, .. } => {
                let session = alone(session)?;
                if session.in_multi() {
                    return Err(misuse("after MULTI commands are given to lsmkv_command, to EXEC"));
                }
                body(&On::database(session.db()))
            }
            Self::Batch { db, batch } => body(&On::batch(db, batch)),
        }
    }

    /// Runs a command by name; none when it was only noted.
    pub(super) fn command(&self, argv: &[&[u8]]) -> Result<Option<Reply>> {
        self.check_open()?;
        match self {
            Self::Root(db) | Self::View(db) => db.command(argv).map(Some),
            Self::Transaction(transaction) => transaction.command(argv).map(Some),
            Self::Session { session, .. } => alone(session)?.command(argv).map(Some),
            Self::Batch { batch, .. } => alone(batch)?.command(argv).map(|()| None),
        }
    }

    /// Runs commands that belong together, as on a connection of their own: `body` gets what runs
    /// each.
    pub(super) fn commands(&self, body: impl FnOnce(&mut Runner<'_>) -> Result<()>) -> Result<()> {
        self.check_open()?;
        match self {
            Self::Root(_) | Self::View(_) | Self::Transaction(_) => {
                let mut session = self.store().session();
                body(&mut |argv| session.command(argv).map(Some))
            }
            Self::Session { session, .. } => {
                let mut session = alone(session)?;
                body(&mut |argv| session.command(argv).map(Some))
            }
            Self::Batch { batch, .. } => {
                let mut batch = alone(batch)?;
                body(&mut |argv| batch.command(argv).map(|()| None))
            }
        }
    }

    /// An error once the store was closed. The store's own handle is closed only after its calls
    /// have ended.
    #[inline]
    fn check_open(&self) -> Result<()> {
        match self {
            Self::Root(_) => Ok(()),
            other => other.store().check_open(),
        }
    }

    /// The handle commands run on, or one on the same store.
    pub(super) fn store(&self) -> &Db {
        match self {
            Self::Root(db) | Self::View(db) => db,
            Self::Session { db, .. } | Self::Batch { db, .. } => db,
            Self::Transaction(transaction) => transaction,
        }
    }

    /// Commits a transaction or batch, waiting for others no longer than `limit`.
    pub(super) fn commit(&self, limit: Option<Duration>) -> Result<()> {
        match (self, limit) {
            (Self::Transaction(transaction), None) => transaction.commit(),
            (Self::Transaction(transaction), Some(limit)) => transaction.commit_timeout(limit),
            (Self::Batch { batch, .. }, None) => alone(batch)?.commit(),
            (Self::Batch { batch, .. }, Some(limit)) => alone(batch)?.commit_timeout(limit),
            _ => Err(no_transaction()),
        }
    }

    /// Commits a transaction or batch without waiting for the device.
    pub(super) fn commit_async(&self) -> Result<Ticket> {
        match self {
            Self::Transaction(transaction) => transaction.commit_async(),
            Self::Batch { batch, .. } => alone(batch)?.commit_async(),
            _ => Err(no_transaction()),
        }
    }

    /// Forgets what a transaction or batch would write.
    pub(super) fn rollback(&self) -> Result<()> {
        match self {
            Self::Transaction(transaction) => transaction.rollback(),
            Self::Batch { batch, .. } => {
                alone(batch)?.clear();
                Ok(())
            }
            _ => Err(no_transaction()),
        }
    }

    /// The batch this is.
    pub(super) fn batch(&self) -> Result<MutexGuard<'_, Batch>> {
        match self {
            Self::Batch { batch, .. } => alone(batch),
            _ => {
                Err(Error::new(ErrorKind::Unsupported, "this handle is no batch: see lsmkv_batch"))
            }
        }
    }

    /// Before the calls under way are waited for: wakes those that would keep the store from being
    /// closed for no use.
    pub(super) fn announce_close(&self) {
        if let Self::Root(db) = self {
            db.announce_close();
        }
    }

    /// Ends what the handle was.
    pub(super) fn close(self) -> Result<()> {
        match self {
            Self::Root(db) => db.close(),
            _ => Ok(()),
        }
    }

    /// In a forked child: lets go of what the parent must keep. Whether this was an open store.
    pub(super) fn abandon_in_child(&self) -> bool {
        let Self::Root(db) = self else { return false };
        db.abandon_in_child();
        true
    }
}

impl Record for Mutex<Batch> {
    fn record(&self, argv: &[&[u8]]) -> Result<()> {
        alone(self)?.command(argv)
    }
}

/// What one thread at a time may use.
pub(super) fn alone<T>(shared: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    shared.try_lock().ok_or_else(|| {
        misuse("two threads use this handle at the same time: it is for one at a time")
    })
}

fn no_transaction() -> Error {
    let message = "this handle is no transaction and no batch: see lsmkv_begin and lsmkv_batch";
    Error::new(ErrorKind::Unsupported, message)
}
