//! Snapshots and transactions on a shared store: of this process, or kept by the holder.
//!
//! One that the holder keeps ends with the connection: with the holder, or with this process.

use std::sync::Arc;
use std::time::Duration;

use super::batch::SharedBatch;
use super::iter::SharedIter;
use super::keeper::{Keeper, Kept};
use super::store::{Seat, SharedStore, refuse_private};
use super::ticket::{milliseconds, ticket_of};
use crate::commands::entry::Entry;
use crate::commands::{
    Commands, Reply, ReplyBuilder, ReplySink, by_entry, name_of, refuse_session,
};
use crate::error::{Error, ErrorKind, Result};
use crate::remote::{LineFailure, Unanswered, Wait};
use crate::txn::{Db, Ticket, Transaction};
use crate::types::KeyRange;

/// A snapshot of a shared store, or what a transaction on it sees. Clones see the same.
///
/// ```
/// use lsmkv::{Options, Reply, SharedStore};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let store = SharedStore::open(dir.path(), &Options::default())?;
/// store.command(&[b"SET", b"k", b"before"])?;
/// let then = store.snapshot()?;
/// store.command(&[b"SET", b"k", b"after"])?;
/// assert_eq!(then.command(&[b"GET", b"k"])?, Reply::Bulk("before".into()));
/// # store.close()?;
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedView {
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Here(Box<Here>),
    There(There),
}

/// A view of this process.
#[derive(Clone, Debug)]
struct Here {
    store: SharedStore,
    db: Db,
}

impl Place {
    fn here(store: &SharedStore, db: Db) -> Self {
        Self::Here(Box::new(Here { store: store.clone(), db }))
    }
}

/// A view that the holder keeps.
#[derive(Clone, Debug)]
struct There {
    keeper: Arc<Keeper>,
    kept: Kept,
    /// The database of this handle.
    number: u32,
    /// Ends a snapshot with the last of its handles. A transaction ends with its own handle.
    _end: Option<Arc<EndOfView>>,
}

/// Ends a view when it is dropped.
#[derive(Debug)]
struct EndOfView(Arc<Keeper>);

impl Drop for EndOfView {
    fn drop(&mut self) {
        self.0.end_view();
    }
}

/// A transaction on a shared store: a [`SharedView`] whose commands see the store as it was when the
/// transaction began, and its own writes. Others see nothing of it before the commit. Dropping it
/// rolls it back.
///
/// ```
/// use lsmkv::{ErrorKind, Options, Reply, SharedStore};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let store = SharedStore::open(dir.path(), &Options::default())?;
/// let transaction = store.begin()?;
/// transaction.command(&[b"INCR", b"visits"])?;
/// store.command(&[b"INCR", b"visits"])?;
/// assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
/// assert_eq!(store.command(&[b"GET", b"visits"])?, Reply::Bulk("1".into()));
/// # store.close()?;
/// # Ok::<(), lsmkv::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedTransaction {
    view: SharedView,
    own: Own,
}

#[derive(Debug)]
enum Own {
    Here(Box<Transaction>),
    There(EndOfView),
}

impl SharedStore {
    /// Takes a snapshot: a handle that reads the store as it is now. Commands that write are refused.
    /// If the process that keeps it ends, its calls fail with [`ErrorKind::Io`].
    pub fn snapshot(&self) -> Result<SharedView> {
        let place = self.run(|seat| match seat {
            Seat::Here(db) => match db.snapshot() {
                Ok(snapshot) => Ok(Place::here(self, snapshot)),
                Err(error) => Err(Unanswered::Failed(error)),
            },
            Seat::There(remote) => {
                let keeper = Keeper::open(self, remote, Some(b"SNAPSHOT"))?;
                let end = Some(Arc::new(EndOfView(Arc::clone(&keeper))));
                let (kept, number) = (Kept::Snapshot, self.number());
                Ok(Place::There(There { keeper, kept, number, _end: end }))
            }
        })?;
        Ok(SharedView { place })
    }

    /// Begins a transaction. If the process that keeps it ends, nothing of it was committed, and its
    /// calls fail with [`ErrorKind::Io`].
    pub fn begin(&self) -> Result<SharedTransaction> {
        self.run(|seat| match seat {
            Seat::Here(db) => {
                let transaction = db.begin().map_err(Unanswered::Failed)?;
                let place = Place::here(self, Db::clone(&transaction));
                let (view, own) = (SharedView { place }, Own::Here(Box::new(transaction)));
                Ok(SharedTransaction { view, own })
            }
            Seat::There(remote) => {
                let keeper = Keeper::open(self, remote, Some(b"TRANSACTION"))?;
                let own = Own::There(EndOfView(Arc::clone(&keeper)));
                let (kept, number) = (Kept::Transaction, self.number());
                let place = Place::There(There { keeper, kept, number, _end: None });
                Ok(SharedTransaction { view: SharedView { place }, own })
            }
        })
    }
}

impl Commands for SharedView {
    fn call(&self, argv: &[&[u8]]) -> Result<Reply> {
        by_entry(argv, |entry, sink| self.run_entry(entry, argv, sink))
    }
}

impl SharedView {
    /// Runs any command by name. An error of the command is a reply.
    pub fn command(&self, argv: &[&[u8]]) -> Result<Reply> {
        ReplyBuilder::collect(|reply| self.command_into(argv, reply))
    }

    /// Runs any command by name and writes its reply to `sink`. An error of the command is a reply.
    pub fn command_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        let name = name_of(argv)?;
        refuse_session(name)?;
        check_kept(name, argv)?;
        self.run(None, argv, sink)
    }

    /// Runs a command whose entry is known. An error of the command is an `Err`.
    pub(crate) fn run_entry(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        self.run(Some(entry), argv, sink)
    }

    fn run(
        &self,
        entry: Option<&'static Entry>,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        match (&self.place, entry) {
            (Place::Here(here), Some(entry)) => here.db.run_entry_into(entry, argv, sink),
            (Place::Here(here), None) => here.db.command_into(argv, sink),
            (Place::There(there), entry) => {
                there.keeper.with(there.kept, |line| line.run(there.number, entry, argv, sink))
            }
        }
    }

    /// Runs commands that belong together, as on a connection of their own, and calls `each` after
    /// each reply.
    pub(crate) fn run_all<S: ReplySink>(
        &self,
        commands: &[Vec<&[u8]>],
        sink: &mut S,
        mut each: impl FnMut(&mut S),
    ) -> Result<()> {
        let there = match &self.place {
            Place::There(there) => there,
            Place::Here(here) => {
                let mut session = here.db.session();
                return commands.iter().try_for_each(|argv| {
                    session.command_into(argv, sink)?;
                    each(sink);
                    Ok(())
                });
            }
        };
        let mut of_session = false;
        for argv in commands {
            let name = name_of(argv)?;
            check_kept(name, argv)?;
            of_session |= belongs_together(name)?;
        }
        there.keeper.with(there.kept, |line| {
            let outcome = line.run_all(there.number, commands, sink, each);
            if of_session && !matches!(outcome, Err(LineFailure::NotSent(_) | LineFailure::Lost(_)))
            {
                line.forget_state()?;
            }
            outcome
        })
    }

    /// Another database of the same snapshot or transaction.
    pub fn select(&self, number: u32) -> Result<Self> {
        let place = match &self.place {
            Place::Here(here) => Place::here(&here.store, here.db.select(number)?),
            Place::There(there) => {
                there.keeper.with(there.kept, |line| line.select(number))?;
                Place::There(There { number, ..there.clone() })
            }
        };
        Ok(Self { place })
    }

    /// Another handle on the same snapshot. A transaction has none.
    pub(crate) fn snapshot(&self) -> Result<Self> {
        match &self.place {
            Place::Here(here) => Ok(Self { place: Place::here(&here.store, here.db.snapshot()?) }),
            Place::There(there) if there.kept == Kept::Snapshot => Ok(self.clone()),
            Place::There(_) => {
                let text = "a transaction has no snapshots: take one of the database";
                Err(Error::new(ErrorKind::Unsupported, text))
            }
        }
    }

    /// Iterates over the keys of a range as this handle sees them now. The iterator outlives the
    /// handle.
    pub fn iter(&self, range: KeyRange) -> Result<SharedIter> {
        match &self.place {
            Place::Here(here) => here.db.iter(range).map(SharedIter::here),
            Place::There(there) => {
                let begun = there.keeper.with(there.kept, |line| {
                    line.select(there.number)?;
                    SharedIter::begin(line, &range)
                })?;
                Ok(SharedIter::there(Arc::clone(&there.keeper), begun))
            }
        }
    }

    /// Write commands that run together.
    pub fn batch(&self) -> SharedBatch {
        SharedBatch::on_view(self.clone(), false)
    }

    /// The store.
    pub(crate) fn store(&self) -> &SharedStore {
        match &self.place {
            Place::Here(here) => &here.store,
            Place::There(there) => there.keeper.store(),
        }
    }

    /// The database in this process, if the view is here.
    pub(super) fn here(&self) -> Option<&Db> {
        match &self.place {
            Place::Here(here) => Some(&here.db),
            Place::There(_) => None,
        }
    }

    /// The database in this process, or the handle if it is elsewhere.
    pub(crate) fn into_here(self) -> std::result::Result<Db, Self> {
        match self.place {
            Place::Here(here) => Ok(here.db),
            place @ Place::There(_) => Err(Self { place }),
        }
    }

    /// Asks the holder that keeps the view for something. Fails if the view is here.
    pub(super) fn ask(&self, argv: &[&[u8]], wait: Option<Wait>) -> Result<Reply> {
        match &self.place {
            Place::There(there) => there.keeper.with(there.kept, |line| {
                line.select(there.number)?;
                line.ask(argv, wait)
            }),
            Place::Here(_) => Err(Error::new(ErrorKind::Unsupported, "the view is here")),
        }
    }
}

impl SharedTransaction {
    /// Makes all writes visible at once, and durable as the sync mode of the holder says.
    ///
    /// Fails with [`ErrorKind::Conflict`] if a key that it read or wrote has changed meanwhile.
    /// Nothing is changed then, and the whole transaction may be tried again. The transaction is
    /// over either way.
    pub fn commit(&self) -> Result<()> {
        match &self.own {
            Own::Here(transaction) => transaction.commit(),
            Own::There(end) => self.finish(end, &[b"LSMKV.SHARED", b"COMMIT"], None).map(drop),
        }
    }

    /// Commits, but waits at most `limit` for other writers of its keys. After
    /// [`ErrorKind::Timeout`] nothing has changed and the transaction goes on, unless its connection
    /// was lost.
    pub fn commit_timeout(&self, limit: Duration) -> Result<()> {
        match &self.own {
            Own::Here(transaction) => transaction.commit_timeout(limit),
            Own::There(end) => {
                let ms = milliseconds(limit);
                let argv: [&[u8]; 3] = [b"LSMKV.SHARED", b"COMMIT", ms.as_bytes()];
                self.finish(end, &argv, Some(Wait::For(limit))).map(drop)
            }
        }
    }

    /// Commits without waiting for the device. [`SharedStore::wait`] waits for the ticket.
    pub fn commit_async(&self) -> Result<Ticket> {
        match &self.own {
            Own::Here(transaction) => transaction.commit_async(),
            Own::There(end) => {
                let reply = self.finish(end, &[b"LSMKV.SHARED", b"COMMIT", b"ASYNC"], None)?;
                ticket_of(&reply)
            }
        }
    }

    /// Discards all writes and ends the transaction.
    pub fn rollback(&self) -> Result<()> {
        match &self.own {
            Own::Here(transaction) => transaction.rollback(),
            Own::There(EndOfView(keeper)) => {
                let asked = keeper.with(Kept::Transaction, |line| {
                    line.ask(&[b"LSMKV.SHARED", b"ROLLBACK"], None)
                });
                match asked {
                    // It was rolled back with its connection.
                    Err(error) if error.kind() != ErrorKind::Closed && keeper.is_lost()? => Ok(()),
                    outcome => outcome.map(drop),
                }
            }
        }
    }

    fn finish(&self, end: &EndOfView, argv: &[&[u8]], wait: Option<Wait>) -> Result<Reply> {
        end.0.commit(|line| line.ask(argv, wait))
    }

    /// The transaction in this process, or the handle if it is elsewhere.
    pub(crate) fn into_here(self) -> std::result::Result<Transaction, Self> {
        match self.own {
            Own::Here(transaction) => Ok(*transaction),
            own @ Own::There(_) => Err(Self { view: self.view, own }),
        }
    }
}

impl std::ops::Deref for SharedTransaction {
    type Target = SharedView;

    fn deref(&self) -> &SharedView {
        &self.view
    }
}

/// Fails for a command after which the connection of a view would be none any more.
fn check_kept(name: &[u8], argv: &[&[u8]]) -> Result<()> {
    if name.eq_ignore_ascii_case(b"MONITOR") {
        return Err(Error::new(
            ErrorKind::Misuse,
            "MONITOR belongs to a connection: use a session",
        ));
    }
    refuse_private(argv)
}

/// Whether a command belongs to a connection. Fails for one that would change more than what the
/// commands of one call have in common.
fn belongs_together(name: &[u8]) -> Result<bool> {
    const ALLOWED: [&[u8]; 9] =
        [b"MULTI", b"EXEC", b"DISCARD", b"WATCH", b"UNWATCH", b"SELECT", b"PING", b"ECHO", b"TIME"];
    let refused = refuse_session(name);
    if refused.is_ok() || ALLOWED.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Ok(refused.is_err());
    }
    refused.map(|()| false)
}
