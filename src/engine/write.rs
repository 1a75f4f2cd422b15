//! The way of a batch into the store.
//!
//! Whoever holds `lead` commits for all that have queued meanwhile: one write to the log, then
//! the memtables, then the sequence is published. Waiting for durability comes after, with
//! nothing held, so that the next group is written while the device flushes this one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::engine::batch::{Batch, LANES, TreeId};
use crate::engine::config::WriteOptions;
use crate::engine::core::Core;
use crate::engine::entry::{Sequence, Tag, hash_key};
use crate::engine::view::View;
use crate::engine::wal::record::RECORD_ALIGNMENT;
use crate::engine::wal::{Log, LogPosition};
use crate::error::{Error, ErrorKind, Result};
use crate::options::SyncMode;

/// A batch that has been committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its place in the order of commits.
    pub sequence: Sequence,
    /// It is durable once the log is synced to here.
    pub position: LogPosition,
}

/// Bits of a place that give the offset in the segment, in units of the records' alignment.
const OFFSET_BITS: u32 = 30;

impl Commit {
    /// Where the log must be synced to, as one number: enough for [`Engine::wait_durable`], in the
    /// order of commits, and never 0.
    ///
    /// [`Engine::wait_durable`]: crate::engine::Engine::wait_durable
    pub fn place(&self) -> u64 {
        (self.position.segment << OFFSET_BITS) | (self.position.offset / RECORD_ALIGNMENT)
    }

    /// A commit that is durable when the one with this place is.
    pub fn at_place(place: u64) -> Self {
        let offset = (place & ((1 << OFFSET_BITS) - 1)) * RECORD_ALIGNMENT;
        Self { sequence: 0, position: LogPosition::new(place >> OFFSET_BITS, offset) }
    }
}

/// Serialises commits.
#[derive(Debug, Default)]
pub(crate) struct Committer {
    lead: Mutex<Lead>,
    queue: Mutex<Vec<Arc<Pending>>>,
    /// By lane: no later commit that is visible has changed its trees but by replacing values.
    last_changes: [AtomicU64; LANES],
}

impl Committer {
    /// The sequence of the last commit that changed `tree` in this life, or a later one. What is
    /// visible before this is called counts; those that only replaced values do not.
    pub(crate) fn last_change(&self, tree: TreeId) -> Sequence {
        let last = self.last_changes.get(tree.lane());
        last.map_or(Sequence::MAX, |last| last.load(Ordering::Acquire))
    }

    /// Called by the leader before `sequence` is published.
    fn note_changes(&self, batches: &[&mut Batch], sequence: Sequence) {
        for (lane, last) in self.last_changes.iter().enumerate() {
            if batches.iter().any(|batch| batch.changes(lane)) {
                last.store(sequence, Ordering::Release);
            }
        }
    }
}

/// What only the leader touches.
#[derive(Debug, Default)]
pub(crate) struct Lead {
    pub(crate) throttle: crate::engine::throttle::Throttle,
}

/// A batch whose writer waits for a leader, at last for itself to become one.
#[derive(Debug)]
struct Pending {
    frees_space: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Waiting(Batch),
    Done(Result<Commit>),
}

/// Batches a leader takes at once; bounds the log's buffer and the wait of the last.
const GROUP_BYTES: usize = 1 << 20;

impl Core {
    /// Commits `batch` and empties it. It is visible when this returns, and survives the death of
    /// the process; for more see [`Core::wait_durable`].
    pub(crate) fn commit(&self, batch: &mut Batch, options: WriteOptions) -> Result<Commit> {
        let log = self.writable()?;
        self.check_batch(batch)?;
        if let Some(mut lead) = self.committer.lead.try_lock() {
            let mut group = self.take_group(batch.bytes(), options.frees_space);
            let commit = self.lead(log, &mut lead, Some(batch), &mut group, options.frees_space);
            batch.clear();
            return commit;
        }
        self.queue_up(log, batch, options)
    }

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

    fn queue_up(&self, log: &Log, batch: &mut Batch, options: WriteOptions) -> Result<Commit> {
        let pending = Arc::new(Pending {
            frees_space: options.frees_space,
            state: Mutex::new(State::Waiting(std::mem::take(batch))),
        });
        self.committer.queue.lock().push(Arc::clone(&pending));
        loop {
            let mut lead = self.committer.lead.lock();
            if let State::Done(result) = &*pending.state.lock() {
                return result.clone();
            }
            let mut group = self.take_group(0, options.frees_space);
            let _ = self.lead(log, &mut lead, None, &mut group, options.frees_space);
        }
    }

    /// Queued batches that fit one group beside `bytes` of the leader's own.
    fn take_group(&self, mut bytes: usize, frees_space: bool) -> Vec<Arc<Pending>> {
        let mut queue = self.committer.queue.lock();
        if queue.is_empty() {
            return Vec::new();
        }
        let mut group = Vec::new();
        queue.retain(|pending| {
            let State::Waiting(batch) = &*pending.state.lock() else { return false };
            let first = bytes == 0;
            let fits = first || bytes + batch.bytes() <= GROUP_BYTES;
            let joins = fits && pending.frees_space == frees_space;
            if joins {
                bytes += batch.bytes();
                group.push(Arc::clone(pending));
            }
            !joins
        });
        group
    }

    /// Commits the leader's own batch, if it has one, and the group; tells the group.
    fn lead(
        &self,
        log: &Log,
        lead: &mut MutexGuard<'_, Lead>,
        own: Option<&mut Batch>,
        group: &mut [Arc<Pending>],
        frees_space: bool,
    ) -> Result<Commit> {
        let mut states: Vec<MutexGuard<'_, State>> =
            group.iter().map(|pending| pending.state.lock()).collect();
        let mut batches: Vec<&mut Batch> = own.into_iter().collect();
        batches.extend(states.iter_mut().filter_map(|state| match &mut **state {
            State::Waiting(batch) => Some(batch),
            State::Done(_) => None,
        }));
        let result = self.commit_group(log, lead, &mut batches, frees_space);
        for state in &mut states {
            **state = State::Done(result.clone());
        }
        result
    }

    fn commit_group(
        &self,
        log: &Log,
        lead: &mut Lead,
        batches: &mut [&mut Batch],
        frees_space: bool,
    ) -> Result<Commit> {
        self.check_open()?;
        self.health.check()?;
        let bytes = batches.iter().map(|batch| batch.bytes()).sum();
        self.make_room(log, &mut lead.throttle, bytes, frees_space)?;
        let mut sequence = 0;
        for batch in batches.iter_mut() {
            sequence = self.sequences.allocate();
            batch.seal(sequence);
        }
        let position = match batches {
            [only] => log.append(&[only.sealed()], frees_space)?,
            _ => {
                let payloads: Vec<&[u8]> = batches.iter().map(|batch| batch.sealed()).collect();
                log.append(&payloads, frees_space)?
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

    fn apply(&self, batches: &[&mut Batch]) -> Result<()> {
        let view = self.view.load();
        for batch in batches {
            apply_batch(&view, batch.sealed())?;
        }
        view.active.trees.iter().for_each(|memtable| memtable.index_ahead());
        Ok(())
    }

    /// Waits until a commit survives a power cut; `false` when the time runs out.
    pub(crate) fn wait_durable(&self, commit: Commit, timeout: Option<Duration>) -> Result<bool> {
        match &self.log {
            Some(log) => log.wait_durable(commit.position, timeout),
            None => Ok(true),
        }
    }

    /// The same until a close is announced.
    pub(crate) fn wait_until_closing(
        &self,
        commit: Commit,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        match &self.log {
            Some(log) => log.wait_until_closing(commit.position, timeout),
            None => Ok(true),
        }
    }

    /// Commits and waits as the sync mode asks.
    pub(crate) fn write(&self, batch: &mut Batch, options: WriteOptions) -> Result<Commit> {
        let commit = self.commit(batch, options)?;
        if options.sync.unwrap_or(self.options.sync) == SyncMode::Always {
            self.wait_durable(commit, None)?;
        }
        Ok(commit)
    }

    /// Runs `change` while no commit is under way.
    pub(crate) fn between_commits<T>(&self, change: impl FnOnce(&mut Lead) -> T) -> T {
        change(&mut self.committer.lead.lock())
    }

    /// No commit begins after this returns.
    pub(crate) fn refuse_commits(&self) {
        self.closed.store(true, Ordering::Release);
        drop(self.committer.lead.lock());
    }
}

/// Applies the stored form of a batch to the active memtables; returns its sequence.
pub(crate) fn apply_batch(view: &View, sealed: &[u8]) -> Result<Sequence> {
    let broken = || Error::new(ErrorKind::Corrupt, "a batch names a tree that does not exist");
    let (sequence, operations) = crate::engine::batch::decode(sealed).ok_or_else(broken)?;
    for operation in operations {
        let operation = operation?;
        let memtable = view.active.trees.get(operation.tree.index()).ok_or_else(broken)?;
        let tag = Tag::new(sequence, operation.kind);
        memtable.insert(hash_key(operation.key), operation.key, tag, operation.value)?;
    }
    Ok(sequence)
}
