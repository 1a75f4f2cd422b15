//! The engine as its users see it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;

use crate::engine::batch::{Batch, TreeId};
use crate::engine::checkpoint::Progress;
use crate::engine::config::{EngineConfig, WriteOptions};
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::files::FileNumber;
use crate::engine::iter::{Iter, IterOptions};
use crate::engine::recovery;
use crate::engine::sample::Sampler;
use crate::engine::snapshot::{ReservedNumber, SnapshotPin};
use crate::engine::sstable::Properties;
use crate::engine::stats::Stats;
use crate::engine::view::{GetOptions, View};
use crate::engine::wal::Log;
use crate::engine::write::Commit;
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;

/// An open store: ordered trees of keys and values with atomic batches.
///
/// All methods may be called from any number of threads at once. Dropping it without
/// [`Engine::close`] stops the threads and leaves recent writes to the log, as a crash of the
/// process would.
#[derive(Debug)]
pub struct Engine {
    core: Arc<Core>,
}

impl Engine {
    /// Opens the store in `dir`, creating it if the options say so.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, config: EngineConfig) -> Result<Self> {
        Ok(Self { core: recovery::open(fs, dir, config)? })
    }

    /// Commits a batch and waits for the device as the sync mode asks. The batch is left empty.
    pub fn write(&self, batch: &mut Batch, options: WriteOptions) -> Result<Commit> {
        self.core.write(batch, options)
    }

    /// Commits a batch: visible when this returns, durable later. The batch is left empty.
    pub fn commit(&self, batch: &mut Batch, options: WriteOptions) -> Result<Commit> {
        self.core.commit(batch, options)
    }

    /// Waits until a commit survives a power cut, asking for a sync if none is under way.
    /// `false` when the time ran out; a limit of zero only asks.
    pub fn wait_durable(&self, commit: Commit, timeout: Option<Duration>) -> Result<bool> {
        self.core.wait_durable(commit, timeout)
    }

    /// The same for who only wants to know, and has no write under way that a close should let
    /// end: [`Engine::announce_close`] ends the wait with `Closed`.
    pub fn wait_until_closing(&self, commit: Commit, timeout: Option<Duration>) -> Result<bool> {
        self.core.wait_until_closing(commit, timeout)
    }

    /// From now on, whatever the sync mode, commits are made durable in the background within
    /// the interval that the options give.
    #[inline]
    pub fn sync_at_intervals(&self) {
        if !self.core.work.syncs_at_intervals.load(Ordering::Relaxed) {
            self.core.work.syncs_at_intervals.store(true, Ordering::Relaxed);
        }
    }

    /// Makes all earlier commits survive a power cut.
    pub fn sync(&self) -> Result<()> {
        self.core.writable()?.sync_all().map(|_| ())
    }

    /// The value of `key` now.
    #[inline]
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        self.core.check_open()?;
        self.core.activity.gets.add(1);
        // The view first, then the sequence: see `View`.
        let view = self.core.view.load();
        let sequence = self.core.sequences.visible();
        view.get(tree, key, sequence, GetOptions::default())
    }

    /// The values of several keys of one tree, all at one moment.
    pub fn multi_get(&self, tree: TreeId, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let (view, sequence) = self.now()?;
        self.core.activity.gets.add(keys.len() as u64);
        multi_get(&view, tree, keys, sequence)
    }

    fn now(&self) -> Result<(Arc<View>, Sequence)> {
        self.core.check_open()?;
        let view = self.core.view.load_full();
        let sequence = self.core.sequences.visible();
        Ok((view, sequence))
    }

    /// An iterator over the keys of `tree` now.
    pub fn iter(&self, tree: TreeId, options: IterOptions) -> Result<Iter> {
        let (view, sequence) = self.now()?;
        view.iter(tree, sequence, options)
    }

    /// Everything as of now, for several reads that must agree. Holds memory and files of this
    /// moment until it is dropped: for the length of a command, not more (see `snapshot`).
    pub fn reader(&self) -> Result<Reader> {
        let (view, sequence) = self.now()?;
        Ok(Reader { view, sequence })
    }

    /// A view of this moment that stays as it is.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.core.check_open()?;
        let pin = self.core.sequences.pin();
        Ok(Snapshot { core: Arc::clone(&self.core), pin })
    }

    /// A number that precedes every commit yet to come and that compactions know of until it is
    /// dropped.
    pub fn reserve_number(&self) -> ReservedNumber {
        self.core.sequences.reserve()
    }

    /// Whether the disk may be full: what need not be written now should not be. True for a
    /// moment, too, whenever the log needs another segment.
    pub fn is_short_of_space(&self) -> bool {
        !self.core.log.as_ref().is_some_and(Log::has_space)
    }

    /// The sequence of the newest visible commit.
    pub fn sequence(&self) -> Sequence {
        self.core.sequences.visible()
    }

    /// The sequence of the last commit that wrote to `tree` since the store was opened and did
    /// more than replace values ([`Batch::only_replaces`](crate::engine::Batch::only_replaces)), 0
    /// if there was none. At least that of every such commit that is visible when this is called.
    pub fn last_change(&self, tree: TreeId) -> Sequence {
        self.core.committer.last_change(tree)
    }

    /// Writes all memtables to tables.
    pub fn flush(&self) -> Result<()> {
        self.core.flush()
    }

    /// Flushes, then rewrites all tables so that nothing dead is left.
    pub fn compact(&self) -> Result<()> {
        self.core.compact()
    }

    /// Has every table judged for waste now, rather than within `reclaim_interval_s`, and returns
    /// when what that found is gone.
    pub fn reclaim(&self) -> Result<()> {
        self.core.reclaim()
    }

    /// Returns when the background threads have nothing left to do.
    pub fn wait_idle(&self) -> Result<()> {
        self.core.wait_idle()
    }

    /// After a full disk: tries waiting work again now. An error says that it still fails.
    pub fn resume(&self) -> Result<()> {
        let log = self.core.writable()?;
        self.core.health.check()?;
        log.prepare_next()?;
        self.core.work.retry();
        while self.core.flush_oldest()? {
            self.core.work.note_progress();
        }
        Ok(())
    }

    /// What the store holds and has done.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Why writes are off, if they are.
    pub fn degraded(&self) -> Option<Error> {
        self.core.health.cause().cloned()
    }

    /// Turns writes off until the store is opened again.
    pub fn degrade(&self, cause: &Error) {
        let _ = self.core.health.degrade(cause);
        self.core.work.note_progress();
    }

    /// Reads every block of every table and checks it.
    pub fn verify(&self) -> Result<()> {
        let (view, _) = self.now()?;
        for file in view.version.trees.iter().flat_map(|levels| levels.files()) {
            file.table()?.verify()?;
        }
        Ok(())
    }

    /// Makes a copy of the store in `dir`, which must not exist, by hard links: at once whatever
    /// the size, on the same file system, while reads and writes go on. It holds every commit that
    /// had returned when this was called, and opens as a store of its own.
    pub fn checkpoint(&self, dir: &Path) -> Result<()> {
        self.core.checkpoint(dir)
    }

    /// The same by copying to any file system. The copy is read back and compared with its
    /// checksums. `progress` is told the bytes copied and those in all, and may end it: `false`,
    /// and nothing is left of it.
    pub fn backup(
        &self,
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<bool> {
        self.core.backup(fs, dir, progress)
    }

    /// An error once [`Engine::close`] was called.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        self.core.check_open()
    }

    /// Ends the waits of [`Engine::wait_until_closing`], and nothing else: for who is about to
    /// close the store and first lets the calls under way end.
    pub fn announce_close(&self) {
        if let Some(log) = &self.core.log {
            log.announce_close();
        }
    }

    /// Refuses new work, writes everything to tables, stops the threads, releases the directory.
    /// Calling it again does nothing. An error means that something could not be flushed: it is
    /// still in the log.
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
        let result = self.core.finish();
        self.core.release();
        result
    }

    /// In a forked child: gives up the lock's descriptor and nothing else. Never waits: a thread
    /// of the parent that held the mutex at the fork does not exist here to release it, and was
    /// letting go of the lock anyway.
    pub fn abandon_lock(&self) {
        if let Some(lock) = self.core.lock.try_lock()
            && let Some(guard) = &*lock
        {
            guard.abandon();
        }
    }
}

impl Core {
    /// Lets go of threads, log, manifest and directory.
    fn release(&self) {
        self.refuse_commits();
        self.work.stop();
        if let Some(log) = &self.log {
            log.close();
        }
        *self.manifest.lock() = None;
        *self.lock.lock() = None;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.core.release();
    }
}

/// The store as it was at one moment. Keeps the data of that moment until it is dropped.
#[derive(Debug)]
pub struct Snapshot {
    core: Arc<Core>,
    pin: SnapshotPin,
}

impl Snapshot {
    /// The newest commit it sees.
    pub fn sequence(&self) -> Sequence {
        self.pin.sequence()
    }

    /// The value of `key` then.
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        self.core.check_open()?;
        self.core.activity.gets.add(1);
        self.core.view.load().get(tree, key, self.sequence(), GetOptions::default())
    }

    /// The values of several keys of one tree then.
    pub fn multi_get(&self, tree: TreeId, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        self.core.check_open()?;
        self.core.activity.gets.add(keys.len() as u64);
        multi_get(&self.core.view.load(), tree, keys, self.sequence())
    }

    /// An iterator over the keys of `tree` then.
    pub fn iter(&self, tree: TreeId, options: IterOptions) -> Result<Iter> {
        self.reader()?.iter(tree, options)
    }

    /// For several reads of the moment of the snapshot.
    pub fn reader(&self) -> Result<Reader> {
        self.core.check_open()?;
        Ok(Reader { view: self.core.view.load_full(), sequence: self.sequence() })
    }
}

/// Reads at one moment. See [`Engine::reader`].
#[derive(Clone, Debug)]
pub struct Reader {
    pub(super) view: Arc<View>,
    sequence: Sequence,
}

impl Reader {
    /// The newest commit it sees.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        self.view.get(tree, key, self.sequence, GetOptions::default())
    }

    /// The value of `key`, leaving the block cache as it is: for a look that will not come again.
    pub fn peek(&self, tree: TreeId, key: &[u8]) -> Result<Option<Bytes>> {
        self.view.get(tree, key, self.sequence, GetOptions { no_fill: true })
    }

    /// An iterator over the keys of `tree`.
    pub fn iter(&self, tree: TreeId, options: IterOptions) -> Result<Iter> {
        Arc::clone(&self.view).iter(tree, self.sequence, options)
    }

    /// Look-ups of keys with these hashes follow: reads ahead what they would wait for in turn.
    pub fn bring_near(&self, tree: TreeId, hashes: &[u64]) {
        self.view.bring_near(tree, hashes);
    }

    /// Whether a walk along `tree` has nothing to sort first.
    pub fn is_ordered(&self, tree: TreeId) -> bool {
        self.view.is_ordered(tree)
    }

    /// Draws keys within the bounds at random.
    pub fn sampler(&self, tree: TreeId, options: IterOptions) -> Result<Sampler> {
        Sampler::new(&self.view, tree, self.sequence, options)
    }

    /// What every table of `tree` says of itself, by file number.
    pub fn tables(
        &self,
        tree: TreeId,
        mut visit: impl FnMut(FileNumber, &Properties),
    ) -> Result<()> {
        let levels = self.view.version.trees.get(tree.index());
        for file in levels.into_iter().flat_map(|levels| levels.files()) {
            visit(file.meta().number, file.table()?.properties());
        }
        Ok(())
    }

    /// An iterator over the memtables, if wanted, and the tables that `chosen` names. What it
    /// shows may have a newer version, or have been deleted, in a place that was left out.
    pub fn iter_over(
        &self,
        tree: TreeId,
        options: IterOptions,
        memtables: bool,
        mut chosen: impl FnMut(FileNumber, &Properties) -> bool,
    ) -> Result<Iter> {
        let view = Arc::clone(&self.view);
        view.iter_over(tree, self.sequence, options, memtables, &mut |file| {
            Ok(chosen(file.meta().number, file.table()?.properties()))
        })
    }
}

/// Looks keys up in their order, so that neighbours share blocks.
fn multi_get(
    view: &View,
    tree: TreeId,
    keys: &[&[u8]],
    sequence: Sequence,
) -> Result<Vec<Option<Bytes>>> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|at| keys.get(*at));
    let mut values = vec![None; keys.len()];
    for at in order {
        if let (Some(key), Some(value)) = (keys.get(at), values.get_mut(at)) {
            *value = view.get(tree, key, sequence, GetOptions::default())?;
        }
    }
    Ok(values)
}
