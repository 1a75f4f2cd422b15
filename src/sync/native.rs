//! What the library uses: parking_lot, arc-swap and std.

pub(crate) use arc_swap::{ArcSwap, ArcSwapOption, Guard};
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
pub(crate) use std::sync::atomic;
pub(crate) use std::thread;
pub(crate) use std::time::Instant;

/// Marks memory that is written once and then read without a lock. loom fails if a read does not
/// come after the write; in a normal build it has no size and does nothing.
#[derive(Debug)]
pub(crate) struct Witness;

impl Witness {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self
    }

    /// The memory was written.
    #[inline(always)]
    pub(crate) fn wrote(&self) {}

    /// The memory is about to be read.
    #[inline(always)]
    pub(crate) fn reads(&self) {}
}
