//! Locks by key. A writer holds its key's stripe from the first read that its write depends on
//! until that write is visible. Readers take none.
//!
//! Two keys may share a stripe. A thread that needs several takes them in ascending order, each
//! only once.
//!
//! Whoever waits looks now and then whether a slow script holds the stripe, and then gives up.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::txn::script_locks::ScriptLocks;
use crate::txn::stripe_set::STRIPES;

/// How often a thread that waits looks for a slow script.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A lock on a cache line of its own, so that neighbours do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(Mutex<()>);

/// The locks of one store.
#[derive(Debug)]
pub(super) struct Stripes {
    stripes: Box<[Stripe]>,
    scripts: ScriptLocks,
}

/// Why a thread does not get its stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockFailure {
    /// The deadline passed.
    TooLate,
    /// A slow script holds one of them.
    SlowScript,
}

/// Held stripes. They are released together.
pub(super) type Held<'a> = SmallVec<[MutexGuard<'a, ()>; 1]>;

impl Stripes {
    pub(super) fn new(scripts_slow_after: Option<Duration>) -> Self {
        let stripes = (0..STRIPES).map(|_| Stripe::default()).collect();
        Self { stripes, scripts: ScriptLocks::new(scripts_slow_after) }
    }

    /// The scripts that hold stripes.
    pub(super) fn scripts(&self) -> &ScriptLocks {
        &self.scripts
    }

    /// The stripe of a key with this hash.
    pub(super) fn index(hash: u64) -> usize {
        usize::try_from(hash % STRIPES as u64).unwrap_or(0)
    }

    /// Waits until no other writer holds a stripe of the keys with these hashes. Fails if the
    /// deadline passes first or a slow script holds one.
    pub(super) fn lock_all(
        &self,
        mut hashes: impl Iterator<Item = u64>,
        deadline: Option<Instant>,
    ) -> Result<Held<'_>, LockFailure> {
        let mut wanted = Wanted::default();
        match (hashes.next(), hashes.next()) {
            (Some(only), None) => {
                return self.lock(Self::index(only), deadline).map(|guard| Held::from_buf([guard]));
            }
            first => {
                let first = [first.0, first.1].into_iter().flatten();
                first.chain(hashes).for_each(|hash| wanted.add(Self::index(hash)));
            }
        }
        wanted.ascending().map(|index| self.lock(index, deadline)).collect()
    }

    /// Waits until there is no other writer. Fails if the deadline passes first or a slow script
    /// holds a stripe.
    pub(super) fn lock_every(&self, deadline: Option<Instant>) -> Result<Held<'_>, LockFailure> {
        (0..STRIPES).map(|index| self.lock(index, deadline)).collect()
    }

    #[inline]
    fn lock(
        &self,
        index: usize,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'_, ()>, LockFailure> {
        let stripe = self.stripes.get(index).ok_or(LockFailure::TooLate)?;
        match stripe.0.try_lock() {
            Some(guard) => Ok(guard),
            None => self.wait(index, stripe, deadline),
        }
    }

    #[cold]
    fn wait<'s>(
        &self,
        index: usize,
        stripe: &'s Stripe,
        deadline: Option<Instant>,
    ) -> Result<MutexGuard<'s, ()>, LockFailure> {
        loop {
            let look = Instant::now() + LOOK_EVERY;
            let until = deadline.map_or(look, |deadline| deadline.min(look));
            if let Some(guard) = stripe.0.try_lock_until(until) {
                return Ok(guard);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(LockFailure::TooLate);
            }
            if self.scripts.is_slow(index) {
                return Err(LockFailure::SlowScript);
            }
        }
    }
}

/// A set of stripes.
#[derive(Default)]
struct Wanted([u64; STRIPES / 64]);

impl Wanted {
    fn add(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    fn ascending(self) -> impl Iterator<Item = usize> {
        (0..).step_by(64).zip(self.0).flat_map(|(first, word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(first + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_of_one_key_exclude_each_other_and_others_do_not() {
        let stripes = Stripes::new(None);
        let held = stripes.lock_all([5, 5, 5 + STRIPES as u64].into_iter(), None).unwrap();
        assert!(stripes.stripes[5].0.try_lock().is_none());
        assert!(stripes.stripes[6].0.try_lock().is_some());
        drop(held);
        assert!(stripes.stripes[5].0.try_lock().is_some());
    }

    #[test]
    fn every_hash_has_a_stripe_and_all_can_be_held() {
        let stripes = Stripes::new(None);
        for hash in [0, 255, 256, u64::MAX] {
            assert_eq!(stripes.lock_all([hash].into_iter(), None).unwrap().len(), 1);
        }
        let all = stripes.lock_every(None).unwrap();
        assert!(stripes.stripes.iter().all(|stripe| stripe.0.try_lock().is_none()));
        drop(all);
    }

    #[test]
    fn who_waits_no_longer_than_to_a_deadline_holds_nothing_afterwards() {
        let stripes = Stripes::new(None);
        let held = stripes.lock_all([5].into_iter(), None).unwrap();
        let soon = || Some(Instant::now() + std::time::Duration::from_millis(1));
        assert!(stripes.lock_all([4, 5].into_iter(), soon()).is_err());
        assert!(stripes.lock_every(soon()).is_err());
        assert!(stripes.stripes[4].0.try_lock().is_some());
        drop(held);
        assert!(stripes.lock_all([4, 5].into_iter(), soon()).is_ok());
    }
}
