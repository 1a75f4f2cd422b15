//! Step 3: the log into memtables, and into tables when they grow too large.

use std::sync::Arc;

use super::stored::Stored;
use crate::engine::batch::TreeId;
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::version::FileMeta;
use crate::engine::view::{MemtableSet, View};
use crate::engine::wal::{Cut, LogPosition, Recovered, SyncState, recover};
use crate::engine::write::apply_batch;
use crate::error::{ErrorKind, Result};

/// What replaying the log brought.
pub(super) struct Replayed {
    pub(super) last_sequence: Sequence,
    pub(super) recovered: Recovered,
    /// Tables written because the memtables grew too large; everything before `tables_through`
    /// is in them.
    pub(super) tables: Vec<(TreeId, u8, FileMeta)>,
    tables_through: LogPosition,
}

impl Replayed {
    /// Where the next recovery begins. Not in a segment of which nothing counts: that one is
    /// removed, and must not be looked for.
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
    pub(super) fn replay_log(&self, stored: &Stored, sync_state: SyncState) -> Result<Replayed> {
        let tables = stored.version.trees.iter().flat_map(|levels| levels.files());
        let mut last = tables.map(|file| file.meta().max_sequence).max().unwrap_or(0);
        let mut written = Vec::new();
        let mut through = stored.log.start;
        let mut spills = !self.options.read_only;
        let on_record = |end: LogPosition, payload: &[u8]| {
            last = last.max(apply_batch(&self.view.load(), payload)?);
            let bytes = self.view.load().active.bytes();
            if spills && bytes > self.limits.write_buffer {
                match self.spill() {
                    Ok(tables) => written.extend(tables),
                    // What the log holds was in memory before, and can be again.
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
        let start = stored.log.start;
        let recovered =
            recover(&*self.fs, &self.dir, start, &stored.log.cuts, sync_state, on_record)
                .inspect_err(|_| self.discard(&written))?;
        Ok(Replayed { last_sequence: last, recovered, tables: written, tables_through: through })
    }

    /// Writes the active memtables as tables.
    fn spill(&self) -> Result<Vec<(TreeId, u8, FileMeta)>> {
        let view = self.view.load_full();
        let mut all = Vec::new();
        self.or_discard(&mut all, |all| {
            for (tree, memtable) in (0u8..).zip(&view.active.trees) {
                let files = self.write_memtable(tree as usize, memtable, &[])?;
                all.extend(files.into_iter().map(|file| (TreeId(tree), 0, file)));
            }
            Ok(())
        })?;
        Ok(all)
    }

    fn replace_active(&self, log_start: LogPosition) {
        self.change_view(|old| {
            let active =
                MemtableSet::new(self.limits.write_buffer, &old.active.scanned(), log_start);
            View { active: Arc::new(active), ..old.clone() }
        });
    }
}
