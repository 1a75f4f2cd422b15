//! Room for writes: full memtables are frozen, and writers are slowed or stopped while flushes and
//! compactions fall behind.

use std::time::Duration;

use crate::engine::core::Core;
use crate::engine::throttle::Throttle;
use crate::engine::view::View;
use crate::engine::wal::Log;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Instant;

/// A stopped writer checks again at least this often, even if nothing wakes it.
const POLL: Duration = Duration::from_millis(50);

impl Core {
    /// Makes room in the memtables for a group of `bytes`. The leader calls this before it writes
    /// the group. Deletes on a full disk (`frees_space`) are never stopped.
    pub(crate) fn make_room(
        &self,
        log: &Log,
        throttle: &mut Throttle,
        bytes: usize,
        frees_space: bool,
    ) -> Result<()> {
        loop {
            let view = self.view.load();
            let level0 = fullest_level0(&view);
            let pressure = self.pressure(&view, level0);
            if pressure > 0.0 && !frees_space {
                self.slow_down(throttle, bytes, pressure);
            }
            let full = view.active.bytes() + bytes > self.limits.write_buffer;
            let crowded = level0 >= self.limits.level0_stop;
            if !crowded && (!full || view.active.is_empty()) {
                return Ok(());
            }
            if full && !crowded && view.immutable.len() < self.limits.immutable_sets {
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

    /// How close writers are to being stopped, from 0 (not at all) to 1.
    fn pressure(&self, view: &View, level0: usize) -> f64 {
        let limits = &self.limits;
        let waiting = view.immutable.len() >= limits.immutable_sets;
        if level0 <= limits.level0_slow && !waiting {
            return 0.0;
        }
        let over = level0.saturating_sub(limits.level0_slow) as f64;
        let level0 = over / (limits.level0_stop - limits.level0_slow) as f64;
        let filled = view.active.bytes() as f64 / limits.write_buffer as f64;
        // The last memtable before the stop slows writers from half full on.
        level0.max(if waiting { filled * 2.0 - 1.0 } else { 0.0 }).clamp(0.0, 1.0)
    }

    fn slow_down(&self, throttle: &mut Throttle, bytes: usize, pressure: f64) {
        let delay = throttle.delay(bytes, pressure, Instant::now());
        if !delay.is_zero() {
            crate::sync::thread::sleep(delay);
            self.activity.slowed_ns.add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// In a store without background threads, the leader does their work.
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

    /// Waits for a flush to end or, if level 0 is crowded, a compaction. Fails if they cannot run.
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
        self.work.wait_for_progress(POLL);
        let waited = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.activity.stalls.add(1);
        self.activity.stalled_ns.add(waited);
        Ok(())
    }
}

/// The largest number of level-0 files of any tree.
fn fullest_level0(view: &View) -> usize {
    view.version.trees.iter().map(|levels| levels.level(0).len()).max().unwrap_or(0)
}
