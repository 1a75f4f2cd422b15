//! Room for writes: full memtables are frozen, and writers are slowed or stopped while flushes and
//! compactions fall behind.

use std::time::Duration;

use crate::engine::core::Core;
use crate::engine::reserve::ReserveRole;
use crate::engine::throttle::Throttle;
use crate::engine::view::View;
use crate::engine::wal::Log;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Instant;

/// A stopped writer checks again at least this often, even if nothing wakes it.
const POLL: Duration = Duration::from_millis(50);

/// A writer that frees space gives up once nothing has come of work for it for this long: when nothing
/// works for it at the moment, and when something does: a slow disk takes long for one table.
const GIVE_UP: Duration = Duration::from_secs(2);
const GIVE_UP_BESIDE_WORK: Duration = Duration::from_secs(30);

/// Bytes of a log segment that a group of one record cannot use.
const SEGMENT_OVERHEAD: u64 = 256;

impl Core {
    /// Makes room in the memtables for a group of `bytes`. The leader calls this before it writes
    /// the group. Writes that free space wait for flushes and compactions too, but are not refused
    /// here: the log decides.
    pub(crate) fn make_room(
        &self,
        log: &Log,
        throttle: &mut Throttle,
        bytes: usize,
        frees_space: bool,
    ) -> Result<()> {
        loop {
            let mut view = self.view.load();
            let level0 = fullest_level0(&view);
            let pressure = self.pressure(&view, level0);
            if pressure > 0.0 && !frees_space {
                // A view keeps the tables that merges replace meanwhile.
                drop(view);
                self.slow_down(throttle, bytes, pressure);
                view = self.view.load();
            }
            let size = view.active.bytes() + bytes;
            let full = size > self.space.memtable_limit()
                && self.is_memtable_full(&view, bytes, frees_space)?;
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
            drop(view);
            match self.wait_for_room(crowded) {
                Err(error) if frees_space && error.kind() == ErrorKind::Full => return Ok(()),
                waited => waited?,
            }
        }
    }

    /// Whether the active memtables should be flushed before they take `bytes` more. Refuses writes
    /// that need space if there is too little to flush what is in memory.
    #[cold]
    fn is_memtable_full(&self, view: &View, bytes: usize, frees_space: bool) -> Result<bool> {
        let size = view.active.bytes() + bytes;
        if !self.space.is_full() || !frees_space {
            self.space.reconsider()?;
            let admitted = self.space.admit(size, view.memtable_bytes() + bytes);
            if !frees_space {
                admitted?;
            }
        }
        let limit = match self.space.is_full() {
            true => self.space.memtable_limit().min(self.limits.write_buffer),
            false => self.limits.write_buffer,
        };
        Ok(size > limit)
    }

    /// Waits until a write that frees space can go on, after the log had no space for its `bytes`.
    /// The leader calls this. Fails with `Full` if nothing more can be freed.
    #[cold]
    pub(crate) fn wait_for_space(&self, log: &Log, bytes: usize, cause: &Error) -> Result<()> {
        let reserve = &self.space.reserve;
        if reserve.segment_bytes() == 0 {
            return Err(cause.wrap(ErrorKind::Full, "the store has no disk_reserve"));
        }
        let most = reserve.segment_bytes().saturating_sub(SEGMENT_OVERHEAD);
        if bytes as u64 > most {
            let text = format!(
                "on a full disk a command may write {most} bytes to the log at once, this one has \
                 {bytes}: delete less at a time"
            );
            return Err(cause.wrap(ErrorKind::Full, text));
        }
        let _waiting = self.space.wait();
        if !self.view.load().active.is_empty() {
            self.freeze(log);
        }
        if self.options.background_threads == 0 {
            let _ = self.work_inline();
        }
        self.work.retry();
        let (mut steps, mut idle_since) = (self.work.steps().0, Instant::now());
        loop {
            let _ = reserve.refill();
            if reserve.has(ReserveRole::Log) {
                return Ok(());
            }
            self.health.check()?;
            self.check_open()?;
            let (now, running) = self.work.steps();
            if now != steps {
                (steps, idle_since) = (now, Instant::now());
            }
            let limit = if running { GIVE_UP_BESIDE_WORK } else { GIVE_UP };
            if self.options.background_threads == 0 || idle_since.elapsed() > limit {
                return Err(cause.wrap(ErrorKind::Full, self.what_holds_space()));
            }
            self.work.wait_for_progress(POLL);
        }
    }

    /// Why a full disk stays full, as far as that is known.
    fn what_holds_space(&self) -> String {
        match self.sequences.counts() {
            (0, _) => "the disk is full, and no space is left to free".to_owned(),
            (snapshots, _) => format!(
                "the disk is full, and {snapshots} snapshots, iterators or transactions keep what \
                 was deleted: end them"
            ),
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
pub(super) fn fullest_level0(view: &View) -> usize {
    view.version.trees.iter().map(|levels| levels.level(0).len()).max().unwrap_or(0)
}
