//! Segments made ready before they are needed: the next one, and a reserve for a full disk.
//!
//! One lock is held while a segment is being created, on purpose: an append that needs the next
//! segment waits for the one in the making instead of making another, and segments are used in
//! the order of their numbers. The append path takes the lock only to change segments.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::engine::wal::segment::{LogEnv, Reserve, Segment, forget};
use crate::error::{Error, ErrorKind, Result};

/// Size of the first segment and of the reserve, unless the largest segment is smaller.
pub const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// Segments of a size of their own are rounded up to whole pages.
const PAGE_BYTES: u64 = 4096;

/// The segments in waiting.
#[derive(Debug)]
pub struct Spares {
    inner: Mutex<Inner>,
    has_next: AtomicBool,
    has_reserve: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    next: Option<Segment>,
    reserve: Option<Reserve>,
    next_size: u64,
}

impl Spares {
    /// Creates the first segment, and sets the reserve aside if there is space for it.
    pub fn open(env: &LogEnv) -> Result<(Self, Segment)> {
        let size = FIRST_SEGMENT_BYTES.min(env.max_segment_bytes).max(PAGE_BYTES);
        let inner = Inner { next: None, reserve: None, next_size: size };
        let has = || AtomicBool::new(false);
        let spares = Self { inner: Mutex::new(inner), has_next: has(), has_reserve: has() };
        let first = spares.take(env, 0, false)?;
        match spares.restore_reserve(env) {
            Err(error) if error.kind() != ErrorKind::Full => Err(error),
            _ => Ok((spares, first)),
        }
    }

    /// A segment with room for `needed` bytes: the prepared one, a new one, or, when the disk is
    /// full and `use_reserve`, the reserve.
    pub fn take(&self, env: &LogEnv, needed: u64, use_reserve: bool) -> Result<Segment> {
        let mut inner = self.inner.lock();
        let taken = inner.take(env, needed, use_reserve);
        self.publish(&inner);
        taken
    }

    /// Makes the next segment ready; the reserve first, if it is gone.
    pub fn prepare(&self, env: &LogEnv) -> Result<()> {
        let mut inner = self.inner.lock();
        let prepared = inner.restore_reserve(env).and_then(|()| inner.prepare(env));
        self.publish(&inner);
        prepared
    }

    /// Sets the reserve aside again if it is gone.
    pub fn restore_reserve(&self, env: &LogEnv) -> Result<()> {
        let mut inner = self.inner.lock();
        let restored = inner.restore_reserve(env);
        self.publish(&inner);
        restored
    }

    /// Whether a next segment is ready.
    pub fn has_next(&self) -> bool {
        self.has_next.load(Ordering::Acquire)
    }

    /// Whether the reserve is set aside.
    pub fn has_reserve(&self) -> bool {
        self.has_reserve.load(Ordering::Acquire)
    }

    /// Removes both: nothing will be appended any more.
    pub fn release(&self, env: &LogEnv) {
        let mut inner = self.inner.lock();
        if let Some(next) = inner.next.take() {
            forget(env, &next.path(env));
        }
        if let Some(reserve) = inner.reserve.take() {
            reserve.release(env);
        }
        self.publish(&inner);
    }

    fn publish(&self, inner: &Inner) {
        self.has_next.store(inner.next.is_some(), Ordering::Release);
        self.has_reserve.store(inner.reserve.is_some(), Ordering::Release);
    }
}

impl Inner {
    fn take(&mut self, env: &LogEnv, needed: u64, use_reserve: bool) -> Result<Segment> {
        if let Some(next) = self.next.take_if(|next| next.size >= needed) {
            return Ok(next);
        }
        let created = match self.create(env, needed) {
            Err(error) if error.kind() == ErrorKind::Full && use_reserve => {
                self.take_reserve(env, needed, &error)
            }
            created => created,
        }?;
        // Too small, and now out of order.
        if let Some(unused) = self.next.take() {
            forget(env, &unused.path(env));
        }
        Ok(created)
    }

    fn take_reserve(&mut self, env: &LogEnv, needed: u64, full: &Error) -> Result<Segment> {
        match self.reserve.take_if(|reserve| reserve.size() >= needed) {
            Some(reserve) => reserve.into_segment(env),
            None => Err(full.clone()),
        }
    }

    fn create(&mut self, env: &LogEnv, needed: u64) -> Result<Segment> {
        let size = self.next_size.max(needed.next_multiple_of(PAGE_BYTES));
        let segment = Segment::create(env, size)?;
        self.next_size = (self.next_size * 2).min(env.max_segment_bytes.max(PAGE_BYTES));
        Ok(segment)
    }

    fn prepare(&mut self, env: &LogEnv) -> Result<()> {
        if self.next.is_none() {
            self.next = Some(self.create(env, 0)?);
        }
        Ok(())
    }

    fn restore_reserve(&mut self, env: &LogEnv) -> Result<()> {
        if self.reserve.is_none() {
            let size = FIRST_SEGMENT_BYTES.min(env.max_segment_bytes).max(PAGE_BYTES);
            self.reserve = Some(Reserve::create(env, size)?);
        }
        Ok(())
    }
}
