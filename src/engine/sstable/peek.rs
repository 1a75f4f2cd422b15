//! Reads of a table that leave no trace in cache and counters: samples and estimates.

use super::block::Block;
use super::block_cursor::BlockCursor;
use super::index::Index;
use super::table::Table;
use crate::engine::entry::{Sequence, Tag};
use crate::engine::hash::HashedKey;
use crate::error::Result;

impl Table {
    /// Data block `number`, without a trace in cache and counters.
    fn peek_block(&self, index: &Index, number: usize) -> Result<Block> {
        let handle = self.handle(index, number)?;
        match self.cache.get(self.loader.number, handle.offset) {
            Some(block) => Ok(block),
            None => self.loader.block(handle),
        }
    }

    /// Keys and tags of up to `most` entries, evenly spread over the block at a part of the file. A
    /// part is a fraction of 2^64. Leaves no trace in cache and counters.
    pub(crate) fn peek_entries(&self, part: u64, most: u32) -> Result<Vec<(Vec<u8>, Tag)>> {
        let index = &self.resident()?.index;
        let first = self.first_block(index);
        let number = (u128::from(part) * (index.count() - first) as u128) >> u64::BITS;
        let number = first + usize::try_from(number).unwrap_or(0);
        let block = self.peek_block(index, number)?;
        let count = u64::from(block.count());
        let chosen = (0..u64::from(most).min(count)).map(|at| {
            let entry = at * count / u64::from(most).min(count);
            let cursor =
                BlockCursor::at(block.clone(), u32::try_from(entry).unwrap_or(0), Vec::new())
                    .map_err(|why| self.malformed(index, number, why))?;
            let tag = cursor.tag();
            Ok((cursor.into_buffer(), tag))
        });
        chosen.collect()
    }

    /// The tag of what [`Table::get`] finds. Leaves no trace in cache and counters.
    pub(crate) fn peek(&self, key: &HashedKey<'_>, sequence: Sequence) -> Result<Option<Tag>> {
        let resident = self.resident()?;
        let hash = key.hash_with(self.properties().hash_seed);
        let target = Tag::newest_at(sequence);
        let number = resident.index.search(key.key(), target);
        let absent = resident.filter.as_ref().is_some_and(|filter| !filter.may_contain(hash));
        if absent || number == resident.index.count() {
            return Ok(None);
        }
        let block = self.peek_block(&resident.index, number)?;
        let found = block
            .get(key.key(), hash, target)
            .map_err(|why| self.malformed(&resident.index, number, why))?;
        Ok(found.map(|(tag, _)| tag))
    }
}
