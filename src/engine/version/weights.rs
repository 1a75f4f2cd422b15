//! Sums of weights over ranges of keys in the tables of a level.

use std::ops::Range;

use super::levels::Levels;
use crate::engine::entry::Sequence;
use crate::engine::sstable::CacheFill;
use crate::error::Result;

impl Levels {
    /// The files of a sorted level that may hold keys of `[lower, upper)`. All but the first and the
    /// last hold no others.
    fn files_between(&self, level: usize, lower: &[u8], upper: Option<&[u8]>) -> Range<usize> {
        let files = self.level(level);
        let from = files.partition_point(|file| file.meta().bounds.end_before(lower));
        let to = upper.map_or(files.len(), |upper| {
            files.partition_point(|file| file.meta().bounds.smallest() < upper)
        });
        from..to.max(from)
    }

    /// The sum of the weights of the entries of `[lower, upper)` in a sorted level that are visible
    /// at `sequence`.
    pub(crate) fn weight_between(
        &self,
        level: usize,
        lower: &[u8],
        upper: Option<&[u8]>,
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<i64> {
        let files = self.files_between(level, lower, upper);
        let weight = |files: Range<usize>| {
            let files = self.level(level).get(files).unwrap_or_default().iter();
            files.map(|file| file.weight_between(lower, upper, sequence, cache_fill)).sum()
        };
        let Some(sums) = self.sums(level).filter(|sums| sums.newest <= sequence) else {
            return weight(files);
        };
        if files.len() < 3 {
            return weight(files);
        }
        let inner = files.start + 1..files.end - 1;
        let (first, last) = (weight(files.start..inner.start)?, weight(inner.end..files.end)?);
        Ok(first + sums.weight(inner) + last)
    }

    /// An estimate of the sum of the weights of the entries of `[lower, upper)` in a sorted level,
    /// from metadata and indexes alone.
    pub(crate) fn estimate_between(&self, level: usize, lower: &[u8], upper: &[u8]) -> Result<i64> {
        let files = self.files_between(level, lower, Some(upper));
        let estimate = |at: usize| match self.level(level).get(at) {
            Some(file) => file.table()?.estimate_between(lower, upper),
            None => Ok(0),
        };
        match files.len() {
            0 => Ok(0),
            1 => estimate(files.start),
            _ => {
                let inner = files.start + 1..files.end - 1;
                let inner = self.sums(level).map_or(0, |sums| sums.weight(inner));
                Ok(estimate(files.start)? + inner + estimate(files.end - 1)?)
            }
        }
    }

    /// A key strictly between `lower` and `upper` with about as much of that range in a sorted level
    /// before it as after it, and the number of such keys to choose from, counted in blocks; `None`
    /// if there is none.
    pub(crate) fn split_between(
        &self,
        level: usize,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<Option<(usize, Vec<u8>)>> {
        let files = self.files_between(level, lower, upper);
        let of = self.level(level).get(files).unwrap_or_default();
        if let [only] = of {
            return only.table()?.split_between(lower, upper);
        }
        let Some(file) = of.get(of.len() / 2) else { return Ok(None) };
        let key = file.meta().bounds.smallest();
        let inside = key > lower && upper.is_none_or(|upper| key < upper);
        // Tables come before their blocks, so that few are opened.
        Ok(inside.then(|| (usize::MAX / 2 + of.len(), key.to_vec())))
    }
}
