//! Step 1 of an open: the directory and its lock.

use std::path::Path;

use crate::engine::files::lock_path;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{FileSystem, LockGuard};

pub(super) fn create_dir(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    match fs.create_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::io("create directory", dir, &e))
        }
        _ => Ok(()),
    }
}

/// Makes the name of the directory durable by a sync of its parent.
///
/// Every creation of a store does this, also in a directory that exists: an earlier creation may
/// have ended between making the directory and this sync.
pub(super) fn sync_parent(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let Some(parent) = dir.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match fs.sync_dir(parent) {
        // Someone else created the directory, in a parent that we may not open.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        other => other.map_err(|e| Error::io("sync directory", parent, &e)),
    }
}

pub(super) fn take_lock(fs: &dyn FileSystem, dir: &Path) -> Result<Box<dyn LockGuard>> {
    let path = lock_path(dir);
    fs.lock(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message =
                format!("{}: the store is open in this or another process", dir.display());
            Error::new(ErrorKind::Busy, message)
        }
        _ => Error::io("lock", &path, &e),
    })
}
