//! Step 2 of an open: the state that the manifest describes, checked against the directory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Opening, invalid};
use crate::engine::core::Tree;
use crate::engine::entry::Sequence;
use crate::engine::files::{FileKind, FileNumber, current_path, manifest_path};
use crate::engine::hash::HashSeed;
use crate::engine::version::{LogState, TableFile, Version, VersionEdit, read_manifest};
use crate::engine::wal::SyncState;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::FileSystem;

/// No file number is larger than this, so that counting on never overflows.
const MAX_FILE_NUMBER: FileNumber = FileNumber::MAX >> 1;

/// The state that the manifest describes.
#[derive(Debug, Default)]
pub(super) struct ManifestState {
    pub(super) version: Version,
    pub(super) log: LogState,
    pub(super) next_file: FileNumber,
    pub(super) last_sequence: Sequence,
    /// `None` if the store has format 1.
    pub(super) hash_seed: Option<HashSeed>,
    /// `None` if no version that counts rows has opened the store for writing.
    pub(super) counted_from: Option<Sequence>,
}

impl Opening {
    /// The state of a store that is yet to be created. The directory is empty, or holds the remains
    /// of a creation that did not complete.
    pub(super) fn empty_state(&self) -> Result<ManifestState> {
        for name in &self.names {
            match FileKind::parse(name) {
                Some(FileKind::Table(_) | FileKind::Log(_)) => {
                    let path = current_path(&self.dir);
                    let found = format!("it is missing, but {} is there", name.display());
                    return Err(Error::corrupt(&path, 0, found));
                }
                Some(_) => {}
                None if name.as_os_str() == "lost+found" => {}
                None => {
                    let what = format!("{} is no file of a store", name.display());
                    let error = invalid(&self.dir, &what);
                    return Err(error.wrap(ErrorKind::Incompatible, "not a store"));
                }
            }
        }
        let version = Version::empty(self.trees.len());
        Ok(ManifestState { version, next_file: 1, ..ManifestState::default() })
    }

    /// Reads the manifests of this store.
    pub(super) fn manifest_reader(&self) -> ManifestReader<'_> {
        ManifestReader {
            fs: &*self.fs,
            dir: &self.dir,
            trees: &self.trees,
            names: &self.names,
            known: HashMap::new(),
        }
    }
}

/// Reads the state that a manifest describes, and checks it against the directory.
pub(super) struct ManifestReader<'a> {
    pub(super) fs: &'a dyn FileSystem,
    pub(super) dir: &'a Path,
    pub(super) trees: &'a [Tree],
    /// The files in the directory.
    pub(super) names: &'a [PathBuf],
    /// Tables that are open already.
    pub(super) known: HashMap<FileNumber, Arc<TableFile>>,
}

impl ManifestReader<'_> {
    pub(super) fn read(&self, number: FileNumber, sync_state: SyncState) -> Result<ManifestState> {
        let mut state = ManifestState { version: Version::default(), ..ManifestState::default() };
        let path = manifest_path(self.dir, number);
        read_manifest(self.fs, self.dir, number, sync_state, |payload| {
            let broken = |what: &str| Error::corrupt(&path, 0, what);
            let edit = VersionEdit::decode(payload).map_err(|bad| bad.in_file(&path))?;
            self.check_trees(&edit)?;
            self.apply_edit(&mut state, &edit).ok_or_else(|| broken("an edit does not fit"))
        })?;
        if state.version.trees.is_empty() {
            return Err(Error::corrupt(&path, 0, "it names no trees"));
        }
        self.check_present(&state)?;
        Ok(state)
    }

    fn apply_edit(&self, state: &mut ManifestState, edit: &VersionEdit) -> Option<()> {
        if !edit.trees.is_empty() {
            state.version = Version::empty(edit.trees.len());
        }
        state.version = state.version.apply(edit, &|tree, meta| match self
            .known
            .get(&meta.number)
            .filter(|file| *file.meta() == meta)
        {
            Some(file) => Some(Arc::clone(file)),
            None => {
                let opener = Arc::clone(&self.trees.get(tree)?.opener);
                Some(Arc::new(TableFile::new(meta, opener)))
            }
        })?;
        state.next_file = edit.next_file.unwrap_or(state.next_file);
        state.last_sequence = edit.last_sequence.unwrap_or(state.last_sequence);
        state.hash_seed = edit.hash_seed.or(state.hash_seed);
        state.counted_from = edit.counted_from.or(state.counted_from);
        if let Some(log) = &edit.log {
            state.log = log.clone();
        }
        Some(())
    }

    /// Checks the tree names, which the first edit of a manifest holds.
    fn check_trees(&self, edit: &VersionEdit) -> Result<()> {
        let names = self.trees.iter().map(|tree| tree.config.name.as_bytes());
        if edit.trees.is_empty() || edit.trees.iter().map(Vec::as_slice).eq(names) {
            return Ok(());
        }
        let message = format!("{}: the store was made with other trees", self.dir.display());
        Err(Error::new(ErrorKind::Incompatible, message))
    }

    /// Checks that every table exists, so that a missing one is noticed now and not at some read.
    fn check_present(&self, state: &ManifestState) -> Result<()> {
        let present: std::collections::HashSet<FileNumber> = self
            .names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Table(number)) => Some(number),
                _ => None,
            })
            .collect();
        let mut files = state.version.files();
        match files.find(|file| !present.contains(&file.meta().number)) {
            Some(file) => Err(Error::corrupt(&file.path(), 0, "the table is missing")),
            None => Ok(()),
        }
    }
}

impl Opening {
    /// A number above those of all files in the directory.
    pub(super) fn number_after_all(&self) -> Result<FileNumber> {
        let mut next = 1;
        for name in &self.names {
            let number = match FileKind::parse(name) {
                Some(FileKind::Log(n) | FileKind::Table(n) | FileKind::Manifest(n)) => n,
                // Most temporary files are named by number too.
                Some(FileKind::Temporary) => stem_number(name).unwrap_or(0),
                _ => 0,
            };
            if number > MAX_FILE_NUMBER {
                let path = self.dir.join(name);
                return Err(Error::corrupt(&path, 0, "no file of a store has such a number"));
            }
            next = next.max(number + 1);
        }
        Ok(next)
    }
}

fn stem_number(name: &Path) -> Option<FileNumber> {
    name.file_stem()?.to_str()?.parse().ok()
}
