//! Prepared segments: the next one, or one of the reserve on a full disk.
//!
//! A lock is held while a segment is created, on purpose. An append that needs the next segment
//! waits for the one in progress instead of creating another, and segments are used in the order of
//! their numbers. Appends take the lock only to change segments.

use crate::engine::wal::segment::{LogEnv, Segment, forget};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Size of the first segment, unless the largest segment is smaller.
pub const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// Segment sizes that a group determines are rounded up to whole pages.
const PAGE_BYTES: u64 = 4096;

/// The next segment.
#[derive(Debug)]
pub struct SegmentPool {
    state: Mutex<PoolState>,
    has_next: AtomicBool,
}

#[derive(Debug)]
struct PoolState {
    next: Option<Segment>,
    next_size: u64,
}

impl SegmentPool {
    /// Takes the first segment, from the reserve if there is no other space; `None` if there is no
    /// space at all. A store opens nevertheless.
    pub fn open(env: &LogEnv) -> Result<(Self, Option<Segment>)> {
        let state = PoolState { next: None, next_size: least_size(env) };
        let pool = Self { state: Mutex::new(state), has_next: AtomicBool::new(false) };
        match pool.take(env, 0, true) {
            Err(error) if error.kind() == ErrorKind::Full => Ok((pool, None)),
            first => Ok((pool, Some(first?))),
        }
    }

    /// Takes a segment with room for `needed` bytes: the prepared one, a new one, or one of the
    /// reserve if the disk is full and `use_reserve` is set.
    pub fn take(&self, env: &LogEnv, needed: u64, use_reserve: bool) -> Result<Segment> {
        let mut state = self.state.lock();
        let taken = state.take(env, needed, use_reserve);
        self.publish(&state);
        taken
    }

    /// Creates the next segment, after the reserve if some of that is missing.
    pub fn prepare(&self, env: &LogEnv) -> Result<()> {
        let mut state = self.state.lock();
        let prepared = env.space.reserve.refill().and_then(|()| state.prepare(env));
        self.publish(&state);
        prepared
    }

    /// Whether the next segment is ready.
    pub fn has_next(&self) -> bool {
        self.has_next.load(Ordering::Acquire)
    }

    /// Removes the next segment. Nothing will be appended any more.
    pub fn release(&self, env: &LogEnv) {
        let mut state = self.state.lock();
        if let Some(next) = state.next.take() {
            forget(env, &next.path(env));
        }
        self.publish(&state);
    }

    fn publish(&self, state: &PoolState) {
        self.has_next.store(state.next.is_some(), Ordering::Release);
    }
}

fn least_size(env: &LogEnv) -> u64 {
    FIRST_SEGMENT_BYTES.min(env.max_segment_bytes).max(PAGE_BYTES)
}

impl PoolState {
    fn take(&mut self, env: &LogEnv, needed: u64, use_reserve: bool) -> Result<Segment> {
        if let Some(next) = self.next.take_if(|next| next.size >= needed) {
            return Ok(next);
        }
        let created = match self.create(env, needed) {
            Err(error) if error.kind() == ErrorKind::Full => {
                env.space.declare_full();
                match use_reserve {
                    true => self.take_reserve(env, needed, &error),
                    false => Err(error),
                }
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
        Segment::from_reserve(env, needed)?.ok_or_else(|| full.clone())
    }

    fn create(&mut self, env: &LogEnv, needed: u64) -> Result<Segment> {
        let least = least_size(env).max(needed.next_multiple_of(PAGE_BYTES));
        let size = env.space.segment_bytes(self.next_size.max(least), least)?;
        let segment = Segment::create(env, size)?;
        // Sizes double while there is space.
        let grown = size.min(self.next_size.max(least)) * 2;
        self.next_size = grown.min(env.max_segment_bytes).max(least_size(env));
        Ok(segment)
    }

    fn prepare(&mut self, env: &LogEnv) -> Result<()> {
        if self.next.is_none() {
            self.next = Some(self.create(env, 0)?);
        }
        Ok(())
    }
}
