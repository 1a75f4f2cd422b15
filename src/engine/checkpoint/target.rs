//! The directory that a copy is made in: under a name of its own until it is complete.
//!
//! Invariants: the final name appears at once, with everything in it synced; until then nothing
//! but this deletes or opens the directory, which is locked as that of an open store. What fails
//! is taken away; what a crash leaves has no CURRENT or is complete, never something in between,
//! and is cleared by the next attempt.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::{FileKind, lock_path};
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{FileSystem, LockGuard};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Target {
    fs: Arc<dyn FileSystem>,
    parent: PathBuf,
    finished: PathBuf,
    partial: PathBuf,
    published: bool,
    _lock: Box<dyn LockGuard>,
}

impl Target {
    /// A directory that will be named `dir`, which must not exist; its parent must.
    pub(crate) fn begin(fs: &Arc<dyn FileSystem>, dir: &Path, store: &Path) -> Result<Self> {
        let name = dir.file_name().ok_or_else(|| invalid(dir, "this names no directory"))?;
        let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        // Other calls follow no symbolic links.
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

    /// Where to write.
    pub(crate) fn dir(&self) -> &Path {
        &self.partial
    }

    /// How to write.
    pub(crate) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.fs
    }

    /// Gives the directory, in which everything is synced, its name.
    pub(crate) fn publish(mut self) -> Result<()> {
        must_not_exist(&*self.fs, &self.finished)?;
        let renamed = self.fs.rename(&self.partial, &self.finished);
        renamed.map_err(|e| Error::io("rename to", &self.finished, &e))?;
        self.published = true;
        self.fs.sync_dir(&self.parent).map_err(|e| {
            // Not known to be durable, so not done: taken away like any other that failed.
            self.published = self.fs.rename(&self.finished, &self.partial).is_err();
            Error::io("sync the directory", &self.parent, &e)
        })
    }

    /// Removes what is in the directory, and refuses to if something is not ours.
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

impl Drop for Target {
    fn drop(&mut self) {
        if !self.published && self.clear(true).is_ok() {
            // What cannot be removed now is cleared by the next copy of this name.
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

/// Makes the directory, or takes over what an earlier attempt left of it.
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
