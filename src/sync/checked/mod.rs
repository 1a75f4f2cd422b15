//! Stand-ins for parking_lot, arc-swap and the clock, made of what loom or shuttle provides.
//!
//! Time is virtual. A wait with a short limit is a poll: it lets other threads run and ends by its
//! limit. A wait with a long limit ends by a notification alone, so that a lost wake-up shows as a
//! deadlock.

#[cfg(loom)]
use loom as checker;
#[cfg(shuttle)]
use shuttle as checker;

pub(crate) mod atomic;
mod condvar;
mod instant;
mod mutex;
mod rw_lock;
mod swap;
mod witness;

pub(crate) use condvar::Condvar;
pub(crate) use instant::Instant;
pub(crate) use mutex::{Mutex, MutexGuard};
pub(crate) use rw_lock::RwLock;
pub(crate) use swap::{ArcSwap, ArcSwapOption, Guard};
pub(crate) use witness::Witness;

pub(crate) mod thread {
    //! Threads of the checker.
    pub(crate) use super::checker::thread::{Builder, JoinHandle, current, yield_now};

    /// Lets other threads run.
    pub(crate) fn sleep(_: std::time::Duration) {
        yield_now();
    }
}
