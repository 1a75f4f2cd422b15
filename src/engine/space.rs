//! The disk space of a store: whether it is full, and what is set aside
//! (docs/DURABILITY.md, A full disk).
//!
//! A store is full when too little space is left to flush what is in memory, or when a file could
//! not be allocated. Writes that need more space are then refused, and those that free space use
//! the reserve. It is no longer full once the reserve is complete and there is room beyond what
//! flushes need.
//!
//! What the file system says to be free is a hint: others may take it. Only the reserve is certain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::reserve::Reserve;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Sizes are rounded to whole pages.
const PAGE_BYTES: u64 = 4096;

/// The disk space of a store.
#[derive(Debug)]
pub struct DiskSpace {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// The files that are set aside.
    pub(crate) reserve: Reserve,
    is_full: AtomicBool,
    /// Bytes that flushes of the present memtables may need.
    owed: AtomicU64,
    /// Size of the active memtables from which on the space is to be checked.
    memtable_limit: AtomicUsize,
    write_buffer: usize,
    /// Number of writers that wait for space.
    waiting: AtomicUsize,
}

impl DiskSpace {
    /// The space of the store in `dir`.
    pub fn new(fs: Arc<dyn FileSystem>, dir: &Path, reserve: Reserve, write_buffer: usize) -> Self {
        Self {
            fs,
            dir: dir.to_owned(),
            reserve,
            is_full: AtomicBool::new(false),
            owed: AtomicU64::new(0),
            memtable_limit: AtomicUsize::new(0),
            write_buffer,
            waiting: AtomicUsize::new(0),
        }
    }

    /// Whether only writes that free space are accepted.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Bytes that the file system says to be free; `None` if it does not say.
    pub fn free(&self) -> Option<u64> {
        self.fs.free_bytes(&self.dir)
    }

    /// Whether there are fewer free bytes than `needed` beyond what flushes need.
    pub fn lacks(&self, needed: u64) -> bool {
        let owed = self.owed.load(Ordering::Relaxed);
        self.free().is_some_and(|free| free < owed.saturating_add(needed))
    }

    /// Free bytes beyond what flushes need; 0 if the file system does not say.
    pub fn spare(&self) -> u64 {
        let owed = self.owed.load(Ordering::Relaxed);
        self.free().map_or(0, |free| free.saturating_sub(owed))
    }

    /// Notes how many bytes flushes of the memtables may need.
    pub fn set_owed(&self, bytes: usize) {
        self.owed.store(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of the active memtables from which on [`DiskSpace::admit`] must be asked, or, on a full
    /// disk, they must be flushed.
    #[inline]
    pub fn memtable_limit(&self) -> usize {
        self.memtable_limit.load(Ordering::Relaxed)
    }

    /// Bytes that may be written between two checks.
    fn step(&self) -> usize {
        (self.write_buffer / 8).clamp(4 << 10, 1 << 20)
    }

    /// Asks whether the active memtables may grow to `active` bytes, when all memtables together
    /// have `owed`. Otherwise the store is full from now on.
    pub fn admit(&self, active: usize, owed: usize) -> Result<()> {
        self.set_owed(owed);
        let Some(free) = self.free() else {
            self.memtable_limit.store(self.write_buffer, Ordering::Relaxed);
            return Ok(());
        };
        if free < owed.saturating_add(self.step()) as u64 {
            self.declare_full();
            return Err(self.full_error());
        }
        // While there is plenty, the next question comes with the next memtables.
        let plenty = free / 4 > self.write_buffer as u64;
        let next = if plenty { self.write_buffer } else { active.saturating_add(self.step()) };
        self.memtable_limit.store(next.min(self.write_buffer), Ordering::Relaxed);
        Ok(())
    }

    /// Says that the store is full.
    pub fn declare_full(&self) {
        self.is_full.store(true, Ordering::Release);
        self.limit_memtables();
    }

    /// Sets the size of memtables on a full disk: small ones, which the tables of the reserve can
    /// hold, unless there is space for more.
    pub fn limit_memtables(&self) {
        if !self.is_full() {
            return self.memtable_limit.store(0, Ordering::Relaxed);
        }
        let owed = self.owed.load(Ordering::Relaxed);
        let spare = self.free().map_or(0, |free| free.saturating_sub(owed) / 8);
        let limit = usize::try_from(spare.max(self.reserve.segment_bytes() / 4));
        let limit = limit.unwrap_or(usize::MAX).min(self.write_buffer);
        self.memtable_limit.store(limit, Ordering::Relaxed);
    }

    /// Ends the full state if that is possible; otherwise returns why not.
    pub fn reconsider(&self) -> Result<()> {
        if !self.is_full() {
            return Ok(());
        }
        self.reserve.refill()?;
        if self.lacks(4 * self.step() as u64) {
            return Err(self.full_error());
        }
        self.is_full.store(false, Ordering::Release);
        self.memtable_limit.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// The error of writes on a full disk.
    pub fn full_error(&self) -> Error {
        let full = std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        Error::io("find space for what is written to", &self.dir, &full)
    }

    /// The size of a new log segment of `wanted` bytes, or at least `least`, that leaves the space
    /// that flushes need. Fails with `Full` if there is none.
    pub fn segment_bytes(&self, wanted: u64, least: u64) -> Result<u64> {
        let Some(free) = self.free() else { return Ok(wanted) };
        let spare = free.saturating_sub(self.owed.load(Ordering::Relaxed));
        if spare / 2 >= wanted {
            return Ok(wanted);
        }
        let half = spare / 2 / PAGE_BYTES * PAGE_BYTES;
        match spare >= least {
            true => Ok(half.max(least).min(wanted)),
            false => Err(self.full_error()),
        }
    }

    /// Notes that a writer waits for space until the guard is dropped.
    pub fn wait(&self) -> WaitGuard<'_> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        WaitGuard(self)
    }

    /// Whether a writer waits for space.
    pub fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Notes that work has failed. A full disk turns the full state on.
    pub fn note_failure(&self, error: &Error) {
        if error.kind() == ErrorKind::Full {
            self.declare_full();
        }
    }
}

/// A writer that waits for space; see [`DiskSpace::wait`].
#[derive(Debug)]
pub struct WaitGuard<'a>(&'a DiskSpace);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
