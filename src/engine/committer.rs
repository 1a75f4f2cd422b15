//! Group commit: the queue of batches, and the commits made of them.
//!
//! The thread that holds `lead` commits for all that have queued meanwhile. The others wait for
//! the lead, and find their batch committed when they get it.

use std::sync::Arc;

use crate::engine::batch::{Batch, LANES, TreeId};
use crate::engine::entry::Sequence;
use crate::engine::throttle::Throttle;
use crate::engine::wal::LogPosition;
use crate::engine::wal::record::RECORD_ALIGNMENT;
use crate::error::Result;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// A batch that has been committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The sequence number of the batch.
    pub sequence: Sequence,
    /// The commit is durable once the log is synced up to this position.
    pub position: LogPosition,
}

/// Bits of a [`Commit::place`] that hold the offset within the segment, in units of the record
/// alignment.
const OFFSET_BITS: u32 = 30;

impl Commit {
    /// The log position as one number. It is enough for [`Engine::wait_durable`], grows with every
    /// commit, and is never 0.
    ///
    /// [`Engine::wait_durable`]: crate::engine::Engine::wait_durable
    pub fn place(&self) -> u64 {
        (self.position.segment << OFFSET_BITS) | (self.position.offset / RECORD_ALIGNMENT)
    }

    /// A commit that becomes durable together with the one that has this place.
    pub fn at_place(place: u64) -> Self {
        let offset = (place & ((1 << OFFSET_BITS) - 1)) * RECORD_ALIGNMENT;
        Self { sequence: 0, position: LogPosition::new(place >> OFFSET_BITS, offset) }
    }
}

/// Bytes of batches that a leader commits at once. The limit bounds the buffer of the log and the
/// wait of the last writer.
const GROUP_BYTES: usize = 1 << 20;

/// Orders commits.
#[derive(Debug, Default)]
pub(crate) struct Committer {
    lead: Mutex<LeaderState>,
    queue: Mutex<Vec<Arc<PendingCommit>>>,
    /// By lane: the sequence number of the last visible commit that changed the lane's trees by
    /// more than replacing values, or a later one.
    last_changes: [AtomicU64; LANES],
}

/// State that only the leader touches.
#[derive(Debug, Default)]
pub(crate) struct LeaderState {
    pub(crate) throttle: Throttle,
}

/// A queued batch whose writer waits for the lead.
#[derive(Debug)]
struct PendingCommit {
    frees_space: bool,
    state: Mutex<CommitState>,
}

#[derive(Debug)]
enum CommitState {
    Waiting(Batch),
    Done(Result<Commit>),
}

impl PendingCommit {
    /// The result, once a leader has committed the batch.
    fn result(&self) -> Option<Result<Commit>> {
        match &*self.state.lock() {
            CommitState::Done(result) => Some(result.clone()),
            CommitState::Waiting(_) => None,
        }
    }
}

impl Committer {
    /// Commits a batch, alone or in a group, and returns once it is committed. The batch is left
    /// empty. `commit` commits a group; the thread that has the lead calls it, for batches of others
    /// too.
    #[inline]
    pub(crate) fn commit(
        &self,
        batch: &mut Batch,
        frees_space: bool,
        commit: impl Fn(&mut LeaderState, &mut [&mut Batch]) -> Result<Commit>,
    ) -> Result<Commit> {
        if let Some(mut lead) = self.try_lead() {
            let group = self.take_group(batch.bytes(), frees_space);
            let result =
                self.commit_group(Some(batch), &group, |batches| commit(&mut lead, batches));
            batch.clear();
            return result;
        }
        let pending = self.enqueue(batch, frees_space);
        loop {
            let mut lead = self.lead();
            if let Some(result) = pending.result() {
                return result;
            }
            let group = self.take_group(0, frees_space);
            let _ = self.commit_group(None, &group, |batches| commit(&mut lead, batches));
        }
    }

    /// Waits for the lead. No commit runs while the guard lives.
    pub(crate) fn lead(&self) -> MutexGuard<'_, LeaderState> {
        self.lead.lock()
    }

    /// Takes the lead if nobody has it.
    pub(crate) fn try_lead(&self) -> Option<MutexGuard<'_, LeaderState>> {
        self.lead.try_lock()
    }

    /// Queues a batch, which is left empty.
    fn enqueue(&self, batch: &mut Batch, frees_space: bool) -> Arc<PendingCommit> {
        let state = Mutex::new(CommitState::Waiting(std::mem::take(batch)));
        let pending = Arc::new(PendingCommit { frees_space, state });
        self.queue.lock().push(Arc::clone(&pending));
        pending
    }

    /// Takes queued batches that fit one group together with `bytes` of the leader's own batch.
    fn take_group(&self, mut bytes: usize, frees_space: bool) -> Vec<Arc<PendingCommit>> {
        let mut queue = self.queue.lock();
        if queue.is_empty() {
            return Vec::new();
        }
        let mut group = Vec::new();
        queue.retain(|pending| {
            let CommitState::Waiting(batch) = &*pending.state.lock() else { return false };
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

    /// Runs `commit` on the leader's own batch, if there is one, and the batches of the group. The
    /// writers of the group get the same result.
    fn commit_group(
        &self,
        own: Option<&mut Batch>,
        group: &[Arc<PendingCommit>],
        commit: impl FnOnce(&mut [&mut Batch]) -> Result<Commit>,
    ) -> Result<Commit> {
        let mut states: Vec<MutexGuard<'_, CommitState>> =
            group.iter().map(|pending| pending.state.lock()).collect();
        let mut batches: Vec<&mut Batch> = own.into_iter().collect();
        batches.extend(states.iter_mut().filter_map(|state| match &mut **state {
            CommitState::Waiting(batch) => Some(batch),
            CommitState::Done(_) => None,
        }));
        let result = commit(&mut batches);
        for state in &mut states {
            **state = CommitState::Done(result.clone());
        }
        result
    }

    /// The sequence number of the last visible commit since the store was opened that changed
    /// `tree` by more than replacing values, or a later one; 0 if there was none.
    pub(crate) fn last_change(&self, tree: TreeId) -> Sequence {
        let last = self.last_changes.get(tree.lane());
        last.map_or(Sequence::MAX, |last| last.load(Ordering::Acquire))
    }

    /// Records that `sequence`, which is about to be published, may have changed every tree.
    pub(crate) fn note_every_tree(&self, sequence: Sequence) {
        self.last_changes.iter().for_each(|last| last.store(sequence, Ordering::Release));
    }

    /// Records which trees `batches` change. The leader calls this before it publishes `sequence`.
    pub(crate) fn note_changes(&self, batches: &[&mut Batch], sequence: Sequence) {
        let mut lanes = batches.iter().fold(0, |lanes, batch| lanes | batch.changed_lanes());
        while lanes != 0 {
            if let Some(last) = self.last_changes.get(lanes.trailing_zeros() as usize) {
                last.store(sequence, Ordering::Release);
            }
            lanes &= lanes - 1;
        }
    }
}
