//! Batches on a shared store. They are stored here, and run by whoever holds the store at the commit,
//! or in the view that they were made for.

use std::time::Duration;

use super::store::{Seat, SharedStore};
use super::ticket::{milliseconds, ticket_of};
use super::view::SharedView;
use crate::commands::entry::Entry;
use crate::commands::{Batch, Reply, StoredBatch, used_up};
use crate::error::{Error, ErrorKind, Result};
use crate::remote::Wait;
use crate::txn::{Db, Ticket};

/// Write commands that are stored first and applied together: all of them, or none if one fails.
#[derive(Debug)]
pub struct SharedBatch {
    on: On,
    commands: StoredBatch,
    committed: bool,
}

/// Where a batch will run.
#[derive(Debug)]
enum On {
    Store(SharedStore),
    View(SharedView),
}

/// How a batch is committed.
#[derive(Clone, Copy)]
enum How {
    Durable,
    Async,
    Within(Duration),
}

impl SharedBatch {
    pub(crate) fn new(store: SharedStore, strict: bool) -> Self {
        Self::on(On::Store(store), strict)
    }

    /// A batch that runs in a transaction.
    pub(crate) fn on_view(view: SharedView, strict: bool) -> Self {
        Self::on(On::View(view), strict)
    }

    fn on(on: On, strict: bool) -> Self {
        Self { on, commands: StoredBatch::new(strict), committed: false }
    }

    fn store(&self) -> &SharedStore {
        match &self.on {
            On::Store(store) => store,
            On::View(view) => view.store(),
        }
    }

    /// Stores a command by name. One that only reads is refused, and so is an unknown one.
    pub fn command(&mut self, argv: &[&[u8]]) -> Result<()> {
        self.record(StoredBatch::entry_of(argv)?, argv)
    }

    /// Stores a write command whose entry is known.
    pub(crate) fn record(&mut self, entry: &'static Entry, argv: &[&[u8]]) -> Result<()> {
        if self.committed {
            return Err(used_up());
        }
        let limits = self.store().limits();
        StoredBatch::keys(entry, argv).into_iter().try_for_each(|key| limits.check_key(key))?;
        argv.iter().try_for_each(|word| limits.check_value(word))?;
        self.commands.store(argv);
        Ok(())
    }

    /// Sets the priority of the commands that follow; a new batch has 0.
    pub fn priority(&mut self, priority: i32) {
        self.commands.set_priority(priority);
    }

    /// Removes all commands. A committed batch can be used again afterwards.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.committed = false;
    }

    /// Runs all commands and makes their writes visible at once, and durable as the sync mode of the
    /// holder says. If one fails, nothing changes, and the error names it.
    pub fn commit(&mut self) -> Result<()> {
        self.run(How::Durable).map(drop)
    }

    /// Commits, and waits at most `limit` for other writers; all the time without one.
    pub(crate) fn commit_within(&mut self, limit: Option<Duration>) -> Result<()> {
        self.run(limit.map_or(How::Durable, How::Within)).map(drop)
    }

    /// Commits without waiting for the device. [`SharedStore::wait`] waits for the ticket.
    pub fn commit_async(&mut self) -> Result<Ticket> {
        self.run(How::Async)
    }

    fn run(&mut self, how: How) -> Result<Ticket> {
        if self.committed {
            return Err(used_up());
        }
        if self.commands.is_empty() {
            self.committed = true;
            return Ok(Ticket::from_number(0));
        }
        let bytes = self.commands.to_bytes()?;
        let ms;
        let mut argv: Vec<&[u8]> = vec![b"LSMKV.SHARED", b"BATCH", &bytes];
        let mut wait = None;
        match how {
            How::Durable => {}
            How::Async => argv.push(b"ASYNC"),
            How::Within(limit) => {
                ms = milliseconds(limit);
                wait = Some(Wait::For(limit));
                argv.push(ms.as_bytes());
            }
        }
        let here = |db: &Db| self.commands.batch_of(db).and_then(|batch| how.commit(batch));
        let done = match &self.on {
            On::Store(store) => store.run(|seat| match seat {
                Seat::Here(db) => Ok(here(db)),
                Seat::There(remote) => {
                    let reply = remote.attempt_private(&argv, wait)?;
                    Ok(reply.and_then(|reply| how.ticket(&reply)))
                }
            }),
            On::View(view) => match view.here() {
                Some(db) => Ok(here(db)),
                None => view.ask(&argv, wait).map(|reply| how.ticket(&reply)),
            },
        };
        // The time-out of a holder that is silent leaves open whether it has committed.
        let too_late = |error: &Error| error.kind() == ErrorKind::Timeout;
        self.committed = !matches!(&done, Ok(Err(error)) if too_late(error));
        done.and_then(|done| done)
    }
}

impl How {
    fn commit(self, mut batch: Batch) -> Result<Ticket> {
        match self {
            Self::Durable => batch.commit().map(|()| Ticket::from_number(0)),
            Self::Within(limit) => batch.commit_timeout(limit).map(|()| Ticket::from_number(0)),
            Self::Async => batch.commit_async(),
        }
    }

    /// The ticket that the holder replied, if it replies one.
    fn ticket(self, reply: &Reply) -> Result<Ticket> {
        match self {
            Self::Durable | Self::Within(_) => Ok(Ticket::from_number(0)),
            Self::Async => ticket_of(reply),
        }
    }
}
