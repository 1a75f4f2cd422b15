//! Step 3 of an open: replays the log into memtables, and into tables once these grow too large.

use std::sync::Arc;

use super::directory::Claim;
use super::manifest_state::ManifestState;
use crate::engine::batch::TreeId;
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::version::FileMeta;
use crate::engine::view::View;
use crate::engine::wal::{Cut, LogPosition, Recovered, SyncState, recover};
use crate::error::{ErrorKind, Result};

/// The result of replaying the log.
pub(super) struct Replayed {
    pub(super) last_sequence: Sequence,
    pub(super) recovered: Recovered,
    /// Tables that were written because the memtables grew too large. They hold everything before
    /// `tables_through`.
    pub(super) tables: Vec<(TreeId, u8, FileMeta)>,
    tables_through: LogPosition,
}

impl Replayed {
    /// Where the next recovery begins. A segment of which nothing counts is removed, so recovery
    /// must not begin there.
    pub(super) fn log_start(&self) -> LogPosition {
        let start = self.tables_through;
        let holds_nothing = |cut: &Cut| *cut == (start.segment, 0);
        if self.recovered.segments.iter().any(holds_nothing) {
            return LogPosition::new(start.segment + 1, 0);
        }
        start
    }
}

impl Core {
    pub(super) fn replay_log(
        &self,
        state: &ManifestState,
        sync_state: SyncState,
        claim: &mut Claim,
    ) -> Result<Replayed> {
        let tables = state.version.files();
        let mut last = tables.map(|file| file.meta().max_sequence).max().unwrap_or(0);
        let mut written = Vec::new();
        let mut through = state.log.start;
        let mut spills = !self.options.read_only;
        let on_record = |end: LogPosition, payload: &[u8]| {
            let active = Arc::clone(&self.view.load().active);
            last = last.max(active.apply(payload)?);
            let bytes = active.bytes();
            if spills && bytes > self.limits.write_buffer {
                claim.begin_writing()?;
                match self.spill() {
                    Ok(tables) => written.extend(tables),
                    // What the log holds fitted in memory before, so it will again.
                    Err(error) if error.kind() == ErrorKind::Full => {
                        spills = false;
                        return Ok(());
                    }
                    Err(error) => return Err(error),
                }
                through = end;
                self.replace_active(end);
            }
            Ok(())
        };
        let start = state.log.start;
        let recovered =
            recover(&*self.fs, &self.dir, start, &state.log.cuts, sync_state, on_record)
                .inspect_err(|_| self.discard(&written))?;
        Ok(Replayed { last_sequence: last, recovered, tables: written, tables_through: through })
    }

    /// Whether there is so little space that an open should give back what it can.
    pub(super) fn is_short_at_open(&self) -> bool {
        self.space.lacks(4 * self.space.reserve.segment_bytes())
    }

    /// Writes everything replayed to tables if there is little space, so that the segments of the
    /// old log are given back. What does not fit stays in the log.
    pub(super) fn empty_log_if_short(&self, replayed: &mut Replayed) -> Result<()> {
        if !self.is_short_at_open() || self.view.load().active.is_empty() {
            return Ok(());
        }
        match self.spill() {
            Ok(tables) => replayed.tables.extend(tables),
            Err(error) if error.kind() == ErrorKind::Full => return Ok(()),
            Err(error) => return Err(error),
        }
        replayed.tables_through = LogPosition::new(replayed.recovered.end.segment + 1, 0);
        self.replace_active(replayed.tables_through);
        Ok(())
    }

    /// Writes the active memtables as tables.
    fn spill(&self) -> Result<Vec<(TreeId, u8, FileMeta)>> {
        let view = self.view.load_full();
        let mut all = Vec::new();
        self.or_discard(&mut all, |all| self.write_memtables(&view.active, &[], all))?;
        Ok(all)
    }

    fn replace_active(&self, log_start: LogPosition) {
        self.view.change(|old| {
            let active = old.active.successor(self.limits.write_buffer, log_start);
            View { active: Arc::new(active), ..old.clone() }
        });
    }
}
