//! Frozen memtables become level-0 tables, one for each tree that has entries.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::batch::TreeId;
use crate::engine::compaction::merge::Merge;
use crate::engine::compaction::survival::Survival;
use crate::engine::compaction::write::Outputs;
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::files::table_path;
use crate::engine::memtable::{Memtable, MemtableCursor};
use crate::engine::version::{Edit, FileMeta, LogState};
use crate::engine::view::{MemtableSet, View};
use crate::engine::wal::{Log, LogPosition};
use crate::error::{Error, ErrorKind, Result};

impl Core {
    /// Flushes the oldest frozen memtables; `false` if there are none.
    pub(crate) fn flush_oldest(&self) -> Result<bool> {
        let log = self.log.as_ref().ok_or_else(|| Error::new(ErrorKind::ReadOnly, "read-only"))?;
        let _one_at_a_time = self.work.flushing.lock();
        self.health.check()?;
        let view = self.view.load_full();
        let Some((set, newer)) = view.frozen.split_last() else { return Ok(false) };
        let log_start = newer.last().unwrap_or(&view.active).log_start;
        self.flush_set(log, set, log_start)?;
        Ok(true)
    }

    fn flush_set(&self, log: &Log, set: &Arc<MemtableSet>, log_start: LogPosition) -> Result<()> {
        let snapshots = self.sequences.live();
        let mut added = Vec::new();
        self.or_discard(&mut added, |added| {
            for (tree, memtable) in (0u8..).zip(&set.trees) {
                let files = self.write_memtable(tree as usize, memtable, &snapshots)?;
                added.extend(files.into_iter().map(|file| (TreeId(tree), 0, file)));
            }
            // What recovery would find in the log must not end before what is in tables.
            log.wait_durable(log_start, None)?;
            let edit = Edit {
                last_sequence: Some(self.sequences.visible()),
                log: Some(self.log_state_from(log_start)),
                added: added.clone(),
                ..Edit::default()
            };
            let gone = |other: &Arc<MemtableSet>| !Arc::ptr_eq(other, set);
            self.install(edit, |view: &mut View| view.frozen.retain(gone))
        })?;
        self.activity.flushes.add(1);
        self.activity.flushed_bytes.add(added.iter().map(|(_, _, file)| file.size).sum());
        log.retire_before(log_start)
    }

    /// Does `work`, which makes tables part of the store; when it fails, removes those it leaves
    /// in `made`. Not when the store has degraded: an edit that names them may then be on disk.
    pub(crate) fn or_discard(
        &self,
        made: &mut Vec<(TreeId, u8, FileMeta)>,
        work: impl FnOnce(&mut Vec<(TreeId, u8, FileMeta)>) -> Result<()>,
    ) -> Result<()> {
        let result = work(made);
        if result.is_err() && self.health.cause().is_none() {
            for (_, _, file) in made {
                // What cannot be removed now is removed at the next open.
                let _ = self.fs.remove(&table_path(&self.dir, file.number));
            }
        }
        result
    }

    /// What the manifest is to say of the log once everything before `start` is in tables.
    pub(crate) fn log_state_from(&self, start: LogPosition) -> LogState {
        let cuts = match &*self.manifest.lock() {
            Some(manifest) => manifest.log.cuts.clone(),
            None => Vec::new(),
        };
        LogState { start, cuts: cuts.into_iter().filter(|cut| cut.0 >= start.segment).collect() }
    }

    /// Writes the entries of one memtable that some reader can see.
    pub(crate) fn write_memtable(
        &self,
        tree: usize,
        memtable: &Arc<Memtable>,
        snapshots: &[Sequence],
    ) -> Result<Vec<FileMeta>> {
        if memtable.is_empty() {
            return Ok(Vec::new());
        }
        let mut workshop = self.workshop(self.tree(tree)?, false);
        // A flush makes one table: two would count twice towards level 0.
        workshop.table_bytes = u64::MAX;
        let mut outputs = Outputs::new(workshop);
        let merge = Merge {
            survival: Survival::new(snapshots.to_vec()),
            filter: None,
            is_bottom: Box::new(|_| false),
            pause: Box::new(|_| self.stop_if_asked()),
            cut_before: Box::new(|_| false),
        };
        merge.run(&mut MemtableCursor::new(Arc::clone(memtable)), &mut outputs)?;
        outputs.finish()
    }

    /// Ends background work of a store that is being closed in a hurry or has degraded.
    pub(crate) fn stop_if_asked(&self) -> Result<()> {
        if self.work.stopping.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the store is being closed"));
        }
        self.health.check()
    }

    /// Freezes what has been written so far and returns when it is in tables.
    pub(crate) fn flush(&self) -> Result<()> {
        let log = self.writable()?;
        self.between_commits(|_| {
            if !self.view.load().active.is_empty() {
                self.freeze(log);
            }
        });
        while self.flush_oldest()? {
            self.work.note_progress();
        }
        self.work.wake_compactors();
        Ok(())
    }
}
