//! Steps 4 and 5, a life of a store begins; and how it ends.

use std::path::PathBuf;
use std::sync::Arc;

use super::replay::Replayed;
use super::stored::Stored;
use crate::engine::core::Core;
use crate::engine::files::{FileKind, FileNumber};
use crate::engine::install::{Manifest, apply};
use crate::engine::version::{Edit, LogState, ManifestWriter, TableFile};
use crate::engine::view::{Version, View};
use crate::engine::wal::{Cut, LogEnv, LogPosition, SyncFile, seal};
use crate::error::{Error, ErrorKind, Result};

impl Core {
    /// Step 4. Returns what the new log needs. Nothing fails once the manifest is in force.
    pub(super) fn begin_life(&mut self, stored: &Stored, replayed: &Replayed) -> Result<LogEnv> {
        let recovered = &replayed.recovered;
        seal(&*self.fs, &self.dir, &recovered.segments, recovered.synced)?;
        let version = self.version_with(&stored.version, replayed)?;
        let start = replayed.log_start();
        let cuts = recovered.segments.iter().copied().filter(|cut| cut.0 >= start.segment);
        let log = LogState { start, cuts: cuts.collect() };
        let sync_file = Arc::new(SyncFile::open(&*self.fs, &self.dir)?);
        let number = self.numbers.allocate();
        let first = self.snapshot_edit(&version, log.clone()).encode();
        let mut writer = ManifestWriter::create(
            Arc::clone(&self.fs),
            &self.dir,
            number,
            &first,
            Arc::clone(&self.health),
            Arc::clone(&sync_file),
        )?;
        writer.make_current()?;
        let env = LogEnv {
            fs: Arc::clone(&self.fs),
            dir: self.dir.clone(),
            numbers: Arc::clone(&self.numbers),
            health: Arc::clone(&self.health),
            sync_file: Arc::clone(&sync_file),
            max_segment_bytes: self.options.log_segment_bytes,
        };
        let first = first.len() as u64;
        *self.manifest.get_mut() = Some(Manifest { writer, sync_file, log, appended: 0, first });
        self.change_view(|old| View { version, ..old.clone() });
        Ok(env)
    }

    /// Where segments of earlier lives end.
    pub(super) fn cuts(&self) -> Vec<Cut> {
        self.manifest.lock().as_ref().map_or_else(Vec::new, |manifest| manifest.log.cuts.clone())
    }

    fn version_with(&self, version: &Version, replayed: &Replayed) -> Result<Version> {
        let edit = Edit { added: replayed.tables.clone(), ..Edit::default() };
        apply(version, &edit, &|tree, meta| {
            Some(Arc::new(TableFile::new(meta, Arc::clone(&self.trees.get(tree)?.opener))))
        })
        .ok_or_else(|| Error::new(ErrorKind::Misuse, "replayed tables do not fit"))
    }

    /// Of step 5: what an earlier life left behind. Failures are harmless; the next open tries again.
    pub(super) fn remove_leftovers(&self, names: &[PathBuf]) {
        let view = self.view.load();
        let in_use: std::collections::HashSet<FileNumber> = view
            .version
            .trees
            .iter()
            .flat_map(|levels| levels.files())
            .map(|file| file.meta().number)
            .collect();
        let manifest = self.manifest.lock();
        let Some(manifest) = manifest.as_ref() else { return };
        let needed =
            |number: &FileNumber| manifest.log.cuts.iter().any(|cut| cut.0 == *number && cut.1 > 0);
        self.remove(names.iter().filter(|name| match FileKind::parse(name) {
            Some(FileKind::Table(number)) => !in_use.contains(&number),
            Some(FileKind::Manifest(number)) => number != manifest.writer.number(),
            Some(FileKind::Log(number)) => !needed(&number),
            _ => false,
        }));
    }

    pub(super) fn remove<'a>(&self, names: impl Iterator<Item = &'a PathBuf>) {
        for name in names {
            let _ = self.fs.remove(&self.dir.join(name));
        }
    }

    /// Everything into tables, nothing left in the log; for `close`. The threads have stopped.
    pub(crate) fn finish(&self) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        self.health.check()?;
        if !self.view.load().active.is_empty() {
            self.freeze(log);
        }
        while self.flush_oldest()? {}
        let start = LogPosition { segment: self.numbers.allocate(), offset: 0 };
        let edit = Edit {
            last_sequence: Some(self.sequences.visible()),
            log: Some(LogState { start, cuts: Vec::new() }),
            ..Edit::default()
        };
        self.install(edit, |_| {})?;
        log.close();
        log.retire_all()
    }
}
