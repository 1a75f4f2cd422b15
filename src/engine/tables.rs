//! Opens and removes the table files of a tree.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::cache::BlockCache;
use crate::engine::files::{FileNumber, table_path};
use crate::engine::open_files::OpenFiles;
use crate::engine::sstable::{Table, TableCounters};
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;

/// Everything a table needs to be opened. One for each tree, so that counters are per tree.
#[derive(Debug)]
pub struct TableOpener {
    /// The file system.
    pub fs: Arc<dyn FileSystem>,
    /// Bounds how many tables are open at once.
    pub(crate) files: Arc<OpenFiles>,
    /// The store's directory.
    pub dir: PathBuf,
    /// The one block cache of the store.
    pub cache: Arc<BlockCache>,
    /// What this tree's tables count.
    pub counters: Arc<TableCounters>,
}

impl TableOpener {
    /// Where table `number` is.
    pub fn path(&self, number: FileNumber) -> PathBuf {
        table_path(&self.dir, number)
    }

    /// Opens table `number`, which must have exactly `size` bytes.
    pub fn open(&self, number: FileNumber, size: u64) -> Result<Table> {
        let path = self.path(number);
        let file = self.files.file(path.clone()).map_err(|e| Error::io("open", &path, &e))?;
        Table::open(
            Arc::new(file),
            path,
            number,
            size,
            Arc::clone(&self.cache),
            Arc::clone(&self.counters),
        )
    }

    /// Removes a table that no version knows any more. What cannot be removed now is removed at
    /// the next open.
    pub fn remove(&self, number: FileNumber) {
        let _ = self.fs.remove(&self.path(number));
    }
}
