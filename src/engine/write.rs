//! Writes: a batch goes to the log, then to the memtables, and then its sequence number is
//! published.
//!
//! The leader writes a whole group of batches to the log at once (`committer`). Waiting for
//! durability comes after that, without any lock, so that the next group is written while the
//! device flushes this one.

use std::time::Duration;

use crate::engine::batch::Batch;
use crate::engine::committer::{Commit, LeaderState};
use crate::engine::config::WriteOptions;
use crate::engine::core::Core;
use crate::engine::handle::Engine;
use crate::engine::wal::{Log, LogPosition};
use crate::error::{Error, ErrorKind, Result};
use crate::options::SyncMode;
use crate::sync::atomic::Ordering;

impl Engine {
    /// Commits a batch and waits for durability if the sync mode asks for it. The batch is left
    /// empty.
    pub fn write(&self, batch: &mut Batch, options: WriteOptions) -> Result<Commit> {
        let commit = self.commit(batch, options)?;
        if options.sync.unwrap_or(self.core.options.sync) == SyncMode::Always {
            self.wait_durable(commit, None)?;
        }
        Ok(commit)
    }

    /// Commits a batch, which is left empty. When this returns, the batch is visible and survives
    /// the death of the process; [`Engine::wait_durable`] waits until it survives a power cut.
    pub fn commit(&self, batch: &mut Batch, options: WriteOptions) -> Result<Commit> {
        let log = self.core.writable()?;
        self.core.check_batch(batch)?;
        let frees_space = options.frees_space;
        let has_threads = self.core.options.background_threads > 0;
        if !frees_space && has_threads && self.core.space.is_full() {
            // The leader may be a delete that waits for space. In a store without threads none waits,
            // and the leader does the work that frees space.
            self.core.space.reconsider()?;
        }
        self.core.committer.commit(batch, frees_space, |lead, batches| {
            self.core.commit_batches(log, lead, batches, frees_space)
        })
    }

    /// Waits until a commit survives a power cut, and starts a sync if none is running. Returns
    /// `false` when the timeout passes first. With a timeout of zero it only checks.
    pub fn wait_durable(&self, commit: Commit, timeout: Option<Duration>) -> Result<bool> {
        match &self.core.log {
            Some(log) => log.wait_durable(commit.position, timeout),
            None => Ok(true),
        }
    }

    /// Waits until a commit survives a power cut, or `timeout` passes, as [`Engine::wait_durable`].
    /// Fails with `Closed` as soon as [`Engine::announce_close`] is called.
    pub fn wait_until_closing(&self, commit: Commit, timeout: Option<Duration>) -> Result<bool> {
        match &self.core.log {
            Some(log) => log.wait_until_closing(commit.position, timeout),
            None => Ok(true),
        }
    }
}

impl Core {
    fn check_batch(&self, batch: &Batch) -> Result<()> {
        let (key, value) = batch.longest();
        let limits = [
            ("key", key as u64, self.options.max_key_bytes, "max_key_bytes"),
            ("value", value as u64, self.options.max_value_bytes, "max_value_bytes"),
            ("batch", batch.bytes() as u64, u64::from(u32::MAX >> 1), "the log's record size"),
        ];
        for (what, length, limit, option) in limits {
            if length > limit {
                let message = format!("a {what} of {length} bytes exceeds {option}, {limit}");
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
        }
        self.tree(batch.highest_tree().index()).map(|_| ())
    }

    fn commit_batches(
        &self,
        log: &Log,
        lead: &mut LeaderState,
        batches: &mut [&mut Batch],
        frees_space: bool,
    ) -> Result<Commit> {
        self.check_open()?;
        self.health.check()?;
        if !frees_space && self.space.is_full() {
            self.regain_space(log)?;
        }
        let bytes = batches.iter().map(|batch| batch.bytes()).sum();
        self.make_room(log, &mut lead.throttle, bytes, frees_space)?;
        self.cache.note_batch(bytes);
        let mut sequence = 0;
        for batch in batches.iter_mut() {
            sequence = self.sequences.allocate();
            batch.seal(sequence);
        }
        let position = match batches {
            [only] => self.append(log, &[only.sealed()], frees_space)?,
            _ => {
                let payloads: Vec<&[u8]> = batches.iter().map(|batch| batch.sealed()).collect();
                self.append(log, &payloads, frees_space)?
            }
        };
        self.apply(batches).map_err(|error| self.health.degrade(&error))?;
        self.committer.note_changes(batches, sequence);
        self.sequences.publish(sequence);
        self.activity.commits.add(batches.len() as u64);
        if log.needs_preparation() {
            self.work.prepare_log();
        }
        Ok(Commit { sequence, position })
    }

    /// Appends to the log. What frees space waits for space.
    #[inline]
    fn append(&self, log: &Log, payloads: &[&[u8]], frees_space: bool) -> Result<LogPosition> {
        loop {
            match log.append(payloads, frees_space) {
                Err(error) if frees_space && error.kind() == ErrorKind::Full => {
                    let bytes = payloads.iter().map(|payload| payload.len()).sum();
                    self.wait_for_space(log, bytes, &error)?;
                }
                appended => return appended,
            }
        }
    }

    fn apply(&self, batches: &[&mut Batch]) -> Result<()> {
        let view = self.view.load();
        for batch in batches {
            view.active.apply(batch.sealed())?;
        }
        Ok(())
    }

    /// Closes the store for writes. No commit begins after this returns.
    pub(crate) fn refuse_commits(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.committer.lead());
    }
}
