//! Opens and deletes the table files of a tree.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::files::{FileNumber, table_path};
use crate::engine::open_files::OpenFiles;
use crate::engine::sstable::BlockCache;
use crate::engine::sstable::{Table, TableCounters};
use crate::error::{Error, Result};
use crate::io::fs::FileSystem;

/// Opens the tables of one tree. Each tree has its own, so that counters are per tree.
#[derive(Debug)]
pub struct TableOpener {
    /// The file system.
    pub fs: Arc<dyn FileSystem>,
    /// Limits the number of open files.
    pub(crate) files: Arc<OpenFiles>,
    /// The store's directory.
    pub dir: PathBuf,
    /// The block cache of the store.
    pub cache: Arc<BlockCache>,
    /// The counters of this tree's tables.
    pub counters: Arc<TableCounters>,
}

impl TableOpener {
    /// The path of table `number`.
    pub fn path(&self, number: FileNumber) -> PathBuf {
        table_path(&self.dir, number)
    }

    /// Opens table `number`, which must have exactly `size` bytes. Entries before `lower` do not
    /// count.
    pub fn open(&self, number: FileNumber, size: u64, lower: Option<Bytes>) -> Result<Table> {
        let path = self.path(number);
        let file = self.files.file(path.clone()).map_err(|e| Error::io("open", &path, &e))?;
        let table = Table::open(
            Arc::new(file),
            path,
            number,
            size,
            Arc::clone(&self.cache),
            Arc::clone(&self.counters),
        )?;
        Ok(table.starting_at(lower))
    }

    /// Gives back the space of the first `bytes` of a table. A failure does no harm.
    pub fn discard_front(&self, number: FileNumber, bytes: u64) {
        if let Ok(file) = self.fs.open_write(&self.path(number)) {
            let _ = file.discard_front(bytes);
        }
    }

    /// Deletes a table that no version refers to. If that fails, the next open deletes it.
    pub fn remove(&self, number: FileNumber) {
        let _ = self.fs.remove(&self.path(number));
    }
}
