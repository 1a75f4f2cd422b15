//! The tables of one tree, by level. Immutable: an edit makes a new one.
//!
//! Invariants: level 0 holds files newest first, whose key ranges may overlap, and every entry of
//! a file is newer than the entries of the same key in later files; deeper levels are sorted by
//! key and their files do not overlap; for one key, a lower level number holds newer entries.

use std::sync::Arc;

use super::edit::LEVELS;
use super::file::TableFile;
use crate::engine::files::FileNumber;

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    levels: [Vec<Arc<TableFile>>; LEVELS],
}

impl Levels {
    /// The files of a level.
    #[inline]
    pub fn level(&self, level: usize) -> &[Arc<TableFile>] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// All levels with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[Arc<TableFile>])> {
        self.levels.iter().map(Vec::as_slice).enumerate()
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.levels.iter().flatten()
    }

    /// Bytes of a level.
    pub fn level_bytes(&self, level: usize) -> u64 {
        self.level(level).iter().map(|file| file.meta().size).sum()
    }

    /// Adds a file; `None` if the level does not exist.
    #[must_use]
    pub fn with_added(mut self, level: usize, file: Arc<TableFile>) -> Option<Self> {
        let files = self.levels.get_mut(level)?;
        let at = if level == 0 {
            files.partition_point(|other| other.meta().max_sequence > file.meta().max_sequence)
        } else {
            files.partition_point(|other| other.meta().smallest < file.meta().smallest)
        };
        files.insert(at, file);
        Some(self)
    }

    /// Removes a file and returns it; `None` if it is not there.
    #[must_use]
    pub fn take(&mut self, level: usize, number: FileNumber) -> Option<Arc<TableFile>> {
        let files = self.levels.get_mut(level)?;
        let at = files.iter().position(|file| file.meta().number == number)?;
        Some(files.remove(at))
    }

    /// Whether two files of one level below 0 overlap: a broken invariant.
    pub fn first_overlap(&self) -> Option<(FileNumber, FileNumber)> {
        self.levels.iter().skip(1).find_map(|files| {
            files.windows(2).find_map(|pair| match pair {
                [a, b] if a.meta().largest >= b.meta().smallest => {
                    Some((a.meta().number, b.meta().number))
                }
                _ => None,
            })
        })
    }

    /// The files of a sorted level that overlap `[smallest, largest]`.
    pub fn overlapping(&self, level: usize, smallest: &[u8], largest: &[u8]) -> &[Arc<TableFile>] {
        let files = self.level(level);
        let from = files.partition_point(|file| *file.meta().largest < *smallest);
        let rest = files.get(from..).unwrap_or_default();
        let len = rest.partition_point(|file| *file.meta().smallest <= *largest);
        rest.get(..len).unwrap_or_default()
    }

    /// The file of a sorted level that may hold `key`.
    #[inline]
    pub fn file_for(&self, level: usize, key: &[u8]) -> Option<&Arc<TableFile>> {
        let files = self.level(level);
        let at = files.partition_point(|file| *file.meta().largest < *key);
        files.get(at).filter(|file| *file.meta().smallest <= *key)
    }

    /// Whether a level below `level` may hold `key`.
    pub fn reaches_below(&self, level: usize, key: &[u8]) -> bool {
        (level + 1..LEVELS).any(|deeper| self.file_for(deeper, key).is_some())
    }

    /// The deepest level with files, 0 when there are none.
    pub fn deepest(&self) -> usize {
        self.levels.iter().rposition(|files| !files.is_empty()).unwrap_or(0)
    }
}
