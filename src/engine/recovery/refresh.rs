//! Reads a store anew beside its writer, into what is known of it.
//!
//! 1. open all files of the directory (`kept_files`), then read CURRENT and the manifest. Tables that
//!    are known keep their readers, so what is cached of them stays cached;
//! 2. read the log on from where the last look ended, into the same memtables. If the writer has
//!    opened the store again or flushed beyond that place, or if the memtables hold much that was
//!    flushed since, replay the log from where the manifest says, into new memtables.
//!
//! Step 2 adds to memtables that readers use. They see none of it before the new sequence number is
//! published, as with a commit. Memtables may hold commits that are in tables too: they hold
//! everything from some place of the log on, so what they say of a key is the newest there is.
//!
//! The writer goes on meanwhile, so that files may not fit together. That is an error here, and the
//! caller tries again.

use std::path::Path;
use std::sync::Arc;

use super::kept_files::keep_files;
use super::manifest_state::{ManifestReader, ManifestState};
use crate::engine::core::Core;
use crate::engine::entry::Sequence;
use crate::engine::files::current_path;
use crate::engine::log_tail::LogTail;
use crate::engine::memtable::MemtableSet;
use crate::engine::version::{Version, read_current};
use crate::engine::view::View;
use crate::engine::wal::header::FILE_HEADER_BYTES;
use crate::engine::wal::{Recovered, SyncFile, SyncState, follow, recover};
use crate::error::{Error, ErrorKind, Result};

impl Core {
    /// Makes the store ready to be read anew later: opens every table, and notes how far the log was
    /// read.
    pub(super) fn begin_following(
        &self,
        state: &ManifestState,
        recovered: &Recovered,
        last_sequence: Sequence,
    ) -> Result<()> {
        open_all(&state.version)?;
        let memtables = Arc::clone(&self.view.load().active);
        let (end, hash_seed) = (recovered.end, state.hash_seed);
        *self.tail.lock() = Some(LogTail { memtables, end, last_sequence, hash_seed });
        Ok(())
    }

    /// The view of what the writer has committed by now. Afterwards `tail` is the end of it.
    pub(crate) fn read_anew(&self, tail: &mut LogTail) -> Result<Arc<View>> {
        let names = self.fs.list(&self.dir).map_err(|e| Error::io("list", &self.dir, &e))?;
        let _kept = keep_files(&*self.fs, &self.dir, &names)?;
        let missing = || Error::corrupt(&current_path(&self.dir), 0, "it is missing");
        let number = read_current(&*self.fs, &self.dir)?.ok_or_else(missing)?;
        let sync_state = SyncFile::read(&*self.fs, &self.dir)?;
        let view = self.view.load_full();
        let reader = ManifestReader {
            fs: &*self.fs,
            dir: &self.dir,
            trees: &self.trees,
            names: &names,
            known: view
                .version
                .files()
                .map(|file| (file.meta().number, Arc::clone(file)))
                .collect(),
        };
        let state = reader.read(number, sync_state)?;
        check_same_store(&self.dir, tail, &state)?;
        open_all(&state.version)?;
        *tail = match self.can_read_on(tail, &state) {
            true => self.read_on(tail)?,
            false => self.replay_anew(&state, sync_state)?,
        };
        tail.last_sequence = tail.last_sequence.max(newest_in_tables(&state));
        if tail.last_sequence < self.sequences.visible() {
            return Err(replaced(&self.dir));
        }
        let same_tables = same_tables(&view.version, &state.version);
        if same_tables && Arc::ptr_eq(&view.active, &tail.memtables) {
            return Ok(view);
        }
        let (active, version) = (Arc::clone(&tail.memtables), state.version);
        let gets = Arc::clone(&view.gets);
        Ok(Arc::new(View { active, immutable: Vec::new(), version, gets }))
    }

    /// Whether the log goes on where `tail` ends, and its memtables are worth keeping.
    fn can_read_on(&self, tail: &LogTail, state: &ManifestState) -> bool {
        let LogTail { memtables, end, .. } = tail;
        // The writer cuts all its segments when it opens the store again.
        let is_cut = state.log.cuts.iter().any(|cut| cut.0 >= end.segment);
        let flushed = state.log.start > memtables.log_start;
        let too_large = flushed && memtables.bytes() > self.limits.write_buffer;
        end.offset >= FILE_HEADER_BYTES && !is_cut && state.log.start <= *end && !too_large
    }

    fn read_on(&self, tail: &LogTail) -> Result<LogTail> {
        // After a failure, what was read stays in the memtables and would come twice.
        let mut tail = tail.clone();
        let (memtables, last) = (Arc::clone(&tail.memtables), &mut tail.last_sequence);
        tail.end = follow(&*self.fs, &self.dir, tail.end, |payload| {
            *last = memtables.apply(payload)?.max(*last);
            Ok(())
        })?;
        Ok(tail)
    }

    fn replay_anew(&self, state: &ManifestState, sync_state: SyncState) -> Result<LogTail> {
        let seed = state.hash_seed.unwrap_or(self.hash_seed);
        let (start, trees) = (state.log.start, self.trees.len());
        let memtables = Arc::new(MemtableSet::new(self.limits.write_buffer, trees, start, seed));
        let mut last_sequence = 0;
        let on_record = |_, payload: &[u8]| {
            last_sequence = memtables.apply(payload)?.max(last_sequence);
            Ok(())
        };
        let cuts = &state.log.cuts;
        let end = recover(&*self.fs, &self.dir, start, cuts, sync_state, on_record)?.end;
        Ok(LogTail { memtables, end, last_sequence, hash_seed: state.hash_seed })
    }
}

/// Opens every table, so that its descriptor stays open.
fn open_all(version: &Version) -> Result<()> {
    version.files().try_for_each(|file| file.table().map(drop))
}

fn newest_in_tables(state: &ManifestState) -> Sequence {
    let newest = state.version.files().map(|file| file.meta().max_sequence).max();
    newest.unwrap_or(0).max(state.last_sequence)
}

fn same_tables(a: &Version, b: &Version) -> bool {
    let levels = |version: &Version| {
        let trees = version.trees.iter();
        let sizes = trees.flat_map(|levels| levels.iter().map(|(_, files)| files.len()));
        sizes.collect::<Vec<_>>()
    };
    let mut pairs = a.files().zip(b.files());
    levels(a) == levels(b) && pairs.all(|(a, b)| Arc::ptr_eq(a, b))
}

fn check_same_store(dir: &Path, tail: &LogTail, state: &ManifestState) -> Result<()> {
    match tail.hash_seed {
        Some(seed) if state.hash_seed != Some(seed) => Err(replaced(dir)),
        _ => Ok(()),
    }
}

fn replaced(dir: &Path) -> Error {
    let text = format!("{}: the directory holds another store now: open it again", dir.display());
    Error::new(ErrorKind::Incompatible, text)
}
