//! Locks by key: a writer holds its key's stripe from the read its write depends on until that
//! write is visible. Readers take none.
//!
//! Two keys may share a stripe, so a thread that needs several must take them in ascending order
//! and each only once.

use parking_lot::{Mutex, MutexGuard};

/// Enough that writers of different keys rarely meet; a power of two.
const STRIPES: usize = 256;

/// A lock on a cache line of its own: neighbours must not slow each other down.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(Mutex<()>);

/// The locks of one store.
#[derive(Debug)]
pub(super) struct Stripes(Box<[Stripe; STRIPES]>);

impl Stripes {
    pub(super) fn new() -> Self {
        Self(Box::new(std::array::from_fn(|_| Stripe::default())))
    }

    /// Waits until no other writer holds the stripe of the key with this hash.
    pub(super) fn lock(&self, hash: u64) -> MutexGuard<'_, ()> {
        let [first, ..] = self.0.as_ref();
        // The mask keeps the index in range; the fallback only satisfies the type.
        let index = usize::try_from(hash % STRIPES as u64).unwrap_or(0);
        self.0.get(index).unwrap_or(first).0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_of_one_key_exclude_each_other_and_others_do_not() {
        let stripes = Stripes::new();
        let held = stripes.lock(5);
        assert!(stripes.0[5].0.try_lock().is_none());
        assert!(stripes.0[6].0.try_lock().is_some());
        drop(held);
        assert!(stripes.0[5].0.try_lock().is_some());
    }

    #[test]
    fn every_hash_has_a_stripe() {
        let stripes = Stripes::new();
        for hash in [0, 255, 256, u64::MAX] {
            drop(stripes.lock(hash));
        }
    }
}
