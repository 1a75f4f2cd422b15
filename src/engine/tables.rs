//! The tables of a store one by one, for tools that inspect it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::files::FileNumber;
use crate::engine::reader::Reader;
use crate::engine::sstable::Properties;
use crate::engine::version::TableFile;
use crate::error::Result;

/// A table of the store with its tree and level. It keeps the file from being deleted.
#[derive(Clone, Debug)]
pub struct LiveTable {
    /// The tree the table belongs to.
    pub tree: TreeId,
    /// The level the table is in.
    pub level: u8,
    file: Arc<TableFile>,
}

impl LiveTable {
    /// The file number.
    pub fn number(&self) -> FileNumber {
        self.file.meta().number
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// The size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.meta().size
    }

    /// Number of entries, all versions and tombstones counted.
    pub fn entries(&self) -> u64 {
        self.file.meta().entries
    }

    /// Number of tombstones.
    pub fn tombstones(&self) -> u64 {
        self.file.meta().tombstones
    }

    /// The properties stored in the table. Opens the file.
    pub fn properties(&self) -> Result<&Properties> {
        Ok(self.file.table()?.properties())
    }

    /// Reads and checks every block of the table.
    pub fn verify(&self) -> Result<()> {
        self.file.table()?.verify()
    }
}

impl Reader {
    /// All tables, by tree and level.
    pub fn tables(&self) -> Vec<LiveTable> {
        let mut all = Vec::new();
        for (tree, levels) in (0u8..).zip(&self.view.version.trees) {
            for (level, (_, files)) in (0u8..).zip(levels.iter()) {
                let live = |file: &Arc<TableFile>| LiveTable {
                    tree: TreeId(tree),
                    level,
                    file: Arc::clone(file),
                };
                all.extend(files.iter().map(live));
            }
        }
        all
    }
}
