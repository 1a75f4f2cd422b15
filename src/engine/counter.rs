//! Counters that many threads increment on hot paths without sharing a cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 8;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

/// A sum spread over several cache lines. Each thread adds to its own.
#[derive(Debug, Default)]
pub struct Counter {
    stripes: [Stripe; STRIPES],
}

impl Counter {
    /// Adds `n` to the sum.
    #[inline]
    pub fn add(&self, n: u64) {
        if let Some(stripe) = self.stripes.get(stripe_of_this_thread()) {
            stripe.0.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// The sum so far.
    pub fn sum(&self) -> u64 {
        self.stripes.iter().map(|s| s.0.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

#[inline]
fn stripe_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    // A thread that is being torn down may still count. It uses the first stripe.
    STRIPE
        .try_with(|mine| {
            if mine.get() == usize::MAX {
                mine.set(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
            }
            mine.get()
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..1000).for_each(|_| counter.add(2)));
            }
        });
        assert_eq!(counter.sum(), 40_000);
    }
}
