//! Memory of large buffers goes back to the system, also when nothing happens after them.
//!
//! The allocator keeps what it is given for a second, and looks for what it has kept longer only
//! when it is given a large block. A server that falls silent after long replies would hold their
//! memory for ever. So for some seconds after buffers were large, the allocator is given one now
//! and then.

use std::sync::atomic::{AtomicU64, Ordering};

/// Buffers of at least so many bytes are remembered.
pub(crate) const LARGE: usize = 1 << 20;
/// A block that the allocator gives back to its arenas at once. It is not written, so it costs
/// nothing.
const BLOCK: usize = 8 << 20;
/// How long after the last large buffer memory may still be kept.
const WHILE_MS: u64 = 5000;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Unused {
    /// When there was a large buffer, in milliseconds since the server started; zero: never.
    large_ms: AtomicU64,
}

impl Unused {
    /// There is a large buffer now.
    pub(crate) fn note_large(&self, now_ms: u64) {
        self.large_ms.store(now_ms.max(1), Ordering::Relaxed);
    }

    /// Lets the allocator look for what it has kept, if there may be something.
    pub(crate) fn give_back(&self, now_ms: u64) {
        let large_ms = self.large_ms.load(Ordering::Relaxed);
        if large_ms > 0 && now_ms.saturating_sub(large_ms) < WHILE_MS {
            drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK)));
        }
    }
}
