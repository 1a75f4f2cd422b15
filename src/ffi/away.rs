//! Handles whose commands run in another process: the store, a session on it, a batch for it.
//!
//! Locks here are only tried, never waited for: a forked child may have such handles (see `fork`).

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::handle_kind::{alone, no_session, no_transaction};
use crate::ffi::slice::misuse;
use crate::ffi::target::Elsewhere;
use crate::keyspace::limits::Limits;

/// A store of another process, or one that this process may hold.
pub(super) trait AwayStore: Sized + Clone {
    type Session: AwaySession;
    type Batch: AwayBatch;
    /// By which another thread ends the waits of a session.
    type SessionEnd;
    /// Why a batch reads nothing.
    const BATCH_READS: &str;

    fn limits(&self) -> Limits;
    fn command_into(&self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()>;
    fn run_entry(
        &self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()>;
    /// Another database of the store.
    fn selected(&self, number: u32) -> Result<Self>;
    fn new_session(&self) -> Result<(Self::Session, Arc<Self::SessionEnd>)>;
    fn new_batch(&self, strict: bool) -> Result<Self::Batch>;
    /// Ends the waits of the store.
    fn announce_close(&self);
    /// Ends the waits of a handle that is not the one that was opened.
    fn end_own_waits(&self);
    /// Ends the waits of a session.
    fn end_session(end: &Self::SessionEnd);
    /// Does upkeep where the store is, such as FLUSH.
    fn upkeep(&self, what: &str, argument: &[u8]) -> Result<Reply>;
    /// The error for what cannot be done there.
    fn unsupported(&self, what: &str) -> Error;
}

/// A session elsewhere.
pub(super) trait AwaySession {
    fn in_multi(&self) -> bool;
    fn command_into(&mut self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()>;
    fn run_entry(
        &mut self,
        entry: &'static Entry,
        argv: &[&[u8]],
        sink: &mut dyn ReplySink,
    ) -> Result<()>;
    fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Reply>>;
    fn message_descriptor(&mut self) -> Result<RawFd>;
}

/// A batch for elsewhere.
pub(super) trait AwayBatch {
    fn command(&mut self, argv: &[&[u8]]) -> Result<()>;
    fn record(&mut self, entry: &'static Entry, argv: &[&[u8]]) -> Result<()>;
    fn clear(&mut self);
    fn commit_within(&mut self, limit: Option<Duration>) -> Result<()>;
}

/// Makes a session and a batch the ones of a store, by their methods of the same names.
macro_rules! away_session_and_batch {
    ($session:ty, $batch:ty, |$of:ident, $limit:ident| $commit:expr) => {
        impl $crate::ffi::away::AwaySession for $session {
            fn in_multi(&self) -> bool {
                <$session>::in_multi(self)
            }

            fn command_into(&mut self, argv: &[&[u8]], sink: &mut dyn ReplySink) -> Result<()> {
                <$session>::command_into(self, argv, sink)
            }

            fn run_entry(
                &mut self,
                entry: &'static Entry,
                argv: &[&[u8]],
                sink: &mut dyn ReplySink,
            ) -> Result<()> {
                <$session>::run_entry(self, entry, argv, sink)
            }

            fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Reply>> {
                <$session>::wait(self, deadline)
            }

            fn message_descriptor(&mut self) -> Result<RawFd> {
                <$session>::message_descriptor(self)
            }
        }

        impl $crate::ffi::away::AwayBatch for $batch {
            fn command(&mut self, argv: &[&[u8]]) -> Result<()> {
                <$batch>::command(self, argv)
            }

            fn record(&mut self, entry: &'static Entry, argv: &[&[u8]]) -> Result<()> {
                <$batch>::record(self, entry, argv)
            }

            fn clear(&mut self) {
                <$batch>::clear(self);
            }

            fn commit_within(&mut self, $limit: Option<Duration>) -> Result<()> {
                let $of = self;
                $commit
            }
        }
    };
}
pub(super) use away_session_and_batch;

/// A handle of a store elsewhere.
pub(super) enum AwayHandle<S: AwayStore> {
    /// Made by lsmkv_open. Closing it ends the calls that wait there.
    Root(S),
    /// Another database of the store.
    View(S),
    /// Made by lsmkv_session.
    Session(S, Box<Mutex<S::Session>>, Arc<S::SessionEnd>),
    /// Made by lsmkv_batch.
    Batch(S, Box<Mutex<S::Batch>>),
}

impl<S: AwayStore> AwayHandle<S> {
    pub(super) fn limits(&self) -> Limits {
        self.store().limits()
    }

    /// The store of the handle.
    pub(super) fn store(&self) -> &S {
        match self {
            Self::Root(store) | Self::View(store) => store,
            Self::Session(store, ..) | Self::Batch(store, _) => store,
        }
    }

    /// The session, if the handle is one and takes typed functions now: not between MULTI and EXEC.
    pub(super) fn typed_session(&self) -> Result<Option<MutexGuard<'_, S::Session>>> {
        let Self::Session(_, session, _) = self else { return Ok(None) };
        let session = alone(session)?;
        if session.in_multi() {
            return Err(misuse("after MULTI commands are given to lsmkv_command, to EXEC"));
        }
        Ok(Some(session))
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

    pub(super) fn select(&self, number: u32) -> Result<Self> {
        self.store().selected(number).map(Self::View)
    }

    pub(super) fn new_session(&self) -> Result<Self> {
        let store = self.store().clone();
        let (session, end) = store.new_session()?;
        Ok(Self::Session(store, Box::new(Mutex::new(session)), end))
    }

    pub(super) fn new_batch(&self, strict: bool) -> Result<Self> {
        self.reads()?;
        let store = self.store().clone();
        let batch = store.new_batch(strict)?;
        Ok(Self::Batch(store, Box::new(Mutex::new(batch))))
    }

    pub(super) fn commit(&self, limit: Option<Duration>) -> Result<()> {
        self.batch()?.commit_within(limit)
    }

    /// The batch, if the handle is one.
    pub(super) fn batch(&self) -> Result<MutexGuard<'_, S::Batch>> {
        match self {
            Self::Batch(_, batch) => alone(batch),
            _ => Err(no_transaction()),
        }
    }

    /// The session, if the handle is one.
    pub(super) fn session(&self) -> Result<MutexGuard<'_, S::Session>> {
        match self {
            Self::Session(_, session, _) => alone(session),
            _ => Err(no_session()),
        }
    }

    /// The error for what cannot be done where the store is.
    pub(super) fn unsupported(&self, what: &str) -> Error {
        self.store().unsupported(what)
    }

    /// Ends waits that would delay a close.
    pub(super) fn announce_close(&self) {
        match self {
            Self::Root(store) => store.announce_close(),
            Self::View(store) => store.end_own_waits(),
            Self::Session(_, _, end) => S::end_session(end),
            Self::Batch(..) => {}
        }
    }
}

impl<S: AwayStore> Elsewhere for AwayHandle<S> {
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
            Self::Batch(..) => Err(Error::new(ErrorKind::Unsupported, S::BATCH_READS)),
            _ => Ok(()),
        }
    }

    fn no_database(&self) -> Error {
        self.store().unsupported("this function")
    }

    fn upkeep(&self, what: &str, argument: &[u8]) -> Result<Reply> {
        self.reads()?;
        self.store().upkeep(what, argument)
    }

    fn refresh(&self) -> Result<()> {
        // Where the store is, every write shows by itself.
        self.reads()
    }
}
