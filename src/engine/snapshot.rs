//! Sequence numbers and snapshots: which versions must stay readable.
//!
//! One lock guards three things that a compaction must see together: the live snapshots, the newest
//! visible sequence number, and the reserved numbers. A reserved number comes from the sequence
//! allocator and stands for something that is not visible yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::entry::Sequence;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The sequence numbers of a store: the next one, the newest visible one, and those that must stay
/// readable.
#[derive(Debug)]
pub(crate) struct Sequences {
    next: AtomicU64,
    visible: AtomicU64,
    registry: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    /// Number of live snapshots per sequence number.
    snapshots: BTreeMap<Sequence, usize>,
    /// Number of holders per reserved number.
    reserved: BTreeMap<u64, usize>,
}

/// The snapshots and reserved numbers that a compaction must respect, captured at one moment.
#[derive(Debug)]
pub struct PinnedSequences {
    /// The newest visible sequence number at the capture. It stays readable while this lives.
    pub current: SnapshotPin,
    /// The live snapshots at the capture, ascending. They stay readable while this lives.
    pub snapshots: Vec<SnapshotPin>,
    /// The reserved numbers at the capture, ascending.
    pub reserved: Vec<u64>,
}

impl Sequences {
    /// Sequence numbers that begin after `last`. Everything up to `last` is visible.
    pub(crate) fn starting_after(last: Sequence) -> Self {
        Self {
            next: AtomicU64::new(last + 1),
            visible: AtomicU64::new(last),
            registry: Mutex::default(),
        }
    }

    /// Allocates the next number. Commits and reserved numbers share one order.
    pub(crate) fn allocate(&self) -> Sequence {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The newest sequence number that readers see.
    #[inline]
    pub(crate) fn visible(&self) -> Sequence {
        self.visible.load(Ordering::Acquire)
    }

    /// Makes everything up to `sequence` visible. Its entries must be in the memtables.
    pub(crate) fn publish(&self, sequence: Sequence) {
        self.visible.store(sequence, Ordering::Release);
    }

    /// Makes everything up to `sequence` visible, which another process has committed.
    pub(crate) fn move_to(&self, sequence: Sequence) {
        self.next.fetch_max(sequence + 1, Ordering::Relaxed);
        self.publish(sequence);
    }

    /// Pins the newest visible sequence number.
    pub(crate) fn pin(self: &Arc<Self>) -> SnapshotPin {
        let mut registry = self.registry.lock();
        // Read under the lock: a compaction that captures later sees this pin, and one that
        // captured earlier has dropped only what is invisible from its capture on.
        self.pin_locked(&mut registry, self.visible())
    }

    /// Pins a sequence number. Those of a store that is read beside a writer concern nobody else.
    pub(crate) fn pin_at(self: &Arc<Self>, sequence: Sequence) -> SnapshotPin {
        self.pin_locked(&mut self.registry.lock(), sequence)
    }

    fn pin_locked(self: &Arc<Self>, registry: &mut Registry, sequence: Sequence) -> SnapshotPin {
        *registry.snapshots.entry(sequence).or_insert(0) += 1;
        SnapshotPin { sequences: Arc::clone(self), sequence }
    }

    /// Captures and pins everything that a compaction must respect.
    pub(crate) fn capture(self: &Arc<Self>) -> PinnedSequences {
        let mut registry = self.registry.lock();
        let live: Vec<Sequence> = registry.snapshots.keys().copied().collect();
        let snapshots = live.iter().map(|s| self.pin_locked(&mut registry, *s)).collect();
        let current = self.pin_locked(&mut registry, self.visible());
        let reserved = registry.reserved.keys().copied().collect();
        PinnedSequences { current, snapshots, reserved }
    }

    /// Reserves a number. Compactions know of it until the guard is dropped.
    pub(crate) fn reserve(self: &Arc<Self>) -> ReservedNumber {
        let mut registry = self.registry.lock();
        let number = self.allocate();
        *registry.reserved.entry(number).or_insert(0) += 1;
        ReservedNumber { sequences: Arc::clone(self), number }
    }

    /// Live snapshots, ascending.
    pub(crate) fn live(&self) -> Vec<Sequence> {
        self.registry.lock().snapshots.keys().copied().collect()
    }

    /// The number of live snapshots and the number of reserved numbers.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let registry = self.registry.lock();
        (registry.snapshots.values().sum(), registry.reserved.len())
    }
}

fn release(counts: &mut BTreeMap<u64, usize>, key: u64) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

/// Keeps the versions visible at one sequence number readable until it is dropped.
#[derive(Debug)]
pub struct SnapshotPin {
    sequences: Arc<Sequences>,
    sequence: Sequence,
}

impl SnapshotPin {
    /// The pinned sequence number.
    #[inline]
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }
}

impl Drop for SnapshotPin {
    fn drop(&mut self) {
        release(&mut self.sequences.registry.lock().snapshots, self.sequence);
    }
}

/// A number from the sequence allocator that stands for something not visible yet. Dropping it
/// releases the number.
#[derive(Debug)]
pub struct ReservedNumber {
    sequences: Arc<Sequences>,
    number: u64,
}

impl ReservedNumber {
    /// The reserved number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for ReservedNumber {
    fn drop(&mut self) {
        release(&mut self.sequences.registry.lock().reserved, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_count_and_go_away() {
        let sequences = Arc::new(Sequences::starting_after(5));
        let (a, b) = (sequences.pin(), sequences.pin());
        sequences.publish(sequences.allocate());
        let c = sequences.pin();
        assert_eq!((a.sequence(), c.sequence()), (5, 6));
        assert_eq!(sequences.live(), [5, 6]);
        let captured = sequences.capture();
        drop((a, b, c));
        assert_eq!(sequences.live(), [5, 6], "a capture keeps what it saw");
        drop(captured);
        assert_eq!(sequences.counts(), (0, 0));
    }

    #[test]
    fn a_reserved_number_is_never_a_commit_and_is_seen_by_captures() {
        let sequences = Arc::new(Sequences::starting_after(0));
        let reserved = sequences.reserve();
        assert!(sequences.allocate() > reserved.number());
        assert_eq!(sequences.capture().reserved, [reserved.number()]);
        drop(reserved);
        assert!(sequences.capture().reserved.is_empty());
    }
}
