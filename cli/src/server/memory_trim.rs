//! Returns the memory of large buffers to the system, even if the server falls idle after them.
//!
//! The allocator keeps freed memory for a second, and looks for older memory only when it frees a
//! large block. An idle server would keep the memory of long replies forever. So for some seconds
//! after a large buffer, the server frees a large block from time to time.

use std::sync::atomic::{AtomicU64, Ordering};

/// A buffer of at least this many bytes is large.
pub(crate) const LARGE_BUFFER: usize = 1 << 20;
/// The size of a block that the allocator purges at once. It is never written, so it costs nothing.
const BLOCK_BYTES: usize = 8 << 20;
/// The time after the last large buffer in which to trim.
const TRIM_MS: u64 = 5000;

/// The time of the last large buffer.
#[derive(Debug, Default)]
pub(crate) struct MemoryTrim {
    /// Milliseconds since the server started; zero: never.
    last_large_ms: AtomicU64,
}

impl MemoryTrim {
    /// Records that there is a large buffer now.
    pub(crate) fn note_large_buffer(&self, now_ms: u64) {
        self.last_large_ms.store(now_ms.max(1), Ordering::Relaxed);
    }

    /// Makes the allocator return free memory if there may be some.
    pub(crate) fn trim(&self, now_ms: u64) {
        let last_large_ms = self.last_large_ms.load(Ordering::Relaxed);
        if last_large_ms > 0 && now_ms.saturating_sub(last_large_ms) < TRIM_MS {
            drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
        }
    }
}
