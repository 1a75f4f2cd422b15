//! The kinds of handles: the store, a view of it, a transaction, a session, a batch.
//!
//! A handle made from another keeps the store's memory alive. After the store is closed, its calls
//! return CLOSED. One thread at a time may use a session or a batch; a second one gets an error.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::commands::entry::Entry;
use crate::commands::{Batch, Reply, ReplySink, Session};
use crate::error::{Error, ErrorKind, Result};
#[cfg(all(feature = "remote", feature = "server"))]
use crate::ffi::away::AwayHandle;
#[cfg(feature = "remote")]
use crate::ffi::remote::RemoteHandle;
#[cfg(all(feature = "remote", feature = "server"))]
use crate::ffi::shared::SharedHandle;
use crate::ffi::slice::misuse;
use crate::ffi::target::{CommandTarget, Elsewhere};
use crate::keyspace::limits::Limits;
use crate::messages::Inbox;
#[cfg(feature = "server")]
use crate::server::RunningServer;
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
    /// What runs in another process.
    #[cfg(feature = "remote")]
    Remote(RemoteHandle),
    /// What runs in the process that holds a shared store.
    #[cfg(all(feature = "remote", feature = "server"))]
    Shared(SharedHandle),
    /// Made by lsmkv_serve.
    #[cfg(feature = "server")]
    Server(RunningServer),
}

/// Runs one command by name and writes its reply to a sink. Returns whether it ran: a batch only
/// stores it.
pub(super) type Runner<'a> = dyn FnMut(&[&[u8]], &mut dyn ReplySink) -> Result<bool> + 'a;

impl HandleKind {
    /// Another view of a store, whose close ends the calls that wait on it.
    pub(super) fn new_view(db: &Db) -> Self {
        Self::View(db.with_waits(Arc::default()))
    }

    /// Another database of the store.
    pub(super) fn select(&self, number: u32) -> Result<Self> {
        #[cfg(feature = "remote")]
        if let Self::Remote(remote) = self {
            return remote.select(number).map(Self::Remote);
        }
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Self::Shared(shared) = self {
            return shared.select(number).map(Self::Shared);
        }
        self.with_database(|db| Ok(Self::new_view(&db.select(number)?)))
    }

    /// A snapshot of the store.
    pub(super) fn snapshot(&self) -> Result<Self> {
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Self::Shared(shared) = self {
            return Ok(match shared.snapshot()?.into_here() {
                Ok(snapshot) => Self::View(snapshot),
                Err(view) => Self::Shared(SharedHandle::View(view)),
            });
        }
        self.with_database(|db| db.snapshot().map(Self::View))
    }

    /// A transaction on the store.
    pub(super) fn begin(&self) -> Result<Self> {
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Self::Shared(shared) = self {
            return Ok(match shared.begin()?.into_here() {
                Ok(transaction) => Self::Transaction(transaction),
                Err(transaction) => Self::Shared(SharedHandle::Transaction(transaction)),
            });
        }
        self.with_database(|db| db.begin().map(Self::Transaction))
    }

    /// A session on the handle.
    pub(super) fn new_session(&self) -> Result<Self> {
        #[cfg(feature = "remote")]
        if let Self::Remote(remote) = self {
            return remote.new_session().map(Self::Remote);
        }
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Self::Shared(shared) = self {
            return shared.new_session().map(Self::Shared);
        }
        self.with_database(|db| {
            let (db, session, inbox) = Session::of_handle(db);
            Ok(Self::Session { db, session: Box::new(Mutex::new(session)), inbox })
        })
    }

    /// A batch for the handle.
    pub(super) fn new_batch(&self, strict: bool) -> Result<Self> {
        #[cfg(feature = "remote")]
        if let Self::Remote(remote) = self {
            return remote.new_batch(strict).map(Self::Remote);
        }
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Self::Shared(shared) = self {
            return shared.new_batch(strict).map(Self::Shared);
        }
        self.with_database(|db| {
            let batch = if strict { db.batch().strict() } else { db.batch() };
            Ok(Self::Batch { db: db.clone(), batch: Mutex::new(batch) })
        })
    }

    /// Calls `work` with the database of this process that the handle runs commands on. Fails if
    /// there is none.
    pub(super) fn with_database<T>(&self, work: impl FnOnce(&Db) -> Result<T>) -> Result<T> {
        self.run(|target| target.db().and_then(work))
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
            Self::Batch { db, batch } => body(&CommandTarget::elsewhere(db.limits(), batch)),
            #[cfg(feature = "remote")]
            Self::Remote(remote) => {
                remote.typed_session()?;
                body(&CommandTarget::elsewhere(remote.limits(), remote))
            }
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.run(body),
            #[cfg(feature = "server")]
            Self::Server(_) => Err(is_server()),
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
            #[cfg(feature = "remote")]
            Self::Remote(remote) => return remote.command(argv, sink),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => return shared.command(argv, sink),
            #[cfg(feature = "server")]
            Self::Server(_) => return Err(is_server()),
        }
        Ok(true)
    }

    /// Runs commands that belong together, as on a connection of their own. `body` receives the
    /// function that runs each.
    pub(super) fn commands(&self, body: impl FnOnce(&mut Runner<'_>) -> Result<()>) -> Result<()> {
        self.check_open()?;
        match self {
            Self::Root(db) | Self::View(db) => in_session(&mut db.session(), body),
            Self::Transaction(transaction) => in_session(&mut transaction.session(), body),
            Self::Session { session, .. } => in_session(&mut *alone(session)?, body),
            Self::Batch { batch, .. } => {
                let mut batch = alone(batch)?;
                body(&mut |argv, _| batch.command(argv).map(|()| false))
            }
            #[cfg(feature = "remote")]
            Self::Remote(remote) => body(&mut |argv, sink| remote.command(argv, sink)),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => body(&mut |argv, sink| shared.command(argv, sink)),
            #[cfg(feature = "server")]
            Self::Server(_) => Err(is_server()),
        }
    }

    /// What runs in another process, if the handle does.
    #[cfg(feature = "remote")]
    pub(super) fn remote(&self) -> Option<&RemoteHandle> {
        match self {
            Self::Remote(remote) => Some(remote),
            _ => None,
        }
    }

    /// What runs in the process that holds a shared store, if the handle does.
    #[cfg(all(feature = "remote", feature = "server"))]
    pub(super) fn shared(&self) -> Option<&SharedHandle> {
        match self {
            Self::Shared(shared) => Some(shared),
            _ => None,
        }
    }

    /// The limits of keys and values.
    pub(super) fn limits(&self) -> Limits {
        match self {
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.limits(),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.limits(),
            local => local.store().map_or(Limits { key: 0, value: 0 }, Db::limits),
        }
    }

    /// Fails once the store is closed. The store's own handle needs no check: it is closed only
    /// after its calls have ended.
    #[inline]
    fn check_open(&self) -> Result<()> {
        match self {
            Self::Root(_) => Ok(()),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(SharedHandle::Store(AwayHandle::Root(_))) => Ok(()),
            other => other.store().map_or(Ok(()), Db::check_open),
        }
    }

    /// The database on which commands run, or another handle of its store. `None` if the store
    /// belongs to another process.
    pub(super) fn store(&self) -> Option<&Db> {
        match self {
            Self::Root(db) | Self::View(db) => Some(db),
            Self::Session { db, .. } | Self::Batch { db, .. } => Some(db),
            Self::Transaction(transaction) => Some(transaction),
            #[cfg(feature = "remote")]
            Self::Remote(_) => None,
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.held(),
            #[cfg(feature = "server")]
            Self::Server(_) => None,
        }
    }

    /// Commits a transaction or batch, and waits at most `limit` for other writers.
    pub(super) fn commit(&self, limit: Option<Duration>) -> Result<()> {
        match (self, limit) {
            (Self::Transaction(transaction), None) => transaction.commit(),
            (Self::Transaction(transaction), Some(limit)) => transaction.commit_timeout(limit),
            (Self::Batch { batch, .. }, None) => alone(batch)?.commit(),
            (Self::Batch { batch, .. }, Some(limit)) => alone(batch)?.commit_timeout(limit),
            #[cfg(feature = "remote")]
            (Self::Remote(remote), limit) => remote.commit(limit),
            #[cfg(all(feature = "remote", feature = "server"))]
            (Self::Shared(shared), limit) => shared.commit(limit),
            _ => Err(no_transaction()),
        }
    }

    /// Commits a transaction or batch without waiting for the device.
    pub(super) fn commit_async(&self) -> Result<Ticket> {
        match self {
            Self::Transaction(transaction) => transaction.commit_async(),
            Self::Batch { batch, .. } => alone(batch)?.commit_async(),
            #[cfg(feature = "remote")]
            Self::Remote(remote) => Err(remote.unsupported("a ticket")),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.commit_async(),
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
            #[cfg(feature = "remote")]
            Self::Remote(remote) => {
                remote.batch()?.clear();
                Ok(())
            }
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.rollback(),
            _ => Err(no_transaction()),
        }
    }

    /// Forgets the commands of a batch.
    pub(super) fn clear_batch(&self) -> Result<()> {
        #[cfg(feature = "remote")]
        if let Self::Remote(remote) = self {
            remote.batch()?.clear();
            return Ok(());
        }
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Self::Shared(shared) = self {
            shared.batch()?.clear();
            return Ok(());
        }
        self.batch()?.clear();
        Ok(())
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

    /// Sets the priority of the commands that a batch stores from now on.
    pub(super) fn batch_priority(&self, priority: i32) -> Result<()> {
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Self::Shared(shared) = self {
            shared.batch()?.priority(priority);
            return Ok(());
        }
        self.batch()?.priority(priority);
        Ok(())
    }

    /// Fails once the store is closed, and on a batch, which runs nothing.
    pub(super) fn runs_commands(&self) -> Result<()> {
        match self {
            Self::Batch { .. } => self.session().map(drop),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.session().map(drop),
            other => other.check_open(),
        }
    }

    /// The session, if the handle is one.
    pub(super) fn session(&self) -> Result<MutexGuard<'_, Session>> {
        self.check_open()?;
        match self {
            Self::Session { session, .. } => alone(session),
            _ => Err(no_session()),
        }
    }

    /// Waits for a message of a session, at most until the deadline.
    pub(super) fn wait_for_message(&self, deadline: Option<Instant>) -> Result<Option<Reply>> {
        #[cfg(feature = "remote")]
        if let Some(remote) = self.remote() {
            return remote.session()?.wait(deadline);
        }
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Some(shared) = self.shared() {
            return shared.session()?.wait(deadline);
        }
        self.session()?.wait(deadline)
    }

    /// A descriptor that is readable while messages wait for a session.
    pub(super) fn message_descriptor(&self) -> Result<RawFd> {
        #[cfg(feature = "remote")]
        if let Some(remote) = self.remote() {
            return remote.session()?.message_descriptor();
        }
        #[cfg(all(feature = "remote", feature = "server"))]
        if let Some(shared) = self.shared() {
            return shared.session()?.message_descriptor();
        }
        self.session()?.message_descriptor()
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
            #[cfg(feature = "remote")]
            Self::Remote(remote) => remote.announce_close(),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.announce_close(),
            _ => {}
        }
    }

    /// Ends the transaction, session or batch, or closes the store.
    pub(super) fn close(self) -> Result<()> {
        match self {
            Self::Root(db) => db.close(),
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.close(),
            #[cfg(feature = "server")]
            Self::Server(server) => {
                server.stop();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Abandons in a forked child what the parent must keep. Returns whether this was an open
    /// store.
    pub(super) fn abandon_in_child(&self) -> bool {
        match self {
            Self::Root(db) => {
                db.abandon_in_child();
                true
            }
            #[cfg(all(feature = "remote", feature = "server"))]
            Self::Shared(shared) => shared.abandon_in_child(),
            _ => false,
        }
    }
}

impl Elsewhere for Mutex<Batch> {
    fn take(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        _sink: &mut dyn ReplySink,
    ) -> Result<bool> {
        alone(self)?.record(entry, argv).map(|()| false)
    }

    fn reads(&self) -> Result<()> {
        Err(self.no_database())
    }

    fn no_database(&self) -> Error {
        let message =
            "a batch only notes writes and runs them at lsmkv_commit: read on the database";
        Error::new(ErrorKind::Unsupported, message)
    }
}

/// Runs commands that belong together in a session.
fn in_session(
    session: &mut Session,
    body: impl FnOnce(&mut Runner<'_>) -> Result<()>,
) -> Result<()> {
    body(&mut |argv, sink| session.command_into(argv, sink).map(|()| true))
}

/// Locks what only one thread at a time may use. Fails if another thread has it.
pub(super) fn alone<T>(shared: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    shared.try_lock().ok_or_else(|| {
        misuse("two threads use this handle at the same time: it is for one at a time")
    })
}

/// The error for a server where a store is needed.
#[cfg(feature = "server")]
fn is_server() -> Error {
    misuse("this handle is a server: pass the one that lsmkv_open made")
}

/// The error for a function of sessions on another handle.
pub(super) fn no_session() -> Error {
    Error::new(ErrorKind::Unsupported, "this handle is no session: see lsmkv_session")
}

/// The error for a commit or rollback on another handle.
pub(super) fn no_transaction() -> Error {
    let message = "this handle is no transaction and no batch: see lsmkv_begin and lsmkv_batch";
    Error::new(ErrorKind::Unsupported, message)
}
