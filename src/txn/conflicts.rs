//! The changes of keys that transactions and WATCH ask about.
//!
//! While an observer is registered, every commit notes its keys with its sequence, after it is
//! visible and while it still holds their stripes. Whoever holds the stripe of a key therefore
//! finds every change of it. An observer registers first and takes its sequence then; a commit
//! becomes visible first and looks for observers then; both put a full fence between. So either the
//! commit sees the observer, or the observer's sequence includes the commit.
//!
//! A key is identified by 128 bits of hash: entries have a fixed size, and two different keys are
//! not confused. The table removes entries that no observer asks about as it grows. If it still
//! reaches [`MOST_ENTRIES`], it forgets the older half, and every observer that began before that
//! conflicts.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use crate::engine::Sequence;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering, fence};

/// The largest number of entries: 40 MiB.
const MOST_ENTRIES: usize = 1 << 20;
/// A table smaller than this is not searched for entries to remove.
const FEW_ENTRIES: usize = 1024;

/// Identifies a user key of one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyId(u128);

impl KeyId {
    /// Hashes the key of the record, with a seed of the process: nobody can choose keys that are
    /// taken for one.
    pub(crate) fn of(meta_key: &[u8]) -> Self {
        static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0u8));
        Self(xxhash_rust::xxh3::xxh3_128_with_seed(meta_key, *SEED))
    }
}

/// The changes noted in one store.
#[derive(Debug)]
pub(crate) struct Conflicts {
    /// The number of observers. A commit reads nothing else while it is zero.
    registered: AtomicUsize,
    state: Mutex<ChangeTable>,
    most_entries: usize,
}

#[derive(Debug, Default)]
struct ChangeTable {
    /// The number of observers that registered at each sequence.
    began: BTreeMap<Sequence, usize>,
    changed: HashMap<KeyId, Sequence>,
    /// Changes up to this sequence may be missing.
    forgotten: Sequence,
    /// The number of entries at which the next cleanup is due.
    clean_at: usize,
}

impl Default for Conflicts {
    fn default() -> Self {
        Self::with_room_for(MOST_ENTRIES)
    }
}

impl Conflicts {
    fn with_room_for(most_entries: usize) -> Self {
        Self { registered: AtomicUsize::new(0), state: Mutex::default(), most_entries }
    }

    /// Notes changes until the guard is dropped. `visible` is the newest visible sequence or an
    /// older one; the observer may ask about changes after any later sequence.
    pub(crate) fn register(self: &Arc<Self>, visible: Sequence) -> ConflictObserver {
        let mut state = self.state.lock();
        *state.began.entry(visible).or_insert(0) += 1;
        self.registered.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        drop(state);
        ConflictObserver { conflicts: Arc::clone(self), began: visible }
    }

    /// Whether a visible commit must be noted.
    #[inline]
    pub(crate) fn anyone(&self) -> bool {
        fence(Ordering::SeqCst);
        self.registered.load(Ordering::Relaxed) > 0
    }

    /// Notes that the commit `sequence` changed these keys. The caller holds their stripes.
    pub(crate) fn note(&self, keys: &[KeyId], sequence: Sequence) {
        let mut state = self.state.lock();
        if state.began.is_empty() {
            return;
        }
        for key in keys {
            let noted = state.changed.entry(*key).or_insert(0);
            *noted = sequence.max(*noted);
        }
        state.tidy(self.most_entries);
    }

    /// Makes every observer that began before the visible `sequence` conflict: any key may have
    /// changed. The caller holds all stripes.
    pub(crate) fn forget_up_to(&self, sequence: Sequence) {
        if !self.anyone() {
            return;
        }
        let mut state = self.state.lock();
        if !state.began.is_empty() {
            state.forgotten = state.forgotten.max(sequence);
        }
    }

    /// Locks the table for a series of questions.
    pub(crate) fn changes(&self) -> Changes<'_> {
        Changes(self.state.lock())
    }

    /// The numbers of observers and of entries.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.began.values().sum(), state.changed.len())
    }
}

impl ChangeTable {
    fn tidy(&mut self, most: usize) {
        if self.changed.len() < self.clean_at.max(FEW_ENTRIES.min(most)) {
            return;
        }
        let oldest = self.began.keys().next().copied().unwrap_or(Sequence::MAX);
        self.changed.retain(|_, sequence| *sequence > oldest);
        if self.changed.len() >= most {
            let mut all: Vec<Sequence> = self.changed.values().copied().collect();
            let middle = all.len() / 2;
            let (_, median, _) = all.select_nth_unstable(middle);
            self.forgotten = self.forgotten.max(*median);
            let forgotten = self.forgotten;
            self.changed.retain(|_, sequence| *sequence > forgotten);
        }
        self.clean_at = self.changed.len().saturating_mul(2).min(most);
    }
}

/// The locked table of changes.
pub(crate) struct Changes<'a>(crate::sync::MutexGuard<'a, ChangeTable>);

impl Changes<'_> {
    /// Whether the key was changed after `sequence`. The caller holds its stripe.
    pub(crate) fn changed_after(&self, key: KeyId, sequence: Sequence) -> bool {
        self.0.changed.get(&key).is_some_and(|changed| *changed > sequence)
    }

    /// Whether changes after `sequence` were forgotten.
    pub(crate) fn forgot_after(&self, sequence: Sequence) -> bool {
        self.0.forgotten > sequence
    }
}

/// Keeps changes noted until it is dropped.
#[derive(Debug)]
pub(crate) struct ConflictObserver {
    conflicts: Arc<Conflicts>,
    began: Sequence,
}

impl Drop for ConflictObserver {
    fn drop(&mut self) {
        let mut state = self.conflicts.state.lock();
        if let Some(count) = state.began.get_mut(&self.began) {
            *count -= 1;
            if *count == 0 {
                state.began.remove(&self.began);
            }
        }
        self.conflicts.registered.fetch_sub(1, Ordering::SeqCst);
        if state.began.is_empty() {
            state.changed = HashMap::new();
            (state.forgotten, state.clean_at) = (0, 0);
        }
    }
}

#[cfg(loom)]
pub mod models;

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> KeyId {
        KeyId::of(&n.to_be_bytes())
    }

    #[test]
    fn changes_are_known_as_long_as_somebody_may_ask() {
        let conflicts = Arc::new(Conflicts::default());
        conflicts.note(&[id(1)], 5);
        assert!(!conflicts.anyone());
        let first = conflicts.register(5);
        assert!(conflicts.anyone());
        conflicts.note(&[id(1), id(2)], 6);
        let second = conflicts.register(6);
        conflicts.note(&[id(2)], 7);
        let changed = |key, after| conflicts.changes().changed_after(id(key), after);
        assert!(changed(1, 5) && changed(2, 5) && changed(2, 6));
        assert!(!changed(1, 6) && !changed(3, 5) && !changed(2, 7));
        drop(first);
        assert!(changed(2, 6));
        drop(second);
        assert_eq!(conflicts.counts(), (0, 0));
    }

    #[test]
    fn what_nobody_asks_about_goes_when_the_table_grows() {
        let conflicts = Arc::new(Conflicts::default());
        let old = conflicts.register(0);
        (1..5000).for_each(|n| conflicts.note(&[id(n)], n));
        assert_eq!(conflicts.counts(), (1, 4999));
        let young = conflicts.register(4999);
        drop(old);
        (5000..20_000).for_each(|n| conflicts.note(&[id(5000 + n % 10)], n));
        assert!(conflicts.counts().1 < 5100, "{:?}", conflicts.counts());
        (20_000..30_000).for_each(|n| conflicts.note(&[id(n)], n));
        assert!(conflicts.counts().1 < 10_100, "{:?}", conflicts.counts());
        drop(young);
    }

    #[test]
    fn the_table_is_bounded_and_says_what_it_has_forgotten() {
        let conflicts = Arc::new(Conflicts::with_room_for(2000));
        let old = conflicts.register(0);
        for n in 1..10_000 {
            conflicts.note(&[id(n)], n);
            assert!(conflicts.counts().1 <= 2000);
            let changes = conflicts.changes();
            assert!(changes.changed_after(id(n), n - 1));
            assert!(changes.changed_after(id(1), 0) || changes.forgot_after(0));
            assert!(!changes.forgot_after(n - 1));
        }
        drop(old);
        let _new = conflicts.register(10_000);
        assert!(!conflicts.changes().forgot_after(10_000));
    }
}
