//! Prepared segments: the next one, and a reserve for a full disk.
//!
//! A lock is held while a segment is created, on purpose. An append that needs the next segment
//! waits for the one in progress instead of creating another, and segments are used in the order of
//! their numbers. Appends take the lock only to change segments.

use crate::engine::wal::segment::{LogEnv, Reserve, Segment, forget};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Size of the first segment and of the reserve, unless the largest segment is smaller.
pub const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// Segment sizes that a group determines are rounded up to whole pages.
const PAGE_BYTES: u64 = 4096;

/// The next segment and the reserve.
#[derive(Debug)]
pub struct SegmentPool {
    state: Mutex<PoolState>,
    has_next: AtomicBool,
    has_reserve: AtomicBool,
}

#[derive(Debug)]
struct PoolState {
    next: Option<Segment>,
    reserve: Option<Reserve>,
    next_size: u64,
}

impl SegmentPool {
    /// Creates the first segment, and the reserve if there is space for it.
    pub fn open(env: &LogEnv) -> Result<(Self, Segment)> {
        let size = FIRST_SEGMENT_BYTES.min(env.max_segment_bytes).max(PAGE_BYTES);
        let state = PoolState { next: None, reserve: None, next_size: size };
        let has = || AtomicBool::new(false);
        let pool = Self { state: Mutex::new(state), has_next: has(), has_reserve: has() };
        let first = pool.take(env, 0, false)?;
        match pool.restore_reserve(env) {
            Err(error) if error.kind() != ErrorKind::Full => Err(error),
            _ => Ok((pool, first)),
        }
    }

    /// Takes a segment with room for `needed` bytes: the prepared one, a new one, or the reserve if
    /// the disk is full and `use_reserve` is set.
    pub fn take(&self, env: &LogEnv, needed: u64, use_reserve: bool) -> Result<Segment> {
        let mut state = self.state.lock();
        let taken = state.take(env, needed, use_reserve);
        self.publish(&state);
        taken
    }

    /// Creates the next segment, after the reserve if that does not exist.
    pub fn prepare(&self, env: &LogEnv) -> Result<()> {
        let mut state = self.state.lock();
        let prepared = state.restore_reserve(env).and_then(|()| state.prepare(env));
        self.publish(&state);
        prepared
    }

    /// Creates the reserve if it does not exist.
    pub fn restore_reserve(&self, env: &LogEnv) -> Result<()> {
        let mut state = self.state.lock();
        let restored = state.restore_reserve(env);
        self.publish(&state);
        restored
    }

    /// Whether the next segment is ready.
    pub fn has_next(&self) -> bool {
        self.has_next.load(Ordering::Acquire)
    }

    /// Whether the reserve exists.
    pub fn has_reserve(&self) -> bool {
        self.has_reserve.load(Ordering::Acquire)
    }

    /// Removes both. Nothing will be appended any more.
    pub fn release(&self, env: &LogEnv) {
        let mut state = self.state.lock();
        if let Some(next) = state.next.take() {
            forget(env, &next.path(env));
        }
        if let Some(reserve) = state.reserve.take() {
            reserve.release(env);
        }
        self.publish(&state);
    }

    fn publish(&self, state: &PoolState) {
        self.has_next.store(state.next.is_some(), Ordering::Release);
        self.has_reserve.store(state.reserve.is_some(), Ordering::Release);
    }
}

impl PoolState {
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
        // The prepared segment is too small, and its number is now out of order.
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
