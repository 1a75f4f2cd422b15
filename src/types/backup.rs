//! Copies of a store, made while it is in use.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{FileSystem, RealFs};
use crate::error::Result;
use crate::types::Db;

impl Db {
    /// Makes a copy of the store in `dir`, which must not exist, by hard links: at once whatever
    /// the size, but only on the same file system. Reads and writes go on. The copy holds every
    /// write, of all databases, that had returned when this was called, whatever kind of handle it
    /// is called on, and opens as a store of its own. When this has returned it survives a power
    /// cut; before that, and when it fails, there is no `dir` that is not whole.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.shared_store().engine().checkpoint(dir.as_ref())
    }

    /// The same by copying, to any disk, also from a store in memory. The copy is read back and
    /// compared with its checksums. `progress` is told the bytes copied so far and those in all,
    /// and may end it by breaking: then this returns `false`, and nothing is left of the copy. It may
    /// use the store, but must not close it: that waits for the backup.
    pub fn backup(
        &self,
        dir: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
        self.backup_on(&fs, dir.as_ref(), progress)
    }

    /// [`Db::backup`] to a directory of any file system.
    pub fn backup_on(
        &self,
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.shared_store().engine().backup(fs, dir, &mut progress)
    }
}
