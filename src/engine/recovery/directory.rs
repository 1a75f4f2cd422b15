//! Step 1 of an open: the directory and its lock.
//!
//! A store that can be opened to write has a file LOCK, and whoever opens the store locks that file.
//! While there is no such file, the directory itself is locked instead. So an open creates nothing
//! before it knows that it will write: [`Claim::begin_writing`] then creates LOCK, and holds both
//! locks for a moment. Dropping a claim undoes what it created.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::files::lock_path;
use crate::error::{Error, ErrorKind, Result};
use crate::io::fs::{FileSystem, LockGuard};

/// How often to look again for a lock file that appears or disappears meanwhile.
const MAX_ATTEMPTS: u32 = 16;

/// The lock of a directory, and what was created for it.
#[derive(Debug)]
pub(super) struct Claim {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    lock: Option<Box<dyn LockGuard>>,
    /// Whether `lock` is that of the file.
    has_file: bool,
    created_file: bool,
    created_dir: bool,
}

impl Claim {
    /// Locks the directory, and creates it if necessary and if `may_create`.
    pub(super) fn take(fs: &Arc<dyn FileSystem>, dir: &Path, may_create: bool) -> Result<Self> {
        let exists = fs.exists(dir).map_err(|e| Error::io("look for", dir, &e))?;
        let created_dir = !exists && may_create && create_dir(&**fs, dir)?;
        let resolved = fs.resolve(dir).map_err(|e| Error::io("look for", dir, &e))?;
        let mut claim = Self {
            fs: Arc::clone(fs),
            dir: resolved,
            lock: None,
            has_file: false,
            created_file: false,
            created_dir,
        };
        (claim.lock, claim.has_file) = lock_existing(&**fs, &claim.dir)?;
        Ok(claim)
    }

    /// The directory, with symbolic links resolved.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes sure that the lock is that of the file, which an older version of this program or
    /// one that comes later looks at.
    pub(super) fn begin_writing(&mut self) -> Result<()> {
        if self.has_file {
            self.sign();
            return Ok(());
        }
        let path = lock_path(&self.dir);
        let guard = self.fs.lock(&path).map_err(|e| lock_error(&*self.fs, &self.dir, &path, &e))?;
        // The lock of the directory is released only now.
        self.lock = Some(guard);
        (self.has_file, self.created_file) = (true, true);
        self.sign();
        Ok(())
    }

    /// Tells others who find the store busy which process writes to it.
    fn sign(&self) {
        if let Some(lock) = &self.lock {
            lock.sign();
        }
    }

    /// The lock, once the store is open. What was created stays.
    pub(super) fn keep(mut self) -> Option<Box<dyn LockGuard>> {
        (self.created_file, self.created_dir) = (false, false);
        self.lock.take()
    }
}

impl Drop for Claim {
    /// Removes what this open created, as far as it is still empty.
    fn drop(&mut self) {
        if self.created_file {
            let _ = self.fs.remove(&lock_path(&self.dir));
        }
        if self.created_dir {
            let _ = self.fs.remove_dir(&self.dir);
        }
    }
}

/// Creates a directory; `false` if another process has just done so.
fn create_dir(fs: &dyn FileSystem, dir: &Path) -> Result<bool> {
    match fs.create_dir(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::io("create directory", dir, &e))
        }
        created => Ok(created.is_ok()),
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

/// A lock, and whether it is that of the file.
type Locked = (Option<Box<dyn LockGuard>>, bool);

/// Locks the file if there is one, else the directory. Creates nothing.
fn lock_existing(fs: &dyn FileSystem, dir: &Path) -> Result<Locked> {
    let path = lock_path(dir);
    let has_file = || fs.exists(&path).map_err(|e| Error::io("look for", &path, &e));
    for _ in 0..MAX_ATTEMPTS {
        if has_file()? {
            let guard = fs.lock(&path).map_err(|e| lock_error(fs, dir, &path, &e))?;
            return Ok((Some(guard), true));
        }
        let guard = fs.lock_dir(dir).map_err(|e| lock_error(fs, dir, dir, &e))?;
        // A writer may have created the file and released the directory before we locked it.
        if !has_file()? {
            return Ok((Some(guard), false));
        }
    }
    Err(busy(dir, fs.lock_holder(&path)))
}

/// How several processes use one store.
const SHARE: &str = "open it with shared=on in every process, read beside it with read_only=on, or let it serve the \
     others (lsmkv_serve, lsmkv serve)";

/// Locks the directory of a store for reading, and creates nothing.
pub(crate) fn lock_to_read(fs: &dyn FileSystem, dir: &Path) -> Result<Option<Box<dyn LockGuard>>> {
    lock_existing(fs, dir).map(|(guard, _)| guard)
}

fn lock_error(fs: &dyn FileSystem, dir: &Path, path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::WouldBlock => busy(dir, fs.lock_holder(path)),
        _ => Error::io("lock", path, error),
    }
}

/// The error for a store that is open already, with its holder if that is known.
fn busy(dir: &Path, holder: Option<u32>) -> Error {
    let (who, advice) = match holder {
        Some(process) if process == std::process::id() => (
            "this process".to_owned(),
            "use the handle that is open, or read beside it with read_only=on",
        ),
        Some(process) => (format!("process {process}"), SHARE),
        None => ("this or another process".to_owned(), SHARE),
    };
    let message = format!("the store is open in {who}; {advice}: {}", dir.display());
    Error::new(ErrorKind::Busy, message)
}
