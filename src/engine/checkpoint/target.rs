//! The directory that a copy is made in. It has a temporary name until the copy is complete.
//!
//! Invariants: the final name appears in one step, with everything in the directory synced. Until
//! then the directory is locked like that of an open store, so nothing else opens or deletes it. A
//! copy that fails is removed. What a crash leaves behind either has no CURRENT or is complete, and
//! the next attempt clears it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::{FileKind, lock_path};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{FileSystem, LockGuard};

/// The target directory of a copy. Dropping it before [`TargetDir::publish`] removes it.
#[derive(Debug)]
pub(crate) struct TargetDir {
    fs: Arc<dyn FileSystem>,
    parent: PathBuf,
    finished: PathBuf,
    partial: PathBuf,
    published: bool,
    _lock: Box<dyn LockGuard>,
}

impl TargetDir {
    /// Prepares a directory that will be named `dir`. `dir` must not exist, but its parent must.
    pub(crate) fn begin(fs: &Arc<dyn FileSystem>, dir: &Path, store: &Path) -> Result<Self> {
        let name = dir.file_name().ok_or_else(|| invalid(dir, "this names no directory"))?;
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        // Other calls do not follow symbolic links.
        let parent = fs.resolve(parent).map_err(|e| Error::io("look for", parent, &e))?;
        if parent.starts_with(store) {
            return Err(invalid(dir, "a copy cannot be made inside the store itself"));
        }
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(".lsmkv-partial");
        let (finished, partial) = (parent.join(name), parent.join(hidden));
        must_not_exist(&**fs, &finished)?;
        let lock = occupy(&**fs, &partial)?;
        let fs = Arc::clone(fs);
        let target = Self { fs, parent, finished, partial, published: false, _lock: lock };
        target.clear(false)?;
        Ok(target)
    }

    /// The directory to write to.
    pub(crate) fn dir(&self) -> &Path {
        &self.partial
    }

    /// The file system to write to.
    pub(crate) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    /// Gives the directory its final name. Everything in it must be synced.
    pub(crate) fn publish(mut self) -> Result<()> {
        must_not_exist(&*self.fs, &self.finished)?;
        let renamed = self.fs.rename(&self.partial, &self.finished);
        renamed.map_err(|e| Error::io("rename to", &self.finished, &e))?;
        self.published = true;
        self.fs.sync_dir(&self.parent).map_err(|e| {
            // It may not be durable, so it has failed, and is removed.
            self.published = self.fs.rename(&self.finished, &self.partial).is_err();
            Error::io("sync the directory", &self.parent, &e)
        })
    }

    /// Removes the files in the directory. Fails if one of them is not a file of a store.
    fn clear(&self, lock_too: bool) -> Result<()> {
        let failed = |e: &io::Error| Error::io("clear", &self.partial, e);
        for name in self.fs.list(&self.partial).map_err(|e| failed(&e))? {
            match FileKind::parse(&name) {
                Some(FileKind::Lock) if !lock_too => continue,
                Some(_) => {}
                None => {
                    return Err(invalid(&self.partial.join(name), "this is no file of a store"));
                }
            }
            self.fs.remove(&self.partial.join(name)).map_err(|e| failed(&e))?;
        }
        Ok(())
    }
}

impl Drop for TargetDir {
    fn drop(&mut self) {
        if !self.published && self.clear(true).is_ok() {
            // If this fails, the next copy to this name clears the directory.
            let _ = self.fs.remove_dir(&self.partial);
        }
    }
}

fn must_not_exist(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    match fs.exists(dir).map_err(|e| Error::io("look for", dir, &e))? {
        true => Err(invalid(dir, "the target of a copy must not exist")),
        false => Ok(()),
    }
}

/// Creates the directory, or takes over what an earlier attempt left behind, and locks it.
fn occupy(fs: &dyn FileSystem, dir: &Path) -> Result<Box<dyn LockGuard>> {
    match fs.create_dir(dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("create directory", dir, &e));
        }
        _ => {}
    }
    fs.lock(&lock_path(dir)).map_err(|e| {
        if e.kind() == io::ErrorKind::WouldBlock {
            let message = format!("{}: another copy is being made here", dir.display());
            return Error::new(ErrorKind::Busy, message);
        }
        let _ = fs.remove_dir(dir);
        Error::io("lock", dir, &e)
    })
}

fn invalid(path: &Path, what: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("{}: {what}", path.display()))
}
