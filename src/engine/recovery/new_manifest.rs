//! Steps 4 and 5 of an open: the new manifest, and the removal of obsolete files.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::manifest_state::ManifestState;
use super::replay::Replayed;
use crate::engine::core::Core;
use crate::engine::files::{FileKind, FileNumber, manifest_path};
use crate::engine::version::{LogState, Manifest, ManifestWriter, Version, VersionEdit};
use crate::engine::view::View;
use crate::engine::wal::{Cut, LogEnv, SyncFile, seal};
use crate::error::{Error, ErrorKind, Result};

impl Core {
    /// Performs step 4 and returns what the new log needs. Nothing can fail after the new manifest
    /// has become the current one.
    pub(super) fn write_new_manifest(
        &mut self,
        state: &ManifestState,
        replayed: &Replayed,
    ) -> Result<LogEnv> {
        let recovered = &replayed.recovered;
        seal(&*self.fs, &self.dir, &recovered.segments, recovered.synced)?;
        let version = self.version_with(&state.version, replayed)?;
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
            Some(Arc::clone(&self.space)),
        )?;
        writer.make_current()?;
        self.space.reserve.expect_manifest(first.len() as u64);
        let env = LogEnv {
            fs: Arc::clone(&self.fs),
            dir: self.dir.clone(),
            numbers: Arc::clone(&self.numbers),
            health: Arc::clone(&self.health),
            sync_file: Arc::clone(&sync_file),
            max_segment_bytes: self.options.log_segment_bytes,
            space: Arc::clone(&self.space),
        };
        let manifest = Manifest::new(writer, sync_file, log, first.len() as u64);
        *self.manifest.get_mut() = Some(manifest);
        self.view.change(|old| View { version, ..old.clone() });
        Ok(env)
    }

    /// Where the segments from before this open end.
    pub(super) fn cuts(&self) -> Vec<Cut> {
        self.manifest.lock().as_ref().map_or_else(Vec::new, |manifest| manifest.log.cuts.clone())
    }

    fn version_with(&self, version: &Version, replayed: &Replayed) -> Result<Version> {
        let edit = VersionEdit { added: replayed.tables.clone(), ..VersionEdit::default() };
        self.version_after(version, &edit)
            .ok_or_else(|| Error::new(ErrorKind::Misuse, "replayed tables do not fit"))
    }

    /// Removes the files of `names` that nothing needs any more. A failure does no harm: the next
    /// open tries again.
    pub(super) fn remove_obsolete_files(&self, names: &[PathBuf]) {
        let view = self.view.load();
        let in_use: HashSet<FileNumber> =
            view.version.files().map(|file| file.meta().number).collect();
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

    /// Removes files that neither the manifest in force nor the new one needs, so that there is
    /// space for the new one. An open that ended early may have left them.
    ///
    /// What was read becomes durable first: a power cut must not bring back a state that needs them.
    pub(super) fn remove_unneeded(
        &self,
        names: &[PathBuf],
        state: &ManifestState,
        replayed: &Replayed,
        current: Option<FileNumber>,
    ) -> Result<()> {
        let Some(current) = current else { return Ok(()) };
        let path = manifest_path(&self.dir, current);
        let file = self.fs.open_write(&path).map_err(|e| Error::io("open", &path, &e))?;
        file.sync_all().map_err(|e| Error::io("sync", &path, &e))?;
        self.fs.sync_dir(&self.dir).map_err(|e| Error::io("sync directory", &self.dir, &e))?;
        let tables = state.version.files().map(|file| file.meta().number);
        let written = replayed.tables.iter().map(|(_, _, file)| file.number);
        let in_use: HashSet<FileNumber> = tables.chain(written).collect();
        self.remove(names.iter().filter(|name| match FileKind::parse(name) {
            Some(FileKind::Table(number)) => !in_use.contains(&number),
            Some(FileKind::Manifest(number)) => number != current,
            Some(FileKind::Log(number)) => number < state.log.start.segment,
            _ => false,
        }));
        Ok(())
    }

    pub(super) fn remove<'a>(&self, names: impl Iterator<Item = &'a PathBuf>) {
        for name in names {
            let _ = self.fs.remove(&self.dir.join(name));
        }
    }
}
