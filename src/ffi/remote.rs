//! Handles of remote stores: the store, a session on it, a batch for it.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::commands::ReplySink;
use crate::commands::entry::Entry;
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::handle_kind::alone;
use crate::ffi::reply_writer::ReplyWriter;
use crate::ffi::slice::misuse;
use crate::ffi::target::Elsewhere;
use crate::keyspace::limits::Limits;
use crate::remote::{Remote, RemoteBatch, RemoteSession, Waits};

/// A handle whose commands run in another process.
pub(super) enum RemoteHandle {
    /// Made by lsmkv_open. Closing it ends the calls that wait at the servers.
    Root(Remote),
    /// Another database of the store.
    View(Remote),
    /// Made by lsmkv_session.
    Session(Remote, Box<Mutex<RemoteSession>>, Arc<Waits>),
    /// Made by lsmkv_batch.
    Batch(Remote, Mutex<RemoteBatch>),
}

impl RemoteHandle {
    pub(super) fn limits(&self) -> Limits {
        self.store().limits()
    }

    /// The store of the handle.
    pub(super) fn store(&self) -> &Remote {
        match self {
            Self::Root(store) | Self::View(store) => store,
            Self::Session(store, ..) | Self::Batch(store, _) => store,
        }
    }

    /// Fails if typed functions cannot run on the handle now.
    pub(super) fn check_typed(&self) -> Result<()> {
        match self {
            Self::Session(_, session, _) if alone(session)?.in_multi() => {
                Err(misuse("after MULTI commands are given to lsmkv_command, to EXEC"))
            }
            _ => Ok(()),
        }
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

    /// Runs commands that belong together. Returns whether they ran.
    pub(super) fn commands<'c>(
        &self,
        commands: impl Iterator<Item = Result<Vec<&'c [u8]>>>,
        replies: &mut ReplyWriter,
    ) -> Result<bool> {
        match self {
            Self::Root(store) | Self::View(store) => {
                store.pipeline_into(commands, replies, ReplyWriter::count_reply)?;
            }
            Self::Session(_, session, _) => {
                alone(session)?.pipeline_into(commands, replies, ReplyWriter::count_reply)?;
            }
            Self::Batch(_, batch) => {
                let mut batch = alone(batch)?;
                for argv in commands {
                    batch.command(&argv?)?;
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn select(&self, number: u32) -> Result<Self> {
        self.store().select(number).map(Self::View)
    }

    pub(super) fn new_session(&self) -> Result<Self> {
        let store = self.store().clone();
        let session = store.session()?;
        let waits = session.waits();
        Ok(Self::Session(store, Box::new(Mutex::new(session)), waits))
    }

    pub(super) fn new_batch(&self, strict: bool) -> Result<Self> {
        if strict {
            return Err(self.unsupported("a strict batch"));
        }
        let store = self.store().clone();
        let batch = store.batch();
        Ok(Self::Batch(store, Mutex::new(batch)))
    }

    pub(super) fn batch(&self) -> Result<MutexGuard<'_, RemoteBatch>> {
        match self {
            Self::Batch(_, batch) => alone(batch),
            _ => Err(self.unsupported("a transaction")),
        }
    }

    /// The session, if the handle is one.
    pub(super) fn session(&self) -> Result<MutexGuard<'_, RemoteSession>> {
        match self {
            Self::Session(_, session, _) => alone(session),
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                "this handle is no session: see lsmkv_session",
            )),
        }
    }

    /// Ends waits that would delay a close.
    pub(super) fn announce_close(&self) {
        match self {
            Self::Root(store) | Self::View(store) => store.close(),
            Self::Session(_, _, waits) => waits.close(),
            Self::Batch(..) => {}
        }
    }

    /// The error for what a server cannot do.
    pub(super) fn unsupported(&self, what: &str) -> Error {
        let message = format!(
            "{what} is not to be had from a server: {} is a remote store, see docs/SCALING.md",
            self.store().address()
        );
        Error::new(ErrorKind::Unsupported, message)
    }
}

impl Elsewhere for RemoteHandle {
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
                "a batch only notes writes and sends them at lsmkv_commit: read on the store",
            )),
            _ => Ok(()),
        }
    }

    fn no_database(&self) -> Error {
        self.unsupported("this function")
    }

    fn refresh(&self) -> Result<()> {
        // A server shows every write by itself.
        match self {
            Self::Batch(..) => Err(self.no_database()),
            _ => Ok(()),
        }
    }
}
