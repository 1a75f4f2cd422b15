//! Handles of remote stores: what differs from those of other stores elsewhere.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::commands::entry::Entry;
use crate::commands::{Reply, ReplySink};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::away::{AwayHandle, AwayStore, away_session_and_batch};
use crate::ffi::handle_kind::alone;
use crate::ffi::reply_writer::ReplyWriter;
use crate::keyspace::limits::Limits;
use crate::remote::{Remote, RemoteBatch, RemoteSession, Waits};

/// A handle whose commands run on a server.
pub(super) type RemoteHandle = AwayHandle<Remote>;

away_session_and_batch!(RemoteSession, RemoteBatch, |batch, _limit| {
    // The limits are those of the connection.
    batch.commit()
});

impl AwayStore for Remote {
    type Session = RemoteSession;
    type Batch = RemoteBatch;
    type SessionEnd = Waits;
    const BATCH_READS: &str =
        "a batch only notes writes and sends them at lsmkv_commit: read on the store";

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

    fn new_session(&self) -> Result<(RemoteSession, Arc<Waits>)> {
        let session = self.session()?;
        let waits = session.waits();
        Ok((session, waits))
    }

    fn new_batch(&self, strict: bool) -> Result<RemoteBatch> {
        match strict {
            true => Err(self.unsupported("a strict batch")),
            false => Ok(self.batch()),
        }
    }

    fn announce_close(&self) {
        self.close();
    }

    fn end_own_waits(&self) {
        self.close();
    }

    fn end_session(end: &Waits) {
        end.close();
    }

    fn upkeep(&self, _what: &str, _argument: &[u8]) -> Result<Reply> {
        Err(self.unsupported("this function"))
    }

    fn unsupported(&self, what: &str) -> Error {
        let message = format!(
            "{what} is not to be had from a server: {} is a remote store, see docs/SCALING.md",
            self.address()
        );
        Error::new(ErrorKind::Unsupported, message)
    }
}

impl AwayHandle<Remote> {
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
}
