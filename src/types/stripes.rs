//! Locks by key: a writer holds its key's stripe from the read its write depends on until that
//! write is visible. Readers take none.
//!
//! Two keys may share a stripe, so a thread that needs several must take them in ascending order
//! and each only once.

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

/// Enough that writers of different keys rarely meet; a power of two.
const STRIPES: usize = 256;

/// A lock on a cache line of its own: neighbours must not slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(Mutex<()>);

/// The locks of one store.
#[derive(Debug)]
pub(super) struct Stripes(Box<[Stripe]>);

/// Stripes held; they are released together.
pub(super) type Held<'a> = SmallVec<[MutexGuard<'a, ()>; 1]>;

impl Stripes {
    pub(super) fn new() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }

    /// Waits until no other writer holds a stripe of the keys with these hashes.
    pub(super) fn lock_all(&self, hashes: impl Iterator<Item = u64>) -> Held<'_> {
        let of = |hash| usize::try_from(hash % STRIPES as u64).unwrap_or(0);
        let mut indexes: SmallVec<[usize; 4]> = hashes.map(of).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.iter().filter_map(|index| self.0.get(*index)).map(|s| s.0.lock()).collect()
    }

    /// Waits until there is no other writer.
    pub(super) fn lock_every(&self) -> Held<'_> {
        self.0.iter().map(|stripe| stripe.0.lock()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_of_one_key_exclude_each_other_and_others_do_not() {
        let stripes = Stripes::new();
        let held = stripes.lock_all([5, 5, 5 + STRIPES as u64].into_iter());
        assert!(stripes.0[5].0.try_lock().is_none());
        assert!(stripes.0[6].0.try_lock().is_some());
        drop(held);
        assert!(stripes.0[5].0.try_lock().is_some());
    }

    #[test]
    fn every_hash_has_a_stripe_and_all_can_be_held() {
        let stripes = Stripes::new();
        for hash in [0, 255, 256, u64::MAX] {
            assert_eq!(stripes.lock_all([hash].into_iter()).len(), 1);
        }
        let all = stripes.lock_every();
        assert!(stripes.0.iter().all(|stripe| stripe.0.try_lock().is_none()));
        drop(all);
    }
}
