//! Handles of a store that several processes share: the store, a session on it, a batch for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplySink, find};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::handle_kind::alone;
use crate::ffi::reply_writer::ReplyWriter;
use crate::ffi::slice::misuse;
use crate::ffi::target::{CommandTarget, Elsewhere};
use crate::keyspace::limits::Limits;
use crate::places::{SessionEnd, SharedBatch, SharedSession, SharedStore, Together};
use crate::txn::Db;

/// A handle whose commands run in the process that holds the store. Its locks are only tried, never
/// waited for: a forked child may have such handles (see `fork`).
pub(super) enum SharedHandle {
    /// Made by lsmkv_open. Closing it closes the store for this process.
    Root(SharedStore),
    /// Another database of the store.
    View(SharedStore),
    /// Made by lsmkv_session.
    Session(SharedStore, Box<Mutex<SharedSession>>, Arc<SessionEnd>),
    /// Made by lsmkv_batch.
    Batch(SharedStore, Mutex<SharedBatch>),
}

impl SharedHandle {
    pub(super) fn limits(&self) -> Limits {
        self.store().limits()
    }

    fn store(&self) -> &SharedStore {
        match self {
            Self::Root(store) | Self::View(store) => store,
            Self::Session(store, ..) | Self::Batch(store, _) => store,
        }
    }

    /// The store in this process, if it holds it.
    pub(super) fn held(&self) -> Option<&Db> {
        self.store().here().ok().flatten()
    }

    /// Runs a call on this handle.
    pub(super) fn run<T>(&self, body: impl FnOnce(&CommandTarget<'_>) -> Result<T>) -> Result<T> {
        match self {
            Self::Root(store) | Self::View(store) => {
                if let Some(db) = store.here()? {
                    return body(&CommandTarget::database(db));
                }
            }
            Self::Session(_, session, _) => {
                let mut session = alone(session)?;
                if session.in_multi() {
                    return Err(misuse("after MULTI commands are given to lsmkv_command, to EXEC"));
                }
                if let Some(session) = session.here()? {
                    return body(&CommandTarget::database(session.db()));
                }
            }
            Self::Batch(..) => {}
        }
        body(&CommandTarget::elsewhere(self.limits(), self))
    }

    /// Runs a command by name and writes its reply to `sink`. Returns whether it ran.
    pub(super) fn command(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<bool> {
        match self {
            Self::Root(store) | Self::View(store) => store.command_into(argv, sink)?,
            Self::Session(_, session, _) => alone(session)?.command_into(argv, sink)?,
            Self::Batch(_, batch) => {
                alone(batch)?.command(argv)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs commands that belong together. Returns their replies, unless they were only stored.
    pub(super) fn commands(&self, commands: &[Vec<&[u8]>]) -> Result<Option<ReplyWriter>> {
        match self {
            Self::Root(store) | Self::View(store) => {
                together(&mut store.session(), commands).map(Some)
            }
            Self::Session(_, session, _) => together(&mut *alone(session)?, commands).map(Some),
            Self::Batch(_, batch) => {
                let mut batch = alone(batch)?;
                commands.iter().try_for_each(|argv| batch.command(argv))?;
                Ok(None)
            }
        }
    }

    pub(super) fn select(&self, number: u32) -> Result<Self> {
        self.store().select(number).map(Self::View)
    }

    pub(super) fn new_session(&self) -> Self {
        let store = self.store().clone();
        let session = store.session();
        let end = session.end();
        Self::Session(store, Box::new(Mutex::new(session)), end)
    }

    pub(super) fn new_batch(&self, strict: bool) -> Result<Self> {
        self.reads()?;
        let store = self.store().clone();
        let batch = SharedBatch::new(store.clone(), strict);
        Ok(Self::Batch(store, Mutex::new(batch)))
    }

    pub(super) fn commit(&self, limit: Option<Duration>) -> Result<()> {
        self.batch()?.commit_within(limit)
    }

    pub(super) fn batch(&self) -> Result<MutexGuard<'_, SharedBatch>> {
        match self {
            Self::Batch(_, batch) => alone(batch),
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                "this handle is no transaction and no batch: see lsmkv_begin and lsmkv_batch",
            )),
        }
    }

    /// The session, if the handle is one.
    pub(super) fn session(&self) -> Result<MutexGuard<'_, SharedSession>> {
        match self {
            Self::Session(_, session, _) => alone(session),
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                "this handle is no session: see lsmkv_session",
            )),
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
        match self {
            Self::Root(store) => store.announce_close(),
            Self::View(store) => store.end_own_waits(),
            Self::Session(_, _, end) => end.close(),
            Self::Batch(..) => {}
        }
    }

    pub(super) fn close(self) -> Result<()> {
        match self {
            Self::Root(store) => store.close(),
            _ => Ok(()),
        }
    }

    /// Leaves the store to the parent, in a forked child. Returns whether the parent holds it.
    pub(super) fn abandon_in_child(&self) -> bool {
        matches!(self, Self::Root(store) if store.abandon_in_child())
    }

    /// The error for what only the holder of the store can do.
    pub(super) fn unsupported(&self, what: &str) -> Error {
        let holder = self.store().holder().map_or(String::new(), |id| format!(", process {id},"));
        let message = format!(
            "{what} is not to be had from the process{holder} that holds the shared store: see \
             docs/SCALING.md"
        );
        Error::new(ErrorKind::Unsupported, message)
    }
}

/// Runs commands that belong together in a session.
fn together(session: &mut SharedSession, commands: &[Vec<&[u8]>]) -> Result<ReplyWriter> {
    let reads =
        |argv: &Vec<&[u8]>| argv.first().and_then(|name| find(name)).is_some_and(Entry::only_reads);
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
                    session.command_into(argv, &mut replies).map_err(|error| match count {
                        1 => error,
                        _ => {
                            let which = format_args!("command {} of {count}", at + 1);
                            error.wrap(error.kind(), which)
                        }
                    })?;
                    replies.count_reply();
                }
            }
        }
        Ok(replies)
    })?;
    commands.iter().for_each(|argv| session.note(argv));
    Ok(replies)
}

impl Elsewhere for SharedHandle {
    fn take(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<bool> {
        match self {
            Self::Root(store) | Self::View(store) => store.run_entry(entry, argv, sink)?,
            Self::Session(_, session, _) => alone(session)?.run_entry(entry, argv, sink)?,
            Self::Batch(_, batch) => {
                alone(batch)?.record(entry, argv)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn reads(&self) -> Result<()> {
        match self {
            Self::Batch(..) => Err(Error::new(
                ErrorKind::Unsupported,
                "a batch only notes writes and runs them at lsmkv_commit: read on the store",
            )),
            _ => Ok(()),
        }
    }

    fn no_database(&self) -> Error {
        self.unsupported("this function")
    }

    fn upkeep(&self, what: &str, argument: &[u8]) -> Result<Reply> {
        self.reads()?;
        self.store().upkeep(what, argument)
    }

    fn refresh(&self) -> Result<()> {
        // The holder shows every write by itself.
        self.reads()
    }
}
