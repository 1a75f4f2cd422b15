//! Installs version edits: each becomes durable first, then visible.
//!
//! 1. everything the edit refers to is durable already: the tables and their names are synced,
//!    and the log is synced as far as the decision depends on it;
//! 2. the edit is appended to the manifest and synced;
//! 3. the view is replaced;
//! 4. removed files are deleted once no reader uses them.
//!
//! A failure in step 2 degrades the store. Whether the edit is on disk is then unknown, so
//! neither the old nor the new files may be touched until the next open finds out.

use std::sync::Arc;

use crate::engine::core::Core;
use crate::engine::files::manifest_path;
use crate::engine::version::{LogState, Manifest, ManifestWriter, TableFile, Version, VersionEdit};
use crate::engine::view::View;
use crate::error::{Error, ErrorKind, Result};

impl Core {
    /// Performs steps 2 to 4 for `edit`; `change` adjusts the memtables of the new view.
    pub(crate) fn install(
        &self,
        mut edit: VersionEdit,
        change: impl FnOnce(&mut View),
    ) -> Result<()> {
        let mut guard = self.manifest.lock();
        self.health.check()?;
        let manifest = guard.as_mut().ok_or_else(|| closed("the manifest is closed"))?;
        edit.next_file = Some(self.numbers.peek());
        // Checked before anything is written: an edit that does not fit is a bug, not damage.
        let version = self.version_after(&self.view.load().version, &edit).ok_or_else(|| {
            self.health.degrade(&closed("an edit names a table that is not there"))
        })?;
        match manifest.append(&edit) {
            // The manifest cannot grow: a new one takes its place, from the reserve if need be.
            Err(error) if error.kind() == ErrorKind::Full => {
                self.space.declare_full();
                self.replace(manifest)?;
                manifest.append(&edit)?;
            }
            appended => appended?,
        }
        let mut removed = Vec::new();
        self.view.change(|old| {
            removed = old.version.removed_by(&edit);
            let mut new = View { version, ..old.clone() };
            change(&mut new);
            new
        });
        removed.iter().for_each(|file| file.mark_obsolete());
        // The edit is installed whether or not this succeeds; the next one tries again.
        match self.roll(manifest) {
            Err(error) if self.health.cause().is_some() => Err(error),
            _ => Ok(()),
        }
    }

    /// The version after an edit; `None` if the edit does not fit.
    pub(crate) fn version_after(&self, version: &Version, edit: &VersionEdit) -> Option<Version> {
        version.apply(edit, &|tree, meta| {
            Some(Arc::new(TableFile::new(meta, Arc::clone(&self.trees.get(tree)?.opener))))
        })
    }

    /// Replaces the manifest if most of it is history.
    fn roll(&self, manifest: &mut Manifest) -> Result<()> {
        if !manifest.should_roll() {
            return Ok(());
        }
        self.replace(manifest)
    }

    /// Replaces the manifest by one that holds only the current version.
    fn replace(&self, manifest: &mut Manifest) -> Result<()> {
        let number = self.numbers.allocate();
        let log = manifest.log.clone();
        let snapshot = self.snapshot_edit(&self.view.load().version, log.clone()).encode();
        let mut writer = ManifestWriter::create(
            Arc::clone(&self.fs),
            &self.dir,
            number,
            &snapshot,
            Arc::clone(&self.health),
            Arc::clone(&manifest.sync_file),
            Some(Arc::clone(&self.space)),
        )?;
        writer.make_current()?;
        let old = manifest.writer.number();
        let sync_file = Arc::clone(&manifest.sync_file);
        *manifest = Manifest::new(writer, sync_file, log, snapshot.len() as u64);
        // If the removal fails, the next open removes the file.
        let _ = self.fs.remove(&manifest_path(&self.dir, old));
        self.space.reserve.expect_manifest(snapshot.len() as u64);
        let _ = self.space.reserve.refill();
        Ok(())
    }

    /// A version of this store as one edit: the first record of a manifest.
    pub(crate) fn snapshot_edit(&self, version: &Version, log: LogState) -> VersionEdit {
        let names = self.trees.iter().map(|tree| tree.config.name.as_str());
        let (next_file, last) = (self.numbers.peek(), self.sequences.visible());
        version.as_edit(names, log, next_file, last, self.hash_seed, self.counted_from)
    }
}

fn closed(message: &str) -> Error {
    Error::new(ErrorKind::Closed, message)
}
