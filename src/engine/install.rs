//! Makes changes of the set of tables durable, then visible.
//!
//! 1. everything the edit refers to is durable already (tables synced, their names synced, the
//!    log synced as far as the decision depends on it);
//! 2. the edit is appended to the manifest and synced;
//! 3. the view is replaced;
//! 4. files that left are removed once no reader has them.
//!
//! A failure in step 2 degrades the store: whether the edit is on disk is unknown, so neither the
//! old nor the new files may be touched until the next open finds out.

use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::core::Core;
use crate::engine::files::{FileNumber, manifest_path};
use crate::engine::version::{Edit, FileMeta, Levels, LogState, ManifestWriter, TableFile};
use crate::engine::view::{Version, View};
use crate::engine::wal::SyncFile;
use crate::error::{Error, ErrorKind, Result};

/// The manifest in force and what it says of the log.
#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) writer: ManifestWriter,
    pub(crate) sync_file: Arc<SyncFile>,
    pub(crate) log: LogState,
    /// Bytes appended since it was begun.
    pub(crate) appended: u64,
    /// Size of its first record.
    pub(crate) first: u64,
}

/// A manifest is begun anew when edits have made it this much larger than its first record.
const ROLL_BYTES: u64 = 4 << 20;

impl Core {
    /// Carries out steps 2 to 4; `change` adjusts the memtables of the new view.
    pub(crate) fn install(&self, mut edit: Edit, change: impl FnOnce(&mut View)) -> Result<()> {
        let mut guard = self.manifest.lock();
        self.health.check()?;
        let manifest = guard.as_mut().ok_or_else(|| closed("the manifest is closed"))?;
        edit.next_file = Some(self.numbers.peek());
        // Checked before anything is written: an edit that does not fit is a bug, not damage.
        let version = apply(&self.view.load().version, &edit, &|tree, meta| {
            Some(Arc::new(TableFile::new(meta, Arc::clone(&self.trees.get(tree)?.opener))))
        })
        .ok_or_else(|| self.health.degrade(&closed("an edit names a table that is not there")))?;
        let payload = edit.encode();
        manifest.writer.append(&payload)?;
        manifest.appended += payload.len() as u64;
        if let Some(log) = &edit.log {
            manifest.log = log.clone();
        }
        let mut removed = Vec::new();
        self.change_view(|old| {
            removed = removed_files(&old.version, &edit);
            let mut new = View { version, ..old.clone() };
            change(&mut new);
            new
        });
        removed.iter().for_each(|file| file.mark_obsolete());
        // The edit is in force whether or not this works; the next one tries again.
        match self.roll(manifest) {
            Err(error) if self.health.cause().is_some() => Err(error),
            _ => Ok(()),
        }
    }

    /// Begins a new manifest when the present one is mostly history.
    fn roll(&self, manifest: &mut Manifest) -> Result<()> {
        if manifest.appended < ROLL_BYTES.max(manifest.first * 4) {
            return Ok(());
        }
        let number = self.numbers.allocate();
        let log = manifest.log.clone();
        let snapshot = self.snapshot_edit(&self.view.load().version, log.clone()).encode();
        let first = snapshot.len() as u64;
        let mut writer = ManifestWriter::create(
            Arc::clone(&self.fs),
            &self.dir,
            number,
            &snapshot,
            Arc::clone(&self.health),
            Arc::clone(&manifest.sync_file),
        )?;
        writer.make_current()?;
        let old = manifest.writer.number();
        *manifest = Manifest {
            writer,
            sync_file: Arc::clone(&manifest.sync_file),
            log,
            appended: 0,
            first,
        };
        // What cannot be removed now is removed at the next open.
        let _ = self.fs.remove(&manifest_path(&self.dir, old));
        Ok(())
    }

    /// Everything as one edit: the first record of a manifest.
    pub(crate) fn snapshot_edit(&self, version: &Version, log: LogState) -> Edit {
        snapshot_edit(
            self.trees.iter().map(|tree| tree.config.name.as_str()),
            version,
            log,
            self.numbers.peek(),
            self.sequences.visible(),
        )
    }
}

/// A version as one edit.
pub(crate) fn snapshot_edit<'a>(
    names: impl Iterator<Item = &'a str>,
    version: &Version,
    log: LogState,
    next_file: FileNumber,
    last_sequence: u64,
) -> Edit {
    let mut added = Vec::new();
    for (tree, levels) in (0u8..).zip(&version.trees) {
        for (level, files) in (0u8..).zip(levels.iter().map(|(_, files)| files)) {
            added.extend(files.iter().map(|file| (TreeId(tree), level, file.meta().clone())));
        }
    }
    Edit {
        next_file: Some(next_file),
        last_sequence: Some(last_sequence),
        log: Some(log),
        added,
        removed: Vec::new(),
        trees: names.map(|name| name.as_bytes().to_vec()).collect(),
    }
}

/// The version after an edit; `None` if the edit does not fit it. A file that changes its level
/// keeps its open reader.
pub(crate) fn apply(
    version: &Version,
    edit: &Edit,
    open: &dyn Fn(usize, FileMeta) -> Option<Arc<TableFile>>,
) -> Option<Version> {
    let mut trees: Vec<Levels> = version.trees.iter().map(|levels| (**levels).clone()).collect();
    let mut left = Vec::new();
    for (tree, level, number) in &edit.removed {
        left.push(trees.get_mut(tree.index())?.take(*level as usize, *number)?);
    }
    for (tree, level, meta) in &edit.added {
        let kept = left.iter().find(|file| file.meta().number == meta.number).cloned();
        let file = kept.or_else(|| open(tree.index(), meta.clone()))?;
        let levels = trees.get_mut(tree.index())?;
        *levels = std::mem::take(levels).with_added(*level as usize, file)?;
    }
    trees.iter().all(|levels| levels.first_overlap().is_none()).then_some(())?;
    Some(Version { trees: trees.into_iter().map(Arc::new).collect() })
}

/// The files that an edit takes out of the store (not those it moves).
fn removed_files(version: &Version, edit: &Edit) -> Vec<Arc<TableFile>> {
    let moved = |number: &FileNumber| edit.added.iter().any(|(_, _, meta)| meta.number == *number);
    edit.removed
        .iter()
        .filter(|(_, _, number)| !moved(number))
        .filter_map(|(tree, level, number)| {
            let files = version.trees.get(tree.index())?.level(*level as usize);
            files.iter().find(|file| file.meta().number == *number).cloned()
        })
        .collect()
}

fn closed(message: &str) -> Error {
    Error::new(ErrorKind::Closed, message)
}
