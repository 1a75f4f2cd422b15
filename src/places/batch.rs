//! Batches on a shared store. They are stored here, and run by whoever holds the store at the commit.

use std::time::Duration;

use super::store::{Seat, SharedStore};
use crate::commands::entry::Entry;
use crate::commands::{ReplyBuilder, StoredBatch};
use crate::error::{Error, ErrorKind, Result};
use crate::remote::Unanswered;

/// Write commands that are stored first and applied together: all of them, or none if one fails.
#[derive(Debug)]
pub struct SharedBatch {
    store: SharedStore,
    commands: StoredBatch,
    committed: bool,
}

impl SharedBatch {
    pub(crate) fn new(store: SharedStore, strict: bool) -> Self {
        Self { store, commands: StoredBatch::new(strict), committed: false }
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
        let limits = self.store.limits();
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
        self.commit_within(None)
    }

    /// Commits, and waits at most `limit` for other writers if this process holds the store.
    pub(crate) fn commit_within(&mut self, limit: Option<Duration>) -> Result<()> {
        if self.committed {
            return Err(used_up());
        }
        if self.commands.is_empty() {
            self.committed = true;
            return Ok(());
        }
        let bytes = self.commands.to_bytes()?;
        let done = self.store.run(|seat| match seat {
            Seat::Here(db) => {
                let batch = self.commands.batch_of(db);
                let done = batch.and_then(|mut batch| match limit {
                    Some(limit) => batch.commit_timeout(limit),
                    None => batch.commit(),
                });
                done.map_err(Unanswered::Failed)
            }
            Seat::There(remote) => {
                let argv: [&[u8]; 3] = [b"LSMKV.SHARED", b"BATCH", &bytes];
                remote.attempt_private(&argv, &mut ReplyBuilder::default())
            }
        });
        let too_late = |error: &Error| error.kind() == ErrorKind::Timeout && self.store.is_holder();
        self.committed = !done.as_ref().is_err_and(too_late);
        done
    }
}

fn used_up() -> Error {
    Error::new(ErrorKind::Misuse, "the batch was committed: clear it to use it again")
}
