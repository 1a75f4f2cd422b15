//! Copies of a store, made while it is in use.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{FileSystem, RealFs};
use crate::error::Result;
use crate::txn::Db;

impl Db {
    /// Copies the store to `dir`, which must not exist, by hard links: in constant time, but only
    /// on the same file system. Reads and writes go on. The copy holds every write of all databases
    /// that had returned before this call, whatever kind of handle this is, and opens as a store of
    /// its own. Once this has returned, the copy survives a power cut. If it fails or is
    /// interrupted, there is no incomplete `dir`.
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        self.shared_store().engine().checkpoint(dir.as_ref())
    }

    /// Copies the store to `dir` byte by byte, on any disk, also from a store in memory. The copy
    /// is read back and compared with its checksums. `progress` is told the bytes copied so far and
    /// in all, and may stop the backup by breaking: then this returns `false`, and nothing is left
    /// of the copy. `progress` may use the store, but must not close it: closing waits for the
    /// backup.
    pub fn backup(
        &self,
        dir: impl AsRef<Path>,
        progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
        self.backup_on(&fs, dir.as_ref(), progress)
    }

    /// Copies the store like [`Db::backup`], to a directory of any file system.
    pub fn backup_on(
        &self,
        fs: &Arc<dyn FileSystem>,
        dir: &Path,
        mut progress: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.shared_store().engine().backup(fs, dir, &mut progress)
    }
}
