//! Sums of the weights of a table's entries. The index has the sum of every block, so a sum over a
//! range of keys reads the blocks at its ends, and those that have entries which the reader does
//! not see.

use std::ops::Range;

use super::block::Block;
use super::cache::CacheFill;
use super::index::Index;
use super::table::Table;
use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag};
use crate::error::Result;

/// A position between two entries of a table.
struct Place {
    number: usize,
    entry: u32,
    /// The block, if it had to be read.
    block: Option<Block>,
}

impl Table {
    /// The sum of the weights of the entries of `[lower, upper)` that are visible at `sequence`.
    pub fn weight_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
        sequence: Sequence,
        cache_fill: CacheFill,
    ) -> Result<i64> {
        let lower = self.lower.as_deref().map_or(lower, |first| first.max(lower));
        if self.properties().weight.is_none() || upper.is_some_and(|upper| upper <= lower) {
            return Ok(0);
        }
        let resident = self.resident()?;
        let sum = Sum { table: self, index: &resident.index, sequence, cache_fill };
        let from = sum.place(lower)?;
        let to = match upper {
            Some(upper) => sum.place(upper)?,
            None => Place { number: resident.index.count(), entry: 0, block: None },
        };
        if from.number == to.number {
            return sum.within(&to, from.entry..to.entry);
        }
        let blocks = sum.whole(from.number..to.number)?;
        Ok(blocks - sum.within(&from, 0..from.entry)? + sum.within(&to, 0..to.entry)?)
    }

    /// An estimate of the sum of the weights of the entries of `[lower, upper)`, from the index
    /// alone: blocks at the ends count half, and readers are not told apart.
    pub(crate) fn estimate_between(&self, lower: &[u8], upper: &[u8]) -> Result<i64> {
        if self.properties().weight.is_none() {
            return Ok(0);
        }
        let index = &self.resident()?.index;
        let place = |key: &[u8]| index.search(key, Tag::newest_at(MAX_SEQUENCE));
        let (from, to) = (place(lower).max(self.first_block(index)), place(upper));
        if to < from || from >= index.count() {
            return Ok(0);
        }
        let half = |block: usize| index.weight(block..block + 1) / 2;
        Ok(index.weight(from..to) - half(from) + half(to))
    }

    /// A key strictly between `lower` and `upper` with about as many blocks of that range before it
    /// as after it, and the number of such keys to choose from; `None` if there is none.
    pub(crate) fn split_between(
        &self,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<Option<(usize, Vec<u8>)>> {
        if self.properties().weight.is_none() {
            return Ok(None);
        }
        let index = &self.resident()?.index;
        // After all versions of `lower`, since a separator that equals it is no key in between.
        let first = index.search(lower, Tag::newest_at(0)).max(self.first_block(index));
        let first = first + usize::from(index.separator(first) == lower);
        let end =
            upper.map_or(index.count(), |upper| index.search(upper, Tag::newest_at(MAX_SEQUENCE)));
        if end <= first {
            return Ok(None);
        }
        let key = index.separator(first.midpoint(end - 1));
        let inside = *key > *lower && upper.is_none_or(|upper| *key < *upper);
        Ok(inside.then_some((end - first, key)))
    }
}

/// A sum over entries of a table that one reader sees.
struct Sum<'a> {
    table: &'a Table,
    index: &'a Index,
    sequence: Sequence,
    cache_fill: CacheFill,
}

impl Sum<'_> {
    fn block(&self, number: usize) -> Result<Block> {
        self.table.block(self.index, number, self.cache_fill)
    }

    /// The place of the first entry whose key is not before `key`.
    fn place(&self, key: &[u8]) -> Result<Place> {
        let newest = Tag::newest_at(MAX_SEQUENCE);
        let number = self.index.search(key, newest);
        let before_all = *self.table.properties().smallest >= *key;
        if before_all || number == self.index.count() {
            return Ok(Place { number, entry: 0, block: None });
        }
        let block = self.block(number)?;
        let entry = block.lower_bound(key, newest);
        let entry = entry.map_err(|why| self.table.malformed(self.index, number, why))?;
        Ok(Place { number, entry, block: Some(block) })
    }

    /// The sum over whole blocks.
    fn whole(&self, blocks: Range<usize>) -> Result<i64> {
        let mut sum = self.index.weight(blocks.clone());
        if self.table.properties().max_sequence > self.sequence {
            for number in self.index.younger(blocks, self.sequence) {
                let block = self.block(number)?;
                let is_younger = |tag: Tag| tag.sequence() > self.sequence;
                sum -= self.walk(number, &block, 0..block.count(), is_younger)?;
            }
        }
        Ok(sum)
    }

    /// The sum over some entries of the block of a place.
    fn within(&self, place: &Place, entries: Range<u32>) -> Result<i64> {
        let Some(block) = &place.block else { return Ok(0) };
        self.walk(place.number, block, entries, |tag| tag.sequence() <= self.sequence)
    }

    fn walk(
        &self,
        number: usize,
        block: &Block,
        entries: Range<u32>,
        counts: impl Fn(Tag) -> bool,
    ) -> Result<i64> {
        let mut sum = 0;
        for entry in entries {
            let found = block.entry(entry);
            let tag = found.map_err(|why| self.table.malformed(self.index, number, why))?.tag;
            if counts(tag) {
                sum += tag.weight();
            }
        }
        Ok(sum)
    }
}
