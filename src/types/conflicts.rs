//! Which keys were changed since when, for those who want to know: transactions and WATCH.
//!
//! While one of them lives, every commit notes its keys with its sequence, after it is visible and
//! while it still holds their stripes. Whoever holds the stripe of a key therefore finds every
//! change of it noted. Who begins registers first and takes a sequence then; a commit looks for
//! those who are registered after it is visible, both with a full fence between: so either the
//! commit sees the other's registration, or the other's sequence includes the commit.
//!
//! A key is known by 128 bits of hash: entries have one size however long keys are, and two
//! different keys are not taken for each other. Entries that no one who lives asks about are
//! removed as the table grows. If it reaches [`MOST_ENTRIES`] all the same, the older half is
//! forgotten, and whoever began before that conflicts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use crate::engine::Sequence;

/// Keys changed while the oldest transaction lived, at most: 40 MiB.
const MOST_ENTRIES: usize = 1 << 20;
/// Below this nothing is removed before the last one has gone.
const FEW_ENTRIES: usize = 1024;

/// A user key of one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct KeyId(u128);

impl KeyId {
    /// By the key of its record.
    pub(crate) fn of(meta_key: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(meta_key))
    }
}

/// The table of one store.
#[derive(Debug)]
pub(crate) struct Conflicts {
    /// How many are registered: all that a commit looks at when there are none.
    registered: AtomicUsize,
    state: Mutex<State>,
    most_entries: usize,
}

#[derive(Debug, Default)]
struct State {
    /// How many began at each sequence, or later.
    began: BTreeMap<Sequence, usize>,
    changed: HashMap<KeyId, Sequence>,
    /// Changes up to here may have been forgotten.
    forgotten: Sequence,
    /// The number of entries at which to look for some to remove.
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

    /// From now on changes are noted until the guard is dropped. `visible` is the newest visible
    /// sequence or an older one; the caller may ask about changes after any later one.
    pub(crate) fn register(self: &Arc<Self>, visible: Sequence) -> Registered {
        let mut state = self.state.lock();
        *state.began.entry(visible).or_insert(0) += 1;
        self.registered.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        drop(state);
        Registered { conflicts: Arc::clone(self), began: visible }
    }

    /// Whether a commit that is visible has to be noted.
    #[inline]
    pub(crate) fn anyone(&self) -> bool {
        fence(Ordering::SeqCst);
        self.registered.load(Ordering::Relaxed) > 0
    }

    /// These keys were changed by the commit `sequence`. The caller holds their stripes.
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

    /// The table as it is, for a few questions in a row.
    pub(crate) fn look(&self) -> Changes<'_> {
        Changes(self.state.lock())
    }

    /// How many are registered, and how many entries there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.began.values().sum(), state.changed.len())
    }
}

impl State {
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

/// See [`Conflicts::look`].
pub(crate) struct Changes<'a>(parking_lot::MutexGuard<'a, State>);

impl Changes<'_> {
    /// Whether the key was changed after `sequence`. The caller holds its stripe.
    pub(crate) fn changed_after(&self, key: KeyId, sequence: Sequence) -> bool {
        self.0.changed.get(&key).is_some_and(|changed| *changed > sequence)
    }

    /// Whether so much was changed after `sequence` that not all of it is known.
    pub(crate) fn forgot_after(&self, sequence: Sequence) -> bool {
        self.0.forgotten > sequence
    }
}

/// Somebody who asks about changes.
#[derive(Debug)]
pub(crate) struct Registered {
    conflicts: Arc<Conflicts>,
    began: Sequence,
}

impl Drop for Registered {
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
        let changed = |key, after| conflicts.look().changed_after(id(key), after);
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
            let changes = conflicts.look();
            assert!(changes.changed_after(id(n), n - 1));
            assert!(changes.changed_after(id(1), 0) || changes.forgot_after(0));
            assert!(!changes.forgot_after(n - 1));
        }
        drop(old);
        let _new = conflicts.register(10_000);
        assert!(!conflicts.look().forgot_after(10_000));
    }
}
