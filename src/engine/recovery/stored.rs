//! Step 2: what the manifest says, and whether it fits what is in the directory.

use std::path::Path;
use std::sync::Arc;

use super::{Opening, invalid};
use crate::engine::entry::Sequence;
use crate::engine::files::{FileKind, FileNumber, current_path};
use crate::engine::install::apply;
use crate::engine::version::{Edit, LogState, TableFile, read_manifest};
use crate::engine::view::Version;
use crate::engine::wal::SyncState;
use crate::error::{Error, ErrorKind, Result};

/// Numbers beyond this are not handed out in the life of a store: counting on must not overflow.
const MAX_FILE_NUMBER: FileNumber = FileNumber::MAX >> 1;

/// What the manifest says.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) version: Version,
    pub(super) log: LogState,
    pub(super) next_file: FileNumber,
    pub(super) last_sequence: Sequence,
}

impl Opening {
    /// An empty directory, or one in which a creation did not get to its end.
    pub(super) fn nothing_stored(&self) -> Result<Stored> {
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
        let trees = self.trees.iter().map(|_| Arc::default()).collect();
        Ok(Stored { version: Version { trees }, next_file: 1, ..Stored::default() })
    }

    pub(super) fn read_stored(&self, number: FileNumber, sync_state: SyncState) -> Result<Stored> {
        let mut stored = Stored { version: Version::default(), ..Stored::default() };
        let path = crate::engine::files::manifest_path(&self.dir, number);
        read_manifest(&*self.fs, &self.dir, number, sync_state, |payload| {
            let broken = |what: &str| Error::corrupt(&path, 0, what);
            let edit = Edit::decode(payload).ok_or_else(|| broken("a record is no edit"))?;
            self.check_trees(&edit)?;
            self.apply_stored(&mut stored, &edit).ok_or_else(|| broken("an edit does not fit"))
        })?;
        if stored.version.trees.is_empty() {
            return Err(Error::corrupt(&path, 0, "it names no trees"));
        }
        self.check_present(&stored)?;
        Ok(stored)
    }

    fn apply_stored(&self, stored: &mut Stored, edit: &Edit) -> Option<()> {
        if !edit.trees.is_empty() {
            stored.version = Version { trees: edit.trees.iter().map(|_| Arc::default()).collect() };
        }
        stored.version = apply(&stored.version, edit, &|tree, meta| {
            Some(Arc::new(TableFile::new(meta, Arc::clone(&self.trees.get(tree)?.opener))))
        })?;
        stored.next_file = edit.next_file.unwrap_or(stored.next_file);
        stored.last_sequence = edit.last_sequence.unwrap_or(stored.last_sequence);
        if let Some(log) = &edit.log {
            stored.log = log.clone();
        }
        Some(())
    }

    /// The first edit of a manifest names the trees; those after it depend on them.
    fn check_trees(&self, edit: &Edit) -> Result<()> {
        let names = self.trees.iter().map(|tree| tree.config.name.as_bytes());
        if edit.trees.is_empty() || edit.trees.iter().map(Vec::as_slice).eq(names) {
            return Ok(());
        }
        let message = format!("{}: the store was made with other trees", self.dir.display());
        Err(Error::new(ErrorKind::Incompatible, message))
    }

    /// A table that has gone is noticed now, not when someone happens to read it.
    fn check_present(&self, stored: &Stored) -> Result<()> {
        let present: std::collections::HashSet<FileNumber> = self
            .names
            .iter()
            .filter_map(|name| match FileKind::parse(name) {
                Some(FileKind::Table(number)) => Some(number),
                _ => None,
            })
            .collect();
        let mut files = stored.version.trees.iter().flat_map(|levels| levels.files());
        match files.find(|file| !present.contains(&file.meta().number)) {
            Some(file) => Err(Error::corrupt(&file.path(), 0, "the table is missing")),
            None => Ok(()),
        }
    }

    /// A number above that of every file in the directory.
    pub(super) fn number_after_all(&self) -> Result<FileNumber> {
        let mut next = 1;
        for name in &self.names {
            let number = match FileKind::parse(name) {
                Some(FileKind::Log(n) | FileKind::Table(n) | FileKind::Manifest(n)) => n,
                // Temporaries are named by number too, but for a few.
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
