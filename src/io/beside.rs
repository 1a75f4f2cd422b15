//! A file system for a reader beside a writer: it takes no lock, refuses every change, and gives the
//! same file again for a path that is still open.
//!
//! Another process may remove a file at any time. Whoever needs a file keeps it open, and whoever
//! opens its path meanwhile gets that file, also after it was removed. With the last reference the
//! file is closed and the path forgotten.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::fs::{File, FileSystem, LockGuard};

/// The number of paths from which closed ones are looked for.
const FEW_PATHS: usize = 64;

/// Another file system, without locks and changes.
#[derive(Debug)]
pub struct BesideFs {
    inner: Arc<dyn FileSystem>,
    opened: Mutex<OpenedFiles>,
}

#[derive(Debug, Default)]
struct OpenedFiles {
    by_path: HashMap<PathBuf, Weak<dyn File>>,
    /// The number of paths at which closed ones are looked for next.
    clean_at: usize,
}

#[derive(Debug)]
struct NoLock;

impl LockGuard for NoLock {
    fn abandon(&self) {}
}

impl BesideFs {
    /// The files of `inner`.
    pub fn new(inner: Arc<dyn FileSystem>) -> Self {
        Self { inner, opened: Mutex::default() }
    }
}

impl OpenedFiles {
    fn find(&self, path: &Path) -> Option<Arc<dyn File>> {
        self.by_path.get(path).and_then(Weak::upgrade)
    }

    fn add(&mut self, path: &Path, file: &Arc<dyn File>) {
        if self.by_path.len() >= self.clean_at {
            self.by_path.retain(|_, file| file.strong_count() > 0);
            self.clean_at = (2 * self.by_path.len()).max(FEW_PATHS);
        }
        self.by_path.insert(path.to_owned(), Arc::downgrade(file));
    }
}

/// The number of files that this process may have open; `None` if there is no limit.
pub fn descriptor_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl FileSystem for BesideFs {
    fn create(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        refused()
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        if let Some(file) = self.opened.lock().find(path) {
            return Ok(file);
        }
        let file = self.inner.open_kept(path)?;
        self.opened.lock().add(path, &file);
        Ok(file)
    }

    fn open_write(&self, _: &Path) -> io::Result<Arc<dyn File>> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(dir)
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn resolve(&self, dir: &Path) -> io::Result<PathBuf> {
        self.inner.resolve(dir)
    }

    fn is_volatile(&self) -> bool {
        self.inner.is_volatile()
    }

    fn is_beside_writer(&self) -> bool {
        true
    }

    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        self.inner.free_bytes(dir)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Ok(Box::new(NoLock))
    }

    fn lock_dir(&self, _: &Path) -> io::Result<Box<dyn LockGuard>> {
        Ok(Box::new(NoLock))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::mem::MemFs;
    use crate::io::real::RealFs;

    #[test]
    fn an_open_file_outlives_its_name_and_is_forgotten_with_its_last_reference() {
        let (inner, path) = (Arc::new(MemFs::new()), Path::new("/a"));
        inner.create(path).unwrap().write_all_at(b"first", 0).unwrap();
        let fs = BesideFs::new(inner.clone());
        let held = fs.open(path).unwrap();
        inner.remove(path).unwrap();
        assert_eq!(fs.open(path).unwrap().len().unwrap(), 5, "the open file is found again");
        drop(held);
        assert_eq!(fs.open(path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn paths_of_closed_files_do_not_pile_up() {
        let inner = Arc::new(MemFs::new());
        let fs = BesideFs::new(inner.clone());
        for number in 0..1000 {
            let path = PathBuf::from(format!("/{number}"));
            inner.create(&path).unwrap();
            fs.open(&path).unwrap();
        }
        assert!(fs.opened.lock().by_path.len() <= FEW_PATHS);
    }

    /// A writer that gives back the front of a table would change it under a reader of an older
    /// version.
    #[test]
    fn no_front_is_discarded_under_a_reader() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table");
        RealFs.create(&path).unwrap().write_all_at(&[7; 8192], 0).unwrap();
        let fs = BesideFs::new(Arc::new(RealFs));
        let (held, mut byte) = (fs.open(&path).unwrap(), [0]);
        RealFs.open_write(&path).unwrap().discard_front(4096).unwrap();
        held.read_exact_at(&mut byte, 0).unwrap();
        assert_eq!(byte, [7]);
        drop(held);
        RealFs.open_write(&path).unwrap().discard_front(4096).unwrap();
        RealFs.open(&path).unwrap().read_exact_at(&mut byte, 0).unwrap();
        assert!(byte == [0] || byte == [7], "a file system may keep them");
    }

    #[test]
    fn every_change_is_refused_and_every_lock_is_free() {
        let (inner, path) = (Arc::new(MemFs::new()), Path::new("/a"));
        inner.create(path).unwrap();
        let _held = inner.lock(Path::new("/LOCK")).unwrap();
        let fs = BesideFs::new(inner);
        let refusals = [
            fs.create(Path::new("/b")).map(drop),
            fs.open_write(path).map(drop),
            fs.rename(path, Path::new("/b")),
            fs.hard_link(path, Path::new("/b")),
            fs.remove(path),
            fs.remove_dir(path),
            fs.create_dir(Path::new("/d")),
            fs.sync_dir(Path::new("/")),
        ];
        for refusal in refusals {
            assert_eq!(refusal.unwrap_err().kind(), io::ErrorKind::ReadOnlyFilesystem);
        }
        fs.lock(Path::new("/LOCK")).unwrap();
    }
}
