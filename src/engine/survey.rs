//! The tables of a store one by one, as of one moment, for those who inspect it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::batch::TreeId;
use crate::engine::files::FileNumber;
use crate::engine::handle::Reader;
use crate::engine::sstable::Properties;
use crate::engine::version::TableFile;
use crate::error::Result;

/// A table and where it stands. Keeps the file.
#[derive(Clone, Debug)]
pub struct Surveyed {
    /// The tree it belongs to.
    pub tree: TreeId,
    /// The level it is in.
    pub level: u8,
    file: Arc<TableFile>,
}

impl Surveyed {
    /// Its file number.
    pub fn number(&self) -> FileNumber {
        self.file.meta().number
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.file.meta().size
    }

    /// Its entries, all versions and deletes counted.
    pub fn entries(&self) -> u64 {
        self.file.meta().entries
    }

    /// Its deletes.
    pub fn tombstones(&self) -> u64 {
        self.file.meta().tombstones
    }

    /// What it says of itself; opens the file.
    pub fn properties(&self) -> Result<&Properties> {
        Ok(self.file.table()?.properties())
    }

    /// Reads and checks every block of it.
    pub fn verify(&self) -> Result<()> {
        self.file.table()?.verify()
    }
}

impl Reader {
    /// All tables, by tree and level.
    pub fn survey(&self) -> Vec<Surveyed> {
        let mut all = Vec::new();
        for (tree, levels) in (0u8..).zip(&self.view.version.trees) {
            for (level, (_, files)) in (0u8..).zip(levels.iter()) {
                let place = |file: &Arc<TableFile>| Surveyed {
                    tree: TreeId(tree),
                    level,
                    file: Arc::clone(file),
                };
                all.extend(files.iter().map(place));
            }
        }
        all
    }
}
