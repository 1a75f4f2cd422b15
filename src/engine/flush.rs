//! Flushes: immutable memtables become level-0 tables, one per tree that has entries.

use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::compaction::merge::Merge;
use crate::engine::compaction::output::TableOutputs;
use crate::engine::compaction::visibility::Visibility;
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::files::table_path;
use crate::engine::handle::Engine;
use crate::engine::memtable::{Memtable, MemtableCursor, MemtableSet};
use crate::engine::release::release;
use crate::engine::version::{FileMeta, LogState, VersionEdit};
use crate::engine::view::View;
use crate::engine::wal::{Log, LogPosition};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::atomic::Ordering;

/// Space that a table may take beyond the bytes of its memtable.
const SMALL_BYTES: u64 = 64 << 10;

impl Engine {
    /// Writes all memtables to tables.
    pub fn flush(&self) -> Result<()> {
        self.core.flush_memtables()
    }
}

impl Core {
    /// Writes all memtables to tables.
    pub(crate) fn flush_memtables(&self) -> Result<()> {
        let log = self.writable()?;
        {
            let _no_commit_runs = self.committer.lead();
            if !self.view.load().active.is_empty() {
                self.freeze(log);
            }
        }
        while self.flush_oldest()? {
            self.work.note_progress();
        }
        self.work.wake_compactors();
        Ok(())
    }

    /// Freezes the active memtables. The caller holds the lead of commits.
    pub(crate) fn freeze(&self, log: &Log) {
        let (last, log_start) = (self.sequences.visible(), log.appended());
        self.view.change(|old| old.freeze(last, self.limits.write_buffer, log_start));
        self.space.limit_memtables();
        self.work.wake_flusher();
    }

    /// Flushes the oldest immutable memtables; `false` if there are none.
    pub(crate) fn flush_oldest(&self) -> Result<bool> {
        let log = self.log.as_ref().ok_or_else(|| Error::new(ErrorKind::ReadOnly, "read-only"))?;
        let _one_at_a_time = self.work.flushing.lock();
        self.health.check()?;
        let view = self.view.load_full();
        let Some((set, newer)) = view.immutable.split_last() else { return Ok(false) };
        let (set, log_start) = (Arc::clone(set), newer.last().unwrap_or(&view.active).log_start);
        drop(view);
        let flushed = self.flush_set(log, &set, log_start);
        match &flushed {
            Ok(()) => {
                let held = Arc::downgrade(&set);
                release(vec![set]);
                self.held.note(held);
                self.work.note_step();
            }
            Err(error) => self.space.note_failure(error),
        }
        self.note_space();
        flushed.map(|()| true)
    }

    fn flush_set(&self, log: &Log, set: &Arc<MemtableSet>, log_start: LogPosition) -> Result<()> {
        let snapshots = self.sequences.live();
        let mut added = Vec::new();
        self.or_discard(&mut added, |added| {
            self.write_memtables(set, &snapshots, added)?;
            // The log that recovery finds must not end before what is in tables.
            log.wait_durable(log_start, None)?;
            let edit = VersionEdit {
                last_sequence: Some(self.sequences.visible()),
                log: Some(self.log_state_from(log_start)),
                added: added.clone(),
                ..VersionEdit::default()
            };
            let remains = |other: &Arc<MemtableSet>| !Arc::ptr_eq(other, set);
            self.install(edit, |view: &mut View| view.immutable.retain(remains))
        })?;
        self.activity.flushes.add(1);
        self.activity.flushed_bytes.add(added.iter().map(|(_, _, file)| file.size).sum());
        log.retire_before(log_start)
    }

    /// Writes each memtable of `set` as a level-0 table and adds these to `added`.
    pub(crate) fn write_memtables(
        &self,
        set: &MemtableSet,
        snapshots: &[Sequence],
        added: &mut Vec<(TreeId, u8, FileMeta)>,
    ) -> Result<()> {
        for (tree, memtable) in (0u8..).zip(&set.trees) {
            let files = self.write_memtable(tree as usize, memtable, snapshots)?;
            added.extend(files.into_iter().map(|file| (TreeId(tree), 0, file)));
        }
        Ok(())
    }

    /// Writes the entries of one memtable that some reader can see.
    fn write_memtable(
        &self,
        tree: usize,
        memtable: &Arc<Memtable>,
        snapshots: &[Sequence],
    ) -> Result<Vec<FileMeta>> {
        if memtable.is_empty() {
            return Ok(Vec::new());
        }
        let mut options = self.output_options(self.tree(tree)?, false);
        let needed = (memtable.bytes() as u64).saturating_add(SMALL_BYTES);
        let short = self.space.free().map_or(self.space.is_full(), |free| free < needed);
        if short {
            options = self.small_tables(options, Some(needed));
        } else {
            // A flush writes one table: two would count twice towards level 0.
            options.table_bytes = u64::MAX;
        }
        let mut outputs = TableOutputs::new(options);
        let merge = Merge {
            visibility: Visibility::new(snapshots.to_vec()),
            filter: None,
            is_bottom: Box::new(|_| false),
            pause: Box::new(|_| self.stop_if_asked()),
            cut_before: Box::new(|_| false),
            one_table: false,
        };
        merge.run(&mut MemtableCursor::new(Arc::clone(memtable)), &mut outputs)?;
        outputs.finish()
    }

    /// Runs `work`, which adds tables to the store. If it fails, the tables in `made` are deleted.
    pub(crate) fn or_discard(
        &self,
        made: &mut Vec<(TreeId, u8, FileMeta)>,
        work: impl FnOnce(&mut Vec<(TreeId, u8, FileMeta)>) -> Result<()>,
    ) -> Result<()> {
        let result = work(made);
        if result.is_err() {
            self.discard(made);
        }
        result
    }

    /// Deletes tables that no installed edit names. Does nothing in a degraded store: an edit that
    /// names them may be on disk.
    pub(crate) fn discard(&self, made: &[(TreeId, u8, FileMeta)]) {
        if self.health.cause().is_some() {
            return;
        }
        for (_, _, file) in made {
            // If this fails, the next open removes the file.
            let _ = self.fs.remove(&table_path(&self.dir, file.number));
        }
    }

    /// The log state to record once everything before `start` is in tables.
    fn log_state_from(&self, start: LogPosition) -> LogState {
        let cuts = match &*self.manifest.lock() {
            Some(manifest) => manifest.log.cuts.clone(),
            None => Vec::new(),
        };
        LogState { start, cuts: cuts.into_iter().filter(|cut| cut.0 >= start.segment).collect() }
    }

    /// An error once background work must end: the store is being closed, or has degraded.
    pub(crate) fn stop_if_asked(&self) -> Result<()> {
        if self.work.stopping.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the store is being closed"));
        }
        self.health.check()
    }

    /// Writes everything to tables and empties the log, for a clean close. On a full disk the log
    /// stays, and the next open replays it. The background threads have stopped.
    pub(crate) fn flush_and_retire_log(&self) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        self.health.check()?;
        match self.empty_log(log) {
            Err(error) if error.kind() == ErrorKind::Full => log.sync_all().map(|_| ())?,
            emptied => emptied?,
        }
        let _ = self.space.reserve.refill();
        Ok(())
    }

    fn empty_log(&self, log: &Log) -> Result<()> {
        if !self.view.load().active.is_empty() {
            self.freeze(log);
        }
        while self.flush_oldest()? {}
        let start = LogPosition { segment: self.numbers.allocate(), offset: 0 };
        let edit = VersionEdit {
            last_sequence: Some(self.sequences.visible()),
            log: Some(LogState { start, cuts: Vec::new() }),
            ..VersionEdit::default()
        };
        self.install(edit, |_| {})?;
        log.close();
        log.retire_all()
    }
}
