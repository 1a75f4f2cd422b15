//! Room for writes: freezes full memtables, and slows writers down before they would have to stop.

use std::time::{Duration, Instant};

use crate::engine::core::Core;
use crate::engine::view::{MemtableSet, View};
use crate::engine::wal::Log;
use crate::error::{Error, ErrorKind, Result};

/// Bytes a second a writer is held to when pressure begins, and when it is about to stop.
const GENTLE_RATE: f64 = 64e6;
const HARSH_RATE: f64 = 1e6;
/// Shorter sleeps are saved up: the kernel's timers are not finer.
const SHORTEST_SLEEP: Duration = Duration::from_micros(500);
const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// A waiting writer looks again at least this often, whatever wakes it or not.
const PATIENCE: Duration = Duration::from_millis(50);

/// Spreads delays over writes. Only the leader of commits has it.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    paid_until: Option<Instant>,
}

impl Throttle {
    /// How long to sleep before `bytes` more are written under `pressure` (above 0, at most 1).
    fn delay(&mut self, bytes: usize, pressure: f64, now: Instant) -> Duration {
        let rate = GENTLE_RATE * (HARSH_RATE / GENTLE_RATE).powf(pressure.clamp(0.0, 1.0));
        let cost = Duration::from_secs_f64(bytes as f64 / rate);
        let due = self.paid_until.unwrap_or(now).max(now) + cost;
        self.paid_until = Some(due);
        let owed = due.duration_since(now);
        if owed < SHORTEST_SLEEP { Duration::ZERO } else { owed.min(LONGEST_SLEEP) }
    }
}

impl Core {
    /// Called by the leader before a group of `bytes`. Deletes on a full disk are let through.
    pub(crate) fn make_room(
        &self,
        log: &Log,
        throttle: &mut Throttle,
        bytes: usize,
        frees_space: bool,
    ) -> Result<()> {
        loop {
            let view = self.view.load();
            let pressure = self.pressure(&view);
            if pressure > 0.0 && !frees_space {
                self.slow_down(throttle, bytes, pressure);
            }
            let full = view.active.bytes() + bytes > self.limits.write_buffer;
            let crowded = self.level0_most(&view) >= self.limits.level0_stop;
            if !crowded && (!full || view.active.is_empty()) {
                return Ok(());
            }
            if full && !crowded && view.frozen.len() < self.limits.frozen_sets {
                drop(view);
                self.freeze(log);
                self.after_freeze()?;
                continue;
            }
            if frees_space {
                return Ok(());
            }
            drop(view);
            self.wait_for_room(crowded)?;
        }
    }

    /// 0: none; towards 1: writers are about to be stopped.
    fn pressure(&self, view: &View) -> f64 {
        let limits = &self.limits;
        let over = self.level0_most(view).saturating_sub(limits.level0_slow) as f64;
        let level0 = over / (limits.level0_stop - limits.level0_slow) as f64;
        let filled = view.active.bytes() as f64 / limits.write_buffer as f64;
        let waiting = view.frozen.len() >= limits.frozen_sets;
        // The last memtable before the stop: slower the fuller it is, from half full on.
        level0.max(if waiting { filled * 2.0 - 1.0 } else { 0.0 }).clamp(0.0, 1.0)
    }

    fn level0_most(&self, view: &View) -> usize {
        view.version.trees.iter().map(|levels| levels.level(0).len()).max().unwrap_or(0)
    }

    fn slow_down(&self, throttle: &mut Throttle, bytes: usize, pressure: f64) {
        let delay = throttle.delay(bytes, pressure, Instant::now());
        if !delay.is_zero() {
            std::thread::sleep(delay);
            self.activity.slowed_ns.add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Freezes the active memtables. The caller is the leader.
    pub(crate) fn freeze(&self, log: &Log) {
        let log_start = log.appended();
        self.change_view(|old| {
            let scans = old.active.scanned();
            let active = MemtableSet::new(self.limits.write_buffer, &scans, log_start);
            let mut frozen = vec![std::sync::Arc::clone(&old.active)];
            frozen.extend(old.frozen.iter().cloned());
            View { active: std::sync::Arc::new(active), frozen, version: old.version.clone() }
        });
        self.work.wake_flusher();
    }

    /// Without background threads the leader does their work.
    fn after_freeze(&self) -> Result<()> {
        if self.options.background_threads > 0 {
            return Ok(());
        }
        match self.work_inline() {
            // Nothing is lost: the work is tried again when the next memtable is full.
            Err(error) if error.kind() == ErrorKind::Full => Ok(()),
            other => other,
        }
    }

    /// Waits for a flush to finish, or a compaction if level 0 is crowded; fails if they cannot.
    fn wait_for_room(&self, crowded: bool) -> Result<()> {
        self.health.check()?;
        self.check_open()?;
        if self.options.background_threads == 0 {
            return self.work_inline();
        }
        if let Some(cause) = self.work.stuck(crowded) {
            let kind =
                if cause.kind() == ErrorKind::Full { ErrorKind::Full } else { ErrorKind::Io };
            return Err(Error::wrap(&cause, kind, "buffers are full and cannot be written out"));
        }
        let start = Instant::now();
        self.work.wait_for_progress(PATIENCE);
        let waited = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.activity.stalls.add(1);
        self.activity.stalled_ns.add(waited);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_pressure_and_are_saved_up() {
        let now = Instant::now();
        let total = |pressure: f64| {
            let mut throttle = Throttle::default();
            let delays: Vec<_> = (0..50).map(|_| throttle.delay(1000, pressure, now)).collect();
            assert!(delays.iter().all(|d| d.is_zero() || *d >= SHORTEST_SLEEP));
            throttle.paid_until.unwrap() - now
        };
        assert!(total(0.1) < Duration::from_millis(2));
        assert!(total(0.9) > total(0.5));
        assert!(total(1.0) >= Duration::from_millis(49), "1 MB/s at the end");
    }
}
