//! The shared handle of an in-memory file system, and its open files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::RwLock;
use rustix::io::Errno;

use super::content::Content;
use super::crash::CrashMode;
use super::entry::{Entry, FileId};
use super::pages::Pages;
use super::tree::Tree;
use crate::io::fs::{File, FileSystem, LockGuard};
use crate::io::lock::Registry;

/// Whether the sync has taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStage {
    /// The sync has been asked for, and nothing has become durable by it.
    Before,
    /// The sync has taken effect and is about to return.
    After,
}

/// One call of a sync hook.
#[derive(Clone, Copy, Debug)]
pub struct SyncPoint<'a> {
    /// Number of the sync, counted from 1 over all files and directories of the file system.
    pub number: u64,
    /// Whether the sync has taken effect.
    pub stage: SyncStage,
    /// The directory, or the file by the name it was opened with.
    pub path: &'a Path,
}

type HookFn = dyn Fn(&MemFs, SyncPoint<'_>) + Send + Sync;

/// A function that runs before and after every sync.
#[derive(Clone)]
pub(super) struct SyncHook(pub(super) Arc<HookFn>);

impl fmt::Debug for SyncHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SyncHook")
    }
}

/// A strict file system in memory. A clone is another handle of the same one.
///
/// Paths start at the root, with or without a leading `/`; `..` is refused.
#[derive(Clone, Debug)]
pub struct MemFs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tree: RwLock<Tree>,
    locks: Registry<Entry>,
    hook: RwLock<Option<SyncHook>>,
    syncs: AtomicU64,
    bytes_written: AtomicU64,
}

impl Default for MemFs {
    fn default() -> Self {
        Self::new()
    }
}

impl MemFs {
    /// An empty file system that tracks what is durable.
    pub fn new() -> Self {
        Self::of(Tree::new(true))
    }

    /// An empty file system with a capacity. Writes beyond it fail with `StorageFull`.
    pub fn with_capacity(bytes: u64) -> Self {
        let fs = Self::new();
        fs.set_capacity(bytes);
        fs
    }

    /// An empty file system for stores in memory. It does not track what is durable, and so keeps
    /// only one copy of everything. Every crash of it is [`CrashMode::KeepAll`].
    pub fn untracked() -> Self {
        Self::of(Tree::new(false))
    }

    fn of(tree: Tree) -> Self {
        Self(Arc::new(Shared {
            tree: RwLock::new(tree),
            locks: Registry::new(),
            hook: RwLock::new(None),
            syncs: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
        }))
    }

    /// Changes the capacity. Existing files stay, even if they exceed it.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.tree.write().capacity = bytes;
    }

    /// Fills the disk at allocation `n`, counted from 1: from that call on there is no more space than
    /// what is in use then. What files give back later can be used again.
    pub fn fill_at_allocation(&self, n: u64) {
        self.0.tree.write().full_from = n;
    }

    /// Number of calls so far that asked for more space: writes beyond the end of a file included.
    pub fn allocations(&self) -> u64 {
        self.0.tree.read().allocations
    }

    /// An independent copy with the same durable and unsynced content. It has no open files, locks
    /// or hook, and its counters are zero.
    pub fn deep_clone(&self) -> MemFs {
        Self::of(self.0.tree.read().without_handles())
    }

    /// An independent file system as after a crash now. The same state, seed and mode give the same
    /// result.
    pub fn crash_clone(&self, seed: u64, mode: CrashMode) -> MemFs {
        Self::of(self.0.tree.read().crashed(seed, mode))
    }

    /// Number of syncs of files and directories so far.
    pub fn sync_count(&self) -> u64 {
        self.0.syncs.load(Ordering::SeqCst)
    }

    /// Number of bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.0.bytes_written.load(Ordering::SeqCst)
    }

    /// The space that files take, which is the sum of their lengths.
    pub fn bytes_in_use(&self) -> u64 {
        self.0.tree.read().used
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.0.tree.read().file_paths()
    }

    /// All bytes of a file.
    pub fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let tree = self.0.tree.read();
        let file = tree.files.get(&tree.file_at(path)?).ok_or(Errno::NOENT)?;
        Ok(file.content.current().to_vec())
    }

    /// Creates or replaces a file with durable content, whatever the capacity. Tests use this to
    /// damage a store.
    pub fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut pages = Pages::default();
        pages.write_at(bytes, 0);
        self.0.tree.write().put_file(path, Content::settled(pages))
    }

    /// Number of files and directories, reachable or not.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> (usize, usize) {
        let tree = self.0.tree.read();
        (tree.files.len(), tree.dirs.len())
    }

    pub(super) fn set_hook(&self, hook: Option<SyncHook>) {
        *self.0.hook.write() = hook;
    }

    fn file(&self, id: FileId, path: &Path, writable: bool) -> Arc<dyn File> {
        Arc::new(MemFile { fs: self.clone(), id, path: path.into(), writable })
    }

    /// Counts a sync and runs the hook around it.
    fn sync(&self, path: &Path, apply: impl FnOnce(&mut Tree) -> io::Result<()>) -> io::Result<()> {
        let number = self.0.syncs.fetch_add(1, Ordering::SeqCst) + 1;
        let hook = self.0.hook.read().clone();
        let at = |stage| {
            if let Some(SyncHook(hook)) = &hook {
                hook(self, SyncPoint { number, stage, path });
            }
        };
        at(SyncStage::Before);
        apply(&mut self.0.tree.write())?;
        at(SyncStage::After);
        Ok(())
    }

    fn claim(&self, id: Entry) -> io::Result<Box<dyn LockGuard>> {
        if !self.0.locks.claim(id) {
            return Err(Errno::WOULDBLOCK.into());
        }
        Ok(Box::new(MemLock { fs: self.clone(), id, abandoned: AtomicBool::new(false) }))
    }

    fn open_existing(&self, path: &Path, writable: bool) -> io::Result<Arc<dyn File>> {
        let mut tree = self.0.tree.write();
        let id = tree.file_at(path)?;
        tree.opened(id);
        Ok(self.file(id, path, writable))
    }
}

impl FileSystem for MemFs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut tree = self.0.tree.write();
        let id = tree.create(path)?;
        tree.opened(id);
        Ok(self.file(id, path, true))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_existing(path, false)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_existing(path, true)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.tree.write().rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.tree.write().hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.tree.write().remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.tree.write().remove_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.tree.read().list(dir)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.tree.write().create_dir(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.tree.read().exists(path)
    }

    /// A file system for stores in memory is volatile. Those of tests simulate a disk.
    fn is_volatile(&self) -> bool {
        !self.0.tree.read().tracked
    }

    fn free_bytes(&self, _: &Path) -> Option<u64> {
        let tree = self.0.tree.read();
        (tree.capacity < u64::MAX).then(|| tree.capacity.saturating_sub(tree.used))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.sync(dir, |tree| tree.sync_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn LockGuard>> {
        let mut tree = self.0.tree.write();
        let id = match tree.file_at(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => tree.create(path)?,
            other => other?,
        };
        drop(tree);
        self.claim(Entry::File(id))
    }

    fn lock_dir(&self, dir: &Path) -> io::Result<Box<dyn LockGuard>> {
        let id = self.0.tree.read().dir_at(dir)?;
        self.claim(Entry::Dir(id))
    }

    fn lock_holder(&self, _: &Path) -> Option<u32> {
        Some(std::process::id())
    }
}

#[derive(Debug)]
struct MemLock {
    fs: MemFs,
    id: Entry,
    abandoned: AtomicBool,
}

impl LockGuard for MemLock {
    /// A forked child has its own copy of the file system, so there is nothing to close. The guard
    /// must only not wait for a mutex when it is dropped.
    fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }
}

impl Drop for MemLock {
    fn drop(&mut self) {
        if !self.abandoned.load(Ordering::SeqCst) {
            self.fs.0.locks.release(&self.id);
        }
    }
}

#[derive(Debug)]
struct MemFile {
    fs: MemFs,
    id: FileId,
    path: Arc<Path>,
    writable: bool,
}

impl MemFile {
    fn must_be_writable(&self, refusal: Errno) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(refusal.into()) }
    }

    fn with_pages<R>(&self, read: impl FnOnce(&Pages) -> R) -> io::Result<R> {
        let tree = self.fs.0.tree.read();
        let file = tree.files.get(&self.id).ok_or(Errno::BADF)?;
        Ok(read(file.content.current()))
    }
}

impl File for MemFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with_pages(|pages| pages.read_at(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.must_be_writable(Errno::BADF)?;
        let written = self.fs.0.tree.write().write_at(self.id, buf, offset)?;
        self.fs.0.bytes_written.fetch_add(written as u64, Ordering::SeqCst);
        Ok(written)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.fs.sync(&self.path, |tree| tree.sync_file(self.id))
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.with_pages(Pages::len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.must_be_writable(Errno::INVAL)?;
        self.fs.0.tree.write().set_len(self.id, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.must_be_writable(Errno::BADF)?;
        self.fs.0.tree.write().allocate(self.id, len)
    }

    fn discard_front(&self, len: u64) -> io::Result<()> {
        self.must_be_writable(Errno::BADF)?;
        self.fs.0.tree.write().discard_front(self.id, len)
    }
}

impl Drop for MemFile {
    fn drop(&mut self) {
        self.fs.0.tree.write().closed(self.id);
    }
}
