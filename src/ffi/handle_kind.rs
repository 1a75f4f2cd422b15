//! The kinds of handles: the store, a view of it, a transaction, a session, a batch.
//!
//! A handle made from another keeps the store's memory alive. After the store is closed, its calls
//! return CLOSED. One thread at a time may use a session or a batch; a second one gets an error.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::commands::entry::Entry;
use crate::commands::{Batch, ReplySink, Session};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::slice::misuse;
use crate::ffi::target::{CommandTarget, Record};
use crate::messages::{HandleWaits, Inbox};
use crate::txn::{Db, Ticket, Transaction};

/// The kind of a handle, with its contents.
pub(super) enum HandleKind {
    /// Made by lsmkv_open. Closing it closes the store for all handles made from it.
    Root(Db),
    /// Another view of the store: another database, a snapshot, another sync mode.
    View(Db),
    /// Made by lsmkv_begin. Closing it rolls back.
    Transaction(Transaction),
    /// Made by lsmkv_session.
    Session {
        /// The database, for calls that do not need the session.
        db: Db,
        session: Box<Mutex<Session>>,
        /// Where messages arrive, for a close that must end a wait.
        inbox: Arc<Inbox>,
    },
    /// Made by lsmkv_batch. It stores writes until the commit.
    Batch {
        /// The database on which the commands will run.
        db: Db,
        batch: Mutex<Batch>,
    },
}

/// Runs one command by name and writes its reply to a sink. Returns whether it ran: a batch only
/// stores it.
pub(super) type Runner<'a> = dyn FnMut(&[&[u8]], &mut dyn ReplySink) -> Result<bool> + 'a;

impl HandleKind {
    /// Another view of a store, whose close ends the calls that wait on it.
    pub(super) fn new_view(db: &Db) -> Self {
        Self::View(db.with_waits(Arc::default()))
    }

    pub(super) fn new_session(db: &Db) -> Self {
        let (waits, inbox) = (Arc::<HandleWaits>::default(), Arc::<Inbox>::default());
        let db = db.with_waits(waits);
        let mut session = db.session();
        session.use_inbox(Arc::clone(&inbox));
        session.list_as_client();
        Self::Session { db, session: Box::new(Mutex::new(session)), inbox }
    }

    pub(super) fn new_batch(db: &Db, strict: bool) -> Self {
        let batch = if strict { db.batch().strict() } else { db.batch() };
        Self::Batch { db: db.clone(), batch: Mutex::new(batch) }
    }

    /// Runs a call on this handle.
    #[inline]
    pub(super) fn run<T>(&self, body: impl FnOnce(&CommandTarget<'_>) -> Result<T>) -> Result<T> {
        self.check_open()?;
        match self {
            Self::Root(db) | Self::View(db) => body(&CommandTarget::database(db)),
            Self::Transaction(transaction) => body(&CommandTarget::database(transaction)),
            Self::Session { session, .. } => {
                let session = alone(session)?;
                if session.in_multi() {
                    return Err(misuse("after MULTI commands are given to lsmkv_command, to EXEC"));
                }
                body(&CommandTarget::database(session.db()))
            }
            Self::Batch { db, batch } => body(&CommandTarget::batch(db, batch)),
        }
    }

    /// Runs a command by name and writes its reply to `sink`. Returns whether it ran: a batch only
    /// stores it.
    pub(super) fn command(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<bool> {
        self.check_open()?;
        match self {
            Self::Root(db) | Self::View(db) => db.command_into(argv, sink)?,
            Self::Transaction(transaction) => transaction.command_into(argv, sink)?,
            Self::Session { session, .. } => alone(session)?.command_into(argv, sink)?,
            Self::Batch { batch, .. } => {
                alone(batch)?.command(argv)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs commands that belong together, as on a connection of their own. `body` receives the
    /// function that runs each.
    pub(super) fn commands(&self, body: impl FnOnce(&mut Runner<'_>) -> Result<()>) -> Result<()> {
        self.check_open()?;
        match self {
            Self::Root(_) | Self::View(_) | Self::Transaction(_) => {
                let mut session = self.store().session();
                body(&mut |argv, sink| session.command_into(argv, sink).map(|()| true))
            }
            Self::Session { session, .. } => {
                let mut session = alone(session)?;
                body(&mut |argv, sink| session.command_into(argv, sink).map(|()| true))
            }
            Self::Batch { batch, .. } => {
                let mut batch = alone(batch)?;
                body(&mut |argv, _| batch.command(argv).map(|()| false))
            }
        }
    }

    /// Fails once the store is closed. The store's own handle needs no check: it is closed only
    /// after its calls have ended.
    #[inline]
    fn check_open(&self) -> Result<()> {
        match self {
            Self::Root(_) => Ok(()),
            other => other.store().check_open(),
        }
    }

    /// The database on which commands run, or another handle of its store.
    pub(super) fn store(&self) -> &Db {
        match self {
            Self::Root(db) | Self::View(db) => db,
            Self::Session { db, .. } | Self::Batch { db, .. } => db,
            Self::Transaction(transaction) => transaction,
        }
    }

    /// Commits a transaction or batch, and waits at most `limit` for other writers.
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

    /// Discards the writes of a transaction or batch.
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

    /// The batch, if the handle is one.
    pub(super) fn batch(&self) -> Result<MutexGuard<'_, Batch>> {
        match self {
            Self::Batch { batch, .. } => alone(batch),
            _ => {
                Err(Error::new(ErrorKind::Unsupported, "this handle is no batch: see lsmkv_batch"))
            }
        }
    }

    /// Fails once the store is closed, and on a batch, which runs nothing.
    pub(super) fn runs_commands(&self) -> Result<()> {
        match self {
            Self::Batch { .. } => self.session().map(drop),
            other => other.check_open(),
        }
    }

    /// The session, if the handle is one.
    pub(super) fn session(&self) -> Result<MutexGuard<'_, Session>> {
        self.check_open()?;
        match self {
            Self::Session { session, .. } => alone(session),
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                "this handle is no session: see lsmkv_session",
            )),
        }
    }

    /// Wakes calls that would needlessly delay a close, before the close waits for running calls.
    pub(super) fn announce_close(&self) {
        match self {
            Self::Root(db) => db.announce_close(),
            Self::Session { inbox, db, .. } => {
                inbox.close();
                db.end_own_waits();
            }
            Self::View(db) => db.end_own_waits(),
            _ => {}
        }
    }

    /// Ends the transaction, session or batch, or closes the store.
    pub(super) fn close(self) -> Result<()> {
        match self {
            Self::Root(db) => db.close(),
            _ => Ok(()),
        }
    }

    /// Abandons in a forked child what the parent must keep. Returns whether this was an open
    /// store.
    pub(super) fn abandon_in_child(&self) -> bool {
        let Self::Root(db) = self else { return false };
        db.abandon_in_child();
        true
    }
}

impl Record for Mutex<Batch> {
    fn record(&self, entry: &'static Entry, argv: &[&[u8]]) -> Result<()> {
        alone(self)?.record(entry, argv)
    }
}

/// Locks what only one thread at a time may use. Fails if another thread has it.
pub(super) fn alone<T>(shared: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    shared.try_lock().ok_or_else(|| {
        misuse("two threads use this handle at the same time: it is for one at a time")
    })
}

fn no_transaction() -> Error {
    let message = "this handle is no transaction and no batch: see lsmkv_begin and lsmkv_batch";
    Error::new(ErrorKind::Unsupported, message)
}
