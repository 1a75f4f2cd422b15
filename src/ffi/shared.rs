//! Handles of a store that several processes share: what differs from those of other stores
//! elsewhere. A call of the process that holds the store runs on the database itself.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplySink, find};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::away::{AwayHandle, AwayStore, away_session_and_batch};
use crate::ffi::handle_kind::{alone, no_session, no_transaction};
use crate::ffi::reply_writer::ReplyWriter;
use crate::ffi::target::{CommandTarget, Elsewhere, KeySource};
use crate::keyspace::limits::Limits;
use crate::places::{
    SessionEnd, SharedBatch, SharedIter, SharedSession, SharedStore, SharedTransaction, SharedView,
    Together, refuse_private,
};
use crate::txn::{Db, Ticket};
use crate::types::{KeyEntry, KeyRange};

/// A handle whose commands run in the process that holds the store.
pub(super) enum SharedHandle {
    /// The store, another database of it, a session on it, a batch for it.
    Store(AwayHandle<SharedStore>),
    /// A snapshot, or another database of one or of a transaction.
    View(SharedView),
    /// Made by lsmkv_begin. Closing it rolls back.
    Transaction(SharedTransaction),
}

away_session_and_batch!(SharedSession, SharedBatch, |batch, limit| batch.commit_within(limit));

impl AwayStore for SharedStore {
    type Session = SharedSession;
    type Batch = SharedBatch;
    type SessionEnd = SessionEnd;
    const BATCH_READS: &str =
        "a batch only notes writes and runs them at lsmkv_commit: read on the store";

    fn limits(&self) -> Limits {
        Self::limits(self)
    }

    fn command_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
        Self::command_into(self, argv, sink)
    }

    fn run_entry(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()> {
        Self::run_entry(self, entry, argv, sink)
    }

    fn selected(&self, number: u32) -> Result<Self> {
        self.select(number)
    }

    fn new_session(&self) -> Result<(SharedSession, Arc<SessionEnd>)> {
        let session = self.session();
        let end = session.end();
        Ok((session, end))
    }

    fn new_batch(&self, strict: bool) -> Result<SharedBatch> {
        Ok(SharedBatch::new(self.clone(), strict))
    }

    fn announce_close(&self) {
        Self::announce_close(self);
    }

    fn end_own_waits(&self) {
        Self::end_own_waits(self);
    }

    fn end_session(end: &SessionEnd) {
        end.close();
    }

    fn upkeep(&self, what: &str, argument: &[u8]) -> Result<Reply> {
        Self::upkeep(self, what, argument)
    }

    fn unsupported(&self, what: &str) -> Error {
        let holder = self.holder().map_or(String::new(), |id| format!(", process {id},"));
        let message = format!(
            "{what} is not to be had from the process{holder} that holds the shared store: see \
             docs/SCALING.md"
        );
        Error::new(ErrorKind::Unsupported, message)
    }
}

impl SharedHandle {
    /// The handle, if it is none of a snapshot or transaction.
    fn store(&self) -> Result<&AwayHandle<SharedStore>> {
        match self {
            Self::Store(store) => Ok(store),
            Self::View(_) | Self::Transaction(_) => {
                Err(self.unsupported("a session, or what it does, on a snapshot or transaction"))
            }
        }
    }

    /// The snapshot or transaction, if the handle is of one.
    fn view(&self) -> Option<&SharedView> {
        match self {
            Self::Store(_) => None,
            Self::View(view) => Some(view),
            Self::Transaction(transaction) => Some(transaction),
        }
    }

    fn shared_store(&self) -> &SharedStore {
        match self {
            Self::Store(store) => store.store(),
            Self::View(view) => view.store(),
            Self::Transaction(transaction) => transaction.store(),
        }
    }

    pub(super) fn limits(&self) -> Limits {
        self.shared_store().limits()
    }

    /// The error for what cannot be done for another process.
    pub(super) fn unsupported(&self, what: &str) -> Error {
        self.shared_store().unsupported(what)
    }

    /// The store in this process, if it holds it.
    pub(super) fn held(&self) -> Option<&Db> {
        self.shared_store().here().ok().flatten()
    }

    /// Runs a call on this handle.
    pub(super) fn run<T>(&self, body: impl FnOnce(&CommandTarget<'_>) -> Result<T>) -> Result<T> {
        if let Self::Store(store) = self {
            if let AwayHandle::Root(store) | AwayHandle::View(store) = store
                && let Some(db) = store.here()?
            {
                return body(&CommandTarget::database(db));
            }
            if let Some(mut session) = store.typed_session()?
                && let Some(session) = session.here()?
            {
                return body(&CommandTarget::database(session.db()));
            }
        }
        body(&CommandTarget::elsewhere(self.limits(), self))
    }

    /// Runs a command by name and writes its reply to `sink`. Returns whether it ran.
    pub(super) fn command(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<bool> {
        match (self, self.view()) {
            (_, Some(view)) => view.command_into(argv, sink).map(|()| true),
            (Self::Store(store), _) => store.command(argv, sink),
            _ => self.store().map(|_| false),
        }
    }

    /// Runs commands that belong together. Returns their replies, unless they were only stored.
    pub(super) fn commands(&self, commands: &[Vec<&[u8]>]) -> Result<Option<ReplyWriter>> {
        if let Some(view) = self.view() {
            let mut replies = ReplyWriter::array();
            view.run_all(commands, &mut replies, ReplyWriter::count_reply)?;
            return Ok(Some(replies));
        }
        match self.store()? {
            AwayHandle::Root(store) | AwayHandle::View(store) => {
                together(&mut store.session(), commands).map(Some)
            }
            AwayHandle::Session(_, session, _) => {
                together(&mut *alone(session)?, commands).map(Some)
            }
            AwayHandle::Batch(_, batch) => {
                let mut batch = alone(batch)?;
                commands.iter().try_for_each(|argv| batch.command(argv))?;
                Ok(None)
            }
        }
    }

    pub(super) fn select(&self, number: u32) -> Result<Self> {
        match self.view() {
            Some(view) => view.select(number).map(Self::View),
            None => self.store()?.select(number).map(Self::Store),
        }
    }

    pub(super) fn new_session(&self) -> Result<Self> {
        self.store()?.new_session().map(Self::Store)
    }

    pub(super) fn new_batch(&self, strict: bool) -> Result<Self> {
        let Some(view) = self.view() else {
            return self.store()?.new_batch(strict).map(Self::Store);
        };
        let batch = Box::new(Mutex::new(SharedBatch::on_view(view.clone(), strict)));
        Ok(Self::Store(AwayHandle::Batch(view.store().clone(), batch)))
    }

    /// A snapshot of the store. On a snapshot it is another handle on that.
    pub(super) fn snapshot(&self) -> Result<SharedView> {
        match self {
            Self::View(view) => view.snapshot(),
            Self::Transaction(transaction) => transaction.snapshot(),
            Self::Store(_) => self.live_store()?.snapshot(),
        }
    }

    /// A transaction on the store.
    pub(super) fn begin(&self) -> Result<SharedTransaction> {
        match self.view() {
            Some(_) => Err(Error::new(
                ErrorKind::Unsupported,
                "a transaction begins on a database, not on a snapshot or a transaction",
            )),
            None => self.live_store()?.begin(),
        }
    }

    /// The store with the database that the handle has selected.
    fn live_store(&self) -> Result<SharedStore> {
        let store = self.store()?;
        store.reads()?;
        match store.typed_session()? {
            Some(session) => session.selected(),
            None => Ok(store.store().clone()),
        }
    }

    pub(super) fn commit(&self, limit: Option<Duration>) -> Result<()> {
        match (self, limit) {
            (Self::Transaction(transaction), None) => transaction.commit(),
            (Self::Transaction(transaction), Some(limit)) => transaction.commit_timeout(limit),
            _ => self.batch()?.commit_within(limit),
        }
    }

    pub(super) fn commit_async(&self) -> Result<Ticket> {
        match self {
            Self::Transaction(transaction) => transaction.commit_async(),
            _ => self.batch()?.commit_async(),
        }
    }

    pub(super) fn rollback(&self) -> Result<()> {
        match self {
            Self::Transaction(transaction) => transaction.rollback(),
            _ => {
                self.batch()?.clear();
                Ok(())
            }
        }
    }

    /// The batch, if the handle is one.
    pub(super) fn batch(&self) -> Result<MutexGuard<'_, SharedBatch>> {
        match self {
            Self::Store(store) => store.batch(),
            Self::View(_) | Self::Transaction(_) => Err(no_transaction()),
        }
    }

    /// The session, if the handle is one.
    pub(super) fn session(&self) -> Result<MutexGuard<'_, SharedSession>> {
        match self {
            Self::Store(store) => store.session(),
            Self::View(_) | Self::Transaction(_) => Err(no_session()),
        }
    }

    /// Runs a command of a session that must not wait. Returns whether it ran.
    pub(super) fn command_nowait(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<bool> {
        let mut session = self.session()?;
        if let Some(session) = session.here()? {
            return session.command_nowait(argv, sink);
        }
        if argv.first().and_then(|name| find(name)).is_some_and(Entry::blocks) {
            return Err(self.unsupported("a blocking command that does not wait"));
        }
        session.command_into(argv, sink)?;
        Ok(true)
    }

    /// Ends waits that would delay a close.
    pub(super) fn announce_close(&self) {
        if let Self::Store(store) = self {
            store.announce_close();
        }
    }

    pub(super) fn close(self) -> Result<()> {
        match self {
            Self::Store(AwayHandle::Root(store)) => store.close(),
            _ => Ok(()),
        }
    }

    /// Leaves the store to the parent, in a forked child. Returns whether the parent holds it.
    pub(super) fn abandon_in_child(&self) -> bool {
        matches!(self, Self::Store(AwayHandle::Root(store)) if store.abandon_in_child())
    }
}

impl Elsewhere for SharedHandle {
    fn take(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<bool> {
        match self.view() {
            Some(view) => view.run_entry(entry, argv, sink).map(|()| true),
            None => self.store()?.take(entry, argv, sink),
        }
    }

    fn reads(&self) -> Result<()> {
        match self {
            Self::Store(store) => store.reads(),
            Self::View(_) | Self::Transaction(_) => Ok(()),
        }
    }

    fn no_database(&self) -> Error {
        self.unsupported("this function")
    }

    fn upkeep(&self, what: &str, argument: &[u8]) -> Result<Reply> {
        self.reads()?;
        self.shared_store().upkeep(what, argument)
    }

    fn refresh(&self) -> Result<()> {
        self.reads()
    }

    fn wait(&self, ticket: Ticket, limit: Duration) -> Result<bool> {
        self.reads()?;
        self.shared_store().wait(ticket, Some(limit))
    }

    fn keys(&self, range: KeyRange) -> Result<Box<dyn KeySource>> {
        Ok(Box::new(match self.view() {
            Some(view) => view.iter(range)?,
            None => self.live_store()?.iter(range)?,
        }))
    }
}

impl KeySource for SharedIter {
    fn next(&mut self) -> Result<Option<KeyEntry>> {
        Self::next(self)
    }

    fn next_chunk(&mut self, max_items: usize, max_bytes: usize) -> Result<Vec<KeyEntry>> {
        Self::next_chunk(self, max_items, max_bytes)
    }
}

/// Runs commands that belong together in a session.
fn together(session: &mut SharedSession, commands: &[Vec<&[u8]>]) -> Result<ReplyWriter> {
    let reads =
        |argv: &Vec<&[u8]>| argv.first().and_then(|name| find(name)).is_some_and(Entry::only_reads);
    commands.iter().try_for_each(|argv| refuse_private(argv))?;
    let count = commands.len();
    let replies = session.together(commands.iter().all(reads), |place| {
        let mut replies = ReplyWriter::array();
        match place {
            Together::There(session) => {
                let argvs = commands.iter().map(|argv| Ok(argv.clone()));
                session.pipeline_into(argvs, &mut replies, ReplyWriter::count_reply)?;
            }
            Together::Here(session) => {
                for (at, argv) in commands.iter().enumerate() {
                    let ran = session.command_into(argv, &mut replies);
                    ran.map_err(|error| error.of_command(at + 1, count))?;
                    replies.count_reply();
                }
            }
        }
        Ok(replies)
    })?;
    commands.iter().for_each(|argv| session.note(argv));
    Ok(replies)
}
