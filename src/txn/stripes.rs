//! Locks by key. A writer holds its key's stripe from the first read that its write depends on
//! until that write is visible. Readers take none.
//!
//! Two keys may share a stripe. A thread that needs several takes them in ascending order, each
//! only once.

use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

/// Enough that writers of different keys rarely meet. A power of two.
const STRIPES: usize = 256;

/// A lock on a cache line of its own, so that neighbours do not slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(Mutex<()>);

/// The locks of one store.
#[derive(Debug)]
pub(super) struct Stripes(Box<[Stripe]>);

/// Held stripes. They are released together.
pub(super) type Held<'a> = SmallVec<[MutexGuard<'a, ()>; 1]>;

impl Stripes {
    pub(super) fn new() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }

    /// The stripe of a key with this hash.
    pub(super) fn index(hash: u64) -> usize {
        usize::try_from(hash % STRIPES as u64).unwrap_or(0)
    }

    /// Waits until no other writer holds a stripe of the keys with these hashes; `None` if the
    /// deadline passed first.
    pub(super) fn lock_all(
        &self,
        mut hashes: impl Iterator<Item = u64>,
        deadline: Option<Instant>,
    ) -> Option<Held<'_>> {
        let mut wanted = Wanted::default();
        match (hashes.next(), hashes.next()) {
            (Some(only), None) => {
                let stripe = self.0.get(Self::index(only))?;
                return stripe.lock(deadline).map(|guard| Held::from_buf([guard]));
            }
            first => {
                let first = [first.0, first.1].into_iter().flatten();
                first.chain(hashes).for_each(|hash| wanted.add(Self::index(hash)));
            }
        }
        let stripes = wanted.ascending().filter_map(|index| self.0.get(index));
        stripes.map(|stripe| stripe.lock(deadline)).collect()
    }

    /// Waits until there is no other writer; `None` if the deadline passed first.
    pub(super) fn lock_every(&self, deadline: Option<Instant>) -> Option<Held<'_>> {
        self.0.iter().map(|stripe| stripe.lock(deadline)).collect()
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

impl Stripe {
    #[inline]
    fn lock(&self, deadline: Option<Instant>) -> Option<MutexGuard<'_, ()>> {
        match deadline {
            None => Some(self.0.lock()),
            Some(deadline) => self.0.try_lock_until(deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_of_one_key_exclude_each_other_and_others_do_not() {
        let stripes = Stripes::new();
        let held = stripes.lock_all([5, 5, 5 + STRIPES as u64].into_iter(), None).unwrap();
        assert!(stripes.0[5].0.try_lock().is_none());
        assert!(stripes.0[6].0.try_lock().is_some());
        drop(held);
        assert!(stripes.0[5].0.try_lock().is_some());
    }

    #[test]
    fn every_hash_has_a_stripe_and_all_can_be_held() {
        let stripes = Stripes::new();
        for hash in [0, 255, 256, u64::MAX] {
            assert_eq!(stripes.lock_all([hash].into_iter(), None).unwrap().len(), 1);
        }
        let all = stripes.lock_every(None).unwrap();
        assert!(stripes.0.iter().all(|stripe| stripe.0.try_lock().is_none()));
        drop(all);
    }

    #[test]
    fn who_waits_no_longer_than_to_a_deadline_holds_nothing_afterwards() {
        let stripes = Stripes::new();
        let held = stripes.lock_all([5].into_iter(), None).unwrap();
        let soon = || Some(Instant::now() + std::time::Duration::from_millis(1));
        assert!(stripes.lock_all([4, 5].into_iter(), soon()).is_none());
        assert!(stripes.lock_every(soon()).is_none());
        assert!(stripes.0[4].0.try_lock().is_some());
        drop(held);
        assert!(stripes.lock_all([4, 5].into_iter(), soon()).is_some());
    }
}
