//! The sums of the weights of the tables of a level.

use std::ops::Range;
use std::sync::Arc;

use super::file::TableFile;
use crate::engine::entry::Sequence;

/// The weights of the tables of a level.
#[derive(Debug)]
pub(super) struct LevelSums {
    /// The sum of the weights of the tables before each, and of all.
    before: Box<[i64]>,
    /// The largest sequence number in the level.
    pub(super) newest: Sequence,
}

impl LevelSums {
    pub(super) fn of(files: &[Arc<TableFile>]) -> Self {
        let mut sum = 0i64;
        let mut before = vec![sum];
        for file in files {
            sum = sum.wrapping_add(file.meta().weight);
            before.push(sum);
        }
        let newest = files.iter().map(|file| file.meta().max_sequence).max().unwrap_or(0);
        Self { before: before.into_boxed_slice(), newest }
    }

    pub(super) fn weight(&self, files: Range<usize>) -> i64 {
        let before = |file: usize| self.before.get(file).copied().unwrap_or(0);
        before(files.end).wrapping_sub(before(files.start))
    }
}
