//! The handle of an open store.
//!
//! Its methods are in the files of what they do: `reader`, `write`, `flush`, `compactor`,
//! `maintenance`, `checkpoint`, `stats`. Here is what concerns the store as a whole.

use std::path::Path;
use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::config::EngineConfig;
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::hash::HashSeed;
use crate::engine::recovery;
use crate::engine::snapshot::ReservedNumber;
use crate::engine::wal::Log;
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;
use crate::sync::atomic::Ordering;

/// An open store: ordered trees of keys and values with atomic batches.
///
/// All methods may be called from any number of threads at once. Dropping the engine without
/// [`Engine::close`] stops the threads and leaves recent writes in the log, like a crash of the
/// process.
#[derive(Debug)]
pub struct Engine {
    pub(super) core: Arc<Core>,
}

impl Engine {
    /// Opens the store in `dir`, and creates it if the options allow that.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, config: EngineConfig) -> Result<Self> {
        Ok(Self { core: recovery::open(fs, dir, config)? })
    }

    /// From now on, commits become durable in the background within the interval that the options
    /// give, whatever the sync mode.
    #[inline]
    pub fn sync_at_intervals(&self) {
        if !self.core.work.syncs_at_intervals.load(Ordering::Relaxed) {
            self.core.work.syncs_at_intervals.store(true, Ordering::Relaxed);
        }
    }

    /// Makes all earlier commits durable, so that they survive a power cut.
    pub fn sync(&self) -> Result<()> {
        self.core.writable()?.sync_all().map(|_| ())
    }

    /// A number below the sequence of every later commit. Compactions know of it until it is
    /// dropped.
    pub fn reserve_number(&self) -> ReservedNumber {
        self.core.sequences.reserve()
    }

    /// Whether the disk may be full, so that optional writes should be avoided. Also true for a
    /// moment whenever the log needs another segment.
    pub fn is_short_of_space(&self) -> bool {
        let has_next = |log: &Log| !log.needs_preparation();
        self.core.space.is_full() || !self.core.log.as_ref().is_some_and(has_next)
    }

    /// The seed with which the store hashes keys.
    #[inline]
    pub fn hash_seed(&self) -> HashSeed {
        self.core.hash_seed
    }

    /// The first sequence number of the part of the store's life in which writers tell whether the
    /// keys they count are set, by [`Batch::put_absent`] and [`Batch::delete_present`]. Keys that
    /// may have been written before cannot be counted. Numbers that [`Engine::reserve_number`] gave
    /// before are below it. `u64::MAX` if that has not begun, which happens only in a store
    /// opened `read_only`.
    ///
    /// [`Batch::put_absent`]: crate::engine::Batch::put_absent
    /// [`Batch::delete_present`]: crate::engine::Batch::delete_present
    #[inline]
    pub fn counted_from(&self) -> Sequence {
        self.core.counted_from
    }

    /// The sequence number of the newest visible commit.
    pub fn sequence(&self) -> Sequence {
        self.core.sequences.visible()
    }

    /// The sequence number of the last commit since the store was opened that changed `tree` by
    /// more than replacing values, or a later one; 0 if there was none. Every such commit that is
    /// visible when this is called counts. See [`Batch::only_replaces`].
    ///
    /// [`Batch::only_replaces`]: crate::engine::Batch::only_replaces
    pub fn last_change(&self, tree: TreeId) -> Sequence {
        self.core.committer.last_change(tree)
    }

    /// The fault that turned writes off, if there was one.
    pub fn degraded(&self) -> Option<Error> {
        self.core.health.cause().cloned()
    }

    /// An error if the store takes no writes: it was opened `read_only`, is closed or degraded.
    #[cfg(feature = "server")]
    pub fn check_writable(&self) -> Result<()> {
        self.core.writable()?;
        self.core.health.check()
    }

    /// Leaves `bytes` of the block cache's share of the memory budget unused until the next call.
    pub fn lend_cache(&self, bytes: u64) {
        self.core.cache.lend(bytes);
    }

    /// A job of a compaction that would begin now.
    #[cfg(test)]
    pub(crate) fn filter_job(&self, tree: crate::engine::TreeId) -> crate::engine::FilterJob {
        self.core.filter_job(tree)
    }

    /// Turns writes off until the store is opened again.
    pub fn degrade(&self, cause: &Error) {
        let _ = self.core.health.degrade(cause);
        self.core.work.note_progress();
    }

    /// An error once [`Engine::close`] was called.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        self.core.check_open()
    }

    /// Ends the waits of [`Engine::wait_until_closing`] and nothing else. A caller that is about to
    /// close the store calls this first, so that running calls can end.
    pub fn announce_close(&self) {
        if let Some(log) = &self.core.log {
            log.announce_close();
        }
    }

    /// Refuses new work, writes everything to tables, stops the threads and releases the directory.
    /// A second call does nothing. An error means that something could not be flushed; it is still
    /// in the log.
    pub fn close(&self) -> Result<()> {
        if self.core.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.announce_close();
        self.core.refuse_commits();
        self.core.work.stop();
        let _no_copies = self.core.copying.write();
        // Compactions in threads of the user end soon too, and nothing may write to the directory
        // after it is released.
        let _paused = self.core.work.pause_compaction();
        self.core.work.stopping.store(false, Ordering::Release);
        let result = self.core.flush_and_retire_log();
        self.core.release();
        result
    }

    /// Closes the descriptor of the directory lock in a forked child, and does nothing else.
    ///
    /// It never waits. If a thread of the parent held the mutex at the fork, that thread does not
    /// exist here to release it, and was about to release the lock anyway.
    pub fn abandon_lock(&self) {
        if let Some(lock) = self.core.lock.try_lock()
            && let Some(guard) = &*lock
        {
            guard.abandon();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.core.release();
    }
}
