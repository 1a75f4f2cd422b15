//! The weights of the data blocks of a table, as a part of its index.
//!
//! ```text
//! block sums = (weight zigzag varint | newest zigzag varint) * number of blocks
//! ```
//! `weight` is the sum of the weights of the block's entries. `newest` is the block's largest
//! sequence number less that of the block before it; 0 comes before the first.

use std::ops::Range;

use crate::engine::entry::{MAX_SEQUENCE, Sequence, Tag};
use crate::io::codec::{Reader, put_zigzag};

/// Fewest bytes of a block's part on disk. It limits how much memory a count can make us allocate.
const MIN_BLOCK_BYTES: usize = 2;

/// Collects the weights while a table is written.
#[derive(Debug, Default)]
pub(super) struct BlockSumsBuilder {
    out: Vec<u8>,
    weight: i64,
    newest: Sequence,
    newest_before: Sequence,
    /// Number of entries that weigh.
    weighing: u64,
}

impl BlockSumsBuilder {
    /// Adds an entry to the block in progress.
    #[inline]
    pub(super) fn add(&mut self, tag: Tag) {
        self.weight += tag.weight();
        self.weighing += u64::from(tag.weight() != 0);
        self.newest = self.newest.max(tag.sequence());
    }

    /// Gives the last entry another weight.
    #[inline]
    pub(super) fn reweigh(&mut self, before: Tag, now: Tag) {
        self.weight += now.weight() - before.weight();
        self.weighing += u64::from(now.weight() != 0);
        self.weighing -= u64::from(before.weight() != 0);
    }

    /// Ends the block in progress.
    #[expect(clippy::cast_possible_wrap, reason = "sequence numbers have 56 bits")]
    pub(super) fn finish_block(&mut self) {
        put_zigzag(&mut self.out, self.weight);
        put_zigzag(&mut self.out, self.newest as i64 - self.newest_before as i64);
        self.newest_before = self.newest;
        (self.weight, self.newest) = (0, 0);
    }

    /// Whether any entry weighs.
    pub(super) fn weighs(&self) -> bool {
        self.weighing != 0
    }

    /// The stored form of the blocks so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.out
    }
}

/// The weights of the data blocks in memory.
#[derive(Debug)]
pub(super) struct BlockSums {
    /// The sum of the weights before each block, and of all blocks.
    before: Box<[i64]>,
    /// The largest sequence number of each block.
    newest: Box<[Sequence]>,
}

impl BlockSums {
    /// Reads the weights of `count` blocks; `None` if they are not valid.
    pub(super) fn take(reader: &mut Reader<'_>, count: usize) -> Option<Self> {
        if count > reader.rest().len() / MIN_BLOCK_BYTES {
            return None;
        }
        let (mut before, mut newest) = (Vec::with_capacity(count + 1), Vec::with_capacity(count));
        let (mut sum, mut last) = (0i64, 0i64);
        before.push(sum);
        for _ in 0..count {
            sum = sum.checked_add(reader.zigzag()?)?;
            last = last.checked_add(reader.zigzag()?)?;
            before.push(sum);
            newest.push(Sequence::try_from(last).ok().filter(|last| *last <= MAX_SEQUENCE)?);
        }
        Some(Self { before: before.into_boxed_slice(), newest: newest.into_boxed_slice() })
    }

    /// The sum of the weights of all blocks.
    pub(super) fn total(&self) -> i64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// The sum of the weights of a range of blocks.
    pub(super) fn weight(&self, blocks: Range<usize>) -> i64 {
        let before = |block: usize| self.before.get(block).copied().unwrap_or_else(|| self.total());
        before(blocks.end.max(blocks.start)).wrapping_sub(before(blocks.start))
    }

    /// The blocks of a range that have entries after `sequence`.
    pub(super) fn younger(
        &self,
        blocks: Range<usize>,
        sequence: Sequence,
    ) -> impl Iterator<Item = usize> {
        let newest = self.newest.get(blocks.clone()).unwrap_or_default().iter();
        blocks.zip(newest).filter_map(move |(block, newest)| (*newest > sequence).then_some(block))
    }

    /// Memory that the sums take, in bytes.
    pub(super) fn memory(&self) -> usize {
        (self.before.len() + self.newest.len()) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::entry::EntryKind;
    use proptest::prelude::*;

    const KINDS: [EntryKind; 4] =
        [EntryKind::Delete, EntryKind::Put, EntryKind::DeletePresent, EntryKind::PutAbsent];

    proptest! {
        #[test]
        fn sums_read_back(
            blocks in prop::collection::vec(
                prop::collection::vec((0usize..4, 0u64..=MAX_SEQUENCE), 1..9), 1..20),
            range: (usize, usize), sequence in 0u64..=MAX_SEQUENCE,
        ) {
            let mut builder = BlockSumsBuilder::default();
            for block in &blocks {
                block.iter().for_each(|(kind, at)| builder.add(Tag::new(*at, KINDS[*kind])));
                builder.finish_block();
            }
            let mut reader = Reader::new(builder.bytes());
            let sums = BlockSums::take(&mut reader, blocks.len()).unwrap();
            prop_assert!(reader.is_empty());
            let weight = |block: &Vec<(usize, u64)>| -> i64 {
                block.iter().map(|(kind, at)| Tag::new(*at, KINDS[*kind]).weight()).sum()
            };
            let (a, b) = (range.0 % (blocks.len() + 1), range.1 % (blocks.len() + 1));
            let (a, b) = (a.min(b), a.max(b));
            prop_assert_eq!(sums.weight(a..b), blocks[a..b].iter().map(weight).sum::<i64>());
            prop_assert_eq!(sums.total(), blocks.iter().map(weight).sum::<i64>());
            let has_younger = |at: &usize| blocks[*at].iter().any(|(_, s)| *s > sequence);
            let younger: Vec<usize> = (a..b).filter(has_younger).collect();
            prop_assert_eq!(sums.younger(a..b, sequence).collect::<Vec<_>>(), younger);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, count in 0usize..9) {
            if let Some(sums) = BlockSums::take(&mut Reader::new(&bytes), count) {
                let _ = (sums.total(), sums.weight(1..3), sums.younger(0..9, 5).count());
            }
        }
    }

    #[test]
    fn a_count_of_blocks_that_cannot_be_true_allocates_nothing() {
        assert!(BlockSums::take(&mut Reader::new(&[0; 100]), usize::MAX).is_none());
    }
}
