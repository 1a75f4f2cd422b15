//! The files that a reader beside a writer keeps open while it reads the manifest and the log.
//!
//! The writer may remove any of them at any time, and give back the front of a table. Both concern
//! only what a manifest read later does not name. So files are opened first and the manifest is read
//! then: if all its tables are among these files, all of it stays readable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Opening;
use crate::engine::files::FileKind;
use crate::engine::open_files::out_of_descriptors;
use crate::error::{Error, ErrorKind, Result};
use crate::io::beside::descriptor_limit;
use crate::io::fs::{File, FileSystem};

/// Open files. The file system gives them again for their paths.
pub(super) type KeptFiles = Vec<Arc<dyn File>>;

impl Opening {
    /// Opens all tables and logs if the store is read beside a writer.
    pub(super) fn keep_files(&self) -> Result<KeptFiles> {
        if !self.fs.is_beside_writer() {
            return Ok(Vec::new());
        }
        keep_files(&*self.fs, &self.dir, &self.names)
    }
}

/// Opens the tables and logs among `names`. One that cannot be opened is gone, or its absence shows
/// later.
pub(super) fn keep_files(fs: &dyn FileSystem, dir: &Path, names: &[PathBuf]) -> Result<KeptFiles> {
    let is_kept = |name: &&PathBuf| {
        matches!(FileKind::parse(name), Some(FileKind::Table(_) | FileKind::Log(_)))
    };
    let mut kept = Vec::new();
    for name in names.iter().filter(is_kept) {
        match fs.open(&dir.join(name)) {
            Ok(file) => kept.push(file),
            Err(e) if out_of_descriptors(&e) => {
                return Err(too_many(dir, names.iter().filter(is_kept).count()));
            }
            Err(_) => {}
        }
    }
    Ok(kept)
}

fn too_many(dir: &Path, files: usize) -> Error {
    let limit = descriptor_limit().map_or("the system's".to_owned(), |limit| limit.to_string());
    let text = format!(
        "{}: beside a writer, all {files} files of the store must stay open, and this process may \
         open {limit}: raise its limit of open files (ulimit -n)",
        dir.display()
    );
    Error::new(ErrorKind::Unsupported, text)
}
