//! The tables of a store, by tree and level. Both types are immutable: an edit makes new ones.
//!
//! Invariants: files of level 0 come newest first and may overlap; every entry of a file is newer
//! than the entries of the same key in the files after it. Files of deeper levels are sorted by key
//! and do not overlap. Of one key, a lower level number holds newer entries.

use std::sync::{Arc, OnceLock};

use super::bounds::KeyBounds;
use super::edit::LEVELS;
use super::file::TableFile;
use super::level_sums::LevelSums;
use crate::engine::files::FileNumber;

/// The tables of all trees.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// By tree index.
    pub trees: Vec<Arc<Levels>>,
}

impl Version {
    /// A version of `trees` trees without tables.
    pub fn empty(trees: usize) -> Self {
        Self { trees: std::iter::repeat_with(Arc::default).take(trees).collect() }
    }

    /// The tables of all trees.
    pub fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.trees.iter().flat_map(|levels| levels.files())
    }
}

/// The tables of one tree.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    levels: [Vec<Arc<TableFile>>; LEVELS],
    /// Computed when they are first asked for.
    sums: [OnceLock<Arc<LevelSums>>; LEVELS],
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

    /// The files of all levels.
    pub fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.levels.iter().flatten()
    }

    /// Total size of the files of a level.
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
            files.partition_point(|other| other.meta().bounds.precede(&file.meta().bounds))
        };
        files.insert(at, file);
        self.forget_sums(level);
        Some(self)
    }

    /// Removes a file and returns it; `None` if it is not there.
    #[must_use]
    pub fn take(&mut self, level: usize, number: FileNumber) -> Option<Arc<TableFile>> {
        let files = self.levels.get_mut(level)?;
        let at = files.iter().position(|file| file.meta().number == number)?;
        let file = files.remove(at);
        self.forget_sums(level);
        Some(file)
    }

    /// The sums of the weights of a level's files.
    pub(super) fn sums(&self, level: usize) -> Option<&LevelSums> {
        let sums = self.sums.get(level)?;
        Some(&**sums.get_or_init(|| Arc::new(LevelSums::of(self.level(level)))))
    }

    fn forget_sums(&mut self, level: usize) {
        if let Some(sums) = self.sums.get_mut(level) {
            sums.take();
        }
    }

    /// Two files that overlap in a level other than 0, which breaks an invariant.
    pub fn first_overlap(&self) -> Option<(FileNumber, FileNumber)> {
        self.levels.iter().skip(1).find_map(|files| {
            files.windows(2).find_map(|pair| match pair {
                [a, b] if !a.meta().bounds.precede(&b.meta().bounds) => {
                    Some((a.meta().number, b.meta().number))
                }
                _ => None,
            })
        })
    }

    /// The files of a sorted level that touch `bounds`.
    pub fn overlapping(&self, level: usize, bounds: &KeyBounds) -> &[Arc<TableFile>] {
        let files = self.level(level);
        let from = files.partition_point(|file| {
            let other = &file.meta().bounds;
            !other.touch(bounds) && other.precede(bounds)
        });
        let rest = files.get(from..).unwrap_or_default();
        let len = rest.partition_point(|file| file.meta().bounds.touch(bounds));
        rest.get(..len).unwrap_or_default()
    }

    /// The file of a sorted level that may hold `key`.
    #[inline]
    pub fn file_for(&self, level: usize, key: &[u8]) -> Option<&Arc<TableFile>> {
        let files = self.level(level);
        let at = files.partition_point(|file| file.meta().bounds.end_before(key));
        files.get(at).filter(|file| !file.meta().bounds.begin_after(key))
    }

    /// The files that may hold `key`, in the order in which a point read must search them: the
    /// first entry found is the newest.
    #[inline]
    pub fn files_for<'k>(&'k self, key: &'k [u8]) -> impl Iterator<Item = &'k Arc<TableFile>> {
        let level0 = self.level(0).iter().filter(|file| file.meta().bounds.may_hold(key));
        level0.chain((1..LEVELS).filter_map(|level| self.file_for(level, key)))
    }

    /// Whether a level deeper than `level` may hold `key`.
    pub fn reaches_below(&self, level: usize, key: &[u8]) -> bool {
        (level + 1..LEVELS).any(|deeper| self.file_for(deeper, key).is_some())
    }

    /// The deepest level with files; 0 if there are none.
    pub fn deepest(&self) -> usize {
        self.levels.iter().rposition(|files| !files.is_empty()).unwrap_or(0)
    }
}
